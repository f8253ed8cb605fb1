// Package operator answers the RPC methods of who runs the cluster: the scheduler, Raft, Autopilot, garbage collection and the checks of
// the state.
package operator

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// Collector forgets what is over.
type Collector interface {
	Force(ctx context.Context) error
}

// Raft changes the set of the Raft servers.
type Raft interface {
	// Change removes a server (by ID or address), or hands leadership over.
	Change(ctx context.Context, remove bool, id, address string) error
}

// PeerReconciler knows the servers' health; it does on the leader only.
type PeerReconciler interface {
	Health() structs.AutopilotHealth
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	Router         *rpc.Router
	Applier        rpc.Applier
	Collector      Collector
	Raft           Raft
	PeerReconciler PeerReconciler
	Now            func() time.Time
}

// Endpoint answers the methods of operators.
type Endpoint struct {
	Deps
	// checking is the slot of the caller that checks the state.
	checking chan struct{}
}

// New returns a new endpoint.
func New(d Deps) *Endpoint { return &Endpoint{Deps: d, checking: make(chan struct{}, 1)} }

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodSchedulerGet, Handler: rpc.Read(r, e.schedulerGet)},
		{Name: wire.MethodSigningKeys, Handler: rpc.Read(r, e.signingKeys)},
		{Name: wire.MethodSchedulerSet, Handler: rpc.Write(r, e.schedulerSet)},
		{Name: wire.MethodRaftConfig, Handler: rpc.Read(r, e.raftConfig)},
		{Name: wire.MethodRaftRemove, Handler: rpc.Write(r, e.raftRemove)},
		{Name: wire.MethodRaftTransfer, Handler: rpc.Write(r, e.raftTransfer)},
		{Name: wire.MethodSystemGC, Handler: rpc.Write(r, e.systemGC)},
		{Name: wire.MethodReconcile, Handler: rpc.Write(r, e.reconcile)},
		{Name: wire.MethodCheck, Handler: rpc.Read(r, e.check)},
		{Name: wire.MethodAutopilotGet, Handler: rpc.Read(r, e.autopilotGet)},
		{Name: wire.MethodAutopilotSet, Handler: rpc.Write(r, e.autopilotSet)},
		{Name: wire.MethodAutopilotHealth, Handler: rpc.Write(r, e.autopilotHealth)},
	}
}

func (e *Endpoint) raftRemove(ctx context.Context, args *structs.RaftPeerRequest) (*structs.WriteReply, error) {
	return &structs.WriteReply{}, e.Raft.Change(ctx, true, args.ID, args.Address)
}

func (e *Endpoint) raftTransfer(ctx context.Context, args *structs.RaftPeerRequest) (*structs.WriteReply, error) {
	return &structs.WriteReply{}, e.Raft.Change(ctx, false, args.ID, args.Address)
}

func (e *Endpoint) systemGC(ctx context.Context, _ *structs.GCRequest) (*structs.WriteReply, error) {
	return &structs.WriteReply{}, e.Collector.Force(ctx)
}
