package rpc

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// told is the clients' gossip of tests: it counts what it is told of.
type told struct {
	mu   sync.Mutex
	lost map[string]int
}

func (*told) Contacts(string, *structs.GossipKeys) *structs.ClientGossip { return nil }

func (*told) Probe(string) error { return structs.Errorf(structs.CodeNotFound, "nobody gossips here") }

func (g *told) Lost(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		g.lost[id]++
	}
}

func (g *told) of(id string) int { g.mu.Lock(); defer g.mu.Unlock(); return g.lost[id] }

// pair is the two ends of a session.
func pair(t *testing.T) (server, client *wire.Session) {
	t.Helper()
	a, b := net.Pipe()
	server, err := wire.Server(a, wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if client, err = wire.Client(b, wire.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return server, client
}

// TestSilentSessionIsClosed: a session whose client does not answer, though its connection stands, is closed after some
// questions, not asked for ever; one that answers stays.
func TestSilentSessionIsClosed(t *testing.T) {
	gossip := &told{lost: map[string]int{}}
	e := &Endpoints{Deps: Deps{Clients: gossip}, sessions: newSessions()}
	dead, _ := pair(t)
	lives, client := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	m := wire.NewMux(hclog.NewNullLogger(), 0)
	m.Handle(wire.MethodClientPing, wire.Unary(func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, nil
	}))
	wg.Go(func() { m.Serve(ctx, client) })
	e.sessions.put("dead", dead)
	e.sessions.put("lives", lives)
	wg.Go(func() { e.pingSilent(ctx, 30*time.Millisecond, 500*time.Millisecond) })
	select {
	case <-dead.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("it is open still; told of %d times", gossip.of("dead"))
	}
	if n := gossip.of("dead"); n != pingsMissed {
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
	*told
	done chan struct{}
}

func (d *deaf) Probe(string) error {
	<-d.done
	return structs.Errorf(structs.CodeNoNode, "it is not heard")
}

// TestReachEndsWithItsTime: who asks for a node waits no longer than it has time, though one of the ways does.
func TestReachEndsWithItsTime(t *testing.T) {
	d := &deaf{&told{}, make(chan struct{})}
	defer close(d.done)
	e := &Endpoints{Deps: Deps{Clients: d, Cluster: alone{}}, sessions: newSessions()}
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

// TestSilentWorkersAreLeft: a server whose workers have something to decide, or wait for it, and that does not answer at all is
// left, so that others get that; one that answers is not.
func TestSilentWorkersAreLeft(t *testing.T) {
	e := &Endpoints{sessions: newSessions(), held: newHeld()}
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
	lives, _ := pair(t)
	for _, s := range []*wire.Session{has, lives} {
		e.held.put(s, "eval", "token", nil)
	}
	e.held.put(idle, "eval", "token", nil)
	e.held.drop(idle, "eval", "token")
	defer e.held.wait(waits)()
	e.held.wait(idle)()
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
