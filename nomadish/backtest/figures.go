package backtest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// estimators is how many there are.
const estimators = 4

// figures adds up what is found, in memory that does not grow with the trace but by its days.
type figures struct {
	jobs, waited, forecasts, waiting int64
	wait                             float64
	begun                            int64
	first, all                       accuracy
	late                             []trace.LateStart
	days                             []*day
}

// accuracy adds up how right forecasts were.
type accuracy struct {
	stated, known, exceeded int64
	by                      spread
	causes                  map[string]*trace.CauseCount
	each, common            [estimators]errs
	leads                   [estimators][]errs
}

// errs adds errors up.
type errs struct {
	abs, signed spread
	late        int64
}

// day is a day of the trace.
type day struct {
	forecasts, waiting, stated, exceeded int64
	abs                                  [estimators]spread
}

func newFigures() *figures {
	f := &figures{}
	for _, a := range []*accuracy{&f.first, &f.all} {
		a.causes = map[string]*trace.CauseCount{}
		for i := range a.leads {
			a.leads[i] = make([]errs, len(trace.LeadBounds)+1)
		}
	}
	return f
}

func (f *figures) dayOf(at time.Time) *day {
	i := int(at.Sub(epoch) / (24 * time.Hour))
	for len(f.days) <= i {
		f.days = append(f.days, &day{})
	}
	return f.days[i]
}

// forecast counts a forecast of so many groups.
func (f *figures) forecast(at time.Time, waiting int) {
	f.forecasts++
	f.waiting += int64(waiting)
	d := f.dayOf(at)
	d.forecasts++
	d.waiting += int64(waiting)
}

// started compares what was stated of a job with when it started.
func (f *figures) started(j *job, now time.Time) {
	f.begun++
	f.wait += now.Sub(j.arrived).Seconds()
	if len(j.stated) > 0 {
		f.waited++
	}
	for i := range j.stated {
		s := &j.stated[i]
		c, late := f.all.add(j, s, now)
		d := f.dayOf(time.Unix(0, s.at))
		d.stated++
		if s.common() {
			for k := range d.abs {
				d.abs[k].add(math.Abs(s.error(k, now)))
			}
		}
		if late {
			d.exceeded++
		}
		if !s.first {
			continue
		}
		if f.first.add(j, s, now); late && len(f.late) < trace.MaxLate {
			f.late = append(f.late, trace.LateStart{
				Job: j.id.Namespace + "/" + j.id.ID, Forecast: sinceStart(s.at), Latest: sinceStart(s.start[0]), By: round(-s.error(0, now)), Cause: c.of, Who: c.who,
			})
		}
	}
}

// common reports whether every estimator knew the start.
func (s *statement) common() bool { return !slices.Contains(s.start[:], 0) }

// error is how much later than the start an estimate was, in seconds.
func (s *statement) error(estimator int, started time.Time) float64 {
	return float64(s.start[estimator]-started.UnixNano()) / 1e9
}

// add compares one statement with the start, and returns why it was later than stated at the latest, if it was.
func (a *accuracy) add(j *job, s *statement, now time.Time) (c cause, late bool) {
	a.stated++
	lead := float64(now.UnixNano()-s.at) / 1e9
	bound, _ := slices.BinarySearch(trace.LeadBounds, lead)
	for i := range estimators {
		if s.start[i] == 0 {
			continue
		}
		v := s.error(i, now)
		a.each[i].add(v)
		if s.common() {
			a.common[i].add(v)
			a.leads[i][bound].add(v)
		}
	}
	if s.start[0] == 0 {
		return c, false
	}
	a.known++
	by := -s.error(0, now)
	if by < settling.Seconds() {
		return c, false
	}
	a.exceeded++
	a.by.add(by)
	c, judged := s.of.causes[j.id]
	if !judged {
		c = cause{of: trace.CauseUnknown}
	}
	if a.causes[c.of] == nil {
		a.causes[c.of] = &trace.CauseCount{Cause: c.of}
	}
	a.causes[c.of].Count++
	if c.direct {
		a.causes[c.of].Direct++
	}
	return c, true
}

