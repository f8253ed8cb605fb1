package structs

import "slices"

// Older returns the entry without what came with a later type of entries, since, as servers that do not know that type come to another state by
// it (ADR 0006); nil: nothing of it did.
func (c *PlanCommit) Older() (older *PlanCommit, since LogType) {
	if !slices.ContainsFunc(c.Plans, (*JudgedPlan).countsRequeues) {
		return nil, 0
	}
	older = &PlanCommit{Plans: slices.Clone(c.Plans)}
	for i, p := range older.Plans {
		older.Plans[i] = p.withoutRequeues()
	}
	return older, LogProjectUpsert
}

// requeues reports whether the stop states more of a reclaim than that it is one.
func (s *AllocStop) requeues() bool { return s.RequeueReason != "" || s.SuspendedAt != 0 }

// requeued reports whether the instance has been requeued.
func (in *Instance) requeued() bool { return in.Requeues > 0 || in.RequeueReason != "" }

func (b *PlacementBatch) requeued() bool {
	for i := range b.Instances {
		if b.Instances[i].requeued() {
			return true
		}
	}
	return false
}

func (p *JudgedPlan) countsRequeues() bool {
	return slices.ContainsFunc(p.Stop, (*AllocStop).requeues) || slices.ContainsFunc(p.Place, (*PlacementBatch).requeued)
}

// withoutRequeues returns the plan without how often instances were requeued, why, and since when they are suspended.
func (p *JudgedPlan) withoutRequeues() *JudgedPlan {
	out := *p
	out.Stop = slices.Clone(p.Stop)
	for i, s := range out.Stop {
		if s.requeues() {
			older := *s
			older.RequeueReason, older.SuspendedAt = "", 0
			out.Stop[i] = &older
		}
	}
	out.Place = slices.Clone(p.Place)
	for i, b := range out.Place {
		if b.requeued() {
			older := *b
			older.Instances = slices.Clone(b.Instances)
			for j := range older.Instances {
				older.Instances[j].Requeues, older.Instances[j].RequeueReason = 0, ""
			}
			out.Place[i] = &older
		}
	}
	return &out
}
