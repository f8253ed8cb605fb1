// Package jobcount counts the allocations and evaluations of a job, and says what follows from the counts: the lines of its
// summary and its status.
//
// The package stands apart because it is a function of what it is given: it knows no table, and not when anything is counted,
// which nomadish/state decides. It must never read a clock or chance, or let the order of a map show.
package jobcount

import (
	"maps"

	"github.com/nomadish/nomadish/structs"
)

// Tally is how much of a job is alive: derived from allocations and evaluations so that a job's status is
// known without counting; never in a snapshot's stream or hash.
type Tally struct {
	Namespace string
	JobID     string
	Live      int // allocations that are not terminal
	Unended   int // allocations whose client has not ended them
	Allocs    int
	Open      int // evaluations that are not terminal
	Evals     int
}

// Add adds what another tally has counted.
func (t *Tally) Add(o *Tally) {
	t.Live += o.Live
	t.Unended += o.Unended
	t.Allocs += o.Allocs
	t.Open += o.Open
	t.Evals += o.Evals
}

// Zero reports whether nothing is counted.
func (t *Tally) Zero() bool { return t.Live|t.Unended|t.Allocs|t.Open|t.Evals == 0 }

// ending is what reports whether an allocation has ended.
type ending interface {
	Terminal() bool
	ClientTerminal() bool
}

// AddAlloc counts an allocation n times.
func (t *Tally) AddAlloc(a ending, n int) {
	t.Allocs += n
	if !a.Terminal() {
		t.Live += n
	}
	if !a.ClientTerminal() {
		t.Unended += n
	}
}

// AddEval counts an evaluation n times.
func (t *Tally) AddEval(e *structs.Evaluation, n int) {
	t.Evals += n
	if !e.Terminal() {
		t.Open += n
	}
}

// AddTo counts n allocations of a client status in a group's summary. One that is
// suspended has its node and waits to run there, like one that starts.
func AddTo(s structs.TaskGroupSummary, status string, n int) structs.TaskGroupSummary {
	switch status {
	case structs.AllocClientPending, structs.AllocClientSuspended:
		s.Starting += n
	case structs.AllocClientRunning:
		s.Running += n
	case structs.AllocClientComplete:
		s.Complete += n
	case structs.AllocClientFailed:
		s.Failed += n
	case structs.AllocClientLost:
		s.Lost += n
	case structs.AllocClientUnknown:
		s.Unknown += n
	}
	return s
}

// Plus adds what is counted, not what is queued.
func Plus(a, b structs.TaskGroupSummary) structs.TaskGroupSummary {
	a.Complete += b.Complete
	a.Failed += b.Failed
	a.Running += b.Running
	a.Starting += b.Starting
	a.Lost += b.Lost
	a.Unknown += b.Unknown
	return a
}

// Fit adds a line for every group of the job, sets what is queued (as queued
// states, unless it is nil), and removes lines of other groups that count nothing.
func Fit(groups map[string]structs.TaskGroupSummary, job *structs.Job, queued map[string]int) {
	known := map[string]bool{}
	for _, g := range job.TaskGroups {
		if g == nil {
			continue
		}
		known[g.Name] = true
		line := groups[g.Name]
		if queued != nil {
			line.Queued = queued[g.Name]
		}
		if job.Stop {
			line.Queued = 0
		}
		groups[g.Name] = line
	}
	maps.DeleteFunc(groups, func(name string, line structs.TaskGroupSummary) bool {
		line.Queued = 0
		return !known[name] && line == structs.TaskGroupSummary{}
	})
	for name, line := range groups { // order does not matter: each line by itself
		if !known[name] && line.Queued != 0 {
			line.Queued = 0
			groups[name] = line
		}
	}
}

// Status is a job's status: running while an allocation of it is not
// terminal, pending while something is to be decided, dead when all is over. What
// launches others, and a system job that waits for nodes, is not dead until stopped.
func Status(job *structs.Job, t *Tally) string {
	switch {
	case t.Live > 0:
		return structs.JobStatusRunning
	case (job.IsPeriodic() || job.IsParameterized()) && !job.Stop:
		return structs.JobStatusRunning
	case t.Open > 0:
		return structs.JobStatusPending
	case job.Type == structs.JobTypeSystem && !job.Stop:
		return structs.JobStatusPending
	case job.Stop || t.Allocs > 0 || t.Evals > 0:
		return structs.JobStatusDead
	}
	return structs.JobStatusPending
}
