package plan

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Steps is an applier that works as [Applier.Run] has it work, but is moved on by its caller,
// one step after the other, on its goroutine: for simulations.
type Steps struct{ p *pipeline }

// Start begins to take plans. Commits are handed to send, to be called when they are to be
// made: once each, and before Stop.
func (a *Applier) Start(send func(commit func())) *Steps {
	a.queue.enable(true)
	p := a.pipeline(send)
	p.steps = true
	return &Steps{p}
}

// Offer is a plan that was submitted.
type Offer struct{ w *waiting }

// Answer is what became of it; done is false while that is not known. It is given once.
func (o *Offer) Answer() (result *structs.PlanResult, done bool, err error) {
	select {
	case a := <-o.w.done:
		return a.result, true, a.err
	default:
		return nil, false, nil
	}
}

// Submit is [Applier.Submit] without waiting for the answer.
func (s *Steps) Submit(ctx context.Context, p *structs.Plan) (*Offer, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	ws, err := s.p.queue.put(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Offer{w: ws[0]}, nil
}

// Step judges what waits and has commits made, as far as it can.
func (s *Steps) Step(ctx context.Context) {
	s.p.advance(ctx)
}

// Again is when it must be stepped though nothing has happened, as a plan will have waited
// for its gate for long enough; false: there is none.
func (s *Steps) Again() (time.Duration, bool) { return s.p.patienceEnds() }

// Stop answers all that wait.
func (s *Steps) Stop() {
	s.p.queue.enable(false)
	s.p.end()
}
