package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// Who loses least is found without going over the nodes: while the configuration lets
// service or batch jobs preempt, the World keeps, for each priority that somebody holds
// something by, the ready nodes where somebody does, with what they have free and would
// have if all of that priority and below were gone. A search goes from the lowest
// priority up; where it first finds a node, no other node loses less important work.
// What the coordinates show bounds from above what there would be; the plan on the node
// itself decides. The nodes stand in the order of their IDs.

// heldKey names a set of nodes that hold something by a priority: those of one family.
type heldKey struct {
	priority int
	family   string
}

func compareHeldKeys(a, b heldKey) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), strings.Compare(a.family, b.family))
}

// heldSet is the nodes of a heldKey, by ID.
type heldSet struct {
	owner *token
	nodes bucket.Index[*nodeState]
}

// heldAt is what a node has without those of a priority and below.
type heldAt struct {
	priority int
	at       bucket.Vector
}

// heldPlace is where the sets of heldKeys have a node. Never changed once made.
type heldPlace struct {
	family string
	at     []heldAt // by priority
}

func (p *heldPlace) equal(o *heldPlace) bool {
	return p.family == o.family && slices.Equal(p.at, o.at)
}

// member is an allocation that is of a gang, in an order that keeps gangs together.
type member struct {
	gangName
	id string
}

// gangName names a gang by its first group.
type gangName struct{ namespace, job, gang string }

func compareMembers(a, b member) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.job, b.job),
		strings.Compare(a.gang, b.gang), strings.Compare(a.id, b.id))
}

// gang names the gang of those who hold so; false: they are of none.
func (h *holder) gang() (gangName, bool) {
	return gangName{h.namespace, h.job, h.terms.Gang}, h.terms.Gang != ""
}

// members lists what those of a gang hold, by the IDs of their allocations.
func (e *Edit) members(g gangName) (list []*use) {
	e.w.gangs.Ascend(member{gangName: g}, func(m member, u *use) bool {
		if m.gangName == g {
			list = append(list, u)
		}
		return m.gangName == g
	})
	return list
}

// enlist keeps who is of a gang.
func (e *Edit) enlist(u *use) {
	if g, some := u.of.gang(); some {
		e.w.gangs.Put(e.tok, member{g, u.id}, u)
	}
}

func (e *Edit) dismiss(u *use) {
	if g, some := u.of.gang(); some {
		e.w.gangs.Delete(e.tok, member{g, u.id})
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
	e.flush()
	e.w.heldKept = keep
	e.w.held, e.w.places = newTree[heldKey, *heldSet](compareHeldKeys), newTree[string, *heldPlace](strings.Compare)
	if !keep {
		return
	}
	for _, n := range e.w.nodes.All {
		e.indexHeld(n)
	}
}

// nodeIDs lists the nodes that have a state.
func (e *Edit) nodeIDs() []string {
	e.flush()
	ids := make([]string, 0, e.w.nodes.Len())
	for id := range e.w.nodes.All {
		ids = append(ids, id)
	}
	return ids
}

// heldPlace is where the sets by priority are to have a node; nil: nowhere.
func (n *nodeState) heldPlace() *heldPlace {
	if n.at.family == "" || len(n.uses) == 0 {
		return nil
	}
	return &heldPlace{n.at.family, n.withoutHeld()}
}

// indexHeld moves the sets by priority that a node is in.
func (e *Edit) indexHeld(s *nodeState) {
	was, kept := e.w.places.Get(s.id)
	is := s.heldPlace()
	switch {
	case !kept && is == nil:
		return
	case kept && is != nil && was.equal(is):
		for i := range was.at { // they have its newest state
			at := &was.at[i]
			e.heldSet(heldKey{at.priority, was.family}).nodes.Update(e.tok, s.id, at.at, at.at, s)
		}
		return
	case kept:
		e.unindexHeld(s.id, was)
	}
	if is == nil {
		e.w.places.Delete(e.tok, s.id)
		return
	}
	for i := range is.at {
		e.heldSet(heldKey{is.at[i].priority, is.family}).nodes.Add(e.tok, s.id, is.at[i].at, s)
	}
	e.w.places.Put(e.tok, s.id, is)
}

// unindexHeld takes a node out of the sets. A set without nodes goes.
func (e *Edit) unindexHeld(id string, was *heldPlace) {
	for i := range was.at {
		key := heldKey{was.at[i].priority, was.family}
		set := e.heldSet(key)
		set.nodes.Remove(e.tok, id, was.at[i].at)
		if set.nodes.Len() == 0 {
			e.w.held.Delete(e.tok, key)
		}
	}
}

// heldSet gives a set to change, made if need be.
func (e *Edit) heldSet(key heldKey) *heldSet {
	c, found := e.w.held.Get(key)
	switch {
	case !found:
		c = &heldSet{owner: e.tok, nodes: bucket.New[*nodeState](bucket.Config{})}
	case c.owner == e.tok:
		return c
	default:
		c = &heldSet{owner: e.tok, nodes: c.nodes}
	}
	e.w.held.Put(e.tok, key, c)
	return c
}

// withoutHeld gives, for each priority that something of the node is held by, what it
// would have without that and all below. Devices count that somebody of those holds last.
func (n *nodeState) withoutHeld() []heldAt {
	var sums heldSums
	return sums.without(n)
}

// heldSums is what withoutHeld works with, to be used again.
type heldSums struct {
	list    []heldAt
	highest map[string]int // of partly held devices, the highest priority
}

// by gives the sum of a priority.
func (x *heldSums) by(priority int) *bucket.Vector {
	at := len(x.list)
	for at > 0 && x.list[at-1].priority >= priority {
		at--
	}
	if at == len(x.list) || x.list[at].priority != priority {
		x.list = slices.Insert(x.list, at, heldAt{priority: priority})
	}
	return &x.list[at].at
}

// without does so of one node as the indexes have it; the answer is good until the next call.
func (x *heldSums) without(n *nodeState) []heldAt {
	x.list = x.list[:0]
	for _, u := range n.uses {
		v := x.by(u.of.terms.Priority)
		v[dimCPU] += u.amount.CPU
		v[dimMemory] += u.amount.MemoryMB
		v[dimDisk] += u.amount.DiskMB
		v[dimCores] += int64(len(u.cores))
		x.devices(u, v)
	}
	for _, highest := range x.highest { // sums: the order cannot show
		x.by(highest)[dimGPUs]++
	}
	clear(x.highest)
	sum := n.at.at
	for d := range cellSizes {
		sum[dimCells+d] = 0
	}
	sum[dimShare] = 0
	for i := range x.list {
		for d := range sum {
			sum[d] += x.list[i].at[d]
		}
		x.list[i].at = sum
	}
	return x.list
}

// devices counts those of a use: whole ones at once, others by whoever holds them last.
func (x *heldSums) devices(u *use, v *bucket.Vector) {
	for _, d := range u.devices {
		if d.share >= wholeDevice {
			v[dimGPUs]++
			continue
		}
		if x.highest == nil {
			x.highest = map[string]int{}
		}
		if p, held := x.highest[d.id]; !held || p < u.of.terms.Priority {
			x.highest[d.id] = u.of.terms.Priority
		}
	}
}
