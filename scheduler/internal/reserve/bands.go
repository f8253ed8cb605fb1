package reserve

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/room"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// Where bands are on, a workflow takes from lower bands what is not free (part 5), by the rules of part 3: the lowest priority is looked for with which
// it packs if all of that priority and below may leave, then on which nodes any of each priority have to, from the highest down: see [fewest]. On the
// nodes that it packs into then just enough leave. Those that fail the submission check leave for it with bands off, too (part 4).

// Bands are from whom a workflow may take what it reserves.
type Bands struct {
	// Config is the scheduler's configuration; nil: it takes from nobody.
	Config   *structs.SchedulerConfiguration
	Priority int   // the workflow's
	Now      int64 // in Unix nanoseconds: when those are suspended that leave so
	// PerNode reports whether a job is a system or sysbatch job, which no claim takes from (part 0, rule 7); nil: only what is placed says so, which it
	// does where somebody owns cells.
	PerNode func(structs.NamespacedID) bool
	// OverLimit returns what becomes of what a namespace requests beyond what it owns, one of the OverLimit constants; nil: it owns nothing.
	OverLimit func(namespace string) string
}

// perNode reports whether a usage is of a system or sysbatch job.
func (b *Bands) perNode(u *world.Usage) bool {
	return u.PerNode() || b.PerNode != nil && b.PerNode(structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job})
}

// preemption is the work of taking from lower bands.
type preemption struct {
	*chooser
	asIs []world.Resources // what may be reserved of each node as it is
	most int               // the highest priority that is taken from
	// leave are those of each gang that can leave then.
	leave  map[world.GangName]map[string]bool
	losses [][]loss // of each node, by priority, the lowest first
	upToOn []int    // up to which priority it is taken from on each node
	// entitled: it takes in cells of the workflow's namespace, so that all leave who have no claim, whatever their bands.
	entitled bool
	leavers  []leaver
}

// failedRank is in place of the priority of who fails the submission check: below all others.
const failedRank = 0

// fromBands packs stages, with licenses beside, where instances of lower bands leave; false: they are not enough, or may not be taken from.
func (c *chooser) fromBands(r *request) (out Choice, ok bool) {
	if c.bands.Config == nil {
		return out, false
	}
	p := &preemption{chooser: c}
	levels := p.levels()
	if len(levels) == 0 {
		return out, false
	}
	for i, n := range p.nodes {
		p.asIs = append(p.asIs, p.freeOf(i, n))
	}
	var named map[int][]string
	pack := func(upTo []int) (packed workflow.Packing) {
		packed, named = c.packWithin(r, p.amounts(upTo), p.as(upTo))
		return packed
	}
	works := func(upTo []int) bool { return pack(upTo).Missing.IsZero() }
	all := func(most int) bool {
		p.upTo(most)
		return works(slices.Repeat([]int{most}, len(p.nodes)))
	}
	if !all(levels[len(levels)-1]) {
		return out, false
	}
	at := first(len(levels)-1, func(at int) bool { return all(levels[at]) })
	p.upTo(levels[at])
	p.upToOn = fewest(p, levels[:at+1], maxFewest, works)
	packed := pack(p.upToOn)
	if !packed.Missing.IsZero() {
		return out, false
	}
	kept, more := r.left.split(packed.Parts)
	parts := c.parts(more)
	out = Choice{Posted: true, Preempts: true, Enlarged: packed.Enlarged, Licenses: r.licenses.of}
	if !p.nameParts(more, parts, named) || !p.stop(more, parts) || !p.takeLicenses(r.licenses.of, parts) {
		return out, false
	}
	out.Parts = slices.Concat(kept, parts)
	for _, l := range p.leavers {
		out.stop(l.use, l.stop)
	}
	return out, true
}

