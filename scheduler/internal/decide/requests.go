package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/structs"
)

// requests adds to the plan what is missing of each group once it has been committed. evalID is what the rest waits in; "": none.
func (s *Scheduler) requests(evalID string) {
	s.plan.Requests = append(s.plan.Requests, reconcile.Requests(s.Input.Job, s.Input.Requests, s.queued, s.eval.PendingSince(), evalID)...)
}

// why explains why nothing fits, also for reasons that no node has. A brief decision keeps what its evaluation states already: the reasons of what is
// hopeless are costly to count, and few change. Where others of the group were placed, it does not keep what names a workflow that is gone.
func (s *Scheduler) why(placed bool, found *search.Search, reasons ...string) *structs.AllocMetric {
	if m := s.stored(found.Fit.Group.Name); m != nil && (!placed || !metric.NamesGone(m, s.World)) {
		return m
	}
	return metric.Explain(found, reasons...)
}

// stored returns the metrics that a blocked evaluation has of a group already, where they suffice.
func (s *Scheduler) stored(group string) *structs.AllocMetric {
	m := s.eval.FailedTGAllocs[group]
	if !s.Input.Brief || s.eval.Status != structs.EvalStatusBlocked || m == nil {
		return nil
	}
	c := *m
	c.CoalescedFailures = 0
	return &c
}
