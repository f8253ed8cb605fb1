package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// layout is what nodes that are alike have.
type layout struct {
	name     string
	cores    int
	memoryMB int64
	model    string // of the GPUs
	gpus     int
	sockets  int // that GPUs are spread over
	switches int // of each socket
}

const mhzPerCore = 2000

var (
	small = layout{name: "small", cores: 4, memoryMB: 8 << 10}
	big   = layout{name: "big", cores: 128, memoryMB: 512 << 10}
	gpu1  = layout{name: "gpu1", cores: 16, memoryMB: 64 << 10, model: "T4", gpus: 1, sockets: 1, switches: 1}
	gpu2  = layout{name: "gpu2", cores: 32, memoryMB: 128 << 10, model: "A10", gpus: 2, sockets: 1, switches: 1}
	gpu4  = layout{name: "gpu4", cores: 64, memoryMB: 256 << 10, model: "A100", gpus: 4, sockets: 2, switches: 1}
	dgx   = layout{name: "dgx", cores: 128, memoryMB: 2 << 20, model: "H100", gpus: 8, sockets: 2, switches: 2}
)

// mixture is the shapes of the mixed worlds; those named twice are twice as common.
var mixture = []layout{small, small, big, gpu1, gpu2, gpu2, gpu4, dgx, dgx}

// Fills: what runs in a world before anything is measured.
const (
	fillNone = "empty"
	fillHalf = "half" // anything from nothing to all of a node, evenly
	fillFull = "full" // 95 %: most nodes have nothing left, the others a little
	// One node in the middle fits what is asked, all others do not. They are short of
	// CPU and memory; have three GPUs free; one GPU under each switch.
	oneFits     = "one-fits"
	oneFits4GPU = "one-fits-4-gpus"
	oneFitsPCIe = "one-fits-2-gpus-of-a-switch"
	// All is held by jobs of priorities 1 to 40, by up to eight on a node.
	fillReserved = "held"
	// One rack is free; in each other, one node in eight has a GPU taken.
	oneRackFree = "one-rack-free"
	// The hard ones: one node fits hardMHz and hardMemoryMB, the others nearly do.
	hardOne     = "hard-one-dimension"  // enough CPU, too little memory
	hardEither  = "hard-either"         // half so, the other half the other way
	hardGranule = "hard-within-granule" // likewise, by less than a granule
)

// What the hard worlds are short of, and the default granules there.
const (
	hardMHz, granuleMHz         = 1000, 500
	hardMemoryMB, granuleMemory = 2048, 1024
)

// worldSpec names a world. The same one is the same world in every process.
type worldSpec struct {
	layout string // a shape's name, or "mixed"
	fill   string
	nodes  int
	// racks is how many racks the nodes are dealt to; negative: racks of so many
	// nodes, in order; 0: the nodes name no rack.
	racks int
}

func (s worldSpec) String() string {
	racks := ""
	switch {
	case s.racks > 0:
		racks = fmt.Sprintf("-%d-racks", s.racks)
	case s.racks < 0:
		racks = fmt.Sprintf("-racks-of-%d", -s.racks)
	}
	return fmt.Sprintf("%s-%s%s/nodes=%s", s.layout, s.fill, racks, thousands(s.nodes))
}

