package eval

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
)

// TestSilentWorkersAreLeft: a server whose workers have something to decide, or wait for it, and that does not answer at all is
// left, so that others get that; one that answers is not.
func TestSilentWorkersAreLeft(t *testing.T) {
	e := New(Deps{})
	mute := func() *wire.Session { // nobody reads at the other end
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		s, err := wire.Server(a, wire.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	has, waits, idle := mute(), mute(), mute()
	lives, _ := endpointtest.Pair(t)
	for _, s := range []*wire.Session{has, lives} {
		e.leased.put(s, "eval", "token", nil)
	}
	e.leased.put(idle, "eval", "token", nil)
	e.leased.drop(idle, "eval", "token")
	defer e.leased.wait(waits)()
	e.leased.wait(idle)()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { e.pingWorkers(ctx, 30*time.Millisecond, 200*time.Millisecond) })
	for what, s := range map[string]*wire.Session{"has": has, "waits": waits} {
		select {
		case <-s.Done():
		case <-time.After(20 * time.Second):
			t.Errorf("the one that %s is open still", what)
		}
	}
	for what, s := range map[string]*wire.Session{"idle": idle, "alive": lives} {
		select {
		case <-s.Done():
			t.Errorf("the one that is %s was closed", what)
		default:
		}
	}
}
