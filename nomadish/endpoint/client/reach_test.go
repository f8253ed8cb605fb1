package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// notices is the clients' gossip of tests: it counts what is reported to it.
type notices struct {
	mu   sync.Mutex
	lost map[string]int
}

func (*notices) Probe(string) error {
	return structs.Errorf(structs.CodeNotFound, "nobody gossips here")
}

func (g *notices) Lost(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		g.lost[id]++
	}
}

func (g *notices) of(id string) int { g.mu.Lock(); defer g.mu.Unlock(); return g.lost[id] }

// TestSilentSessionIsClosed: a session whose client does not answer, though its connection stands, is closed after some
// pings, not pinged for ever; one that answers stays.
func TestSilentSessionIsClosed(t *testing.T) {
	gossip := &notices{lost: map[string]int{}}
	e := New(Deps{Router: endpointtest.New(t).Router, Gossip: gossip})
	dead, _ := endpointtest.Pair(t)
	lives, client := endpointtest.Pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	m := wire.NewMux(hclog.NewNullLogger(), 0)
	m.Handle(wire.MethodClientPing, wire.Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, nil
	}))
	wg.Go(func() { m.Serve(ctx, client) })
	e.Router.Sessions.Put("dead", dead)
	e.Router.Sessions.Put("lives", lives)
	wg.Go(func() { e.pingSilent(ctx, 30*time.Millisecond, 500*time.Millisecond) })
	select {
	case <-dead.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("it is open still; told of %d times", gossip.of("dead"))
	}
	if n := gossip.of("dead"); n != rpc.PingsMissed {
		t.Errorf("told of %d times", n)
	}
	select {
	case <-lives.Done():
		t.Error("the one that answers was closed")
	default:
	}
	if gossip.of("lives") > 0 {
		t.Error("the one that answers was taken for lost")
	}
}

// deaf is gossip that takes its time to say that it does not hear somebody.
type deaf struct {
	*notices
	done chan struct{}
}

func (d *deaf) Probe(string) error {
	<-d.done
	return structs.Errorf(structs.CodeNoNode, "it is not heard")
}

// TestReachEndsWithItsTime: a caller that probes a node waits no longer than it has time, though one of the ways does.
func TestReachEndsWithItsTime(t *testing.T) {
	d := &deaf{&notices{}, make(chan struct{})}
	defer close(d.done)
	e := New(Deps{Router: endpointtest.New(t).Router, Gossip: d})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	found := make(chan bool)
	go func() {
		session, gossip := e.Reach(ctx, "n")
		found <- session || gossip
	}()
	select {
	case ok := <-found:
		if ok {
			t.Error("it is found")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits on")
	}
}
