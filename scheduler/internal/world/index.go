package world

import (
	"math/bits"
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
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
	// class and family are those that it is the set of, as they have the same nodes; neither is set if it is that of one of them alone.
	class, family string
}

// Any returns one node of the set; all are alike but for unique attributes, and for meta within a family.
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

// index moves the two sets that a node is in.
func (e *Edit) index(s *NodeState) {
	var to IndexKey
	if s.Node != nil && s.Node.Ready() {
		to = IndexKey{s.Node.ComputedClass, s.Capacity.Family, s.Vector()}
	}
	from := s.Indexed
	s.Indexed, s.Pool = to, s.onePool()
	e.supply(s)
	if from.Class == to.Class && from.Family == to.Family {
		setEdit{e}.move(from, to.At, s)
	} else {
		e.w.members = e.tok
		setEdit{e}.leave(from, s)
		setEdit{e}.enter(to, s)
	}
	if e.w.usagesKept {
		e.indexUsage(s)
	}
}

// setEdit is an edit of the sets of classes and families.
type setEdit struct{ *Edit }

// move moves a node within its sets.
func (e setEdit) move(of IndexKey, to bucket.Vector, s *NodeState) {
	for _, c := range e.sets(of) {
		bucket.Update(e.pages, &c.Nodes, s.ID, of.At, to, s)
		c.add(of.At, to)
	}
}

// leave takes a node out of its sets. A set without nodes goes.
func (e setEdit) leave(from IndexKey, s *NodeState) {
	for _, c := range e.sets(from) {
		bucket.Remove(e.pages, &c.Nodes, s.ID, from.At)
		c.add(from.At, bucket.Vector{})
	}
	e.dropEmpty(&e.w.classes, from.Class)
	e.dropEmpty(&e.w.families, from.Family)
}

func (e setEdit) dropEmpty(sets *Tree[string, *NodeSet], name string) {
	if c, found := sets.Get(name); found && c.Nodes.Len() == 0 {
		tree.Delete(e.pages, sets, name)
	}
}

// enter puts a node into the sets of its class and family, made if need be. They are one as long as all nodes are in both: most families have one class.
func (e setEdit) enter(to IndexKey, s *NodeState) {
	if to.Class == "" {
		return
	}
	class, known := e.w.classes.Get(to.Class)
	family, found := e.w.families.Get(to.Family)
	switch {
	case !known && !found:
		c := e.newSet()
		c.class, c.family = to.Class, to.Family
		e.put(c)
	case class != family:
		e.part(class)
		e.part(family)
		if !known {
			tree.Put(e.pages, &e.w.classes, to.Class, e.newSet())
		}
		if !found {
			tree.Put(e.pages, &e.w.families, to.Family, e.newSet())
		}
	}
	for _, c := range e.sets(to) {
		bucket.Add(e.pages, &c.Nodes, s.ID, to.At, s)
		c.add(bucket.Vector{}, to.At)
	}
}

// part makes two sets of one that is of a class and a family, as a node is to be in one of them alone. The trees of two sets have no page in common: each
// is changed in place.
func (e setEdit) part(c *NodeSet) {
	if c == nil || c.class == "" {
		return
	}
	family := e.newSet()
	family.Sum = c.Sum
	c.Nodes.All(func(n bucket.Entry[*NodeState]) bool {
		bucket.Add(e.pages, &family.Nodes, n.ID, n.At, n.Value)
		return true
	})
	tree.Put(e.pages, &e.w.families, c.family, family)
	tree.Put(e.pages, &e.w.classes, c.class, &NodeSet{Owner: e.tok, Nodes: c.Nodes, Sum: c.Sum})
}

// sets returns the sets of a class and a family, to be changed: one if they are one, and none if there are none. It is valid until it is called again.
func (e setEdit) sets(of IndexKey) []*NodeSet {
	class, found := e.w.classes.Get(of.Class)
	if !found {
		return nil
	}
	sets := append(e.pair[:0], class)
	if class.class == "" {
		family, _ := e.w.families.Get(of.Family)
		sets = append(sets, family)
	}
	for i, c := range sets {
		if c.Owner == e.tok {
			continue
		}
		own := *c
		own.Owner, sets[i] = e.tok, &own
		switch {
		case own.class != "":
			e.put(&own)
		case i == 0:
			tree.Put(e.pages, &e.w.classes, of.Class, &own)
		default:
			tree.Put(e.pages, &e.w.families, of.Family, &own)
		}
	}
	return sets
}

// put puts a set where its class and its family are looked for.
func (e setEdit) put(c *NodeSet) {
	tree.Put(e.pages, &e.w.classes, c.class, c)
	tree.Put(e.pages, &e.w.families, c.family, c)
}

func (e setEdit) newSet() *NodeSet {
	return &NodeSet{Owner: e.tok, Nodes: bucket.New[*NodeState](e.w.rules.index)}
}

// add moves the sum on.
func (c *NodeSet) add(was, is bucket.Vector) {
	for d := range c.Sum {
		c.Sum[d] += is[d] - was[d]
	}
}
