package forecasts

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
)

const (
	// freely is for how long a forecast may work at once: one that takes no longer is made without a rest.
	freely = 500 * time.Millisecond
	// stretch is for how long it works between two rests at least.
	stretch = 5 * time.Millisecond
	// collected is what a forecast takes of a core in all, in times of its own work: the rest is the garbage collector's.
	collected = 4. / 3
	// hurry is how much more than its share of a core a forecast takes while it is made: its start would else be long ago when it is through.
	hurry = 2
)

// pacer has a forecast rest again and again while it is made, so that its server has its cores for others. It is for the goroutine that makes it.
type pacer struct {
	clock  clock.Clock
	rest   float64            // how long it rests, in times of its work
	end    context.CancelFunc // is called when it has worked for as long as it may
	begun  time.Time          // when it went to work after its last rest
	worked time.Duration      // before that
}

// newPacer returns the pacer of a forecast that begins now and takes a share of a core, in percent, on the average.
func newPacer(c clock.Clock, percent float64, end context.CancelFunc) *pacer {
	return &pacer{clock: c, rest: restOf(percent), end: end, begun: c.Now()}
}

// restOf returns how long a forecast that takes a share of a core rests while it is made, in times of its work.
func restOf(percent float64) float64 { return max(0, collected*100/(hurry*percent)-1) }

// pace has the forecast rest if it has worked for long enough.
func (p *pacer) pace(ctx context.Context) {
	took := p.clock.Now().Sub(p.begun)
	if took < stretch {
		return
	}
	if p.worked += took; p.worked >= maxTime {
		p.end()
	} else if p.worked > freely {
		rested, cancel := context.WithCancel(ctx)
		timer := p.clock.AfterFunc(time.Duration(float64(took)*p.rest), cancel)
		<-rested.Done()
		timer.Stop()
		cancel()
	}
	p.begun = p.clock.Now()
}

// work returns for how long it has worked in all.
func (p *pacer) work() time.Duration { return p.worked + p.clock.Now().Sub(p.begun) }
