package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

const trees = `
shape "even" {
  gpus "nvidia/gpu/H100" {
    count               = 8
    sockets             = 2
    switches_per_socket = 2
  }
}
shape "uneven" {
  gpus "nvidia/gpu/L4" {
    switches = [2, 1, 4]
  }
}
shape "mixed" {
  gpus "nvidia/gpu/A100" {
    count  = 2
    nvlink = true
  }
  gpus "nvidia/gpu/H100" {
    count  = 2
    sockets = 2
    mig    = 2
    memory = 81920
  }
}
shape "none" {}
`

// draw prints a node's tree.
func draw(n *structs.Node) string {
	t := n.NodeResources.Topology
	if t == nil {
		return ""
	}
	var b strings.Builder
	var below func(parent, indent string)
	below = func(parent, indent string) {
		for _, c := range t.Cells {
			if c.Parent == parent {
				fmt.Fprintf(&b, "%s%s (%s) %s\n", indent, c.ID, c.Level, strings.Join(c.Devices, " "))
				below(c.ID, indent+"  ")
			}
		}
	}
	below("", "")
	for _, l := range t.Links {
		fmt.Fprintf(&b, "%s %s=%s\n", l.Kind, l.A, l.B)
	}
	return strings.ReplaceAll(b.String(), n.Name+"-", "")
}

func TestTrees(t *testing.T) {
	layouts, err := Parse([]byte(trees), "trees.hcl")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`socket-0 (socket)
  pcie-0 (pcie) gpu-0 gpu-1
  pcie-1 (pcie) gpu-2 gpu-3
socket-1 (socket)
  pcie-2 (pcie) gpu-4 gpu-5
  pcie-3 (pcie) gpu-6 gpu-7
`, `socket-0 (socket)
  pcie-0 (pcie) gpu-0 gpu-1
  pcie-1 (pcie) gpu-2
  pcie-2 (pcie) gpu-3 gpu-4 gpu-5 gpu-6
`, `socket-0 (socket)
  pcie-0 (pcie) gpu-0 gpu-1
  pcie-1 (pcie)
    mixed-0-gpu-2 (gpu) gpu-2-mig-0 gpu-2-mig-1
socket-1 (socket)
  pcie-2 (pcie)
    mixed-0-gpu-3 (gpu) gpu-3-mig-0 gpu-3-mig-1
nvlink gpu-0=gpu-1
`, ""}
	for i, n := range Nodes(layouts, Options{Seed: "s", Driver: "mock_driver"}) {
		got := strings.ReplaceAll(draw(n), " \n", "\n")
		if w := want[i]; got != strings.ReplaceAll(w, "mixed-0-", "") {
			t.Errorf("%s: got\n%swant\n%s", n.Name, got, w)
		}
		if err := n.NodeResources.ValidateTopology(); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
		// Where a device says that it is, is where the tree has it.
		where := map[string]string{}
		if top := n.NodeResources.Topology; top != nil {
			parents := map[string]string{}
			for _, c := range top.Cells {
				parents[c.ID] = c.Parent
				for _, id := range c.Devices {
					at := c.ID
					if c.Level == structs.LevelGPU {
						at = c.Parent
					}
					where[id] = at + " under " + parents[at]
				}
			}
		}
		for _, d := range n.NodeResources.Devices {
			for _, one := range d.Instances {
				if says := fmt.Sprintf("pcie-%d under socket-%d", one.Locality.Switch, one.Locality.Socket); says != where[one.ID] {
					t.Errorf("%s says that it is in %s; the tree has it in %s", one.ID, says, where[one.ID])
				}
			}
		}
	}
}

func TestSlicesAreDevicesOfTheirOwn(t *testing.T) {
	layouts, err := Parse([]byte(trees), "trees.hcl")
	if err != nil {
		t.Fatal(err)
	}
	n := Nodes(layouts, Options{Seed: "s", Driver: "mock_driver"})[2]
	d := n.NodeResources.Devices[1]
	if got := d.Vendor + "/" + d.Type + "/" + d.Name; got != "nvidia/mig/1g.10gb" || len(d.Instances) != 4 ||
		*d.Attributes["memory"].IntVal != 40960 || *d.Attributes["model"].StringVal != "H100" {
		t.Errorf("%s: %+v", got, d)
	}
}