func (e *errs) add(v float64) {
	e.abs.add(math.Abs(v))
	e.signed.add(v)
	if v <= -settling.Seconds() {
		e.late++
	}
}

func (e *errs) result() trace.Errors {
	return trace.Errors{N: e.abs.n, P50: e.abs.quantile(0.5), P90: e.abs.quantile(0.9), Bias: e.signed.quantile(0.5), Late: e.late}
}

// result puts together what was found.
func (f *figures) result(b *backtest) *trace.ForecastFigures {
	out := &trace.ForecastFigures{
		Every: b.c.Every.Seconds(), Horizon: b.c.Horizon.Seconds(), Forecasts: f.forecasts, Jobs: f.jobs, Waited: f.waited,
		Waiting: round(float64(f.waiting) / float64(max(1, f.forecasts))), WaitMean: round(f.wait / float64(max(1, f.begun))),
		Estimators: trace.Estimators(), First: f.first.result(), All: f.all.result(), Late: f.late,
	}
	for _, j := range b.jobs { // sums: the order cannot show
		if j.missing > 0 && len(j.stated) > 0 {
			out.First.Open++
			out.All.Open += int64(len(j.stated))
			out.Waited++
		}
	}
	for i, d := range f.days {
		x := trace.ForecastDay{
			From: float64(i) * 24 * 3600, Waiting: round(float64(d.waiting) / float64(max(1, d.forecasts))), Stated: d.stated, Exceeded: d.exceeded,
		}
		for k := range d.abs {
			x.P50 = append(x.P50, d.abs[k].quantile(0.5))
		}
		out.Days = append(out.Days, x)
	}
	slices.SortStableFunc(out.Late, func(x, y trace.LateStart) int { return cmp.Compare(x.Forecast, y.Forecast) })
	return out
}

func (a *accuracy) result() trace.ForecastAccuracy {
	out := trace.ForecastAccuracy{Stated: a.stated, LatestKnown: a.known, Exceeded: a.exceeded, ExceededP50: a.by.quantile(0.5), ExceededP90: a.by.quantile(0.9)}
	for _, name := range trace.Causes() {
		if c := a.causes[name]; c != nil {
			out.Causes = append(out.Causes, *c)
		}
	}
	for i, name := range trace.Estimators() {
		e := trace.EstimateErrors{Of: name, Errors: a.each[i].result(), Common: a.common[i].result()}
		for k := range a.leads[i] {
			e.ByLead = append(e.ByLead, a.leads[i][k].result())
		}
		for q := 5; q < 100; q += 5 {
			e.Quantiles = append(e.Quantiles, a.common[i].abs.quantile(float64(q)/100))
		}
		out.Errors = append(out.Errors, e)
	}
	return out
}

func sinceStart(nanos int64) float64 { return round(float64(nanos-epoch.UnixNano()) / 1e9) }

// round cuts a figure to thousandths: the rest is noise that may differ between machines.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// spread adds figures up in bounded memory. Its quantiles are within 1 % of the true ones, and a tenth of a second.
type spread struct {
	n       int64
	buckets map[int]int64
}

// ratio is that of two bounds of buckets.
const ratio = 1.01

func (s *spread) add(v float64) {
	if s.buckets == nil {
		s.buckets = map[int]int64{}
	}
	s.n++
	b := 0
	if size := math.Abs(v); size > 0.1 {
		b = 1 + int(math.Ceil(math.Log(size/0.1)/math.Log(ratio)))
	}
	if v < 0 {
		b = -b
	}
	s.buckets[b]++
}

// quantile returns the value that a part of the figures does not exceed; 0 if there are none.
func (s *spread) quantile(part float64) float64 {
	keys := make([]int, 0, len(s.buckets))
	for k := range s.buckets { // sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	want, have := int64(math.Ceil(part*float64(s.n))), int64(0)
	for _, k := range keys {
		if have += s.buckets[k]; have < want {
			continue
		}
		v := 0.0
		if k != 0 {
			v = 0.1 * math.Pow(ratio, math.Abs(float64(k))-1)
		}
		return round(math.Copysign(v, float64(k)))
	}
	return 0
}
