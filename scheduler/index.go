package scheduler

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Dimensions of the index. What stands here bounds what a node can give from above;
// whether something fits is decided at the node, by grant.
const (
	dimCells  = 0 // five: maximal free cells of 1, 2-3, 4-7, 8-15, 16 and more devices
	dimGPUs   = 5 // devices that are wholly free
	dimShare  = 6 // the most that a partly taken device has left, in thousandths
	dimCPU    = 7
	dimMemory = 8
	dimDisk   = 9
	dimCores  = 10 // whole cores that are free

	cellSizes = dimGPUs - dimCells
)

// cellClass is which of the five counts of cells a size falls under.
func cellClass(devices int) int {
	return min(bits.Len(uint(max(1, devices)))-1, cellSizes-1)
}

// dimensions are those that a configuration or a job may name.
var dimensions = map[string]int{"gpus": dimGPUs, "cpu": dimCPU, "memory": dimMemory}

// indexConfig is how the indexes of a World compare room.
func indexConfig(c *structs.SchedulerConfiguration) bucket.Config {
	out := bucket.Config{Order: dimensionOrder(c.DimensionOrder())}
	for name, dim := range dimensions { // each has its own place: the order cannot show
		out.Granularity[dim] = c.Step(name)
	}
	return out
}

// dimensionOrder reads names of dimensions; what it does not know it leaves out.
func dimensionOrder(names []string) []int {
	var order []int
	for _, name := range names {
		if dim, known := dimensions[name]; known && !slices.Contains(order, dim) {
			order = append(order, dim)
		}
	}
	return order
}

// nodeSet is ready nodes that constraints cannot tell apart, by free room: those of
// one class, or those of one family, which are alike in all but their meta. Most
// asks look at no meta, and are decided once per family.
type nodeSet struct {
	owner *token
	nodes bucket.Index[*nodeState]
	// sum is what the nodes have free together.
	sum bucket.Vector
}

// any gives one node of the set; all are alike but for unique attributes, and for
// meta within a family.
func (c *nodeSet) any() *nodeState {
	e, _ := c.nodes.Any() // a set in a World has at least one
	return e.Value
}

// all gives the nodes of the set in the index's order.
func (c *nodeSet) all(yield func(*nodeState) bool) {
	c.nodes.All(func(e bucket.Entry[*nodeState]) bool { return yield(e.Value) })
}

// place is where the indexes have a node.
type place struct {
	class, family string // "": nowhere
	at            bucket.Vector
}

// vector is what the indexes see of a node's free room.
func (n *nodeState) vector() (v bucket.Vector) {
	free := n.free()
	v[dimCPU], v[dimMemory], v[dimDisk] = free.CPU, free.MemoryMB, free.DiskMB
	v[dimCores] = int64(n.freeCores())
	for _, cells := range n.cells {
		for i, count := range cells.CellsBySize() {
			v[dimCells+i] += int64(count)
		}
		v[dimGPUs] += int64(cells.Free())
		v[dimShare] = max(v[dimShare], int64(cells.MaxPartial()))
	}
	if h := n.hold; h != nil { // whom it does not bind looks at reserved nodes by name
		v[dimCPU] -= h.amount.CPU
		v[dimMemory] -= h.amount.MemoryMB
		v[dimDisk] -= h.amount.DiskMB
		v[dimCores] -= int64(h.cores)
		v[dimGPUs] -= int64(h.devices)
	}
	return v
}

// familyOf names the nodes that are alike in all that constraints can look at but
// meta and unique attributes.
func familyOf(n *structs.Node) string {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write([]byte(p)) // never fails
			_, _ = h.Write([]byte{0})
		}
	}
	put(n.Datacenter, n.NodeClass, n.NodePool)
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		if !strings.HasPrefix(k, "unique.") {
			put(k, n.Attributes[k])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		put("driver", name, fmt.Sprint(d != nil && d.Detected, d != nil && d.Healthy))
	}
	for _, name := range slices.Sorted(maps.Keys(n.HostVolumes)) {
		put("volume", name, fmt.Sprint(n.HostVolumes[name].ReadOnly))
	}
	if n.NodeResources != nil {
		for _, d := range n.NodeResources.Devices {
			put("device", d.Vendor, d.Type, d.Name)
			for _, k := range slices.Sorted(maps.Keys(d.Attributes)) {
				put(k, d.Attributes[k].String())
			}
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// sorter compares nodes as the indexes do.
type sorter struct {
	order []int
	step  bucket.Vector
	most  bool // most room first
}

func newSorter(c bucket.Config, order []int, most bool) sorter {
	if order == nil {
		order = c.Order
	}
	return sorter{order, c.Granularity, most}
}

// compare orders two entries of different indexes.
func (s *sorter) compare(a, b *bucket.Entry[*nodeState]) int {
	return s.compareAt(&a.At, &b.At, a.ID, b.ID)
}

// compareAt orders two nodes by what they have available, then by ID.
func (s *sorter) compareAt(a, b *bucket.Vector, aID, bID string) int {
	for _, d := range s.order {
		x, y := a[d], b[d]
		if step := s.step[d]; step > 1 {
			x, y = coordinate(x, step), coordinate(y, step)
		}
		if x != y {
			return cmp.Compare(x, y) * s.sign()
		}
	}
	return strings.Compare(aID, bID)
}

func (s *sorter) sign() int {
	if s.most {
		return -1
	}
	return 1
}

// coordinate divides and rounds up.
func coordinate(v, step int64) int64 {
	q := v / step
	if v%step > 0 {
		q++
	}
	return q
}
