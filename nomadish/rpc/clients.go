package rpc

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Sessions remembers which session each node is behind, so that a server can call
// a client through the connection that the client opened.
type Sessions struct {
	mu   sync.Mutex
	node map[string]*wire.Session
}

// NewSessions returns an empty set of them.
func NewSessions() *Sessions { return &Sessions{node: map[string]*wire.Session{}} }

// Put remembers s for a node until it closes or another takes its place.
func (s *Sessions) Put(nodeID string, to *wire.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node[nodeID] = to
}

// Get returns the session that a node is behind; ok is false if there is none.
func (s *Sessions) Get(nodeID string) (*wire.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, ok := s.node[nodeID]
	return to, ok
}

// Forget drops all nodes behind a session that has closed, and returns them.
func (s *Sessions) Forget(closed *wire.Session) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, to := range s.node {
		if to == closed {
			delete(s.node, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// lag bounds the wait for something that the leader knows already to come here.
const lag = 5 * time.Second

// Await waits until this server's state has something, or lag is over.
func (r *Router) Await(ctx context.Context, there func(*state.WatchSet, *state.Snapshot) bool) {
	ctx, cancel := context.WithTimeout(ctx, lag)
	defer cancel()
	for {
		ws := state.NewWatchSet()
		if there(ws, r.Store.Snapshot()) || !ws.Wait(ctx) {
			return
		}
	}
}

// allocsNode is the node of the allocation that a call is about.
func (r *Router) allocsNode(ctx context.Context, call *wire.Call) (string, error) {
	var args struct{ AllocID string }
	if err := call.Args(&args); err != nil {
		return "", structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if err := CheckUUID("allocation", args.AllocID); err != nil {
		return "", err
	}
	if call.Via == wire.ViaConnected { // another server has seen it
		r.Await(ctx, func(ws *state.WatchSet, snap *state.Snapshot) bool { return snap.Alloc(ws, args.AllocID) != nil })
	}
	alloc := r.Store.Snapshot().Alloc(nil, args.AllocID)
	if alloc == nil {
		return "", NotFound("allocation", args.AllocID)
	}
	return alloc.NodeID, nil
}

// namedNode is the node that a call names.
func (r *Router) namedNode(_ context.Context, call *wire.Call) (string, error) {
	var args struct{ NodeID string }
	if err := call.Args(&args); err != nil {
		return "", structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	return args.NodeID, nil
}

// toClient returns a handler that passes a call on to the client of a node, which may be
// connected to another server. The leader has no part in it, unless this server does not
// know yet what is requested.
func (r *Router) toClient(nodeOf func(context.Context, *wire.Call) (string, error)) wire.Handler {
	here := func(ctx context.Context, call *wire.Call) error {
		id, err := nodeOf(ctx, call)
		if err != nil {
			return err
		}
		return r.relayTo(ctx, call, id)
	}
	return r.Regional(false, func(ctx context.Context, call *wire.Call) error {
		if call.Via == wire.ViaConnected || r.Leadership.IsLeader() {
			return here(ctx, call)
		}
		if id, err := nodeOf(ctx, call); err == nil && r.Store.Snapshot().Node(nil, id) != nil {
			return r.relayTo(ctx, call, id)
		}
		return r.atLeader(ctx, call, false, here)
	})
}

func (r *Router) relayTo(ctx context.Context, call *wire.Call, nodeID string) error {
	node, err := r.Node(nodeID)
	if err != nil {
		return err
	}
	session, ok := r.Sessions.Get(nodeID)
	via := wire.Via("")
	if !ok && call.Via != wire.ViaConnected {
		session, ok = r.connectedServer(ctx, nodeID)
		via = wire.ViaConnected
	}
	if !ok {
		return structs.Errorf(structs.CodeNoNode, "node %s is not connected (status %s)", ShortName(node), node.Status).
			WithHint("its agent may be down; try again when it is back")
	}
	if err := call.Relay(ctx, session, via, nil); err != nil {
		return structs.Errorf(structs.CodeNoNode, "node %s: %w", ShortName(node), err)
	}
	return nil
}

// queryConnected bounds the question which server a node is connected to.
const queryConnected = 2 * time.Second

// connectedServer finds the server that a node is connected to: all are queried at once, and the
// first that has it is taken.
func (r *Router) connectedServer(ctx context.Context, nodeID string) (*wire.Session, bool) {
	conf, err := r.Cluster.Configuration()
	if err != nil {
		return nil, false
	}
	querying, cancel := context.WithTimeout(ctx, queryConnected)
	defer cancel()
	answers := make(chan *wire.Session, len(conf.Servers))
	queried := 0
	for _, s := range conf.Servers {
		if s.ID == r.ID {
			continue
		}
		queried++
		go func() { // ends when querying does
			session, err := r.Pool.Session(querying, s.Address)
			var reply structs.CountReply
			if err == nil {
				err = session.Call(querying, wire.MethodHasNode, &structs.NodeRequest{NodeID: nodeID}, &reply)
			}
			if err != nil || reply.Count == 0 {
				session = nil
			}
			answers <- session
		}()
	}
	for range queried {
		if session := <-answers; session != nil {
			return session, true
		}
	}
	return nil, false
}

// ToAllocsClient returns a handler that passes a call on to the client that has the allocation which the call names.
func (r *Router) ToAllocsClient() wire.Handler { return r.toClient(r.allocsNode) }

// ToNodesClient returns a handler that passes a call on to the client of the node which the call names.
func (r *Router) ToNodesClient() wire.Handler { return r.toClient(r.namedNode) }

// Node returns a node. It returns an error with CodeNotFound if there is none.
func (r *Router) Node(id string) (*structs.Node, error) {
	if err := CheckUUID("node", id); err != nil {
		return nil, err
	}
	node := r.Snapshot().Node(nil, id)
	if node == nil {
		return nil, NotFound("node", id)
	}
	return node, nil
}

// ShortName returns a node's name as messages show it.
func ShortName(n *structs.Node) string {
	return strings.TrimSpace(n.Name + " (" + structs.ShortID(n.ID) + ")")
}

// Others are some sessions that a node is not behind.
func (s *Sessions) Others(nodeID string, most int) []*wire.Session {
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

// Silent are the sessions that nothing was heard of since a time, with the nodes behind them.
func (s *Sessions) Silent(since time.Time) map[*wire.Session][]string {
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
