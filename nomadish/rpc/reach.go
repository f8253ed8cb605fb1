package rpc

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// ClientGossip is the gossip of the clients, as the endpoints need it.
type ClientGossip interface {
	// Contacts is what a client is told of it, which has these keys; nil: none.
	Contacts(nodeID string, has *structs.GossipKeys) *structs.ClientGossip
	// Probe asks a member by its ID whether it is there.
	Probe(id string) error
	// Lost takes note of nodes whose sessions with this server have ended or do not answer.
	Lost(nodeIDs []string)
}

const (
	// silentFor is how long a session may be silent before it is asked whether it lives, and pingLimit how long it
	// may take to answer.
	silentFor = 3 * time.Second
	pingLimit = 2 * time.Second
	// pingsMissed is after how many questions in a row without an answer a session is closed. Its client opens another if it is
	// there.
	pingsMissed = 3
	// askAgain is the time between two questions to one that is looked for, tryLimit bounds each.
	askAgain = 200 * time.Millisecond
	tryLimit = time.Second
	// neighbours are asked whether they hear one that this server does not.
	neighbours = 3
)

func (e *Endpoints) registerReach(mux *wire.Mux) {
	mux.Handle(wire.MethodNodeSuspect, ownRegion(e, write(e, func(_ context.Context, args *structs.NodeSuspectRequest) (*structs.WriteReply, error) {
		e.Heartbeats.Suspect(args.NodeIDs...)
		return &structs.WriteReply{}, nil
	})))
	mux.Handle(wire.MethodNodeProbe, local(func(ctx context.Context, args *structs.NodeProbeRequest) (*structs.NodeProbeReply, error) {
		return e.probeHere(ctx, args.NodeID), nil
	}))
}

// pinged tells whether the client at the other end of a session answers.
func pinged(ctx context.Context, s *wire.Session) bool {
	var reply structs.WriteReply
	err := s.Call(ctx, wire.MethodClientPing, &structs.EmptyRequest{}, &reply)
	var said *structs.Error // by an older client
	return err == nil || errors.As(err, &said)
}

// probeHere asks a node over its session with this server, if there is one, and by gossip.
func (e *Endpoints) probeHere(ctx context.Context, nodeID string) *structs.NodeProbeReply {
	reply := &structs.NodeProbeReply{}
	var wg sync.WaitGroup
	wg.Go(func() {
		if s, ok := e.sessions.get(nodeID); ok {
			reply.Session = pinged(ctx, s)
		}
	})
	wg.Go(func() { reply.Gossip = e.Clients != nil && e.Clients.Probe(nodeID) == nil })
	wg.Wait()
	return reply
}

// Reach asks a node whether it is there until both ways have answered, or ctx ends: over its session, with whichever server, and by
// gossip, from all servers and from some of its neighbours.
func (e *Endpoints) Reach(ctx context.Context, nodeID string) (session, gossip bool) {
	for {
		found := e.reachOnce(ctx, nodeID)
		session, gossip = session || found.Session, gossip || found.Gossip
		if session && gossip {
			return session, gossip
		}
		t := time.NewTimer(askAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return session, gossip
		}
	}
}

func (e *Endpoints) reachOnce(ctx context.Context, nodeID string) *structs.NodeProbeReply {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	ways := []func() *structs.NodeProbeReply{func() *structs.NodeProbeReply { return e.probeHere(ctx, nodeID) }}
	ask := func(method string, session func() (*wire.Session, error)) {
		ways = append(ways, func() *structs.NodeProbeReply {
			reply := &structs.NodeProbeReply{}
			if s, err := session(); err == nil {
				_ = s.Call(ctx, method, &structs.NodeProbeRequest{NodeID: nodeID}, reply) // no answer: it was not heard
			}
			return reply
		})
	}
	if conf, err := e.Cluster.Configuration(); err == nil {
		for _, s := range conf.Servers {
			if s.ID != e.ID {
				ask(wire.MethodNodeProbe, func() (*wire.Session, error) { return e.Pool.Session(ctx, s.Address) })
			}
		}
	}
	for _, s := range e.sessions.others(nodeID, neighbours) {
		ask(wire.MethodClientProbe, func() (*wire.Session, error) { return s, nil })
	}
	answers := make(chan *structs.NodeProbeReply, len(ways))
	for _, way := range ways {
		go func() { answers <- way() }() // ends with ctx, or soon after
	}
	found := &structs.NodeProbeReply{}
	for range ways {
		select {
		case a := <-answers:
			found.Session, found.Gossip = found.Session || a.Session, found.Gossip || a.Gossip
		case <-ctx.Done(): // a way may not heed it
			return found
		}
		if found.Session && found.Gossip {
			break
		}
	}
	return found
}

// others are some sessions that a node is not behind.
func (s *sessions) others(nodeID string, most int) []*wire.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, seen := s.node[nodeID], map[*wire.Session]bool{}
	var out []*wire.Session
	for _, one := range s.node { // order does not matter: any will do
		if len(out) == 4*most {
			break
		}
		if one != own && !seen[one] {
			seen[one] = true
			out = append(out, one)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), most)]
}

// silent are the sessions that nothing was heard of since a time, with the nodes behind them.
func (s *sessions) silent(since time.Time) map[*wire.Session][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[*wire.Session][]string{}
	for id, one := range s.node { // order does not matter: they are gathered
		if !one.Heard().After(since) {
			out[one] = append(out[one], id)
		}
	}
	return out
}

// PingSilent asks sessions with clients that have been silent for a while whether they live, until ctx ends. Of the nodes
// behind those that do not the leader is told; one that does not answer again and again is closed.
func (e *Endpoints) PingSilent(ctx context.Context) { e.pingSilent(ctx, silentFor, pingLimit) }

func (e *Endpoints) pingSilent(ctx context.Context, silence, limit time.Duration) {
	p := pinging{silent: e.sessions.silent, silence: silence, limit: limit, ask: pinged, lost: e.Clients.Lost}
	p.run(ctx)
}

// pinging asks sessions that are silent whether they live, and closes those that do not answer again and again.
type pinging struct {
	// silent gives the sessions that were not heard since a time, and who is behind them.
	silent  func(since time.Time) map[*wire.Session][]string
	silence time.Duration
	ask     func(ctx context.Context, s *wire.Session) bool
	limit   time.Duration // of one question
	lost    func(behind []string)
}

func (p *pinging) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(p.silence / 3)
	defer tick.Stop()
	asked, missed := map[*wire.Session]bool{}, map[*wire.Session]int{}
	type answer struct {
		of *wire.Session
		ok bool
	}
	answers := make(chan answer)
	for {
		select {
		case a := <-answers:
			delete(asked, a.of)
			if a.ok {
				delete(missed, a.of)
			} else if missed[a.of]++; missed[a.of] >= pingsMissed {
				delete(missed, a.of)
				_ = a.of.Close()
			}
			continue
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		silent := p.silent(time.Now().Add(-p.silence))
		maps.DeleteFunc(missed, func(s *wire.Session, _ int) bool { return silent[s] == nil && !asked[s] }) // heard of, or ended
		for s, behind := range silent {                                                                     // order does not matter: all are asked
			if asked[s] {
				continue
			}
			asked[s] = true
			wg.Go(func() {
				limited, cancel := context.WithTimeout(ctx, p.limit)
				defer cancel()
				ok := p.ask(limited, s)
				if !ok && ctx.Err() == nil {
					p.lost(behind)
				}
				select {
				case answers <- answer{s, ok}:
				case <-ctx.Done():
				}
			})
		}
	}
}
