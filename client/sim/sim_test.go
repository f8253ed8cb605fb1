package sim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

const example = `
shape "dgx" {
  count  = 4
  cores  = 128
  mhz    = 2000                 # per core
  memory = 1048576              # MiB
  disk   = 2000000              # MiB
  meta   = { rack = "r1" }
  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
    memory              = 81920 # MiB each
  }
}
shape "small" {}
`

func TestExample(t *testing.T) {
	layouts, err := Parse([]byte(example), "shapes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	nodes := Nodes(layouts, Options{Seed: "s", Datacenter: "dc1", Pool: "default", Driver: "mock_driver", MinDynamicPort: 20000, MaxDynamicPort: 32000})
	if len(nodes) != 5 || nodes[3].Name != "dgx-3" || nodes[4].Name != "small-0" {
		t.Fatalf("%d nodes", len(nodes))
	}
	n := nodes[1]
	if n.NodeResources.Cpu.CpuShares != 256000 || n.NodeResources.Cpu.TotalCpuCores != 128 || len(n.NodeResources.Cpu.ReservableCpuCores) != 128 ||
		n.NodeResources.Memory.MemoryMB != 1<<20 || n.NodeResources.Disk.DiskMB != 2000000 || n.Meta["rack"] != "r1" {
		t.Errorf("resources %+v", n.NodeResources)
	}
	d := n.NodeResources.Devices[0]
	if d.Vendor != "nvidia" || d.Type != "gpu" || d.Name != "H100" || *d.Attributes["memory"].IntVal != 81920 || len(d.Instances) != 8 {
		t.Errorf("devices %+v", d)
	}
	for k, want := range []struct{ socket, sw int }{{0, 0}, {0, 0}, {0, 1}, {0, 1}, {1, 2}, {1, 2}, {1, 3}, {1, 3}} {
		g := d.Instances[k]
		if g.ID != "dgx-1-gpu-"+string(rune('0'+k)) || g.Locality.Socket != want.socket || g.Locality.Switch != want.sw || g.Locality.NUMANode != want.socket {
			t.Errorf("GPU %d: %s %+v", k, g.ID, g.Locality)
		}
	}
	if nodes[0].ComputedClass != nodes[3].ComputedClass || nodes[0].ComputedClass == nodes[4].ComputedClass {
		t.Error("nodes of a shape must be of one class, and of no other's")
	}
	if _, ok := n.Drivers["raw_exec"]; ok || !n.Drivers["mock_driver"].Healthy {
		t.Errorf("drivers %v", n.Drivers)
	}
}

// Nodes of a shape share what is the same, and nothing else.
func TestNodesShare(t *testing.T) {
	layouts := []Layout{{Name: "a", Count: 2, Cores: 4, MHz: 1000, Memory: 100}, {Name: "b", Count: 1, Cores: 8, MHz: 1000, Memory: 200, Class: "big"}}
	nodes := Nodes(layouts, Options{Seed: "s", Datacenter: "dc1", Driver: "mock_driver"})
	one, two, other := nodes[0], nodes[1], nodes[2]
	if one.Drivers["mock_driver"] != two.Drivers["mock_driver"] || one.NodeResources.Networks[0] != two.NodeResources.Networks[0] {
		t.Error("two of a shape have nothing in common")
	}
	if one.Drivers["mock_driver"] == other.Drivers["mock_driver"] {
		t.Error("two shapes share a driver")
	}
	if one.ID == two.ID || two.Name != "a-1" || two.Attributes["unique.hostname"] != "a-1" || one.Attributes["unique.hostname"] != "a-0" {
		t.Errorf("%s: %v; %s: %v", one.ID, one.Attributes, two.ID, two.Attributes)
	}
	if one.ComputedClass != two.ComputedClass || one.ComputedClass == other.ComputedClass || other.NodeResources.Cpu.TotalCpuCores != 8 {
		t.Errorf("classes %q, %q, %q", one.ComputedClass, two.ComputedClass, other.ComputedClass)
	}
}

func TestIdentitiesFollowTheSeed(t *testing.T) {
	layouts := []Layout{{Name: "a", Count: 100, Cores: 1, MHz: 1, Memory: 1}, {Name: "b", Count: 100, Cores: 1, MHz: 1, Memory: 1}}
	ids := func(seed string) map[string]bool {
		out := map[string]bool{}
		for _, n := range Nodes(layouts, Options{Seed: seed}) {
			out[n.ID], out[n.SecretID] = true, true
		}
		return out
	}
	one, again, other := ids("1"), ids("1"), ids("2")
	if len(one) != 400 {
		t.Errorf("%d distinct identities, want 400", len(one))
	}
	for id := range one {
		if !again[id] || other[id] {
			t.Fatalf("%s: same seed %v, other seed %v", id, again[id], other[id])
		}
	}
}

// A node of a shape offers the slots that the shape states, and none if it states none of any type.
func TestSlotsOfLayouts(t *testing.T) {
	layouts, err := Parse([]byte("shape \"a\" {\n slots {\n  batch = 16\n  interactive-light = 8\n }\n}\nshape \"b\" {}\nshape \"c\" {\n slots {}\n}"), "f.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]int{{"batch": 16, "interactive-light": 8}, nil, {"batch": 0}} {
		if got := Nodes(layouts, Options{Driver: "mock_driver"})[i].NodeResources.Slots; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: have %v, want %v", layouts[i].Name, got, want)
		}
	}
}

