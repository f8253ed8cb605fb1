package decide

import (
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/structs"
)

// requests returns what is missing of each group once the plan has been committed, where that is
// not what is known of it already. evalID is what the rest waits in; "": none.
func (s *Scheduler) requests(evalID string) {
	if s.Input.Job == nil || s.Input.Job.Stopped() {
		return // the job's requests end with it
	}
	rows := map[string]*structs.PendingRequest{}
	for _, row := range s.Input.Requests {
		rows[row.Group] = row
	}
	for _, g := range s.Input.Job.TaskGroups {
		missing, row := s.queued[g.Name], rows[g.Name]
		u := &structs.RequestUpdate{Namespace: s.Input.Job.Namespace, JobID: s.Input.Job.ID, Group: g.Name, Missing: missing}
		if missing > 0 {
			u.Since, u.EvalID = s.eval.PendingSince(), evalID
		}
		if row == nil && missing == 0 || row != nil && row.Missing == missing && row.EvalID == u.EvalID {
			continue
		}
		s.plan.Requests = append(s.plan.Requests, u)
	}
}

// why explains why nothing fits, also for reasons that no node has. A brief decision keeps what its evaluation states
// already: the reasons of what is hopeless are costly to count, and few change.
func (s *Scheduler) why(found *search.Search, reasons ...string) *structs.AllocMetric {
	if m := s.stored(found.Fit.Group.Name); m != nil {
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
