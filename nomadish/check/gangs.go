package check

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// gang is the groups of a job whose instances are placed together.
type gang struct {
	groups []*structs.TaskGroup
	// byMember: one that is lost is replaced alone, so that fewer may run for a while.
	byMember bool
}

// least is how many instances of a group must be there for any to run.
func least(g *structs.TaskGroup) int {
	if g.Gang != nil && g.Gang.Min > 0 {
		return min(g.Gang.Min, g.Count)
	}
	return g.Count
}

func (g *gang) String() string {
	names := make([]string, len(g.groups))
	for i, group := range g.groups {
		names[i] = group.Name
	}
	return strings.Join(names, ", ")
}

// gangsOf finds the gangs of a job by the names of their groups: groups that name each
// other, and by itself a group that must be under one cell.
func gangsOf(job *structs.Job) map[string]*gang {
	out := map[string]*gang{}
	if job.PerNode() || job.IsPeriodic() || job.IsParameterized() {
		return out
	}
	of := func(g *structs.TaskGroup) *gang {
		if out[g.Name] == nil {
			out[g.Name] = &gang{groups: []*structs.TaskGroup{g}, byMember: true}
		}
		return out[g.Name]
	}
	for _, g := range job.TaskGroups {
		if g.Gang == nil {
			if g.Topology != nil && g.Topology.Required {
				of(g).byMember = false
			}
			continue
		}
		whole := of(g)
		if g.Gang.OnLoss != structs.GangOnLossMember {
			whole.byMember = false
		}
		for _, name := range g.Gang.Groups {
			other := job.LookupTaskGroup(name)
			if other == nil {
				continue
			}
			if joined := of(other); joined != whole {
				whole.groups = append(whole.groups, joined.groups...)
				whole.byMember = whole.byMember && joined.byMember
				for _, member := range joined.groups {
					out[member.Name] = whole
				}
			}
		}
	}
	return out
}

// gangsInOrder returns each gang once, in the order of the job's groups.
func gangsInOrder(job *structs.Job) (out []*gang) {
	all := gangsOf(job)
	for _, g := range job.TaskGroups {
		if whole := all[g.Name]; whole != nil && !slices.Contains(out, whole) {
			out = append(out, whole)
		}
	}
	return out
}

// checkGang finds a gang of which some run and too few. While an evaluation is open the
// rest may be on its way out, or what was lost on its way in; but members that were
// placed by the job as it is now, and never had enough beside them, were placed by halves.
func (c *checker) checkGang(j *job, whole *gang) {
	if j.spec.Stop {
		return // what is left of it is surplus
	}
	live := 0
	for _, spec := range whole.groups {
		g := j.group(spec.Name)
		live += g.live + g.unknown
	}
	if live == 0 {
		return
	}
	for _, spec := range whole.groups {
		g, need := j.group(spec.Name), least(spec)
		have := g.live + g.unknown + g.done
		if have >= need {
			continue
		}
		switch {
		case !j.waits():
			c.fault(structs.CheckGangs, "job", j.id.String(), "of gang %q, group %q has %d of the %d members that it needs, and no evaluation of it is open",
				whole, spec.Name, have, need)
		case !whole.byMember && len(g.ever) < need && j.placedAsIs(whole):
			c.fault(structs.CheckGangs, "job", j.id.String(), "of gang %q, group %q was placed with %d of the %d members that it needs",
				whole, spec.Name, len(g.ever), need)
		}
	}
}

// placedAsIs reports whether all live members of a gang were placed by the job as it is. A plan that was decided on an older
// version may be committed after the newer one is registered.
func (j *job) placedAsIs(whole *gang) bool {
	for _, spec := range whole.groups {
		if g := j.group(spec.Name); g.outdated || g.oldest > 0 && g.oldest <= j.spec.JobModifyIndex {
			return false
		}
	}
	return true
}
