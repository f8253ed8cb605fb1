package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Why members of a gang are stopped that are well themselves.
const (
	stopGangRestart = "alloc is stopped because its gang restarts"
	stopGangFailed  = "alloc is stopped because a member of its gang failed and is not rescheduled"
	stopGangWaits   = "alloc is stopped because its gang waits to be rescheduled"
)

// gang is the groups of a job whose instances are placed together: min of each at
// once, or none of any (semantics part 2).
type gang struct {
	groups []gangGroup // in the job's order
	// byMember: a member that is lost is replaced alone; else all restart.
	byMember bool
	// topology is the cell that all of it shall be under; nil: anywhere.
	topology *structs.TopologyAsk
	// told: members are told of each other. Not those of a group that is a gang only
	// because it states a topology.
	told bool
}

// gangGroup is one group of a gang.
type gangGroup struct {
	group *structs.TaskGroup
	// min of its instances are placed at once; rigid: that is all of them, however
	// many count says, so that another count is another gang.
	min   int
	rigid bool
}

// gangsOf finds the gangs of a job, by the names of their groups. Groups that name
// each other, if only through others, are one gang. A group without a gang block that
// requires a topology is one too, as its instances must be under one cell together.
func gangsOf(job *structs.Job) map[string]*gang {
	if job.PerNode() || job.IsPeriodic() || job.IsParameterized() {
		return nil
	}
	if !slices.ContainsFunc(job.TaskGroups, func(g *structs.TaskGroup) bool { return g.Gang != nil || g.Topology != nil }) {
		return nil // as most are
	}
	// first[i] is the first group that group i is in one gang with.
	first := make([]int, len(job.TaskGroups))
	for i := range first {
		first[i] = i
	}
	join := func(a, b int) {
		low, high := min(first[a], first[b]), max(first[a], first[b])
		for i := range first {
			if first[i] == high {
				first[i] = low
			}
		}
	}
	named := make([]bool, len(job.TaskGroups))
	for i, g := range job.TaskGroups {
		if g.Gang == nil {
			named[i] = named[i] || (g.Topology != nil && g.Topology.Required)
			continue
		}
		named[i] = true
		for _, other := range g.Gang.Groups {
			if at := slices.IndexFunc(job.TaskGroups, func(o *structs.TaskGroup) bool { return o.Name == other }); at >= 0 {
				named[at] = true
				join(i, at)
			}
		}
	}
	out := map[string]*gang{}
	for i, g := range job.TaskGroups {
		if !named[i] {
			continue
		}
		whole := out[job.TaskGroups[first[i]].Name]
		if whole == nil {
			whole = &gang{byMember: true}
		}
		whole.add(g)
		out[g.Name] = whole
	}
	return out
}

// add takes a group in. What a gang's groups must agree on is taken from whichever
// states it; "gang" wins over "member", and required over preferred.
func (g *gang) add(group *structs.TaskGroup) {
	m := gangGroup{group: group, min: group.Count, rigid: true}
	if b := group.Gang; b != nil {
		if b.Min > 0 {
			m.min, m.rigid = min(b.Min, group.Count), false
		}
		g.told = true
		g.byMember = g.byMember && b.OnLoss == structs.GangOnLossMember
	}
	g.groups = append(g.groups, m)
	if t := group.Topology; t != nil && (g.topology == nil || (t.Required && !g.topology.Required)) {
		g.topology = t
	}
}

// gangWork is what is to be done with one gang.
type gangWork struct {
	spec  *gang
	works []*groupWork // of its groups, in the job's order
	// whole: nothing of it stays. The first of each group are placed at once, or none
	// of them is, and then stops are done and their room is free. Else members come
	// as they find room.
	whole bool
	stops []*structs.AllocStop
	old   []*structs.Allocation // live ones that stops are of
	// force is when members that keep running until there is room must go without.
	force *later
}

// first gives how many instances must be placed at once.
func (gw *gangWork) first() (n int) {
	for _, work := range gw.works {
		n += work.first
	}
	return n
}

// wanted gives how many instances are to be placed, those above min as well.
func (gw *gangWork) wanted() (n int) {
	for _, work := range gw.works {
		n += len(work.place)
	}
	return n
}
