package plan

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// shortages is what a plan leaves missing of the groups that waited before it.
type shortages []shortage

type shortage struct {
	row    *structs.PendingRequest
	after  structs.RequestUpdate // when all that is accepted of the plan has been committed
	stated bool                  // the plan updates so itself
}

// missingOf finds what a plan leaves missing: what it updates itself, and what of it was refused.
// A group that did not wait before has no row to be kept true: until the plan is over, its
// evaluation stands for it.
func missingOf(j *judged, known facts) (out shortages) {
	refused := countGroups(without(j.plan, j.accepted))
	for _, g := range countGroups(j.accepted.Place) {
		row := known.RequestOf(g.ns, g.job, g.group)
		if row == nil || row.Missing == 0 {
			continue
		}
		s := shortage{row: row, after: structs.RequestUpdate{
			Namespace: g.ns, JobID: g.job, Group: g.group, Missing: row.Missing, Since: row.Since, EvalID: row.EvalID,
		}}
		if u := updateOf(j.accepted.Requests, &s.after); u != nil {
			s.after, s.stated = *u, true
		} else if u := updateOf(j.plan.Requests, &s.after); u != nil { // a part of the plan was refused
			s.after.Missing = u.Missing
		}
		if !s.stated {
			s.after.Missing += countOf(refused, &s.after)
		}
		out = append(out, s)
	}
	return out
}

// without returns the refused placements, except replacements whose old allocation keeps
// running.
func without(p *structs.Plan, accepted *structs.JudgedPlan) (out []*structs.PlacementBatch) {
	if instances(p.Place) == instances(accepted.Place) {
		return nil
	}
	here, runs := map[string]bool{}, map[string]bool{}
	for _, b := range accepted.Place {
		for i := range b.Instances {
			here[structs.DeriveID(b.Seed, uint64(b.Instances[i].Ordinal))] = true
		}
	}
	for _, s := range p.Stop {
		runs[s.AllocID] = !s.KeepRunning
	}
	for _, s := range accepted.Stop {
		delete(runs, s.AllocID)
	}
	for _, b := range p.Place {
		c := *b
		c.Instances = slices.DeleteFunc(slices.Clone(b.Instances), func(in structs.Instance) bool {
			return here[structs.DeriveID(b.Seed, uint64(in.Ordinal))] || runs[in.PreviousAllocation]
		})
		out = append(out, &c)
	}
	return out
}

func updateOf(requests []*structs.RequestUpdate, of *structs.RequestUpdate) *structs.RequestUpdate {
	i := slices.IndexFunc(requests, func(u *structs.RequestUpdate) bool {
		return u.Namespace == of.Namespace && u.JobID == of.JobID && u.Group == of.Group
	})
	if i < 0 {
		return nil
	}
	return requests[i]
}

type groupCount struct {
	ns, job, group string
	n              int
}

// countGroups counts what is placed of each group, in the order of the plan.
func countGroups(place []*structs.PlacementBatch) (out []groupCount) {
	for _, b := range place {
		i := slices.IndexFunc(out, func(g groupCount) bool { return g.ns == b.Namespace && g.job == b.JobID && g.group == b.Group })
		if i < 0 {
			i = len(out)
			out = append(out, groupCount{ns: b.Namespace, job: b.JobID, group: b.Group})
		}
		out[i].n += len(b.Instances)
	}
	return out
}

func countOf(groups []groupCount, of *structs.RequestUpdate) int {
	for _, g := range groups {
		if g.ns == of.Namespace && g.job == of.JobID && g.group == of.Group {
			return g.n
		}
	}
	return 0
}

// before returns what is missing while what comes later is not committed.
func (s shortages) before(later []*structs.PlacementBatch) (out []*structs.RequestUpdate) {
	counts := countGroups(later)
	for i := range s {
		u := s[i].after
		u.Missing += countOf(counts, &u)
		u.Since, u.EvalID = s[i].row.Since, s[i].row.EvalID // what it is to wait in comes last
		out = append(out, &u)
	}
	return out
}

// last adds to what a plan states what it does not: where its end changes nothing, or a part
// of it was refused.
func (s shortages) last(updates []*structs.RequestUpdate) []*structs.RequestUpdate {
	for i := range s {
		if !s[i].stated {
			updates = append(slices.Clip(updates), &s[i].after)
		}
	}
	return updates
}

// distribute makes each part state what is missing when it has been committed.
func (s shortages) distribute(parts []*structs.JudgedPlan, updates []*structs.RequestUpdate) {
	var later []*structs.PlacementBatch
	for i, p := range slices.Backward(parts) {
		if i == len(parts)-1 {
			p.Requests = s.last(updates)
		} else {
			p.Requests = s.before(later)
		}
		later = append(later, p.Place...)
	}
}
