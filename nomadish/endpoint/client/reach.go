package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

const (
	// callAgain is the time between two questions to one that is looked for, tryLimit bounds each.
	callAgain = 200 * time.Millisecond
	tryLimit  = time.Second
	// neighbours is how many neighbours probe a node that this server does not hear.
	neighbours = 3
)

// pinged reports whether the client at the other end of a session answers.
func pinged(ctx context.Context, s *wire.Session) bool {
	var reply structs.WriteReply
	err := s.Call(ctx, wire.MethodClientPing, &structs.EmptyRequest{}, &reply)
	var answer *structs.Error // by an older client
	return err == nil || errors.As(err, &answer)
}

// probeHere probes a node over its session with this server, if there is one, and by gossip.
func (e *Endpoint) probeHere(ctx context.Context, nodeID string) *structs.NodeProbeReply {
	reply := &structs.NodeProbeReply{}
	var wg sync.WaitGroup
	wg.Go(func() {
		if s, ok := e.Router.Sessions.Get(nodeID); ok {
			reply.Session = pinged(ctx, s)
		}
	})
	wg.Go(func() { reply.Gossip = e.Gossip != nil && e.Gossip.Probe(nodeID) == nil })
	wg.Wait()
	return reply
}

// Reach probes a node until both ways have answered, or ctx ends: over its session, with whichever server, and by
// gossip, from all servers and from some of its neighbours.
func (e *Endpoint) Reach(ctx context.Context, nodeID string) (session, gossip bool) {
	for {
		found := e.reachOnce(ctx, nodeID)
		session, gossip = session || found.Session, gossip || found.Gossip
		if session && gossip {
			return session, gossip
		}
		t := time.NewTimer(callAgain)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return session, gossip
		}
	}
}

func (e *Endpoint) reachOnce(ctx context.Context, nodeID string) *structs.NodeProbeReply {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	ways := []func() *structs.NodeProbeReply{func() *structs.NodeProbeReply { return e.probeHere(ctx, nodeID) }}
	call := func(method string, session func() (*wire.Session, error)) {
		ways = append(ways, func() *structs.NodeProbeReply {
			reply := &structs.NodeProbeReply{}
			if s, err := session(); err == nil {
				_ = s.Call(ctx, method, &structs.NodeProbeRequest{NodeID: nodeID}, reply) // no answer: it was not heard
			}
			return reply
		})
	}
	if conf, err := e.Router.Cluster.Configuration(); err == nil {
		for _, s := range conf.Servers {
			if s.ID != e.Router.ID {
				call(wire.MethodNodeProbe, func() (*wire.Session, error) { return e.Router.Pool.Session(ctx, s.Address) })
			}
		}
	}
	for _, s := range e.Router.Sessions.Others(nodeID, neighbours) {
		call(wire.MethodClientProbe, func() (*wire.Session, error) { return s, nil })
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

// PingSilent pings sessions with clients that have been silent for a while, until ctx ends. The nodes
// behind those that do not answer are reported to the leader; a session that fails again and again is closed.
func (e *Endpoint) PingSilent(ctx context.Context) { e.pingSilent(ctx, rpc.SilentFor, rpc.PingLimit) }

func (e *Endpoint) pingSilent(ctx context.Context, silence, limit time.Duration) {
	p := rpc.Pinging{Silent: e.Router.Sessions.Silent, Silence: silence, Limit: limit, Call: pinged, Lost: e.Gossip.Lost}
	p.Run(ctx)
}
