package rpc

import (
	"context"
	"strconv"
	"sync"

	"github.com/nomadish/nomadish/structs"
	"github.com/nomadish/nomadish/structs/wire"
)

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }

// sessions remembers which session each node is behind, so that a server can call
// a client through the connection that the client opened.
type sessions struct {
	mu   sync.Mutex
	node map[string]*wire.Session
}

func newSessions() *sessions { return &sessions{node: map[string]*wire.Session{}} }

// put remembers s for a node until it closes or another takes its place.
func (s *sessions) put(nodeID string, to *wire.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node[nodeID] = to
}

func (s *sessions) get(nodeID string) (*wire.Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, ok := s.node[nodeID]
	return to, ok
}

// forget drops all nodes behind a session that has closed.
func (s *sessions) forget(closed *wire.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, to := range s.node {
		if to == closed {
			delete(s.node, id)
		}
	}
}

// SessionClosed forgets the nodes that were behind a session.
func (e *Endpoints) SessionClosed(s *wire.Session) { e.sessions.forget(s) }

// registerClients passes the clients' methods on to the clients.
func (e *Endpoints) registerClients(mux *wire.Mux) {
	mux.Handle(wire.MethodClientHello, e.hello)
	for _, method := range []string{
		wire.MethodClientAllocStats, wire.MethodClientAllocRestart, wire.MethodClientAllocSignal, wire.MethodClientAllocGC,
		wire.MethodClientFSList, wire.MethodClientFSStat, wire.MethodClientFSRead,
	} {
		mux.Handle(method, e.routed(true, e.toAllocsNode))
	}
	for _, method := range []string{wire.MethodClientGC, wire.MethodClientHostStats, wire.MethodClientSimHealth} {
		mux.Handle(method, e.routed(true, e.toNode))
	}
}

// hello says that a node is behind the session that it comes over. Nodes that are
// not registered yet may say so: the secret is checked at registration, and a call
// is only ever passed to a node whose hello carried the stored secret.
func (e *Endpoints) hello(_ context.Context, call *wire.Call) error {
	var args structs.NodeHeartbeatRequest
	if err := call.Args(&args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if call.Session == nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: comes over a session only", call.Method)
	}
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return err
	}
	e.sessions.put(args.NodeID, call.Session)
	return call.Send(&structs.WriteReply{})
}

func (e *Endpoints) toAllocsNode(ctx context.Context, call *wire.Call) error {
	var args struct{ AllocID string }
	if err := call.Args(&args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if err := checkUUID("allocation", args.AllocID); err != nil {
		return err
	}
	alloc := e.Store.Snapshot().Alloc(nil, args.AllocID)
	if alloc == nil {
		return notFound("allocation", args.AllocID)
	}
	return e.relayTo(ctx, call, alloc.NodeID)
}

func (e *Endpoints) toNode(ctx context.Context, call *wire.Call) error {
	var args struct{ NodeID string }
	if err := call.Args(&args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	return e.relayTo(ctx, call, args.NodeID)
}

func (e *Endpoints) relayTo(ctx context.Context, call *wire.Call, nodeID string) error {
	node, err := e.nodeOf(nodeID)
	if err != nil {
		return err
	}
	session, ok := e.sessions.get(nodeID)
	if !ok {
		return structs.Errorf(structs.CodeNoNode, "node %s is not connected (status %s)", shortName(node), node.Status).
			WithHint("its agent may be down; try again when it is back")
	}
	if err := call.Relay(ctx, session); err != nil {
		return structs.Errorf(structs.CodeNoNode, "node %s: %w", shortName(node), err)
	}
	return nil
}
