package telemetry

import (
	"math"
	"slices"
	"time"
)

// observed is what was observed of a summary: how much in all, and the latest for quantiles. It is not safe for use by many
// goroutines.
type observed struct {
	count  uint64
	sum    float64
	latest []observation // the latest, at most maxLatest
	next   int           // where the next goes once there are so many
}

type observation struct {
	at    int64 // Unix nanoseconds
	value float64
}

// maxLatest is how many observations quantiles are of, at most.
const maxLatest = 512

func (s *observed) add(now time.Time, v float64) {
	s.count++
	s.sum += v
	o := observation{now.UnixNano(), v}
	if len(s.latest) < maxLatest {
		s.latest = append(s.latest, o)
		return
	}
	s.latest[s.next] = o
	s.next = (s.next + 1) % maxLatest
}

// digest is what a summary shows.
type digest struct {
	count     uint64
	sum       float64
	quantiles [len(quantiles)]float64
}

// quantiles are those of every summary, with the label that each has in Prometheus' text format.
var quantiles = [...]struct {
	of    float64
	label string
}{{0.5, `quantile="0.5"`}, {0.9, `quantile="0.9"`}, {0.99, `quantile="0.99"`}}

// digest returns what is shown now. Quantiles are of the last window, and NaN if nothing was observed in it.
func (s *observed) digest(now time.Time) digest {
	since := now.Add(-windowLength).UnixNano()
	var recent []float64
	for _, o := range s.latest {
		if o.at >= since {
			recent = append(recent, o.value)
		}
	}
	slices.Sort(recent)
	d := digest{count: s.count, sum: s.sum}
	for i, q := range quantiles {
		d.quantiles[i] = math.NaN()
		if n := len(recent); n > 0 {
			d.quantiles[i] = recent[min(n-1, int(q.of*float64(n)))]
		}
	}
	return d
}
