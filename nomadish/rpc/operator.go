package rpc

import (
	"context"
	"errors"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoints) registerStatus(mux *wire.Mux) {
	mux.Handle(wire.MethodPing, inRegion(e, func(context.Context, *structs.EmptyRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, nil
	}))
	mux.Handle(wire.MethodLeader, inRegion(e, e.leader))
	mux.Handle(wire.MethodPeers, inRegion(e, e.peers))
	mux.Handle(wire.MethodRegions, local(func(context.Context, *structs.EmptyRequest) (*structs.StringsReply, error) {
		reply := &structs.StringsReply{Values: []string{e.Region}, QueryMeta: e.contact(1)}
		if e.Regions != nil {
			reply.Values = e.Regions.Known()
		}
		return reply, nil
	}))
}

func (e *Endpoints) registerOperator(mux *wire.Mux) {
	mux.Handle(wire.MethodSchedulerGet, read(e, e.schedulerGet))
	mux.Handle(wire.MethodSigningKeys, read(e, e.signingKeys))
	mux.Handle(wire.MethodSchedulerSet, write(e, e.schedulerSet))
	mux.Handle(wire.MethodRaftConfig, read(e, e.raftConfig))
	mux.Handle(wire.MethodRaftRemove, write(e, func(ctx context.Context, args *structs.RaftPeerRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, e.Cluster.Change(ctx, true, args.ID, args.Address)
	}))
	mux.Handle(wire.MethodRaftTransfer, write(e, func(ctx context.Context, args *structs.RaftPeerRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, e.Cluster.Change(ctx, false, args.ID, args.Address)
	}))
	mux.Handle(wire.MethodSystemGC, write(e, func(ctx context.Context, _ *structs.GCRequest) (*structs.WriteReply, error) {
		return &structs.WriteReply{}, e.Collector.Force(ctx)
	}))
	mux.Handle(wire.MethodReconcile, write(e, e.reconcile))
}

func (e *Endpoints) leader(context.Context, *structs.EmptyRequest) (*structs.StringReply, error) {
	addr := e.Leadership.Reign().Addr
	if addr == "" {
		return nil, e.noLeader()
	}
	return &structs.StringReply{Value: addr, QueryMeta: structs.QueryMeta{KnownLeader: true}}, nil
}

func (e *Endpoints) peers(context.Context, *structs.EmptyRequest) (*structs.StringsReply, error) {
	conf, err := e.Cluster.Configuration()
	if err != nil {
		return nil, err
	}
	reply := &structs.StringsReply{Values: []string{}, QueryMeta: e.contact(0)}
	for _, s := range conf.Servers {
		reply.Values = append(reply.Values, s.Address)
	}
	return reply, nil
}

func (e *Endpoints) raftConfig(context.Context, *structs.EmptyRequest) (*structs.RaftConfigurationReply, error) {
	conf, err := e.Cluster.Configuration()
	if err != nil {
		return nil, err
	}
	contact := e.contact(conf.Index)
	conf.Meta = &contact
	return conf, nil
}

func (e *Endpoints) schedulerGet(ctx context.Context, args *structs.EmptyRequest) (*structs.SchedulerConfigReply, error) {
	reply := &structs.SchedulerConfigReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		config := snap.SchedulerConfig(ws)
		reply.SchedulerConfig = config.Effective()
		return config.ModifyIndex, nil
	})
}

func (e *Endpoints) schedulerSet(ctx context.Context, args *structs.SchedulerConfigRequest) (*structs.SchedulerSetReply, error) {
	now := e.Store.Snapshot().SchedulerConfig(nil)
	if args.Config.SchedulerAlgorithm == "" {
		args.Config.SchedulerAlgorithm = now.SchedulerAlgorithm
	}
	args.Config.Keep(&now, args.Absent)
	if err := args.Config.Validate(); err != nil {
		return nil, err
	}
	index, err := e.Applier.Apply(ctx, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{
		Config: args.Config, CAS: args.CAS, CheckIndex: args.Config.ModifyIndex, Time: e.Now().UnixNano(),
	})
	lost := args.CAS && errors.Is(err, structs.ErrConflict) // somebody was quicker: an answer, not an error
	if err != nil && !lost {
		return nil, err
	}
	return &structs.SchedulerSetReply{Updated: !lost, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

// reconcile compares what is derived from the tables with what they say, then has
// every replica derive it anew.
func (e *Endpoints) reconcile(ctx context.Context, _ *structs.GCRequest) (*structs.ReconcileReply, error) {
	snap := e.Store.Snapshot()
	reply := &structs.ReconcileReply{Differences: state.Differences(snap)}
	index, err := e.Applier.Apply(ctx, structs.LogReconcile, &structs.ReconcileEntry{Time: e.Now().UnixNano()})
	if err != nil {
		return nil, err
	}
	reply.Index = index
	return reply, nil
}

func (e *Endpoints) signingKeys(ctx context.Context, args *structs.EmptyRequest) (*structs.SigningKeysReply, error) {
	reply := &structs.SigningKeysReply{}
	err := e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Keys = nil
		for _, k := range snap.SigningKeys(ws) {
			reply.Keys = append(reply.Keys, k.Public)
		}
		return snap.TableIndex(state.TableSigningKeys), nil
	})
	return reply, err
}
