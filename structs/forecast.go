package structs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultForecastHorizon is how far a forecast looks, and MaxForecastHorizon how far it may.
const (
	DefaultForecastHorizon = 7 * 24 * time.Hour
	MaxForecastHorizon     = 90 * 24 * time.Hour // how far a forecast may look ahead
)

// DefaultForecastCPUPercent is the share of a core that a server's forecasts take in the background, in percent.
const DefaultForecastCPUPercent = 5

// Forecast states when what waits in the queue starts: what the scheduler will do with the state of an index if nothing comes but what is there.
type Forecast struct {
	Index    uint64             // of the state
	Time     int64              // Unix nanoseconds: when it begins
	Until    int64              // Unix nanoseconds: how far it looks
	Requests []*RequestForecast // by namespace, job and group, of which one may have two: first of those that are entitled
	// Workflows are those that wait for their reservation, by namespace and ID.
	Workflows []*WorkflowForecast `json:",omitempty" codec:",omitempty"`
	// NoReservations: more wait than get reservations in a forecast. Who needs much at once may start later than is stated, as others pass.
	NoReservations bool `json:",omitempty" codec:",omitempty"`
	// Next are the forecasts that come after this one, as it is answered with: what is newer than this one is part of the first of them that is of a later index.
	Next []ForecastRenewal `json:",omitempty" codec:",omitempty"`
}

// RequestForecast is the forecast of a group of which instances wait, or of a part of it as it stands in the queue.
type RequestForecast struct {
	Namespace string
	JobID     string
	Group     string
	// Entitled: it is of those instances alone that a claim or slots of theirs may hold, which start first.
	Entitled bool `json:",omitempty" codec:",omitempty"`
	Missing  int  // instances that wait at the time of the forecast
	// Latest is when they start if all that runs takes all the time that it may, Expected if it runs as long as the finished runs of its job, or
	// else of its user, did in the mean.
	Latest   StartForecast
	Expected StartForecast
}

// StartForecast is when the instances of a group that wait start.
type StartForecast struct {
	First int64 // Unix nanoseconds: the first of them; 0: not known
	All   int64 // Unix nanoseconds: the last of them; 0: not known
	// Unknown states why All is not known; empty: it is.
	Unknown string `json:",omitempty" codec:",omitempty"`
	// WaitsFor are the ends of the allocations whose room they get, the first to end first; of many, the first and the last. It is empty if
	// they start at once, or by what ends nowhere: a window, a quota.
	WaitsFor []EndForecast `json:",omitempty" codec:",omitempty"`
}

// WorkflowForecast is the forecast of a run that waits for its reservation.
type WorkflowForecast struct {
	Namespace string
	ID        string
	Run       int
	// Latest and Expected are as those of a RequestForecast.
	Latest   WorkflowStartForecast
	Expected WorkflowStartForecast
}

// WorkflowStartForecast is when a run starts.
type WorkflowStartForecast struct {
	Start int64 // Unix nanoseconds: its first stage, as soon as all is reserved; 0: not known
	// Unknown states why Start is not known or, in a forecast of this workflow alone, when some stage starts or ends; empty: all of it is.
	Unknown string `json:",omitempty" codec:",omitempty"`
	// Stages are when each stage starts and ends, in order, in a forecast of this workflow alone; else they are empty.
	Stages []StageForecast `json:",omitempty" codec:",omitempty"`
	// WaitsFor are the ends of the allocations whose room it reserves, as those of a StartForecast.
	WaitsFor []EndForecast `json:",omitempty" codec:",omitempty"`
}

// StageForecast is when a stage of a run starts and ends.
type StageForecast struct {
	Name  string
	Start int64 // Unix nanoseconds; 0: not known
	End   int64 // Unix nanoseconds; 0: not known
}

// RunForecast is a workflow's part of a forecast.
type RunForecast struct {
	Index uint64 // of the state that the forecast is of
	Time  int64  // Unix nanoseconds: when that was made
	WorkflowForecast
}

// EndForecast is when an allocation ends.
type EndForecast struct {
	Time      int64 // Unix nanoseconds
	Namespace string
	JobID     string
	Name      string // job.group[index]
	NodeName  string
}

// ForecastRenewal is when a forecast that is being made, or will be, is there.
type ForecastRenewal struct {
	Index  uint64 // of the state that it is of; 0: it is of the newest state when it begins
	Begin  int64  // Unix nanoseconds: when it began, or begins about
	End    int64  // Unix nanoseconds: when it is there, about, as far as the last one shows; 0: it is of a much longer queue than that, or there was none
	Latest int64  // Unix nanoseconds: when it is there at the latest, about
}

// RenewalText returns in how long there is a forecast that something is part of which came with an index, by those that come next: "in about 40 s"; empty:
// that is not known.
func RenewalText(next []ForecastRenewal, index uint64, now time.Time) string {
	i := slices.IndexFunc(next, func(r ForecastRenewal) bool { return r.Index == 0 || r.Index >= index })
	if i < 0 {
		return ""
	}
	in := func(at int64) string {
		d := time.Unix(0, at).Sub(now)
		if d > 2*time.Minute {
			return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
		}
		return fmt.Sprintf("%d s", max(1, (d+time.Second-1)/time.Second))
	}
	switch at := now.UnixNano(); {
	case next[i].End > at:
		return "in about " + in(next[i].End)
	case next[i].Latest > at:
		return "in about " + in(next[i].Latest) + " at most"
	}
	return "soon: it is late"
}

