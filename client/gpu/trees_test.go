package gpu

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
	"github.com/nomadish/nomadish/structs"
)

var rewrite = flag.Bool("rewrite", false, "write what is found as what is wanted; the diff is the review")

// machine expands a recorded tree: "PATH -> TARGET" is a link, "PATH = TEXT" a file,
// "gpu UUID BUSID [fabric=N] [peer=BUSID]... [slice=PROFILE]..." what NVML tells.
func machine(t *testing.T, file string) (root string, s *nvml.Snapshot) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	s = &nvml.Snapshot{Protocol: nvml.Protocol, Driver: "550.54.15", CUDA: "12.4"}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if from, to, ok := strings.Cut(line, " -> "); ok {
			path := filepath.Join(root, from)
			must(os.MkdirAll(filepath.Dir(path), 0o755))
			must(os.MkdirAll(filepath.Join(filepath.Dir(path), to), 0o755))
			must(os.Symlink(to, path))
		} else if name, text, ok := strings.Cut(line, " = "); ok {
			path := filepath.Join(root, name)
			must(os.MkdirAll(filepath.Dir(path), 0o755))
			must(os.WriteFile(path, []byte(text+"\n"), 0o600))
		} else if words := strings.Fields(line); len(words) > 2 && words[0] == "gpu" {
			s.GPUs = append(s.GPUs, recorded(t, words[1:]))
		}
	}
	return root, s
}

func recorded(t *testing.T, words []string) nvml.GPU {
	t.Helper()
	g := nvml.GPU{UUID: words[0], BusID: words[1], Name: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, SlowdownAt: 87, Temperature: 40}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "fabric":
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				g.Links = append(g.Links, nvml.Link{Peer: "0000:07:00.0", Switch: true})
			}
		case "peer":
			g.Links = append(g.Links, nvml.Link{Peer: value})
		case "slice":
			g.MIG = true
			g.Slices = append(g.Slices, nvml.Slice{UUID: fmt.Sprintf("MIG-%s-%d", g.UUID, len(g.Slices)), Profile: value})
		default:
			t.Fatalf("unknown word %q", w)
		}
	}
	return g
}

// draw prints a report as a tree.
func draw(r *Report) string {
	var b strings.Builder
	for _, d := range r.Devices {
		fmt.Fprintf(&b, "%s/%s/%s\n", d.Vendor, d.Type, d.Name)
		for _, one := range d.Instances {
			fmt.Fprintf(&b, "  %s %s numa %d socket %d %s\n", one.ID, one.Locality.PciBusID, one.Locality.NUMANode, one.Locality.Socket, one.HealthDescription)
		}
	}
	if r.Topology == nil {
		return b.String()
	}
	var below func(parent, indent string)
	below = func(parent, indent string) {
		for _, c := range r.Topology.Cells {
			if c.Parent == parent {
				fmt.Fprintf(&b, "%s%s (%s) %s\n", indent, c.ID, c.Level, strings.Join(c.Devices, " "))
				below(c.ID, indent+"  ")
			}
		}
	}
	b.WriteString("node\n")
	below("", "  ")
	for _, l := range r.Topology.Links {
		fmt.Fprintf(&b, "%s %s-%s %d\n", l.Kind, l.A, l.B, l.Lanes)
	}
	return b.String()
}

func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recorded machines: %v", len(files), err)
	}
	for _, file := range files {
		root, s := machine(t, file)
		if !Present(root) {
			t.Errorf("%s: no sign of a GPU", file)
		}
		r := (&DeviceTracker{Root: root}).Update(s, nil, time.Now())
		res := &structs.NodeResources{Devices: r.Devices, Topology: r.Topology}
		if err := res.ValidateTopology(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		slices.Reverse(s.GPUs) // in whatever order NVML lists them
		if again := draw((&DeviceTracker{Root: root}).Update(s, nil, time.Now())); again != draw(r) {
			t.Errorf("%s: another order of GPUs gives another report:\n%s", file, again)
		}
		wanted := strings.TrimSuffix(file, ".txt") + ".want"
		if *rewrite {
			if err := os.WriteFile(wanted, []byte(draw(r)), 0o644); err != nil { // a file of the repository
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(wanted)
		if err != nil || draw(r) != string(want) {
			t.Errorf("%s (%v): got\n%swant\n%s", file, err, draw(r), want)
		}
	}
}

func TestNoGPUs(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "") // where this machine's own may be
	root := t.TempDir()
	if Present(root) {
		t.Error("an empty machine shows signs of a GPU")
	}
	for _, sign := range []string{"proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg"} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, sign), 0o755); err != nil {
			t.Fatal(err)
		}
		if !Present(dir) {
			t.Errorf("%s is no sign of a GPU", sign)
		}
	}
	k := DeviceTracker{Root: root}
	for _, s := range []*nvml.Snapshot{{}, {Absent: true, Error: "no library"}} {
		if r := k.Update(s, nil, time.Now()); r.Devices != nil || r.Topology != nil {
			t.Errorf("%+v: %s", s, draw(r))
		}
	}
}
