package structs

import (
	"slices"
	"time"
)

// What is kept of the history of a project.
const (
	// MaxProjectRuns is how many runs of a project that completed are kept, and how many that ended in another way: the last ones.
	MaxProjectRuns = 100
	// MinMeanRuns is how many completed runs there must be before their mean counts.
	MinMeanRuns = 10
	// MaxUsageTypes bounds the types of slots of a project that are counted in one week.
	MaxUsageTypes = 256
)

// How a run of a project's instance ended.
const (
	RunCompleted = "completed" // by itself, successfully
	RunFailed    = "failed"    // by itself, with an error
	RunLost      = "lost"      // with its node
	RunStopped   = "stopped"   // a user or an update stopped it
	RunRequeued  = "requeued"  // it was stopped to make room for others, and went back to the queue
)

// ProjectRun is a finished run of an instance of a project.
type ProjectRun struct {
	AllocID string
	Step    string `json:",omitempty" codec:",omitempty"`
	User    string `json:",omitempty" codec:",omitempty"`
	Type    string // of slots
	Cost    int    // in slots
	OnSlots bool   // it used slots of its project when it ended
	Placed  int64  // Unix nanoseconds
	Started int64  // Unix nanoseconds; 0: it never did
	Ended   int64  // Unix nanoseconds
	End     string // one of the Run constants
}

// Duration returns how long it ran, from its start, or from its placement if no start was reported.
func (r *ProjectRun) Duration() time.Duration {
	from := r.Started
	if from == 0 {
		from = r.Placed
	}
	return time.Duration(max(0, r.Ended-from))
}

// ProjectHistory is the last runs of a project. It outlives their jobs and allocations, and is forgotten with the project.
type ProjectHistory struct {
	Project string
	// Week names the week that counts at present: its ProjectUsage is the one that goes on.
	Week string
	// Completed are the last runs that completed, Others the last that ended in another way, in the order in which their ends were reported.
	Completed   []*ProjectRun
	Others      []*ProjectRun
	ModifyIndex uint64
}

// MeanRun returns the mean run time of the last completed runs; 0 while there are fewer than MinMeanRuns.
func (h *ProjectHistory) MeanRun() time.Duration {
	if h == nil || len(h.Completed) < MinMeanRuns {
		return 0
	}
	var sum time.Duration // of at most MaxProjectRuns: it cannot overflow before some run took a year
	for _, r := range h.Completed {
		sum += min(r.Duration(), maxMeanRun)
	}
	return sum / time.Duration(len(h.Completed))
}

const maxMeanRun = 366 * 24 * time.Hour // a run that counts for the mean; a longer one counts as this long
// ProjectUsage is what a project had and used in a week, by type of slots. It outlives jobs and allocations, and is forgotten with the project,
// or when the week has been over for MaxWeeksKept weeks.
type ProjectUsage struct {
	Project string
	Week    string // 2026-W48
	// From and To are when the week begins and ends, in Unix nanoseconds, by the calendar of the leader that stated them.
	From        int64
	To          int64
	Types       []*SlotUsage // by type
	ModifyIndex uint64
}

// Type returns the line of a type of slots; nil if there is none.
func (u *ProjectUsage) Type(name string) *SlotUsage {
	if i := slices.IndexFunc(u.Types, func(s *SlotUsage) bool { return s.Type == name }); i >= 0 {
		return u.Types[i]
	}
	return nil
}

// SlotLevels is what a project has and uses at one moment of a type of slots, in slots.
type SlotLevels struct {
	Given    int64 // slots that the calendar gives it
	Used     int64 // of them, what its instances use
	Borrowed int64 // what its instances cost that run without a claim, on what idles
	Beside   int64 // what its instances cost that use another claim, such as cells
	Guards   int64 // slots that its instances keep free of others on their nodes
}

// Add returns the sum of two.
func (l SlotLevels) Add(o SlotLevels) SlotLevels {
	return SlotLevels{l.Given + o.Given, l.Used + o.Used, l.Borrowed + o.Borrowed, l.Beside + o.Beside, l.Guards + o.Guards}
}

// Times returns each multiplied by n.
func (l SlotLevels) Times(n int64) SlotLevels {
	return SlotLevels{l.Given * n, l.Used * n, l.Borrowed * n, l.Beside * n, l.Guards * n}
}

// Lent returns the slots given that its own instances do not use, which others may.
func (l SlotLevels) Lent() int64 { return max(0, l.Given-l.Used) }

// SlotUsage is what a project had and used in a week of one type of slots.
type SlotUsage struct {
	Type string
	// Now are the levels since At, in Unix milliseconds; they are 0 in weeks that are over.
	Now SlotLevels
	At  int64
	// Sum are the levels times how long they lasted up to At, in slot-milliseconds; Lent is that of SlotLevels.Lent.
	Sum    SlotLevels
	Lent   int64
	Counts SlotCounts
}

// SlotCounts counts instances of a project in a week.
type SlotCounts struct {
	Placed    int // placed
	Completed int // ended by themselves, successfully
	Requeued  int // stopped to make room for others
	Suspended int // suspended
	Waits     WaitHistogram
}

// Add adds what others count.
func (c *SlotCounts) Add(o *SlotCounts) {
	c.Placed += o.Placed
	c.Completed += o.Completed
	c.Requeued += o.Requeued
	c.Suspended += o.Suspended
	c.Waits.Merge(&o.Waits)
}

// Copy returns a copy that shares nothing with c.
func (c *SlotCounts) Copy() SlotCounts {
	out := *c
	out.Waits.Buckets = slices.Clone(c.Waits.Buckets)
	return out
}

