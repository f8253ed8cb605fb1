package forecast

import (
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// consideredRuns is how many of the latest finished runs of a job, and of a user, show how long the next takes.
const consideredRuns = 100

// history is how long finished runs took: those that completed, the latest first.
type history struct {
	jobs  map[structs.NamespacedID][]time.Duration
	users map[string][]time.Duration
}

// historyOf reads the finished runs of a state.
func historyOf(snap *state.Snapshot) *history {
	h := &history{jobs: map[structs.NamespacedID][]time.Duration{}, users: map[string][]time.Duration{}}
	for r := range snap.History(nil, structs.AllNamespaces, "") {
		if !r.Finished() || r.Ended < r.Started {
			continue
		}
		took := time.Duration(r.Ended - r.Started)
		id := structs.NamespacedID{Namespace: r.Namespace, ID: inAnyRun(r.JobID)}
		if runs := h.jobs[id]; len(runs) < consideredRuns {
			h.jobs[id] = append(runs, took)
		}
		if runs := h.users[r.Submitter]; r.Submitter != "" && len(runs) < consideredRuns {
			h.users[r.Submitter] = append(runs, took)
		}
	}
	return h
}

// inAnyRun returns what all of the jobs have in common that runs of a workflow register for one of its jobs, WORKFLOW/RUN/JOB, so that the next run is
// expected to take as long as those before; the ID of any other job as it is.
func inAnyRun(id string) string {
	workflow, rest, _ := strings.Cut(id, "/")
	run, job, ok := strings.Cut(rest, "/")
	if !ok {
		return id
	}
	if _, err := strconv.ParseUint(run, 10, 31); err != nil {
		return id
	}
	return workflow + "/*/" + job
}

// empty reports whether there is nothing to expect anything by.
func (h *history) empty() bool { return len(h.jobs) == 0 }

// expected returns how long an instance runs in all that has run for a time, as finished runs of its job, or else of its user, took in the mean;
// what has run longer, as those did that took longer than that. 0: there were none.
func (h *history) expected(in *instance, ran time.Duration) time.Duration {
	runs := h.jobs[structs.NamespacedID{Namespace: in.job.Namespace, ID: inAnyRun(in.job.ID)}]
	if user := in.is.job.Submitter; len(runs) == 0 && user != nil {
		runs = h.users[user.User]
	}
	if m := mean(runs, -1); m == 0 || m > ran {
		return m
	}
	return mean(runs, ran)
}

// mean returns the mean of the runs that took longer than a time, at least a nanosecond; 0: none did.
func mean(runs []time.Duration, longer time.Duration) time.Duration {
	sum, n := time.Duration(0), time.Duration(0)
	for _, r := range runs {
		if r > longer {
			sum, n = sum+r, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return max(1, sum/n)
}

// latest returns how long an instance runs at most, in all; 0: without end.
func latest(in *instance, ran time.Duration) time.Duration {
	if in.is.limit == 0 {
		return 0
	}
	return max(in.is.limit, ran)
}

// lasting returns how long an instance is expected to run, in all, and never longer than it may; 0: without end.
func (h *history) lasting(in *instance, ran time.Duration) time.Duration {
	most := latest(in, ran)
	if !in.is.batch {
		return most
	}
	expected := h.expected(in, ran)
	switch {
	case expected == 0:
		return most
	case most == 0:
		return expected
	}
	return min(expected, most)
}

// steps are what ends that are expected are rounded to.
var steps = []time.Duration{5 * time.Minute, 2 * time.Minute, time.Minute, 30 * time.Second, 10 * time.Second, 5 * time.Second, 2 * time.Second, time.Second}

// exact is in how many parts a run is known that is expected to end.
const exact = 50

// rounded returns the next time, after which a run is expected to end that lasts so long in all, of few: a mean says less than where it is between these,
// and what ends together is decided together.
func rounded(end time.Time, lasts time.Duration) time.Time {
	for _, step := range steps {
		if step <= lasts/exact {
			return end.Add(step - 1).Truncate(step)
		}
	}
	return end
}
