package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Any returns one node of the set.
func (c *UsageSet) Any() *NodeState {
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

// UsageKey names a set of nodes that hold something by a priority: those of one family.
type UsageKey struct {
	Priority int
	family   string
}

func compareUsageKeys(a, b UsageKey) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.family, b.family))
}

// UsageSet is the nodes of a UsageKey, by ID.
type UsageSet struct {
	owner *Token
	Nodes bucket.Index[*NodeState]
}

// UsageAt is what a node has without those of a priority and below.
type UsageAt struct {
	Priority int
	At       bucket.Vector
}

// UsageRef is where the sets of usage keys have a node. Never changed once made.
type UsageRef struct {
	family string
	At     []UsageAt // by priority
}

func (p *UsageRef) equal(o *UsageRef) bool {
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
func (h *Owner) Gang() (GangName, bool) {
	return GangName{h.Namespace, h.Job, h.Terms.Gang}, h.Terms.Gang != ""
}

// GangMembers lists what those of a gang hold, by the IDs of their allocations.
func GangMembers(e *Edit, g GangName) (list []*Usage) {
	e.w.gangs.Ascend(member{GangName: g}, func(m member, u *Usage) bool {
		if m.GangName == g {
			list = append(list, u)
		}
		return m.GangName == g
	})
	return list
}

// OfJob lists what runs of a job of a workflow, by whichever claim or without one, by the IDs of the allocations.
func OfJob(e *Edit, ns, job string) []*Usage { return GangMembers(e, GangName{ns, job, ""}) }

// GangRuns reports whether any member of a gang holds something.
func (w *World) GangRuns(g GangName) (runs bool) {
	w.gangs.Ascend(member{GangName: g}, func(m member, _ *Usage) bool { runs = m.GangName == g; return false })
	return runs
}

// enlist keeps who is of a gang, may be raised, and uses slots.
func (e *Edit) enlist(u *Usage) {
	if g, some := u.Owner.Gang(); some {
		tree.Put(e.tok, &e.w.gangs, member{g, u.ID}, u)
	}
	if u.Owner.ofWorkflow() != "" {
		tree.Put(e.tok, &e.w.gangs, member{GangName{u.Owner.Namespace, u.Owner.Job, ""}, u.ID}, u)
	}
	if u.raisable() && e.w.claims != nil {
		tree.Put(e.tok, &ledger{e}.ownClaims().raisable, raiseKeyOf(u), u)
	}
	SlotEdit{e}.enlist(u)
	LicenseEdit{e}.use(u.ID, u, 1)
}

func (e *Edit) dismiss(u *Usage) {
	if g, some := u.Owner.Gang(); some {
		tree.Delete(e.tok, &e.w.gangs, member{g, u.ID})
	}
	if u.Owner.ofWorkflow() != "" {
		tree.Delete(e.tok, &e.w.gangs, member{GangName{u.Owner.Namespace, u.Owner.Job, ""}, u.ID})
	}
	if u.raisable() && e.w.claims != nil {
		tree.Delete(e.tok, &ledger{e}.ownClaims().raisable, raiseKeyOf(u))
	}
	SlotEdit{e}.dismiss(u)
	LicenseEdit{e}.use(u.ID, u, -1)
}

// reclaims reports whether a configuration lets jobs preempt that look for a node.
func reclaims(c *structs.SchedulerConfiguration) bool {
	return c.Preempts(structs.JobTypeService) || c.Preempts(structs.JobTypeBatch)
}

// keepUsage reports whether the World keeps who holds what by priority. Nothing is kept, and
// nothing is paid, while nobody may query it. The nodes themselves stay as they are.
func (e *Edit) keepUsage(keep bool) {
	if e.w.usagesKept == keep {
		return
	}
	Flush(e)
	e.w.usagesKept = keep
	e.w.usages, e.w.places = newTree[UsageKey, *UsageSet](compareUsageKeys), newTree[string, *UsageRef](strings.Compare)
	if !keep {
		return
	}
	for _, n := range e.w.nodes.All {
		e.indexUsage(n)
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

// usageRef is where the sets by priority are to have a node; nil: nowhere.
func (n *NodeState) usageRef() *UsageRef {
	if n.Indexed.Family == "" || len(n.Usages) == 0 {
		return nil
	}
	return &UsageRef{n.Indexed.Family, n.withoutReserved()}
}

// indexUsage moves the sets by priority that a node is in.
func (e *Edit) indexUsage(s *NodeState) {
	was, kept := e.w.places.Get(s.ID)
	is := s.usageRef()
	switch {
	case !kept && is == nil:
		return
	case kept && is != nil && was.equal(is):
		for i := range was.At { // they have its newest state
			at := &was.At[i]
			bucket.Update(e.tok, &e.usageSet(UsageKey{at.Priority, was.family}).Nodes, s.ID, at.At, at.At, s)
		}
		return
	case kept:
		e.unindexUsage(s.ID, was)
	}
	if is == nil {
		tree.Delete(e.tok, &e.w.places, s.ID)
		return
	}
	for i := range is.At {
		bucket.Add(e.tok, &e.usageSet(UsageKey{is.At[i].Priority, is.family}).Nodes, s.ID, is.At[i].At, s)
	}
	tree.Put(e.tok, &e.w.places, s.ID, is)
}

// unindexUsage takes a node out of the sets. A set without nodes goes.
func (e *Edit) unindexUsage(id string, was *UsageRef) {
	for i := range was.At {
		key := UsageKey{was.At[i].Priority, was.family}
		set := e.usageSet(key)
		bucket.Remove(e.tok, &set.Nodes, id, was.At[i].At)
		if set.Nodes.Len() == 0 {
			tree.Delete(e.tok, &e.w.usages, key)
		}
	}
}

// usageSet returns a set to change, made if need be.
func (e *Edit) usageSet(key UsageKey) *UsageSet {
	c, found := e.w.usages.Get(key)
	switch {
	case !found:
		c = &UsageSet{owner: e.tok, Nodes: bucket.New[*NodeState](bucket.Config{})}
	case c.owner == e.tok:
		return c
	default:
		c = &UsageSet{owner: e.tok, Nodes: c.Nodes}
	}
	tree.Put(e.tok, &e.w.usages, key, c)
	return c
}

// ReclaimPriority is the priority by which others may take from a usage: above all that a job may have if it is guaranteed.
func (u *Usage) ReclaimPriority() int {
	if u.Guaranteed() {
		return structs.JobMaxPriority + 1
	}
	return u.Owner.Terms.Priority
}

// withoutReserved returns, for each priority that uses something of the node, what it
// would have without that and all below. Devices count that somebody of those holds last.
func (n *NodeState) withoutReserved() []UsageAt {
	var sums UsageSums
	return sums.Without(n)
}

// UsageSums is what withoutReserved works with, to be used again.
type UsageSums struct {
	list    []UsageAt
	highest map[string]int // of partly used devices, the highest priority
}

// by returns the sum of a priority.
func (x *UsageSums) by(priority int) *bucket.Vector {
	at := len(x.list)
	for at > 0 && x.list[at-1].Priority >= priority {
		at--
	}
	if at == len(x.list) || x.list[at].Priority != priority {
		x.list = slices.Insert(x.list, at, UsageAt{Priority: priority})
	}
	return &x.list[at].At
}

// Without does so of one node as the indexes have it; the answer is good until the next call.
func (x *UsageSums) Without(n *NodeState) []UsageAt {
	x.list = x.list[:0]
	for _, u := range n.Usages {
		v := x.by(u.ReclaimPriority())
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

// devices counts those of a usage: whole ones at once, others by whoever holds them last.
func (x *UsageSums) devices(u *Usage, v *bucket.Vector) {
	for _, d := range u.Devices {
		if d.Share >= WholeDevice {
			v[DimGPUs]++
			continue
		}
		if x.highest == nil {
			x.highest = map[string]int{}
		}
		if p, reserved := x.highest[d.ID]; !reserved || p < u.ReclaimPriority() {
			x.highest[d.ID] = u.ReclaimPriority()
		}
	}
}
