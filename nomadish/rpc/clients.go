package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

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

// forget drops all nodes behind a session that has closed, and gives them.
func (s *sessions) forget(closed *wire.Session) []string {
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

// SessionClosed forgets the nodes that were behind a session, and gives back what workers had that were. None of its calls
// is at work any more.
func (e *Endpoints) SessionClosed(s *wire.Session) {
	e.giveBack(s)
	if ids := e.sessions.forget(s); len(ids) > 0 && e.Clients != nil {
		e.Clients.Lost(ids)
	}
}

// registerClients passes the clients' methods on to the clients.
func (e *Endpoints) registerClients(mux *wire.Mux) {
	mux.Handle(wire.MethodClientHello, e.hello)
	mux.Handle(wire.MethodHasNode, local(func(_ context.Context, args *structs.NodeRequest) (*structs.CountReply, error) {
		reply := &structs.CountReply{}
		if _, ok := e.sessions.get(args.NodeID); ok {
			reply.Count = 1
		}
		return reply, nil
	}))
	for _, method := range []string{
		wire.MethodClientAllocStats, wire.MethodClientAllocRestart, wire.MethodClientAllocSignal, wire.MethodClientAllocGC,
		wire.MethodClientFSList, wire.MethodClientFSStat, wire.MethodClientFSRead,
	} {
		mux.Handle(method, e.toClient(e.allocsNode))
	}
	for _, method := range []string{wire.MethodClientGC, wire.MethodClientHostStats, wire.MethodClientSimHealth, wire.MethodClientMetaRead, wire.MethodClientMetaApply} {
		mux.Handle(method, e.toClient(e.namedNode))
	}
}

// lag bounds the wait for something that the leader knows already to come here.
const lag = 5 * time.Second

// hello says that a node is behind the session that it comes over. The node has
// registered; that may still be on its way here. A call is only ever passed to a node
// whose hello carried the stored secret.
func (e *Endpoints) hello(ctx context.Context, call *wire.Call) error {
	var args structs.NodeHeartbeatRequest
	if err := call.Args(&args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if call.Session == nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: comes over a session only", call.Method)
	}
	if !e.Leadership.IsLeader() {
		e.await(ctx, func(ws *state.WatchSet, snap *state.Snapshot) bool { return snap.Node(ws, args.NodeID) != nil })
	}
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return err
	}
	e.sessions.put(args.NodeID, call.Session)
	return call.Send(&structs.WriteReply{})
}

// await waits until this server's state has something, or lag is over.
func (e *Endpoints) await(ctx context.Context, there func(*state.WatchSet, *state.Snapshot) bool) {
	ctx, cancel := context.WithTimeout(ctx, lag)
	defer cancel()
	for {
		ws := state.NewWatchSet()
		if there(ws, e.Store.Snapshot()) || !ws.Wait(ctx) {
			return
		}
	}
}

// allocsNode is the node of the allocation that a call is about.
func (e *Endpoints) allocsNode(ctx context.Context, call *wire.Call) (string, error) {
	var args struct{ AllocID string }
	if err := call.Args(&args); err != nil {
		return "", structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if err := checkUUID("allocation", args.AllocID); err != nil {
		return "", err
	}
	if call.Via == wire.ViaHolder { // another server has seen it
		e.await(ctx, func(ws *state.WatchSet, snap *state.Snapshot) bool { return snap.Alloc(ws, args.AllocID) != nil })
	}
	alloc := e.Store.Snapshot().Alloc(nil, args.AllocID)
	if alloc == nil {
		return "", notFound("allocation", args.AllocID)
	}
	return alloc.NodeID, nil
}

// namedNode is the node that a call names.
func (e *Endpoints) namedNode(_ context.Context, call *wire.Call) (string, error) {
	var args struct{ NodeID string }
	if err := call.Args(&args); err != nil {
		return "", structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	return args.NodeID, nil
}

// toClient makes a handler that passes a call on to the client of a node, which may be
// connected to another server. The leader has no part in it, unless this server does not
// know yet what is asked for.
func (e *Endpoints) toClient(nodeOf func(context.Context, *wire.Call) (string, error)) wire.Handler {
	here := func(ctx context.Context, call *wire.Call) error {
		id, err := nodeOf(ctx, call)
		if err != nil {
			return err
		}
		return e.relayTo(ctx, call, id)
	}
	return e.regional(false, func(ctx context.Context, call *wire.Call) error {
		if call.Via == wire.ViaHolder || e.Leadership.IsLeader() {
			return here(ctx, call)
		}
		if id, err := nodeOf(ctx, call); err == nil && e.Store.Snapshot().Node(nil, id) != nil {
			return e.relayTo(ctx, call, id)
		}
		return e.atLeader(ctx, call, false, here)
	})
}

func (e *Endpoints) relayTo(ctx context.Context, call *wire.Call, nodeID string) error {
	node, err := e.nodeOf(nodeID)
	if err != nil {
		return err
	}
	session, ok := e.sessions.get(nodeID)
	via := wire.Via("")
	if !ok && call.Via != wire.ViaHolder {
		session, ok = e.holder(ctx, nodeID)
		via = wire.ViaHolder
	}
	if !ok {
		return structs.Errorf(structs.CodeNoNode, "node %s is not connected (status %s)", shortName(node), node.Status).
			WithHint("its agent may be down; try again when it is back")
	}
	if err := call.Relay(ctx, session, via, nil); err != nil {
		return structs.Errorf(structs.CodeNoNode, "node %s: %w", shortName(node), err)
	}
	return nil
}

// askHolder bounds the question which server a node is connected to.
const askHolder = 2 * time.Second

// holder finds the server that a node is connected to: all are asked at once, and the
// first that has it is taken.
func (e *Endpoints) holder(ctx context.Context, nodeID string) (*wire.Session, bool) {
	conf, err := e.Cluster.Configuration()
	if err != nil {
		return nil, false
	}
	asking, cancel := context.WithTimeout(ctx, askHolder)
	defer cancel()
	answers := make(chan *wire.Session, len(conf.Servers))
	asked := 0
	for _, s := range conf.Servers {
		if s.ID == e.ID {
			continue
		}
		asked++
		go func() { // ends with asking
			session, err := e.Pool.Session(asking, s.Address)
			var reply structs.CountReply
			if err == nil {
				err = session.Call(asking, wire.MethodHasNode, &structs.NodeRequest{NodeID: nodeID}, &reply)
			}
			if err != nil || reply.Count == 0 {
				session = nil
			}
			answers <- session
		}()
	}
	for range asked {
		if session := <-answers; session != nil {
			return session, true
		}
	}
	return nil, false
}