// NotYet states of what came with an index that it is not part of the forecast yet, how old that is, and in how long there is one that it is part of.
func (f *Forecast) NotYet(index uint64, now time.Time) string {
	text := fmt.Sprintf("it is not part of a forecast yet: the last one is of index %d, as of %s ago", f.Index, f.Age(now))
	if in := RenewalText(f.Next, index, now); in != "" {
		text += "; one that it is part of is there " + in
	}
	return text
}

// Age returns how long ago the state was that it is of, in whole seconds.
func (f *Forecast) Age(now time.Time) time.Duration {
	return max(0, now.Sub(time.Unix(0, f.Time)).Truncate(time.Second))
}

// Lines returns the forecasts of a group as it stands in the queue: of a part that is entitled first, and of the rest; none if none of its instances waits.
func (f *Forecast) Lines(namespace, job, group string) []*RequestForecast {
	if f == nil {
		return nil
	}
	name := RequestName{namespace, job, group}
	from, _ := slices.BinarySearchFunc(f.Requests, name, func(r *RequestForecast, o RequestName) int { return r.Name().compare(o) })
	to := from
	for to < len(f.Requests) && f.Requests[to].Name() == name {
		to++
	}
	return f.Requests[from:to]
}

// Line returns the forecast of a line of the queue, of those of a group that are entitled or of the others. Where it has them together, which was so when it was
// made, it returns that; nil if none of the group's instances waits.
func (f *Forecast) Line(namespace, job, group string, entitled bool) *RequestForecast {
	lines := f.Lines(namespace, job, group)
	for _, l := range lines {
		if l.Entitled == entitled || len(lines) == 1 {
			return l
		}
	}
	return nil
}

// Of returns the forecast of a group, of all its instances that wait; nil if none does.
func (f *Forecast) Of(namespace, job, group string) *RequestForecast {
	return together(f.Lines(namespace, job, group))
}

// Groups returns the forecasts of all groups, each of all its instances that wait.
func (f *Forecast) Groups() []*RequestForecast {
	out := make([]*RequestForecast, 0, len(f.Requests))
	for from, to := 0, 0; from < len(f.Requests); from = to {
		for to = from + 1; to < len(f.Requests) && f.Requests[to].Name() == f.Requests[from].Name(); {
			to++
		}
		out = append(out, together(f.Requests[from:to]))
	}
	return out
}

// together returns the forecast of all instances of the lines of a group; nil if there are none.
func together(lines []*RequestForecast) *RequestForecast {
	switch len(lines) {
	case 0:
		return nil
	case 1:
		return lines[0]
	}
	all := *lines[0]
	all.Entitled = false
	for _, l := range lines[1:] {
		all.Missing += l.Missing
		all.Latest, all.Expected = all.Latest.with(&l.Latest), all.Expected.with(&l.Expected)
	}
	return &all
}

// Name names its group.
func (r *RequestForecast) Name() RequestName { return RequestName{r.Namespace, r.JobID, r.Group} }

func (n RequestName) compare(o RequestName) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.JobID, o.JobID), strings.Compare(n.Group, o.Group))
}

// with returns when the instances of two parts of a group start.
func (s StartForecast) with(o *StartForecast) StartForecast {
	if s.First == 0 || o.First > 0 && o.First < s.First {
		s.First = o.First
	}
	if s.All == 0 || o.All == 0 {
		s.All, s.Unknown = 0, cmp.Or(s.Unknown, o.Unknown)
	} else {
		s.All = max(s.All, o.All)
	}
	ends := slices.Concat(s.WaitsFor, o.WaitsFor)
	slices.SortStableFunc(ends, func(a, b EndForecast) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	s.WaitsFor = slices.Compact(ends)
	return s
}

// OfWorkflow returns the forecast of a run of a workflow; nil: it is no part of it, as it does not wait for its reservation.
func (f *Forecast) OfWorkflow(namespace, id string, run int) *RunForecast {
	if f == nil {
		return nil
	}
	for _, w := range f.Workflows {
		if w.Namespace == namespace && w.ID == id && w.Run == run {
			return &RunForecast{Index: f.Index, Time: f.Time, WorkflowForecast: *w}
		}
	}
	return nil
}

// ForecastMove is a group whose latest start has moved between two forecasts.
type ForecastMove struct {
	Index    uint64 // of the state that the newer forecast is of
	Time     int64  // Unix nanoseconds: when that was made
	Was      int64  // Unix nanoseconds: when all of its instances started at the latest before; 0: it was not known
	Forecast *RequestForecast
}

// Requests and answers about forecasts.
type (
	// ForecastRequest requests the last forecast of what waits, a page of it. A page has at most 1,000 groups.
	ForecastRequest struct {
		JobID string // only of this job; "": of all
		// Horizon is how far it is to look: what starts later is answered as unknown. 0: as far as forecasts look here.
		Horizon time.Duration
		// Fresh requests a forecast of the newest state, of JobID alone: what is not known within 2 s is unknown.
		Fresh bool
		QueryOptions
	}
	// ForecastReply answers it.
	ForecastReply struct {
		Forecast *Forecast // nil: there is none
		Why      string    // why there is none
		// Newer are the groups that wait and came, or changed, after the state that the forecast is of: they are not yet part of it. The
		// first 100 of them are listed, NewerCount is how many there are.
		Newer      []RequestName
		NewerCount int
		QueryMeta
	}
)

// ForecastAnswer is a ForecastReply as the HTTP API has it.
type ForecastAnswer struct {
	Forecast   *Forecast // null: there is none
	Why        string    `json:",omitempty"`
	Newer      []RequestName
	NewerCount int
}