// waitBuckets bounds the buckets of a WaitHistogram: the last one begins after 12 days.
const waitBuckets = 42

// WaitHistogram counts waits in buckets of which each ends 1.41 times as late as the one before it, the first at one second.
type WaitHistogram struct {
	Sum     int64 // of all waits, in milliseconds
	Max     int64 // the longest, in milliseconds
	Count   int
	Buckets []int `json:",omitempty" codec:",omitempty"` // without trailing zeros
}

// bucketEnd returns where a bucket ends, in milliseconds. It computes with integers alone, so that all servers agree.
func bucketEnd(i int) int64 {
	end := int64(1000) << (i / 2)
	if i%2 == 1 {
		end = end * 1414 / 1000
	}
	return end
}

// Observe counts a wait.
func (h *WaitHistogram) Observe(wait time.Duration) {
	ms := max(0, wait.Milliseconds())
	i := 0
	for i < waitBuckets-1 && ms >= bucketEnd(i) {
		i++
	}
	h.grow(i + 1)
	h.Buckets[i]++
	h.Sum += ms
	h.Max = max(h.Max, ms)
	h.Count++
}

func (h *WaitHistogram) grow(n int) {
	for len(h.Buckets) < n {
		h.Buckets = append(h.Buckets, 0)
	}
}

// Merge counts all that another has counted.
func (h *WaitHistogram) Merge(o *WaitHistogram) {
	h.grow(len(o.Buckets))
	for i, n := range o.Buckets {
		h.Buckets[i] += n
	}
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
	h.Count += o.Count
}

// Mean returns the mean of all waits.
func (h *WaitHistogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(h.Sum/int64(h.Count)) * time.Millisecond
}

// Quantile returns a wait that part of all waits, such as 0.95, do not exceed: the end of its bucket, or the longest wait if that is less.
func (h *WaitHistogram) Quantile(part float64) time.Duration {
	rank, seen := int(part*float64(h.Count)), 0
	for i, n := range h.Buckets {
		if seen += n; n > 0 && (seen > rank || seen == h.Count) {
			if i == waitBuckets-1 {
				return time.Duration(h.Max) * time.Millisecond
			}
			return time.Duration(min(bucketEnd(i), h.Max)) * time.Millisecond
		}
	}
	return 0
}

// Advanced returns the usage of a week as if its levels had lasted until a time, in Unix nanoseconds, or the end of the week.
func (u *ProjectUsage) Advanced(now int64) *ProjectUsage {
	out := *u
	out.Types = make([]*SlotUsage, len(u.Types))
	for i, t := range u.Types {
		line := *t
		line.Counts = t.Counts.Copy()
		line.Advance(min(now, u.To) / int64(time.Millisecond))
		out.Types[i] = &line
	}
	return &out
}

// Advance adds what the levels amount to until a time, in Unix milliseconds. An earlier time changes nothing.
func (s *SlotUsage) Advance(at int64) {
	if lasted := at - s.At; lasted > 0 {
		s.Sum, s.Lent, s.At = s.Sum.Add(s.Now.Times(lasted)), s.Lent+s.Now.Lent()*lasted, at
	}
}

// What is called of reports, and answered.
type (
	// ProjectReportQuery reads what a project had and used.
	ProjectReportQuery struct {
		Project string
		// Week restricts it to one week; empty: all that are kept.
		Week string
		QueryOptions
	}
	// ProjectReportReply is what a project had and used; nil: there is no such project.
	ProjectReportReply struct {
		Report *ProjectReport
		QueryMeta
	}
	// ProjectReport is what a project had and used, by week, the last one first.
	ProjectReport struct {
		Project  string
		TimeZone string
		// MeanRunSeconds is the mean run time of the last completed runs, up to 100; 0 while there are fewer than 10.
		MeanRunSeconds float64
		Weeks          []*ReportWeek
	}
	// ReportWeek is what a project had and used in a week, up to the time of the answer.
	ReportWeek struct {
		Week  string
		From  time.Time
		To    time.Time
		Types []*ReportSlots
	}
	// ReportSlots is what a project had and used in a week of one type of slots. The amounts are slot-seconds.
	ReportSlots struct {
		Type     string
		Given    float64
		Used     float64
		Borrowed float64
		Lent     float64
		Beside   float64
		Guards   float64
		// Placed, Completed, Requeued and Suspended count instances; one counts each time that it happens to it.
		Placed    int
		Completed int
		Requeued  int
		Suspended int
		// WaitMeanSeconds and WaitP95Seconds are of what was placed in the week.
		WaitMeanSeconds float64
		WaitP95Seconds  float64
	}
)

// Report returns the usage as it is shown, up to a time in Unix nanoseconds.
func (u *ProjectUsage) Report(now int64) *ReportWeek {
	out := &ReportWeek{Week: u.Week, From: time.Unix(0, u.From).UTC(), To: time.Unix(0, u.To).UTC(), Types: []*ReportSlots{}}
	seconds := func(ms int64) float64 { return float64(ms) / 1000 }
	for _, t := range u.Advanced(now).Types {
		c := &t.Counts
		out.Types = append(out.Types, &ReportSlots{
			Type: t.Type, Given: seconds(t.Sum.Given), Used: seconds(t.Sum.Used), Borrowed: seconds(t.Sum.Borrowed), Lent: seconds(t.Lent),
			Beside: seconds(t.Sum.Beside), Guards: seconds(t.Sum.Guards), Placed: c.Placed, Completed: c.Completed, Requeued: c.Requeued,
			Suspended: c.Suspended, WaitMeanSeconds: c.Waits.Mean().Seconds(), WaitP95Seconds: c.Waits.Quantile(0.95).Seconds(),
		})
	}
	return out
}
