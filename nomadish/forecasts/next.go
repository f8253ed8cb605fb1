package forecasts

import (
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// start is when a forecast began to be made, of which state, and how many groups wait in that.
type start struct {
	index  uint64
	at     time.Time
	groups int
}

// cost is the work of a forecast of so many groups.
type cost struct {
	work   time.Duration
	groups int
}

// few is how many groups make no difference for how long a forecast takes.
const few = 100

// waiting counts the groups that wait, and those of jobs of which nobody has decided yet whether they do: a forecast decides that.
func waiting(snap *state.Snapshot) (n int) {
	for range snap.Requests().Waiting(nil, structs.AllNamespaces) {
		n++
	}
	for e := range snap.OpenEvals(nil, structs.EvalStatusPending) {
		if job := snap.Job(nil, e.Namespace, e.JobID); job != nil {
			n += len(job.TaskGroups)
		}
	}
	return n
}

// of returns how much work a forecast of a number of groups is about; known: it is of no more than twice as many as the one of this cost.
func (c cost) of(groups int) (work time.Duration, known bool) {
	times := float64(groups+few) / float64(c.groups+few)
	return min(maxTime, time.Duration(float64(c.work)*max(1, times))), c.work > 0 && times <= 2
}

// share returns the time of which an amount of work is no more than its share of a core.
func (s *Service) share(work time.Duration) time.Duration {
	return time.Duration(float64(work) * collected * 100 / s.opts.CPUPercent)
}

// made returns in how long a forecast is made that takes an amount of work.
func (s *Service) made(work time.Duration) time.Duration {
	return work + time.Duration(float64(max(0, work-freely))*restOf(s.opts.CPUPercent))
}

// atMost returns in how long a forecast is made at most, where the machine has other work, too.
func (s *Service) atMost() time.Duration { return s.made(maxTime) * 5 / 4 }

// next returns when the next forecasts are there: the one that is being made, if one is, and the one after that. The lock is held.
func (s *Service) next() (list []structs.ForecastRenewal) {
	now := s.opts.Clock.Now()
	begins, latest, groups := later(now, s.rested), later(now, s.rested), s.cost.groups
	late := false
	if !s.began.at.IsZero() {
		r := s.renewal(s.began.at, s.began.at, s.began.groups)
		r.Index, groups = s.began.index, s.began.groups
		late = r.End <= now.UnixNano() // how long it takes is not known, then
		list = append(list, r)
		work, _ := s.cost.of(groups)
		begins = later(s.began.at.Add(s.share(work)), later(now, time.Unix(0, r.End)).Add(leastRest)) // it may be late
		latest = s.began.at.Add(max(s.share(maxTime), s.atMost()+leastRest))
	}
	next := s.renewal(begins, latest, groups)
	if late {
		next.End = 0
	}
	return append(list, next)
}

// renewal returns when a forecast of a number of groups is there that begins about at one time, and at another one at the latest.
func (s *Service) renewal(begins, latest time.Time, groups int) structs.ForecastRenewal {
	r := structs.ForecastRenewal{Begin: begins.UnixNano(), Latest: latest.Add(s.atMost()).UnixNano()}
	if work, known := s.cost.of(groups); known {
		r.End = begins.Add(s.made(work)).UnixNano()
	}
	return r
}

// expected returns in how long there is a forecast of what came with an index, as structs.RenewalText has it; "": none may be made.
func (s *Service) expected(index uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanting == 0 || s.why != "" {
		return ""
	}
	return structs.RenewalText(s.next(), index, s.opts.Clock.Now())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
