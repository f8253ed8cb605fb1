package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// slots is how many points a line over time has.
const slots = 240

// timeLine is the mean over a policy's seeds of a figure over time.
func timeLine(p Policy, colour int, runs []*trace.Figures, end float64, get func(s *trace.Sample) float64) line {
	l := line{name: p.Policy, colour: colour}
	if end <= 0 {
		return l
	}
	for i := range slots {
		from, to := end*float64(i)/slots, end*float64(i+1)/slots
		sum, n := 0.0, 0
		for _, f := range runs {
			if f.Policy == p.Policy {
				sum += between(f, from, to, get)
				n++
			}
		}
		l.x = append(l.x, (from+to)/2/3600)
		l.y = append(l.y, sum/float64(n))
	}
	return l
}

// between is the mean of a figure over a stretch of time; 0 after the run's end.
func between(f *trace.Figures, from, to float64, get func(s *trace.Sample) float64) float64 {
	sum := 0.0
	first := max(0, int(from/f.Span.Stretch))
	for i := first; i < len(f.OverTime); i++ {
		s := &f.OverTime[i]
		end := min(s.From+f.Span.Stretch, f.Span.End)
		if s.From >= to {
			break
		}
		if part := min(to, end) - max(from, s.From); part > 0 {
			sum += get(s) * part
		}
	}
	return sum / (to - from)
}

// overTime draws a figure over time, a line a policy.
func (r *Report) overTime(title, yName string, tick func(float64) string, most float64, get func(s *trace.Sample) float64) string {
	end := 0.0
	for _, f := range r.Runs {
		end = max(end, f.Span.End)
	}
	p := plot{title: title, xName: "virtual time", yName: yName, xTick: hours, yTick: tick, yMost: most, xSteps: hourSteps}
	for i, policy := range r.Policies {
		p.lines = append(p.lines, timeLine(policy, i, r.Runs, end, get))
	}
	return p.svg()
}

// hours prints hours as people say them.
func hours(v float64) string {
	if v >= 48 && math.Mod(v, 24) == 0 {
		return strconv.Itoa(int(v/24)) + " d"
	}
	if v > 0 && v < 1 {
		return number(math.Round(v*600)/10) + " min"
	}
	return number(math.Round(v*100)/100) + " h"
}

// hourSteps keeps ticks on whole days where there are many.
func hourSteps(most float64) float64 {
	for _, step := range []float64{0.25, 0.5, 1, 2, 4, 6, 12, 24, 48, 120, 240, 480, 1200, 2400} {
		if most/step <= 9 && most/step >= 1 {
			return step
		}
	}
	return roundStep(most / 7)
}

// byArrived draws a figure by the demand that had arrived.
func (r *Report) byArrived(title, yName string, ideal bool, get func(p *trace.Point) float64) string {
	p := plot{
		title: title, xName: "arrived demand, of all GPUs", yName: yName, yTick: percent,
		xTick: func(v float64) string { return number(v) + " %" },
	}
	most := 0.0
	for i, policy := range r.Policies {
		l := line{name: policy.Policy, colour: i}
		sums, n := map[int]float64{}, map[int]int{}
		for _, f := range r.Runs {
			if f.Policy != policy.Policy {
				continue
			}
			for k := range f.Arrived {
				sums[f.Arrived[k].Arrived] += get(&f.Arrived[k])
				n[f.Arrived[k].Arrived]++
			}
		}
		var xs []int
		for x := range sums { // sorted below
			xs = append(xs, x)
		}
		slices.Sort(xs)
		for _, x := range xs {
			l.x, l.y = append(l.x, float64(x)), append(l.y, sums[x]/float64(n[x]))
			most = max(most, float64(x))
		}
		p.lines = append(p.lines, l)
	}
	if ideal {
		p.lines = append([]line{{name: "all that arrived", colour: -1, x: []float64{0, 100, most}, y: []float64{0, 1, 1}}}, p.lines...)
		p.yMost = 1
	}
	return p.svg()
}

// boundNames are the ranges of waits.
func boundNames() []string {
	out := make([]string, 0, len(trace.WaitBounds)+1)
	for i, b := range trace.WaitBounds {
		if i == 0 {
			out = append(out, "at once")
			continue
		}
		out = append(out, "up to "+bound(b))
	}
	return append(out, "over "+bound(trace.WaitBounds[len(trace.WaitBounds)-1]))
}

// bound prints a round time in its largest unit.
func bound(d time.Duration) string {
	for _, u := range []struct {
		name string
		is   time.Duration
	}{{" d", 24 * time.Hour}, {" h", time.Hour}, {" min", time.Minute}} {
		if d%u.is == 0 && (u.is < 24*time.Hour || d > u.is) {
			return strconv.FormatInt(int64(d/u.is), 10) + u.name
		}
	}
	return d.String()
}

// span prints seconds as people say them.
func span(s float64) string {
	d := time.Duration(s * 1e9)
	switch {
	case s == 0:
		return "0"
	case s < 10:
		return number(math.Round(s*10)/10) + " s"
	case d < 2*time.Minute:
		return number(math.Round(s)) + " s"
	case d < 2*time.Hour:
		return number(math.Round(s/6)/10) + " min"
	case d < 48*time.Hour:
		return number(math.Round(s/360)/10) + " h"
	}
	return number(math.Round(s/8640)/10) + " d"
}

// mostBars bounds the groups of a chart of bars.
const mostBars = 16

// waitBars draws how long jobs waited, a bar for each policy of each group.
func (r *Report) waitBars(title string, groups func(f *trace.Figures) []trace.WaitFigures) string {
	var names []string
	for _, f := range r.Runs {
		for _, w := range groups(f) {
			if !slices.Contains(names, w.Of) && len(names) < mostBars {
				names = append(names, w.Of)
			}
		}
	}
	var list []bar
	for i, name := range names {
		for k, p := range r.Policies {
			spread, jobs := make([]float64, len(trace.WaitBounds)+1), 0.0
			p95, n := 0.0, 0.0
			for _, f := range r.Runs {
				at := slices.IndexFunc(groups(f), func(w trace.WaitFigures) bool { return w.Of == name })
				if f.Policy != p.Policy || at < 0 {
					continue
				}
				w := groups(f)[at]
				for b, v := range w.Spread {
					spread[b] += float64(v)
					jobs += float64(v)
				}
				p95 += w.P95
				n++
			}
			label := name
			if len(r.Policies) > 1 {
				label = name + ", " + p.Policy
			}
			for b := range spread {
				spread[b] /= max(1, jobs)
			}
			list = append(list, bar{label, spread, fmt.Sprintf("%.0f jobs, p95 %s", jobs/max(1, n), span(p95/max(1, n))), i > 0 && k == 0 && len(r.Policies) > 1})
		}
	}
	return bars(title, boundNames(), list)
}