func thousands(n int) string {
	if n%1000 == 0 {
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// worlds keeps the last worlds that were built. They are large, and each
// collection of garbage walks them, so that only few are kept.
type worldCache struct {
	known map[worldSpec]*scheduler.World
	order []worldSpec
}

const maxCachedNodes = 330_000

var worlds = worldCache{known: map[worldSpec]*scheduler.World{}}

func (c *worldCache) get(s worldSpec) *scheduler.World {
	if w := c.known[s]; w != nil {
		return w
	}
	total := s.nodes
	for _, have := range c.order {
		total += have.nodes
	}
	for ; total > maxCachedNodes && len(c.order) > 0; c.order = c.order[1:] {
		delete(c.known, c.order[0])
		total -= c.order[0].nodes
	}
	w := s.build()
	c.known[s], c.order = w, append(c.order, s)
	return w
}

// builder makes one world.
type builder struct {
	worldSpec
	rng    *rand.Rand
	edit   *scheduler.Edit
	protos map[string]*structs.Node
	allocs uint64
}

func (s worldSpec) build() *scheduler.World {
	b := &builder{worldSpec: s, rng: rand.New(rand.NewPCG(1, 2)), edit: scheduler.NewWorld().Edit(), protos: map[string]*structs.Node{}}
	if s.fill == fillReserved {
		b.edit.Configure(preemptConfig())
	}
	for i := range s.nodes {
		sh := b.layoutOf(i)
		n := b.node(i, sh)
		if i == s.nodes/2 && b.onlyOne() || b.inFreeRack(i) {
			if sh.gpus == 0 {
				n = roomier(n)
			}
			b.edit.UpsertNode(n)
			continue
		}
		b.edit.UpsertNode(n)
		b.fillNode(i, n, sh)
	}
	return b.edit.World()
}

func (b *builder) onlyOne() bool {
	return !slices.Contains([]string{fillNone, fillHalf, fillFull, fillReserved, oneRackFree}, b.fill)
}

// inFreeRack reports whether node i is in the one rack that is free.
func (b *builder) inFreeRack(i int) bool {
	return b.fill == oneRackFree && i/-b.racks == b.nodes/-b.racks/2
}

// roomier returns a node of the same class with room for many instances.
func roomier(n *structs.Node) *structs.Node {
	r := *n.NodeResources
	r.Cpu.CpuShares, r.Memory.MemoryMB = big.mhz(), big.memoryMB
	c := *n
	c.NodeResources = &r
	return &c
}

func (b *builder) layoutOf(i int) layout {
	for _, sh := range mixture {
		if sh.name == b.layout {
			return sh
		}
	}
	return mixture[(i+b.rng.IntN(len(mixture)))%len(mixture)]
}

// node makes node i. Nodes of one shape and rack share all that does not differ.
func (b *builder) node(i int, sh layout) *structs.Node {
	rack := ""
	switch {
	case b.racks > 0:
		rack = fmt.Sprintf("r%d", i%b.racks)
	case b.racks < 0:
		rack = fmt.Sprintf("r%d", i/-b.racks)
	}
	proto := b.protos[sh.name+rack]
	if proto == nil {
		proto = sh.proto(rack)
		b.protos[sh.name+rack] = proto
	}
	n := *proto
	n.ID, n.Name = structs.DeriveID("node", uint64(i)), fmt.Sprintf("%s-%06d", sh.name, i)
	n.ModifyIndex = uint64(i + 1)
	if sh.gpus > 0 {
		r := *n.NodeResources
		r.Devices, r.Topology = sh.devices(n.Name)
		n.NodeResources = &r
	}
	return &n
}

// proto is a node of the shape without name and GPUs of its own.
func (sh layout) proto(rack string) *structs.Node {
	cores := make([]uint16, sh.cores)
	for i := range cores {
		cores[i] = uint16(i) // a few
	}
	n := &structs.Node{
		Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible,
		Attributes: map[string]string{
			"kernel.name": "linux", "cpu.arch": "amd64", "cpu.numcores": fmt.Sprint(sh.cores),
			"memory.totalbytes": fmt.Sprint(sh.memoryMB << 20),
		},
		Meta:    map[string]string{},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{
				CpuShares: int64(sh.cores) * mhzPerCore, TotalCpuCores: uint16(sh.cores), ReservableCpuCores: cores, // a few
			},
			Memory: structs.NodeMemoryResources{MemoryMB: sh.memoryMB}, Disk: structs.NodeDiskResources{DiskMB: 1_000_000},
			Networks: []*structs.NetworkResource{{Mode: structs.NetworkModeHost, Device: "eth0", IP: "10.0.0.1"}},
		},
	}
	if rack != "" {
		n.Meta["rack"] = rack
	}
	if sh.gpus > 0 {
		n.NodeResources.Devices, _ = sh.devices("")
	}
	n.ComputeClass()
	return n
}

// devices are the GPUs of a node in the order of its tree: the first two are under
// the first switch of the first socket.
func (sh layout) devices(node string) ([]*structs.NodeDeviceResource, *structs.NodeTopology) {
	d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: sh.model, Attributes: map[string]*structs.Attribute{}}
	t := &structs.NodeTopology{}
	perSwitch := sh.gpus / (sh.sockets * sh.switches)
	for so := range sh.sockets {
		socket := fmt.Sprintf("socket-%d", so)
		t.Cells = append(t.Cells, &structs.TopologyCell{ID: socket, Level: structs.LevelSocket})
		for k := range sh.switches {
			sw := so*sh.switches + k
			cell := &structs.TopologyCell{ID: fmt.Sprintf("pcie-%d", sw), Level: structs.LevelPCIe, Parent: socket}
			for range perSwitch {
				id := gpuID(node, len(d.Instances))
				cell.Devices = append(cell.Devices, id)
				d.Instances = append(d.Instances, &structs.NodeDevice{
					ID: id, Healthy: true,
					Locality: &structs.NodeDeviceLocality{
						PciBusID: fmt.Sprintf("0000:%02x:00.0", len(d.Instances)), Socket: so, NUMANode: so, Switch: sw,
					},
				})
			}
			t.Cells = append(t.Cells, cell)
		}
	}
	return []*structs.NodeDeviceResource{d}, t
}

func gpuID(node string, i int) string { return fmt.Sprintf("%s-gpu-%d", node, i) }
