package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Any gives one node of the set.
func (c *HeldSet) Any() *NodeState {
	e, _ := c.Nodes.Any() // a set in a World has at least one
	return e.Value
}

// Who loses least is found without going over the nodes: while the configuration lets
// service or batch jobs preempt, the World keeps, for each priority that somebody holds
// something by, the ready nodes where somebody does, with what they have free and would
// have if all of that priority and below were gone. A search goes from the lowest
// priority up; where it first finds a node, no other node loses less important work.
// What the coordinates show bounds from above what there would be; the plan on the node
// itself decides. The nodes stand in the order of their IDs.

// HeldKey names a set of nodes that hold something by a priority: those of one family.
type HeldKey struct {
	Priority int
	family   string
}

func compareHeldKeys(a, b HeldKey) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.family, b.family))
}

// HeldSet is the nodes of a HeldKey, by ID.
type HeldSet struct {
	owner *Token
	Nodes bucket.Index[*NodeState]
}

// HeldAt is what a node has without those of a priority and below.
type HeldAt struct {
	Priority int
	At       bucket.Vector
}

// HeldPlace is where the sets of heldKeys have a node. Never changed once made.
type HeldPlace struct {
	family string
	At     []HeldAt // by priority
}

func (p *HeldPlace) equal(o *HeldPlace) bool {
	return p.family == o.family && slices.Equal(p.At, o.At)
}

// member is an allocation that is of a gang, in an order that keeps gangs together.
type member struct {
	GangName
	id string
}

// GangName names a gang by its first group.
type GangName struct{ namespace, job, gang string }

func compareMembers(a, b member) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.job, b.job),
		strings.Compare(a.gang, b.gang), strings.Compare(a.id, b.id))
}

// Gang names the gang of those who hold so; false: they are of none.
func (h *Holder) Gang() (GangName, bool) {
	return GangName{h.Namespace, h.Job, h.Terms.Gang}, h.Terms.Gang != ""
}

// GangMembers lists what those of a gang hold, by the IDs of their allocations.
func GangMembers(e *Edit, g GangName) (list []*Use) {
	e.w.gangs.Ascend(member{GangName: g}, func(m member, u *Use) bool {
		if m.GangName == g {
			list = append(list, u)
		}
		return m.GangName == g
	})
	return list
}

// enlist keeps who is of a gang.
func (e *Edit) enlist(u *Use) {
	if g, some := u.Holder.Gang(); some {
		e.w.gangs.Put(e.tok, member{g, u.ID}, u)
	}
}

func (e *Edit) dismiss(u *Use) {
	if g, some := u.Holder.Gang(); some {
		e.w.gangs.Delete(e.tok, member{g, u.ID})
	}
}

// reclaims tells whether a configuration lets jobs preempt that look for a node.
func reclaims(c *structs.SchedulerConfiguration) bool {
	return c.Preempts(structs.JobTypeService) || c.Preempts(structs.JobTypeBatch)
}

// keepHeld says whether the World keeps who holds what by priority. Nothing is kept, and
// nothing is paid, while nobody may ask. The nodes themselves stay as they are.
func (e *Edit) keepHeld(keep bool) {
	if e.w.heldKept == keep {
		return
	}
	Flush(e)
	e.w.heldKept = keep
	e.w.held, e.w.places = newTree[HeldKey, *HeldSet](compareHeldKeys), newTree[string, *HeldPlace](strings.Compare)
	if !keep {
		return
	}
	for _, n := range e.w.nodes.All {
		e.indexHeld(n)
	}
}

// nodeIDs lists the nodes that have a state.
func (e *Edit) nodeIDs() []string {
	Flush(e)
	ids := make([]string, 0, e.w.nodes.Len())
	for id := range e.w.nodes.All {
		ids = append(ids, id)
	}
	return ids
}

// HeldPlace is where the sets by priority are to have a node; nil: nowhere.
func (n *NodeState) heldPlace() *HeldPlace {
	if n.Indexed.Family == "" || len(n.Uses) == 0 {
		return nil
	}
	return &HeldPlace{n.Indexed.Family, n.withoutHeld()}
}

