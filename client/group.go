package client

import (
	"context"
	"sync"
)

// group is all goroutines of a client. After stop none begins and those that run
// are waited for.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	stopped bool
	wg      sync.WaitGroup
}

func newGroup() *group {
	ctx, cancel := context.WithCancel(context.Background())
	return &group{ctx: ctx, cancel: cancel}
}

// Go runs fn on a goroutine of its own; ctx ends at stop.
func (g *group) Go(fn func(ctx context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.wg.Go(func() { fn(g.ctx) })
}

// stop ends the context and waits until all goroutines have ended, or ctx has.
func (g *group) stop(ctx context.Context) error {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.cancel()
	done := make(chan struct{})
	go func() { g.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
