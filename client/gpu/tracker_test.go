package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// bad returns the devices that a report calls bad, with the words.
func bad(r *Report) string {
	var out []string
	for _, d := range r.Devices {
		for _, one := range d.Instances {
			if !one.Healthy {
				out = append(out, one.ID+": "+one.HealthDescription)
			} else if one.HealthDescription != "" {
				out = append(out, one.ID+" is well, but "+one.HealthDescription)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// patient is a tracker with two GPUs, of which g1 is treated.
type patient struct {
	t   *testing.T
	k   DeviceTracker
	now time.Time
}

func (p *patient) gpus() []nvml.GPU {
	return []nvml.GPU{
		{UUID: "g0", Name: "H100", BusID: "0000:01:00.0", Temperature: 50, SlowdownAt: 90},
		{UUID: "g1", Name: "H100", BusID: "0000:02:00.0", Temperature: 50, SlowdownAt: 90},
	}
}

// update has a snapshot taken a second after the last, and wants g1 bad for a reason
// that holds want; empty: good.
func (p *patient) update(what string, edit func(*nvml.Snapshot, *nvml.GPU), want string) {
	p.t.Helper()
	p.now = p.now.Add(time.Second)
	s := &nvml.Snapshot{GPUs: p.gpus()}
	if edit != nil {
		edit(s, &s.GPUs[1])
	}
	p.check(what, p.k.Update(s, nil, p.now), want)
}

func (p *patient) check(what string, r *Report, want string) {
	p.t.Helper()
	n := 0
	for _, d := range r.Devices {
		n += len(d.Instances)
	}
	got := bad(r)
	if n != 2 || strings.Contains(got, "g0") || (want == "") != (got == "") || !strings.Contains(got, want) {
		p.t.Errorf("%s: %d devices, bad: %q; want g1 %q", what, n, got, want)
	}
}

func TestHealth(t *testing.T) {
	type edit = func(*nvml.Snapshot, *nvml.GPU)
	f := func(what string, sick edit, want string, returns bool) {
		t.Helper()
		p := &patient{t: t, now: time.Unix(1000, 0)}
		p.update("at first", nil, "")
		p.update(what, sick, want)
		p.update(what+", still", func(s *nvml.Snapshot, g *nvml.GPU) { sick(s, g) }, want)
		after := want
		if returns {
			after = ""
		}
		p.update(what+", over", nil, after)
	}
	xid := func(n uint64) edit {
		return func(s *nvml.Snapshot, _ *nvml.GPU) { s.Events = []nvml.Event{{UUID: "g1", Xid: n}} }
	}
	f("nothing", func(*nvml.Snapshot, *nvml.GPU) {}, "", true)
	f("uncorrected ECC error", func(_ *nvml.Snapshot, g *nvml.GPU) { g.Uncorrected = 1 }, "ECC", true)
	f("lost", func(_ *nvml.Snapshot, g *nvml.GPU) { g.Lost = true }, "lost", true)
	f("lost and forgotten", func(s *nvml.Snapshot, _ *nvml.GPU) { s.GPUs = s.GPUs[:1] }, "does not list", true)
	f("needs a reset", func(_ *nvml.Snapshot, g *nvml.GPU) { g.NeedsReset = true }, "reset", true)
	f("broken rows", func(_ *nvml.Snapshot, g *nvml.GPU) { g.RemapFailed = true }, "rows", true)
	f("fatal Xid", xid(79), "Xid 79 (fell off the bus)", false)
	f("unknown Xid", xid(12345), "Xid 12345;", false)
	f("a program's own Xid", xid(31), "", true)
	f("somebody else's Xid", func(s *nvml.Snapshot, _ *nvml.GPU) { s.Events = []nvml.Event{{UUID: "g7", Xid: 79}, {Xid: 79}} }, "", true)
	f("warm", func(_ *nvml.Snapshot, g *nvml.GPU) { g.Temperature = 89 }, "", true)
	f("threshold not known", func(_ *nvml.Snapshot, g *nvml.GPU) { g.Temperature, g.SlowdownAt = 120, 0 }, "", true)
}

func TestXidEndsWithAReset(t *testing.T) {
	p := &patient{t: t}
	p.update("Xid", func(s *nvml.Snapshot, _ *nvml.GPU) { s.Events = []nvml.Event{{UUID: "g1", Xid: 74}} }, "Xid 74")
	p.update("reset begins", func(s *nvml.Snapshot, _ *nvml.GPU) { s.GPUs = s.GPUs[:1] }, "does not list")
	p.update("back", nil, "")
}

func TestHeat(t *testing.T) {
	margin := 0
	for _, hot := range []func(*nvml.GPU){
		func(g *nvml.GPU) { g.Temperature = 90 },
		func(g *nvml.GPU) { g.SlowdownAt, g.ThermalMargin = 0, &margin },
	} {
		p := &patient{t: t, now: time.Unix(1000, 0)}
		sick := func(_ *nvml.Snapshot, g *nvml.GPU) { hot(g) }
		p.update("cool", nil, "")
		for i := range 10 {
			p.update(fmt.Sprintf("hot for %d s", i), sick, "")
		}
		p.update("hot for 10 s", sick, "hotter")
		p.update("cool for a moment", nil, "hotter")
		p.update("hot again", sick, "hotter")
		for i := range 10 {
			p.update(fmt.Sprintf("cool for %d s", i), nil, "hotter")
		}
		p.update("cool for 10 s", nil, "")
	}
}

// TestFailuresOfTheDriver: one failure is forgiven, a driver that hangs is not.
func TestFailuresOfTheDriver(t *testing.T) {
	f := func(what string, errs []error, want []string) {
		t.Helper()
		k := DeviceTracker{Root: t.TempDir()}
		gpus := (&patient{}).gpus()[1:]
		k.Update(&nvml.Snapshot{GPUs: gpus}, nil, time.Now())
		for i, err := range errs {
			s := &nvml.Snapshot{GPUs: gpus}
			if err != nil {
				s = nil
			}
			if got := bad(k.Update(s, err, time.Now())); (got == "") != (want[i] == "") || !strings.Contains(got, want[i]) {
				t.Errorf("%s: look %d: %q, want %q", what, i, got, want[i])
			}
		}
	}
	crash := errors.New("crashed")
	hang := fmt.Errorf("%w within 10s", ErrSilent)
	f("crash", []error{crash, nil}, []string{"", ""})
	f("two crashes", []error{crash, crash, nil}, []string{"", "crashed", ""})
	f("two crashes apart", []error{crash, nil, crash}, []string{"", "", ""})
	f("hang", []error{hang, nil}, []string{"does not answer within 10s", ""})
	k := DeviceTracker{Root: t.TempDir()}
	k.Update(&nvml.Snapshot{GPUs: (&patient{}).gpus()}, nil, time.Now())
	if got := bad(k.Update(&nvml.Snapshot{Absent: true, Error: "not loaded"}, nil, time.Now())); strings.Count(got, "does not list") != 2 {
		t.Errorf("the driver was unloaded: %q", got)
	}
}

// TestTopologyOutlivesTheLoss: a node does not look like another while a GPU is away.
func TestTopologyOutlivesTheLoss(t *testing.T) {
	root, s := machine(t, "testdata/uneven.txt")
	k := DeviceTracker{Root: root}
	before := draw(k.Update(s, nil, time.Now()))
	for what, edit := range map[string]func(*nvml.Snapshot){
		"a GPU with slices is lost": func(s *nvml.Snapshot) {
			s.GPUs[0] = nvml.GPU{UUID: "GPU-mig", Name: s.GPUs[0].Name, BusID: s.GPUs[0].BusID, Lost: true}
		},
		"all are gone": func(s *nvml.Snapshot) { s.GPUs = nil },
	} {
		_, sick := machine(t, "testdata/uneven.txt")
		edit(sick)
		r := k.Update(sick, nil, time.Now())
		if bad(r) == "" {
			t.Errorf("%s: nothing is bad", what)
		}
		for _, d := range r.Devices {
			for _, one := range d.Instances {
				one.HealthDescription = ""
			}
		}
		if got := draw(r); got != before {
			t.Errorf("%s: got\n%swant\n%s", what, got, before)
		}
	}
	if got := draw(k.Update(s, nil, time.Now())); got != before {
		t.Errorf("all well again: got\n%swant\n%s", got, before)
	}
}

func TestIgnored(t *testing.T) {
	root, s := machine(t, "testdata/uneven.txt")
	k := DeviceTracker{Root: root, Ignored: []string{"GPU-23", "MIG-GPU-mig-0"}}
	r := k.Update(s, nil, time.Now())
	if got := draw(r); strings.Contains(got, "GPU-23") || strings.Contains(got, "MIG-GPU-mig-0") || !strings.Contains(got, "GPU-24") {
		t.Errorf("got\n%s", got)
	}
}

func TestAttributes(t *testing.T) {
	yes, no := true, false
	full := nvml.GPU{
		UUID: "a", Name: "NVIDIA A/B", BusID: "0000:01:00.0", MemoryMiB: 81559, BAR1MiB: 131072, PowerLimitW: 700, CoreClockMHz: 1980,
		MemoryClockMHz: 2619, PCIeGeneration: 5, PCIeLanes: 16, DisplayMode: &no, PersistenceMode: &yes, ComputeCapability: "9.0",
	}
	less := full
	less.UUID, less.BusID, less.MemoryMiB, less.PersistenceMode = "b", "0000:02:00.0", 80000, &no
	bare := nvml.GPU{UUID: "c", Name: "bare", BusID: "0000:03:00.0", PCIeGeneration: 99, PCIeLanes: 16}
	cut := full
	cut.UUID, cut.BusID, cut.MIG = "d", "0000:04:00.0", true
	cut.Slices = []nvml.Slice{{UUID: "d0", Profile: "1g.10gb", MemoryMiB: 9856}}
	k := DeviceTracker{Root: t.TempDir()}
	r := k.Update(&nvml.Snapshot{Driver: "550.1", CUDA: "12.4", GPUs: []nvml.GPU{full, less, bare, cut}}, nil, time.Now())
	got := map[string]string{}
	for _, d := range r.Devices {
		for name, a := range d.Attributes {
			got[d.Type+"/"+d.Name+" "+name] = a.String()
		}
	}
	want := map[string]string{"mig/1g.10gb memory": "9856 MiB", "mig/1g.10gb model": "NVIDIA A/B"}
	for name, v := range map[string]string{
		"memory": "80000 MiB", "bar1": "131072 MiB", "power": "700 W", "cores_clock": "1980 MHz", "memory_clock": "2619 MHz",
		"pci_bandwidth": "63008 MB/s", "display_state": "Disabled",
	} {
		want["gpu/NVIDIA A-B "+name] = v
	}
	for _, group := range []string{"gpu/NVIDIA A-B", "gpu/bare", "mig/1g.10gb"} {
		want[group+" driver_version"], want[group+" cuda_version"] = "550.1", "12.4"
		if group != "gpu/bare" {
			want[group+" compute_capability"] = "9.0"
		}
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s = %q, want %q", name, got[name], v)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also: %v", got)
	}
}
