package workflow

import (
	"slices"
	"time"
)

// minRuns is from how many finished runs on a user's history counts (part 5, "Time rule").
const minRuns = 5

// Run is a job of the running stage that has not ended.
type Run struct {
	Limit time.Duration // its max_run_duration; 0: it has none
	Start int64         // Unix nanoseconds; 0: it has not started, and counts from now on
}

// TimeLeft returns how long a stage still runs at most, for its jobs that have not ended: until the latest of their starts and limits,
// never less than 0. It returns false if one of them has no limit: then the stage has none. A stage without jobs has ended.
func TimeLeft(jobs []Run, now int64) (left time.Duration, limited bool) {
	for _, j := range jobs {
		if j.Limit <= 0 {
			return 0, false
		}
		rest := j.Limit
		if j.Start != 0 {
			rest -= time.Duration(now - j.Start)
		}
		left = max(left, rest)
	}
	return left, true
}

// Terms are what a block `lend` states about time.
type Terms struct {
	History bool // a job without a limit counts with the 95th percentile of its user's finished runs
	Longer  bool // jobs may borrow, however long they run
}

// MayBorrow reports whether a job may borrow, by its own limit (0: it has none), of a stage of which TimeLeft returned left and
// limited. The history is how long its user's finished runs took, in any order; fewer than 5 do not count.
func (t Terms) MayBorrow(limit, left time.Duration, limited bool, history []time.Duration) bool {
	if !limited || t.Longer {
		return true
	}
	if limit <= 0 && t.History {
		limit, _ = Usual(history)
	}
	return limit > 0 && limit <= left
}

// Usual returns how long a user's runs usually take, by those that have finished: the 95th percentile. Fewer than 5 do not count.
func Usual(history []time.Duration) (usual time.Duration, counts bool) {
	if len(history) < minRuns {
		return 0, false
	}
	return percentile95(history), true
}

// percentile95 returns the least duration that at least 95 % of some runs did not exceed.
func percentile95(runs []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(runs))
	return sorted[(95*len(sorted)+99)/100-1]
}
