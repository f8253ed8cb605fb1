package feasible

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Why members of a gang are stopped that are well themselves.
const (
	StopGangRestart = "alloc is stopped because its gang restarts"
	StopGangFailed  = "alloc is stopped because a member of its gang failed and is not rescheduled"
	StopGangWaits   = "alloc is stopped because its gang waits to be rescheduled"
)

// Gang is the groups of a job whose instances are placed together: min of each at
// once, or none of any (semantics part 2).
type Gang struct {
	Groups []GangGroup // in the job's order
	// ByMember: a member that is lost is replaced alone; else all restart.
	ByMember bool
	// Topology is the cell that all of it shall be under; nil: anywhere.
	Topology *structs.TopologyConstraint
	// Informed: members learn of each other. Not those of a group that is a gang only
	// because it states a topology.
	Informed bool
}

// GangGroup is one group of a gang.
type GangGroup struct {
	Group *structs.TaskGroup
	// Min of its instances are placed at once; rigid: that is all of them, however
	// many count states, so that another count is another gang.
	Min   int
	Rigid bool
}

// GangsOf finds the gangs of a job, by the names of their groups. Groups that name
// each other, if only through others, are one gang. A group without a gang block that
// requires a topology is one too, as its instances must be under one cell together.
func GangsOf(job *structs.Job) map[string]*Gang {
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
	out := map[string]*Gang{}
	for i, g := range job.TaskGroups {
		if !named[i] {
			continue
		}
		whole := out[job.TaskGroups[first[i]].Name]
		if whole == nil {
			whole = &Gang{ByMember: true}
		}
		whole.add(g)
		out[g.Name] = whole
	}
	return out
}

// add takes a group in. What a gang's groups must agree on is taken from whichever
// states it; "gang" wins over "member", and required over preferred.
func (g *Gang) add(group *structs.TaskGroup) {
	m := GangGroup{Group: group, Min: group.Count, Rigid: true}
	if b := group.Gang; b != nil {
		if b.Min > 0 {
			m.Min, m.Rigid = min(b.Min, group.Count), false
		}
		g.Informed = true
		g.ByMember = g.ByMember && b.OnLoss == structs.GangOnLossMember
	}
	g.Groups = append(g.Groups, m)
	if t := group.Topology; t != nil && (g.Topology == nil || (t.Required && !g.Topology.Required)) {
		g.Topology = t
	}
}