func TestBadLayouts(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		_, err := Parse([]byte(src), "f.hcl")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.hcl") {
			t.Errorf("%s: %v; want %q", src, err, want)
		}
	}
	f(``, "no shape")
	f(`shape "a" {`, "f.hcl:1")
	f(`shape {}`, "Missing name for shape")
	f(`shape "a" { cuont = 4 }`, `"count"`)
	f(`nodes "a" {}`, `Unsupported block type`)
	f(`shape "a" { count = "many" }`, "number is required")
	f(`shape "a" { count = 0 }`, "count = 0: must be 1 to")
	f(`shape "a" { cores = 70000 }`, "cores = 70000: must be 1 to 65535")
	f(`shape "a" { memory = -1 }`, "memory = -1")
	f("shape \"a\" {}\nshape \"a\" {}", "there is one of that name at line 1")
	f(`shape "a b" {}`, "blanks")
	f(`shape "a" { count = 200001 }`, "must be 1 to 200000")
	f("shape \"a\" { count = 200000 }\nshape \"b\" { count = 1 }", "over 200000 nodes")
	f("shape \"a\" {\n slots {\n  batch = \"many\"\n }\n}", "f.hcl:3")
	f("shape \"a\" {\n slots {\n  batch = -1\n }\n}", `shape "a": slots: batch: -1: must be 0 to 65536`)
	f("shape \"a\" {\n slots {\n  batch = 1.5\n }\n}", "f.hcl:3")
	f("shape \"a\" {\n slots \"batch\" {\n  count = 1\n }\n}", "Extraneous label for slots")
	f("shape \"a\" {\n gpus \"H100\" {}\n}", "vendor/type/model")
	f("shape \"a\" {\n gpus \"nvidia/gpu/H100\" {\n sockets = 0\n }\n}", "sockets = 0")
	f("shape \"a\" {\n gpus \"nvidia/gpu/H100\" {\n count = 6\n sockets = 4\n }\n}", "do not divide evenly")
	f("shape \"a\" {\n gpus \"n/g/H\" {}\n gpus \"n/g/H\" {}\n}", "given twice")
	gpus := func(body, want string) {
		t.Helper()
		f("shape \"a\" {\n gpus \"nvidia/gpu/H100\" {\n"+body+"\n}\n}", want)
	}
	gpus("switches = [2, 0]", "switches = 0: must be 1 to")
	gpus("switches = [2, 1]\ncount = 4", "switches has 3 GPUs in all, count is 4")
	gpus("switches = [2, 2]\nsockets = 2", "leave out sockets")
	gpus("switches = [4000, 4000]", "count = 8000: must be 1 to")
	gpus("switches = 3", "list of number")
	gpus("count = 65\nnvlink = true", "at most 64")
	gpus("mig = 17", "mig = 17: must be 0 to 16")
	gpus("mig = 7\nnvlink = true", "has no NVLink")
	gpus("mig = 7\nmig_profile = \"a/b\"", "mig_profile")
	gpus("count = 1000\nmig = 7", "at most 4096")
	f("shape \"a\" {\n gpus \"n/gpu/A\" {\n mig = 7\n}\n gpus \"n/gpu/B\" {\n mig = 7\n}\n}", "n/mig/1g.10gb is given twice")
}

func FuzzLayouts(f *testing.F) {
	f.Add(example)
	f.Add(`shape "a" { count = 3 }`)
	f.Add(trees)
	f.Fuzz(func(t *testing.T, src string) {
		layouts, err := Parse([]byte(src), "f.hcl")
		if err != nil {
			return
		}
		for i := range layouts {
			layouts[i].Count = min(layouts[i].Count, 2)
		}
		for _, n := range Nodes(layouts, Options{Seed: "s", Driver: "mock_driver"}) {
			if err := n.NodeResources.ValidateTopology(); err != nil {
				t.Error(err)
			}
			if n.NodeResources.Cpu.CpuShares <= 0 || n.ComputedClass == "" || n.Status != structs.NodeStatusReady {
				t.Errorf("%+v", n)
			}
		}
	})
}
