package trace

import (
	"testing"
	"time"
)

// A large gang comes into a stream of small requests that are more than the machines hold, so that
// there is never room for it. With reservations it starts within the time that the longest small
// request may run, after it has waited ReservationAfter; others end before reserved room is due and
// use it until then. Without reservations it starves.
func TestLargeGangIsNotStarved(t *testing.T) {
	const nodes, gpus = 12, 8
	const longest = 20 * time.Minute
	f := func(after time.Duration) (start time.Duration, figures *Figures) {
		t.Helper()
		stream := load(1700, 6250*time.Millisecond, 7, func(r *Row, n uint64) {
			r.Duration = time.Duration(1+n%20) * time.Minute
			r.MaxRun = r.Duration
		})
		gang := Row{
			Name: "gang", Arrival: time.Hour, Duration: time.Hour, MaxRun: time.Hour, Count: 3, GPUs: gpus, Gang: true,
		}
		c := replayOf(machines(nodes, 1000, 1000, gpus)).c
		c.Rows, c.Scheduler.ReservationAfter = merged(t, stream, gang), after
		start = -1
		c.Placed = func(row *Row, at time.Duration) {
			if row.Name == "gang" {
				start = at
			}
		}
		figures, _, err := Run(c)
		if err != nil {
			t.Fatal(err)
		}
		return start, figures
	}
	after := 5 * time.Minute
	start, figures := f(after)
	if most := time.Hour + after + time.Minute + longest; start < 0 || start > most {
		t.Errorf("the gang started at %s, want by %s", start, most)
	}
	if figures.Loaded.GPU < 0.9 || figures.Counts.Reserved == 0 {
		t.Errorf("%.4f of the GPUs were in use, %d reservations were made", figures.Loaded.GPU, figures.Counts.Reserved)
	}
	for _, s := range figures.OverTime { // after the machines have filled
		if s.From > longest.Seconds() && s.From < figures.Span.LastArrival-figures.Span.Stretch && s.GPU < 0.7 {
			t.Errorf("at %.0f s only %.4f of the GPUs were in use", s.From, s.GPU)
		}
	}
	t.Logf("the gang started at %s; %.4f of the GPUs were in use, %d reservations", start, figures.Loaded.GPU, figures.Counts.Reserved)

	start, figures = f(-1)
	if start < time.Duration(figures.Span.LastArrival*1e9) {
		t.Errorf("without reservations the gang started at %s, before the stream ended", start)
	}
}
