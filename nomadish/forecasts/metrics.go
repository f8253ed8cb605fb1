package forecasts

import (
	"fmt"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var (
	ageFamily      = telemetry.Named("nomad.forecast.age_seconds")
	groupsFamily   = telemetry.Named("nomad.forecast.groups")
	unknownFamily  = telemetry.Named("nomad.forecast.unknown")
	expectedFamily = telemetry.Named("nomad.forecast.expected_wait_seconds")
	latestFamily   = telemetry.Named("nomad.forecast.latest_wait_seconds")
)

// BandWait is how long the groups that wait in a priority band still wait, as a forecast has it.
type BandWait struct {
	Band    structs.PriorityBand
	Groups  int
	Unknown int // of which it is not known when all of their instances start at the latest
	// Expected and Latest are the medians of those of which it is known.
	Expected, Latest time.Duration
}

// waitsOf sums up a forecast by band.
func waitsOf(snap *state.Snapshot, f *structs.Forecast) []BandWait {
	config := snap.SchedulerConfig(nil)
	bands := config.PriorityBands()
	out := make([]BandWait, len(bands))
	expected, latest := make([][]int64, len(bands)), make([][]int64, len(bands))
	for _, r := range f.Groups() {
		job := snap.Job(nil, r.Namespace, r.JobID)
		if job == nil {
			continue
		}
		b := config.Band(job.Priority)
		out[b].Groups++
		if r.Expected.All > 0 {
			expected[b] = append(expected[b], r.Expected.All-f.Time)
		}
		if r.Latest.All > 0 {
			latest[b] = append(latest[b], r.Latest.All-f.Time)
		}
	}
	for b := range out {
		out[b].Band, out[b].Unknown = bands[b], out[b].Groups-len(latest[b])
		out[b].Expected, out[b].Latest = median(expected[b]), median(latest[b])
	}
	return out
}

// median returns the median of times; 0 of none.
func median(times []int64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return time.Duration(times[len(times)/2])
}

// Metrics adds what the last forecast states of each priority band, and its age, to a batch, for as long as forecasts are made.
func (s *Service) Metrics(b *telemetry.Batch) {
	s.mu.Lock()
	last, waits, making := s.last, s.waits, s.making()
	s.mu.Unlock()
	if last == nil || !making {
		return
	}
	b.Add(ageFamily, s.opts.Clock.Now().Sub(time.Unix(0, last.Time)).Seconds(), nil)
	for _, w := range waits {
		labels := telemetry.Labels("band", fmt.Sprintf("%d-%d", w.Band.Low, w.Band.High))
		b.Add(groupsFamily, float64(w.Groups), labels)
		b.Add(unknownFamily, float64(w.Unknown), labels)
		if w.Expected > 0 {
			b.Add(expectedFamily, w.Expected.Seconds(), labels)
		}
		if w.Latest > 0 {
			b.Add(latestFamily, w.Latest.Seconds(), labels)
		}
	}
}