// indexHeld moves the sets by priority that a node is in.
func (e *Edit) indexHeld(s *NodeState) {
	was, kept := e.w.places.Get(s.ID)
	is := s.heldPlace()
	switch {
	case !kept && is == nil:
		return
	case kept && is != nil && was.equal(is):
		for i := range was.At { // they have its newest state
			at := &was.At[i]
			e.heldSet(HeldKey{at.Priority, was.family}).Nodes.Update(e.tok, s.ID, at.At, at.At, s)
		}
		return
	case kept:
		e.unindexHeld(s.ID, was)
	}
	if is == nil {
		e.w.places.Delete(e.tok, s.ID)
		return
	}
	for i := range is.At {
		e.heldSet(HeldKey{is.At[i].Priority, is.family}).Nodes.Add(e.tok, s.ID, is.At[i].At, s)
	}
	e.w.places.Put(e.tok, s.ID, is)
}

// unindexHeld takes a node out of the sets. A set without nodes goes.
func (e *Edit) unindexHeld(id string, was *HeldPlace) {
	for i := range was.At {
		key := HeldKey{was.At[i].Priority, was.family}
		set := e.heldSet(key)
		set.Nodes.Remove(e.tok, id, was.At[i].At)
		if set.Nodes.Len() == 0 {
			e.w.held.Delete(e.tok, key)
		}
	}
}

// HeldSet gives a set to change, made if need be.
func (e *Edit) heldSet(key HeldKey) *HeldSet {
	c, found := e.w.held.Get(key)
	switch {
	case !found:
		c = &HeldSet{owner: e.tok, Nodes: bucket.New[*NodeState](bucket.Config{})}
	case c.owner == e.tok:
		return c
	default:
		c = &HeldSet{owner: e.tok, Nodes: c.Nodes}
	}
	e.w.held.Put(e.tok, key, c)
	return c
}

// withoutHeld gives, for each priority that something of the node is held by, what it
// would have without that and all below. Devices count that somebody of those holds last.
func (n *NodeState) withoutHeld() []HeldAt {
	var sums HeldSums
	return sums.Without(n)
}

// HeldSums is what withoutHeld works with, to be used again.
type HeldSums struct {
	list    []HeldAt
	highest map[string]int // of partly held devices, the highest priority
}

// by gives the sum of a priority.
func (x *HeldSums) by(priority int) *bucket.Vector {
	at := len(x.list)
	for at > 0 && x.list[at-1].Priority >= priority {
		at--
	}
	if at == len(x.list) || x.list[at].Priority != priority {
		x.list = slices.Insert(x.list, at, HeldAt{Priority: priority})
	}
	return &x.list[at].At
}

// Without does so of one node as the indexes have it; the answer is good until the next call.
func (x *HeldSums) Without(n *NodeState) []HeldAt {
	x.list = x.list[:0]
	for _, u := range n.Uses {
		v := x.by(u.Holder.Terms.Priority)
		v[DimCPU] += u.Amount.CPU
		v[DimMemory] += u.Amount.MemoryMB
		v[DimDisk] += u.Amount.DiskMB
		v[DimCores] += int64(len(u.Cores))
		x.devices(u, v)
	}
	for _, highest := range x.highest { // sums: the order cannot show
		x.by(highest)[DimGPUs]++
	}
	clear(x.highest)
	sum := n.Indexed.At
	for d := range CellSizes {
		sum[DimCells+d] = 0
	}
	sum[DimShare] = 0
	for i := range x.list {
		for d := range sum {
			sum[d] += x.list[i].At[d]
		}
		x.list[i].At = sum
	}
	return x.list
}

// devices counts those of a use: whole ones at once, others by whoever holds them last.
func (x *HeldSums) devices(u *Use, v *bucket.Vector) {
	for _, d := range u.Devices {
		if d.Share >= WholeDevice {
			v[DimGPUs]++
			continue
		}
		if x.highest == nil {
			x.highest = map[string]int{}
		}
		if p, held := x.highest[d.ID]; !held || p < u.Holder.Terms.Priority {
			x.highest[d.ID] = u.Holder.Terms.Priority
		}
	}
}

// HeldPriorities are those by which something is held on ready nodes, lowest first.
func HeldPriorities(w *World) (list []int) {
	if w.heldKept {
		for key := range w.held.All {
			if len(list) == 0 || list[len(list)-1] != key.Priority {
				list = append(list, key.Priority)
			}
		}
		return list
	}
	seen := map[int]bool{}
	for _, n := range w.nodes.All {
		last := -1
		for _, u := range n.Uses {
			if p := u.Holder.Terms.Priority; n.Indexed.Family != "" && p != last {
				seen[p], last = true, p
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