// first returns the least number below high of which something is true that is true of all above it, or high.
func first(high int, is func(int) bool) int {
	low := 0
	for low < high {
		if mid := (low + high) / 2; is(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

// rank returns by which priority a usage may be taken from; false: it must not be.
func (p *preemption) rank(u *world.Usage) (rank int, may bool) {
	config := p.bands.Config
	switch {
	case !p.mayLeave(u):
		return 0, false
	case standing.HasFailed(p.w, u):
		return failedRank, true
	case p.entitled:
		return u.Owner.Terms.Priority, true
	}
	rank = u.Owner.Terms.Priority
	return rank, config.Preempts(structs.JobTypeBatch) && config.Band(rank) < config.Band(p.bands.Priority) && !u.Immune(config)
}

// may reports whether a usage is of those that may be taken from.
func (p *preemption) may(u *world.Usage) bool {
	rank, may := p.rank(u)
	return may && rank <= p.most
}

// levels returns by which priorities usages of the nodes may be taken from, lowest first.
func (p *preemption) levels() (list []int) {
	for i, n := range p.nodes {
		if p.taken[i] {
			continue
		}
		for _, u := range n.Usages {
			if rank, may := p.rank(u); may && !slices.Contains(list, rank) {
				list = append(list, rank)
			}
		}
	}
	slices.Sort(list)
	return list
}

// leaves reports whether a usage can leave: of a gang all members can, or as many as it runs on without.
func (p *preemption) leaves(u *world.Usage) bool {
	g, some := u.Owner.Gang()
	if may := p.may(u); !some || !may || p.entitled {
		return may
	}
	leave, known := p.leave[g]
	if !known {
		leave = map[string]bool{}
		members := world.GangMembers(p.e, g)
		stays := slices.ContainsFunc(members, func(m *world.Usage) bool { return !p.may(m) })
		spare := together.Spare(members)
		for _, m := range members {
			if p.may(m) && (!stays || spare[m.Owner.Group] > 0) {
				spare[m.Owner.Group]--
				leave[m.ID] = true
			}
		}
		p.leave[g] = leave
	}
	return leave[u.ID]
}

// freeOf returns what may be reserved of a node that is as n is.
func (p *preemption) freeOf(i int, n *world.NodeState) world.Resources {
	if p.taken[i] {
		return world.Resources{}
	}
	free := p.freeOn(n)
	if len(n.Capacity.Trees) > 0 {
		_, now := p.spareWhere(i, n)
		free.Devices = min(free.Devices, now)
	}
	return free
}

// nameParts names the devices of parts of nodes: those that are free if there are as many, else those of which others can leave. It reports whether there
// are enough.
func (p *preemption) nameParts(list []workflow.Part, parts []structs.WorkflowPart, named map[int][]string) bool {
	for k := range list {
		if p.chooser.nameParts(list[k:k+1], parts[k:k+1], named) {
			continue
		}
		i := list[k].Node
		n := p.without(i, p.upToOn[i])
		if parts[k].DeviceIDs = nameOf(n, p.key, parts[k].Devices, p.isSpare(i)); parts[k].DeviceIDs == nil {
			return false
		}
	}
	return true
}

// stop finds who leaves for parts: just enough (part 3). It reports whether they are.
func (p *preemption) stop(list []workflow.Part, parts []structs.WorkflowPart) bool {
	rooms := &room.Rooms{}
	want := preempt.Request{Below: preempt.EveryBand, KeepWhole: p.bands.Config.KeepWhole, Partial: preempt.PartialNone}
	for k := range list {
		rooms.AddPart(p.nodes[list[k].Node], func(n *world.NodeState) bool { return p.holds(n, &parts[k]) })
		want.Want = append(want.Want, 1)
	}
	of := room.NewRequests(p.e, rooms, room.Taker{
		Below: preempt.EveryBand, Config: p.bands.Config, Stays: func(u *world.Usage) bool { return !p.may(u) },
	})
	for _, n := range rooms.Nodes {
		of.Gather(n)
	}
	for i := range of.List { // who fails the submission check is taken first
		a := &of.List[i]
		if rank, _ := p.rank(rooms.Usage(a.Victims[0].ID)); rank == failedRank {
			a.Band = -1
		}
	}
	result := preempt.Plan(rooms, of.List, want)
	if slices.Contains(result.Placed, 0) {
		return false
	}
	for i := range result.Taken {
		t := &result.Taken[i]
		u := rooms.Usage(of.List[t.Allocated].Victims[t.Victim].ID)
		p.leavers = append(p.leavers, leaver{u, p.stopOf(u, t, of.Requeued[t.Allocated])})
	}
	return true
}

// holds reports whether a part of the reservation has room on a node as it would be.
func (p *preemption) holds(n *world.NodeState, part *structs.WorkflowPart) bool {
	amount := world.Resources{Amount: world.Vector{CPU: part.CPU, MemoryMB: part.MemoryMB, DiskMB: part.DiskMB}, Cores: part.Cores, Devices: part.Devices}
	return p.freeOn(n).Lacks(amount) == "" && !slices.ContainsFunc(part.DeviceIDs, func(id string) bool {
		return n.LacksDevice(id, world.WholeDevice)
	})
}

// stopOf returns how a usage leaves. requeued is why it is requeued though it states that it is to be suspended; "": it does not, or it is suspended.
func (p *preemption) stopOf(u *world.Usage, t *preempt.Taken, requeued string) *structs.AllocStop {
	why := "preempted for the reservation of workflow " + workflowID(p.key)
	if owner := p.namespace(); owner != u.Owner.Namespace {
		why += " in namespace " + owner
	}
	reason := why
	if config := p.bands.Config; config.Preempts(structs.JobTypeBatch) {
		band := config.PriorityBands()[config.Band(p.bands.Priority)]
		reason += fmt.Sprintf(" of band %d-%d", band.Low, band.High)
	}
	st := &structs.AllocStop{
		AllocID: u.ID, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue, RequeueReason: reason, DesiredDescription: why,
	}
	switch {
	case t.How == preempt.Suspend:
		st.DesiredStatus, st.Reclaim, st.RequeueReason, st.SuspendedAt = structs.AllocDesiredSuspend, structs.ReclaimSuspend, "", p.bands.Now
	case t.NoRoom:
		st.DesiredDescription += "; not suspended, as its memory cannot stay beside it"
	case t.How == preempt.Shrink:
		st.DesiredDescription += "; its gang runs on without it"
	case requeued != "":
		st.DesiredDescription += "; not suspended, as " + requeued
	}
	return st
}
