package world

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Dimensions of the index. What stands here bounds what a node can give from above;
// whether something fits is decided at the node, by grant.
const (
	DimCells  = 0 // five: maximal free cells of 1, 2-3, 4-7, 8-15, 16 and more devices
	DimGPUs   = 5 // devices that are wholly free
	DimShare  = 6 // the most that a partly taken device has left, in thousandths
	DimCPU    = 7
	DimMemory = 8
	DimDisk   = 9
	DimCores  = 10 // whole cores that are free

	CellSizes = DimGPUs - DimCells
)

// CellClass is which of the five counts of cells a size falls under.
func CellClass(devices int) int {
	return min(bits.Len(uint(max(1, devices)))-1, CellSizes-1)
}

// dimensions are those that a configuration or a job may name.
var dimensions = map[string]int{"gpus": DimGPUs, "cpu": DimCPU, "memory": DimMemory}

// indexConfig is how the indexes of a World compare room.
func indexConfig(c *structs.SchedulerConfiguration) bucket.Config {
	out := bucket.Config{Order: DimensionOrder(c.DimensionOrder())}
	for name, dim := range dimensions { // each has its own place: the order cannot show
		out.Granularity[dim] = c.Step(name)
	}
	return out
}

// DimensionOrder reads names of dimensions; what it does not know it leaves out.
func DimensionOrder(names []string) []int {
	var order []int
	for _, name := range names {
		if dim, known := dimensions[name]; known && !slices.Contains(order, dim) {
			order = append(order, dim)
		}
	}
	return order
}

// NodeSet is ready nodes that constraints cannot distinguish, by free room: those of one class, or
// those of one family, which are alike in all but their meta. Most requests look at no meta, and
// are decided once per family.
type NodeSet struct {
	Owner *Token
	Nodes bucket.Index[*NodeState]
	// Sum is what the nodes have free together.
	Sum bucket.Vector
}

// Any returns one node of the set; all are alike but for unique attributes, and for meta within a
// family.
func (c *NodeSet) Any() *NodeState {
	e, _ := c.Nodes.Any() // a set in a World has at least one
	return e.Value
}

// All returns the nodes of the set in the index's order.
func (c *NodeSet) All(yield func(*NodeState) bool) {
	c.Nodes.All(func(e bucket.Entry[*NodeState]) bool { return yield(e.Value) })
}

// IndexKey is the key that the indexes have a node under.
type IndexKey struct {
	Class, Family string // "": nowhere
	At            bucket.Vector
}

// Vector is what the indexes see of a node's free room.
func (n *NodeState) Vector() (v bucket.Vector) {
	free := n.Free()
	v[DimCPU], v[DimMemory], v[DimDisk] = free.CPU, free.MemoryMB, free.DiskMB
	v[DimCores] = int64(n.FreeCores())
	for _, cells := range n.Cells {
		for i, count := range cells.CellsBySize() {
			v[DimCells+i] += int64(count)
		}
		v[DimGPUs] += int64(cells.Free())
		v[DimShare] = max(v[DimShare], int64(cells.MaxPartial()))
	}
	if h := n.Reservation; h != nil { // whom it does not bind looks at reserved nodes by name
		v[DimCPU] -= h.Amount.CPU
		v[DimMemory] -= h.Amount.MemoryMB
		v[DimDisk] -= h.Amount.DiskMB
		v[DimCores] -= int64(h.Cores)
		v[DimGPUs] -= int64(h.Devices)
	}
	for i := range n.parts {
		idle := &n.parts[i].Idle
		v[DimCPU] -= idle.Amount.CPU
		v[DimMemory] -= idle.Amount.MemoryMB
		v[DimDisk] -= idle.Amount.DiskMB
		v[DimCores] -= int64(idle.Cores)
		v[DimGPUs] -= int64(idle.Devices)
	}
	return v
}

// Sorter compares nodes as the indexes do.
type Sorter struct {
	order []int
	step  bucket.Vector
	most  bool // most room first
}

// NewSorter returns the order of nodes by free room: least first, or most; order is a job's own order of dimensions, nil for the World's.
func NewSorter(c bucket.Config, order []int, most bool) Sorter {
	if order == nil {
		order = c.Order
	}
	return Sorter{order, c.Granularity, most}
}

// Compare orders two entries of different indexes.
func (s *Sorter) Compare(a, b *bucket.Entry[*NodeState]) int {
	return s.CompareAt(&a.At, &b.At, a.ID, b.ID)
}

// CompareAt orders two nodes by what they have available, then by ID.
func (s *Sorter) CompareAt(a, b *bucket.Vector, aID, bID string) int {
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

func (s *Sorter) sign() int {
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
