package state

import (
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// InputOptions is what the caller of the scheduler adds to what the state holds.
type InputOptions struct {
	Now   time.Time
	Seed  uint64
	NewID func() string
	// Typical returns what the policy least-fragmentation keeps room for when it places the
	// job; nil: that policy is binpack.
	Typical func(*Snapshot, *structs.Job, *structs.SchedulerConfiguration) *scheduler.Typical
	// Prepared, Alike, EntitledOnly, LendRound, Brief and Annotate are passed on as they are.
	Prepared     *scheduler.Prepared
	Alike        string
	EntitledOnly bool
	LendRound    int
	Brief        bool
	Annotate     bool
}

// EvalInput returns what an evaluation is decided on: its job as it is registered, with all
// allocations of that job and of earlier ones of its name.
func (s *Snapshot) EvalInput(e *structs.Evaluation, o *InputOptions) scheduler.Input {
	return s.Input(s.Job(nil, e.Namespace, e.JobID), s.AllocsToDecide(e.Namespace, e.JobID), o)
}

// Input returns what the scheduler is given for a job (nil: it was purged), with the
// allocations that the caller chooses. Whoever schedules on a snapshot takes
// its Input from here, so that workers, `job plan` and explanations see the same state.
func (s *Snapshot) Input(job *structs.Job, allocs []*structs.Allocation, o *InputOptions) scheduler.Input {
	in := scheduler.Input{
		Job: job, Allocs: allocs, Config: s.SchedulerConfig(nil), Now: o.Now, Seed: o.Seed, NewID: o.NewID, SnapshotIndex: s.Index(),
		Requests: s.Requests().OfGroups(job), Past: pastFollowUps(allocs, func(id string) *structs.Evaluation { return s.Eval(nil, id) }), Prepared: o.Prepared, Alike: o.Alike, EntitledOnly: o.EntitledOnly, LendRound: o.LendRound,
		Brief: o.Brief, Annotate: o.Annotate, Pending: s.Requests().PendingOf, UserRuns: s.v.userRuns,
	}
	if job != nil {
		if v := s.VirtualClusters(nil).Get(job.Namespace); v != nil {
			in.OverLimit = v.OverLimit
		}
	}
	if o.Typical != nil {
		in.Typical = o.Typical(s, job, &in.Config)
	}
	return in
}
