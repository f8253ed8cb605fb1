package gpu

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/client/gpu/nvml"
	"github.com/nomadish/nomadish/structs"
)

// Names of the groups of devices: nvidia/gpu/<model> and nvidia/mig/<profile>. Slices
// are a type of their own: a request for nvidia/gpu must never get a part of one.
const (
	Vendor    = "nvidia"
	TypeGPU   = "gpu"
	TypeSlice = "mig"
)

// laneMBs is what one PCIe lane carries in MB/s, by generation from 1, after the
// line code.
var laneMBs = []int64{250, 500, 985, 1969, 3938, 7563}

// groups sorts devices into groups of one kind. Their attributes are what every
// device of the group has: of numbers the least, of others those that are equal.
type groups struct {
	list []*structs.NodeDeviceResource
}

func (g *groups) add(kind, name string, d *structs.NodeDevice, attrs map[string]*structs.Attribute) {
	name = strings.ReplaceAll(name, "/", "-") // which parts a request's vendor/type/model
	for _, have := range g.list {
		if have.Type == kind && have.Name == name {
			have.Instances = append(have.Instances, d)
			merge(have.Attributes, attrs)
			return
		}
	}
	g.list = append(g.list, &structs.NodeDeviceResource{
		Vendor: Vendor, Type: kind, Name: name, Instances: []*structs.NodeDevice{d}, Attributes: attrs,
	})
}

// done returns the groups in order of their names.
func (g *groups) done() []*structs.NodeDeviceResource {
	slices.SortFunc(g.list, func(a, b *structs.NodeDeviceResource) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return g.list
}

func merge(have, more map[string]*structs.Attribute) {
	for name, a := range have {
		b := more[name]
		switch {
		case b == nil:
			delete(have, name)
		case a.IntVal != nil && b.IntVal != nil:
			v := min(*a.IntVal, *b.IntVal)
			have[name] = &structs.Attribute{IntVal: &v, Unit: a.Unit}
		case a.String() != b.String():
			delete(have, name)
		}
	}
}

// attrs are attributes that are being made; what is not known is left out.
type attrs map[string]*structs.Attribute

func (a attrs) number(name string, v int64, unit string) {
	if v > 0 {
		a[name] = &structs.Attribute{IntVal: &v, Unit: unit}
	}
}

func (a attrs) text(name, v string) {
	if v != "" {
		a[name] = &structs.Attribute{StringVal: &v}
	}
}

func (a attrs) state(name string, v *bool) {
	switch {
	case v == nil:
	case *v:
		a.text(name, "Enabled")
	default:
		a.text(name, "Disabled")
	}
}

// ofGPU are a GPU's attributes, named as in Nomad's documentation of NVIDIA devices;
// cuda_version and compute_capability are ours.
func ofGPU(g *nvml.GPU, driver, cuda string) attrs {
	a := attrs{}
	a.number("memory", int64(g.MemoryMiB), "MiB")            // MiB of a GPU
	a.number("bar1", int64(g.BAR1MiB), "MiB")                // MiB of a GPU
	a.number("power", int64(g.PowerLimitW), "W")             // W of a GPU
	a.number("cores_clock", int64(g.CoreClockMHz), "MHz")    // MHz of a GPU
	a.number("memory_clock", int64(g.MemoryClockMHz), "MHz") // MHz of a GPU
	if n := g.PCIeGeneration; n >= 1 && n <= len(laneMBs) {
		a.number("pci_bandwidth", laneMBs[n-1]*int64(g.PCIeLanes), "MB/s")
	}
	a.state("display_state", g.DisplayMode)
	a.state("persistence_mode", g.PersistenceMode)
	a.text("driver_version", driver)
	a.text("cuda_version", cuda)
	a.text("compute_capability", g.ComputeCapability)
	return a
}

// ofSlice are a MIG slice's attributes; model is that of its GPU.
func ofSlice(g *nvml.GPU, s *nvml.Slice, driver, cuda string) attrs {
	a := attrs{}
	a.number("memory", int64(s.MemoryMiB), "MiB") // MiB of a GPU
	a.text("model", g.Name)
	a.text("driver_version", driver)
	a.text("cuda_version", cuda)
	a.text("compute_capability", g.ComputeCapability)
	return a
}
