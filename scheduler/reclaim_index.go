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
// nothing is paid, while nobody may ask.
func (e *Edit) keepHeld(keep bool) {
	if e.w.heldKept == keep {
		return
	}
	e.w.heldKept = keep
	for _, id := range e.nodeIDs() {
		e.state(id)
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

// indexHeld moves the sets by priority that a node is in.
func (e *Edit) indexHeld(s *nodeState) {
	was, is := &s.held, heldPlace{}
	if e.w.heldKept && s.at.family != "" && len(s.uses) > 0 {
		is = heldPlace{s.at.family, s.withoutHeld()}
	}
	if was.equal(&is) {
		e.refreshHeld(s)
		return
	}
	for i := range was.at {
		key := heldKey{was.at[i].priority, was.family}
		set := e.heldSet(key)
		set.nodes.Remove(e.tok, s.id, was.at[i].at)
		if set.nodes.Len() == 0 {
			e.w.held.Delete(e.tok, key)
		}
	}
	for i := range is.at {
		e.heldSet(heldKey{is.at[i].priority, is.family}).nodes.Add(e.tok, s.id, is.at[i].at, s)
	}
	s.held = is
}

// refreshHeld lets the sets have the newest state of a node that stands where it stood.
func (e *Edit) refreshHeld(s *nodeState) {
	for i := range s.held.at {
		at := &s.held.at[i]
		e.heldSet(heldKey{at.priority, s.held.family}).nodes.Update(e.tok, s.id, at.at, at.at, s)
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
	var out []heldAt
	add := func(priority int) *bucket.Vector {
		at, found := slices.BinarySearchFunc(out, priority, func(h heldAt, p int) int { return cmp.Compare(h.priority, p) })
		if !found {
			out = slices.Insert(out, at, heldAt{priority: priority})
		}
		return &out[at].at
	}
	for _, u := range n.uses {
		v := add(u.of.terms.Priority)
		v[dimCPU] += u.amount.CPU
		v[dimMemory] += u.amount.MemoryMB
		v[dimDisk] += u.amount.DiskMB
		v[dimCores] += int64(len(u.cores))
	}
	for _, highest := range n.deviceHolders() { // sums: the order cannot show
		add(highest)[dimGPUs]++
	}
	sum := n.vector()
	for d := range cellSizes {
		sum[dimCells+d] = 0
	}
	sum[dimShare] = 0
	for i := range out {
		for d := range sum {
			sum[d] += out[i].at[d]
		}
		out[i].at = sum
	}
	return out
}

// deviceHolders gives for each device that is held the highest priority that it is held by.
func (n *nodeState) deviceHolders() map[string]int {
	if len(n.devices) == 0 {
		return nil
	}
	highest := make(map[string]int, len(n.devices))
	for _, u := range n.uses {
		for _, d := range u.devices {
			if p, held := highest[d.id]; !held || p < u.of.terms.Priority {
				highest[d.id] = u.of.terms.Priority
			}
		}
	}
	return highest
}
