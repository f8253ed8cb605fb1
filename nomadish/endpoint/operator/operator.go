package operator

import (
	"context"
	"errors"
	"reflect"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) raftConfig(context.Context, *structs.EmptyRequest) (*structs.RaftConfigurationReply, error) {
	conf, err := e.Router.Cluster.Configuration()
	if err != nil {
		return nil, err
	}
	contact := e.Router.Contact(conf.Index)
	conf.Meta = &contact
	return conf, nil
}

func (e *Endpoint) schedulerGet(ctx context.Context, args *structs.EmptyRequest) (*structs.SchedulerConfigReply, error) {
	reply := &structs.SchedulerConfigReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		config := snap.SchedulerConfig(ws)
		reply.SchedulerConfig = config.Effective()
		return config.ModifyIndex, nil
	})
}

func (e *Endpoint) schedulerSet(ctx context.Context, args *structs.SchedulerConfigRequest) (*structs.SchedulerSetReply, error) {
	now := e.Router.Snapshot().SchedulerConfig(nil)
	if args.Config.SchedulerAlgorithm == "" {
		args.Config.SchedulerAlgorithm = now.SchedulerAlgorithm
	}
	args.Config.Keep(&now, args.Absent)
	if err := args.Config.Validate(); err != nil {
		return nil, err
	}
	if err := e.checkCalendar(&args.Config, &now); err != nil {
		return nil, err
	}
	if err := e.checkSlots(&args.Config, &now); err != nil {
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

// checkCalendar returns an error if this server does not know a calendar, or if a server does not know calendars at all: it would keep
// none. The default one is left out, so that nothing changes for those that state none.
func (e *Endpoint) checkCalendar(to, was *structs.SchedulerConfiguration) error {
	c := to.WeekCalendar()
	if c == structs.DefaultCalendar() {
		to.Calendar = nil
		return nil
	}
	if c == was.WeekCalendar() {
		return nil
	}
	if _, err := week.New(c.TimeZone, c.WeekStarts); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "Calendar: %w", err)
	}
	return e.Router.Cluster.Readable(structs.LogProjectCalendar)
}

// checkSlots returns an error if a server does not know the settings of slots: it would keep none. What is at its default is left out, so
// that nothing changes for those that state none.
func (e *Endpoint) checkSlots(to, was *structs.SchedulerConfiguration) error {
	to.Slots = to.Slots.Canonical()
	if to.Slots == nil || reflect.DeepEqual(to.Slots, was.Slots.Canonical()) {
		return nil
	}
	return e.Router.Cluster.Readable(structs.LogProjectCalendar)
}

// reconcile compares what is derived from the tables with the tables themselves, then has
// every replica derive it anew.
func (e *Endpoint) reconcile(ctx context.Context, _ *structs.GCRequest) (*structs.ReconcileReply, error) {
	snap := e.Router.Snapshot()
	reply := &structs.ReconcileReply{Differences: state.Differences(snap)}
	index, err := e.Applier.Apply(ctx, structs.LogReconcile, &structs.ReconcileEntry{Time: e.Now().UnixNano()})
	if err != nil {
		return nil, err
	}
	reply.Index = index
	return reply, nil
}

func (e *Endpoint) signingKeys(ctx context.Context, args *structs.EmptyRequest) (*structs.SigningKeysReply, error) {
	reply := &structs.SigningKeysReply{}
	err := e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Keys = nil
		for _, k := range snap.SigningKeys(ws) {
			reply.Keys = append(reply.Keys, k.Public)
		}
		return snap.TableIndex(state.TableSigningKeys), nil
	})
	return reply, err
}

func (e *Endpoint) autopilotGet(ctx context.Context, args *structs.EmptyRequest) (*structs.AutopilotConfigReply, error) {
	reply := &structs.AutopilotConfigReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Config = snap.AutopilotConfig(ws)
		return reply.Config.ModifyIndex, nil
	})
}

func (e *Endpoint) autopilotSet(ctx context.Context, args *structs.AutopilotConfigRequest) (*structs.AutopilotSetReply, error) {
	if err := args.Config.Validate(); err != nil {
		return nil, err
	}
	index, err := e.Applier.Apply(ctx, structs.LogAutopilotConfig, &structs.AutopilotConfigEntry{
		Config: args.Config, CAS: args.CAS, CheckIndex: args.Config.ModifyIndex, Time: e.Now().UnixNano(),
	})
	lost := args.CAS && errors.Is(err, structs.ErrConflict) // somebody was quicker: an answer, not an error
	if err != nil && !lost {
		return nil, err
	}
	return &structs.AutopilotSetReply{Updated: !lost, WriteMeta: structs.WriteMeta{Index: index}}, nil
}

func (e *Endpoint) autopilotHealth(context.Context, *structs.EmptyRequest) (*structs.AutopilotHealthReply, error) {
	return &structs.AutopilotHealthReply{Health: e.PeerReconciler.Health(), QueryMeta: structs.QueryMeta{Index: 1, KnownLeader: true}}, nil
}
