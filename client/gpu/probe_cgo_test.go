//go:build cgo

// The tests of the probe as it runs: built as `make build` does, run from memory, with
// a real library loaded into it. They need a C compiler, as all that is built with
// cgo (make race), which is why they are built only then.

package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// buildProbe builds the probe once for all tests.
var buildProbe = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "nomadish-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's own cleaning gets it
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "probe"), "./probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	return os.ReadFile(filepath.Join(dir, "probe"))
})

// fakeDriver is a compiled library and the file that says what it plays.
type fakeDriver struct {
	t                *testing.T
	library, control string
	probe            *Probe
}

func newFakeDriver(t *testing.T) *fakeDriver {
	t.Helper()
	dir := t.TempDir()
	f := &fakeDriver{t: t, library: filepath.Join(dir, "libnvidia-ml.so.1"), control: filepath.Join(dir, "control")}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	compile := exec.Command(cc, "-shared", "-fPIC", "-o", f.library, "-DCONTROL=\""+f.control+"\"", "testdata/fakenvml/nvml.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed: %v\n%s", err, out)
	}
	f.probe = &Probe{Program: buildProbe, Libraries: []string{f.library}}
	t.Cleanup(func() {
		f.probe.Close()
		if f.probe.last != nil {
			<-f.probe.last.ended
		}
	})
	return f
}

func (f *fakeDriver) play(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.control, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeDriver) look() *nvml.Snapshot {
	f.t.Helper()
	s, err := f.probe.Look(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func TestProbeReadsTheLibrary(t *testing.T) {
	s := newFakeDriver(t).look()
	yes, no, margin := true, false, 46
	gpu := func(id, bus string) nvml.GPU {
		return nvml.GPU{
			UUID: id, Name: "NVIDIA H100 80GB HBM3", BusID: bus, MemoryMiB: 81559, BAR1MiB: 131072, PowerLimitW: 700, CoreClockMHz: 1980,
			MemoryClockMHz: 2619, PCIeGeneration: 5, PCIeLanes: 16, DisplayMode: &no, PersistenceMode: &yes, ComputeCapability: "9.0",
			Temperature: 41, SlowdownAt: 87, ThermalMargin: &margin,
		}
	}
	a, b, c := gpu("GPU-fake-0", "0000:1b:00.0"), gpu("GPU-fake-1", "0000:1c:00.0"), gpu("GPU-fake-2", "10000:1d:00.0")
	a.Links = []nvml.Link{{Peer: b.BusID}, {Peer: b.BusID}, {Peer: "0000:07:00.0", Switch: true}}
	b.Links = []nvml.Link{{Peer: a.BusID}, {Peer: a.BusID}, {Peer: "0000:07:00.0", Switch: true}}
	c.MIG, c.Slices = true, []nvml.Slice{{UUID: "MIG-fake-2-0", Profile: "1g.10gb", MemoryMiB: 9856}, {UUID: "MIG-fake-2-3", Profile: "1c.3g.40gb", MemoryMiB: 40192}}
	want := &nvml.Snapshot{Protocol: nvml.Protocol, Driver: "550.54.15", CUDA: "12.4", GPUs: []nvml.GPU{a, b, c}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestProbeFollowsHealth(t *testing.T) {
	f := newFakeDriver(t)
	f.look()
	run := f.probe.run
	f.play("ecc 3\n")
	if s := f.look(); s.GPUs[1].Uncorrected != 3 || s.GPUs[0].Uncorrected != 0 {
		t.Errorf("ECC errors: %+v", s.GPUs)
	}
	f.play("xid 79\n")
	if s := f.look(); !reflect.DeepEqual(s.Events, []nvml.Event{{UUID: "GPU-fake-1", Xid: 79}}) {
		t.Errorf("events: %+v", s.Events)
	}
	f.play("lost 1\n")
	if s := f.look(); !s.GPUs[1].Lost || s.GPUs[1].UUID != "GPU-fake-1" || s.GPUs[0].Lost {
		t.Errorf("lost: %+v", s.GPUs)
	}
	f.play("temperature 95\n")
	if s := f.look(); s.GPUs[0].Temperature != 95 || *s.GPUs[0].ThermalMargin != -8 {
		t.Errorf("temperature: %+v", s.GPUs[0])
	}
	f.play("count 2\n")
	if s := f.look(); len(s.GPUs) != 2 {
		t.Errorf("%d GPUs", len(s.GPUs))
	}
	f.play("")
	if s := f.look(); len(s.GPUs) != 3 || s.Events != nil || s.GPUs[1].Lost {
		t.Errorf("all well: %+v", s)
	}
	if f.probe.run != run {
		t.Error("another program was started meanwhile")
	}
}

func TestProbeWithoutADriver(t *testing.T) {
	f := func(what, play string, libraries []string, absent bool, want string) {
		t.Helper()
		d := newFakeDriver(t)
		d.play(play)
		if libraries != nil {
			d.probe.Libraries = libraries
		}
		for range 2 {
			if s := d.look(); s.Absent != absent || !strings.Contains(s.Error, want) || len(s.GPUs) > 0 {
				t.Errorf("%s: %+v", what, s)
			}
		}
		d.play("")
	}
	f("no library", "", []string{"/nowhere/libnvidia-ml.so.1"}, true, "/nowhere/libnvidia-ml.so.1")
	f("another library", "", []string{"libm.so.6"}, false, "has no nvml")
	f("driver not loaded", "init 9", nil, true, "not loaded")
	f("no GPU", "count 0", nil, true, "")
	f("other versions", "init 18", nil, false, "reboot")
}

// TestProbeFindsTheLibrary where the loader looks.
func TestProbeFindsTheLibrary(t *testing.T) {
	f := newFakeDriver(t)
	f.probe.Libraries = nil
	t.Setenv("LD_LIBRARY_PATH", filepath.Dir(f.library))
	if s := f.look(); len(s.GPUs) != 3 {
		t.Errorf("%+v", s)
	}
}

func TestProbeOutlivesTheDriver(t *testing.T) {
	f := newFakeDriver(t)
	f.look()
	f.play("crash 1\n")
	if s, err := f.probe.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "SIGSEGV") {
		t.Errorf("a crash: %+v, %v", s, err)
	}
	f.play("")
	if s := f.look(); len(s.GPUs) != 3 {
		t.Errorf("after a crash: %+v", s)
	}
	f.play("hang 1\n")
	f.probe.Limit = 50 * time.Millisecond
	if s, err := f.probe.Look(t.Context()); !errors.Is(err, ErrSilent) {
		t.Errorf("a driver that hangs: %+v, %v", s, err)
	}
	f.play("")
	if s := f.look(); len(s.GPUs) != 3 {
		t.Errorf("after it hung: %+v", s)
	}
	f.play("hang 1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.probe.Look(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a look that is not wanted any more: %v", err)
	}
}
