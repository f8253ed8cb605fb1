package structs

import (
	"strings"
	"testing"
)

func TestValidateTopology(t *testing.T) {
	gpus := func(ids ...string) *NodeResources {
		d := &NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for _, id := range ids {
			d.Instances = append(d.Instances, &NodeDevice{ID: id})
		}
		return &NodeResources{Devices: []*NodeDeviceResource{d}, Topology: &NodeTopology{}}
	}
	cell := func(id, level, parent string, devices ...string) *TopologyCell {
		return &TopologyCell{ID: id, Level: level, Parent: parent, Devices: devices}
	}
	f := func(want string, r *NodeResources, cells ...*TopologyCell) {
		t.Helper()
		if r != nil && r.Topology != nil {
			r.Topology.Cells = cells
		}
		err := r.ValidateTopology()
		switch {
		case want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %q", err, want)
		}
	}
	f("", nil)
	f("", &NodeResources{})
	f("", gpus("a", "b"))
	f("", gpus("a", "b", "c"), cell("s", "socket", ""), cell("p", "pcie", "s", "a", "b"))
	f(`cell "p" is above itself`, gpus("a"), cell("p", "pcie", "p", "a"))
	f("is above itself", gpus("a"), cell("s", "socket", "p"), cell("p", "pcie", "q"), cell("q", "rack", "s", "a"))
	f(`device "a" is under two parents, "p" and "q"`, gpus("a"), cell("p", "pcie", "", "a"), cell("q", "pcie", "", "a"))
	f(`the parent of cell "p", "s", is not reported`, gpus("a"), cell("p", "pcie", "s", "a"))
	f(`cell "p" holds device "b", which the node does not have`, gpus("a"), cell("p", "pcie", "", "b"))
	f(`cell "p" is reported twice`, gpus("a"), cell("p", "pcie", ""), cell("p", "socket", ""))
	f(`device "a" is reported twice`, gpus("a", "a"))
	f("has no ID", gpus(""))
	f("a cell needs an ID and a level", gpus("a"), nil)
	f("a cell needs an ID and a level", gpus("a"), cell("p", "two words", ""))
	f("a group of devices is empty", &NodeResources{Devices: []*NodeDeviceResource{nil}})
	linked := gpus("a", "b")
	linked.Topology.Links = []*DeviceLink{{A: "a", B: "a"}}
	f("a link must join two devices of the node", linked)
}
