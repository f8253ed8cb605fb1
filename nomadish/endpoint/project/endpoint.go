// Package project answers the RPC methods of projects, of their calendars and of flows. It knows which week it is and when weeks begin; it
// must never decide what can be given out: that is for the state, when an edit is applied.
package project

import (
	"context"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lastEntry is the newest type of log entry that projects take.
const lastEntry = structs.LogFlowDelete

// Deps are the parts that the endpoint works with.
type Deps struct {
	rpc.Parts
	// Identity is who edits, and which users and groups there are; nil: no request is believed.
	Identity *identity.Source
}

// Endpoint answers the methods of projects and flows.
type Endpoint struct{ Deps }

// New returns a new endpoint.
func New(d Deps) *Endpoint {
	if d.Identity == nil {
		d.Identity = identity.New(identity.Options{})
	}
	return &Endpoint{d}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodProjectList, Handler: rpc.VersionedRead(r, lastEntry, e.list)},
		{Name: wire.MethodProjectGet, Handler: rpc.VersionedRead(r, lastEntry, e.get)},
		{Name: wire.MethodProjectUpsert, Handler: rpc.VersionedWrite(r, lastEntry, e.upsert)},
		{Name: wire.MethodProjectDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.delete)},
		{Name: wire.MethodProjectCalendar, Handler: rpc.VersionedRead(r, lastEntry, e.calendar)},
		{Name: wire.MethodProjectCalendarEdit, Handler: rpc.VersionedWrite(r, lastEntry, e.calendarEdit)},
		{Name: wire.MethodProjectEdits, Handler: rpc.VersionedRead(r, lastEntry, e.edits)},
		{Name: wire.MethodProjectReport, Handler: rpc.VersionedRead(r, lastEntry, e.report)},
		{Name: wire.MethodFlowList, Handler: rpc.VersionedRead(r, lastEntry, e.flowList)},
		{Name: wire.MethodFlowGet, Handler: rpc.VersionedRead(r, lastEntry, e.flowGet)},
		{Name: wire.MethodFlowUpsert, Handler: rpc.VersionedWrite(r, lastEntry, e.flowUpsert)},
		{Name: wire.MethodFlowDelete, Handler: rpc.VersionedWrite(r, lastEntry, e.flowDelete)},
	}
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.ProjectListReply, error) {
	reply := &structs.ProjectListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		weeks, err := calendarOf(ws, snap)
		if err != nil {
			return 0, err
		}
		list, err := rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.Projects(ws).List(args.Prefix, args.Reverse), func(p *structs.Project) string { return p.Name })
		reply.Projects = []*structs.ProjectStatus{}
		waiting := pendingOf(ws, snap, "")
		for _, p := range list {
			reply.Projects = append(reply.Projects, e.status(ws, snap, weeks, p, waiting[p.Name]))
		}
		return statusIndex(snap), err
	})
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.ProjectReply, error) {
	reply := &structs.ProjectReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Project = nil
		weeks, err := calendarOf(ws, snap)
		if err != nil {
			return 0, err
		}
		if p := snap.Projects(ws).Get(args.ID); p != nil {
			reply.Project = e.status(ws, snap, weeks, p, pendingOf(ws, snap, p.Name)[p.Name])
		}
		return statusIndex(snap), nil
	})
}

// status returns a project as it is shown now.
func (e *Endpoint) status(ws *state.WatchSet, snap *state.Snapshot, weeks week.Calendar, p *structs.Project, waiting []pending) *structs.ProjectStatus {
	s := p.Status(snap.Projects(ws).Steps(p))
	w := currentWeek(ws, snap, weeks, p.Name, e.Now())
	s.Week, s.Ends, s.TimeZone = w.Week, time.Unix(0, w.To).UTC(), weeks.Zone().String()
	for _, r := range w.Rows {
		s.Slots = append(s.Slots, &structs.ProjectSlots{Type: r.Type, Step: r.Step, User: r.User, Group: r.Group, Job: r.Job, Given: r.Count})
	}
	e.setUsage(ws, snap, s, w.Rows, waiting)
	if owner := structs.ProjectOwner(p.Name); snap.World().Owns(owner) {
		s.Cells = scheduler.OwnedCells(snap.World(), owner)
		_ = snap.ClaimsIndex(ws) // to be watched
	}
	return s
}

// statusIndex returns the index that last changed what is shown of projects and their slots, those with GPUs among them.
func statusIndex(snap *state.Snapshot) uint64 {
	if !snap.World().AnyOwner() {
		return usageIndex(snap)
	}
	return max(usageIndex(snap), snap.ClaimsIndex(nil))
}

// projectsIndex returns the index that last changed what is shown of projects.
func projectsIndex(snap *state.Snapshot) uint64 {
	return max(snap.TableIndex(state.TableProjects), snap.TableIndex(state.TableProjectWeeks), snap.TableIndex(state.TableFlows),
		snap.TableIndex(state.TableConfig))
}

// calendarOf returns when weeks begin.
func calendarOf(ws *state.WatchSet, snap *state.Snapshot) (week.Calendar, error) {
	config := snap.SchedulerConfig(ws)
	c := config.WeekCalendar()
	weeks, err := week.New(c.TimeZone, c.WeekStarts)
	if err != nil {
		return weeks, structs.Errorf(structs.CodeInternal, "the calendar of the scheduler configuration: %w", err).
			WithHint("`nomadish operator scheduler set-config -calendar-time-zone UTC` sets one that this server knows")
	}
	return weeks, nil
}

func (e *Endpoint) upsert(ctx context.Context, args *structs.ProjectUpsertRequest) (*structs.WriteReply, error) {
	snap := e.Router.Snapshot()
	if p := args.Project; p != nil && p.Flow != "" {
		// What is read of a project has the steps of its flow, and may be written as it was read.
		if f := snap.Projects(nil).Flow(p.Flow); f != nil && slices.Equal(p.Steps, f.Steps) {
			p.Steps = nil
		}
	}
	if err := args.Project.Validate(); err != nil {
		return nil, err
	}
	if err := e.mayEdit(snap, args.Project.Name, args.User); err != nil {
		return nil, err
	}
	if !args.Force {
		if err := e.checkMembers(ctx, snap, args.Project); err != nil {
			return nil, err
		}
	}
	return rpc.Applied(ctx, e.Applier, structs.LogProjectUpsert, &structs.ProjectUpsertEntry{
		Project: args.Project, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano(),
	})
}

func (e *Endpoint) delete(ctx context.Context, args *structs.ProjectDeleteRequest) (*structs.WriteReply, error) {
	if err := e.mayEdit(e.Router.Snapshot(), args.Name, args.User); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogProjectDelete, &structs.ProjectDeleteEntry{Name: args.Name, Time: e.Now().UnixNano()})
}

func (e *Endpoint) flowList(ctx context.Context, args *structs.ListRequest) (*structs.FlowListReply, error) {
	reply := &structs.FlowListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Flows, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, snap.Projects(ws).Flows(args.Prefix, args.Reverse), func(f *structs.Flow) string { return f.Name })
		return snap.TableIndex(state.TableFlows), err
	})
}

func (e *Endpoint) flowGet(ctx context.Context, args *structs.IDRequest) (*structs.FlowReply, error) {
	reply := &structs.FlowReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Flow = snap.Projects(ws).Flow(args.ID)
		return snap.TableIndex(state.TableFlows), nil
	})
}

func (e *Endpoint) flowUpsert(ctx context.Context, args *structs.FlowUpsertRequest) (*structs.WriteReply, error) {
	if err := args.Flow.Validate(); err != nil {
		return nil, err
	}
	if err := e.mayEditFlow(e.Router.Snapshot(), args.Flow.Name, args.User); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogFlowUpsert, &structs.FlowUpsertEntry{Flow: args.Flow, CAS: args.CAS, CheckIndex: args.CheckIndex, Time: e.Now().UnixNano()})
}

func (e *Endpoint) flowDelete(ctx context.Context, args *structs.FlowDeleteRequest) (*structs.WriteReply, error) {
	if err := e.mayEditFlow(e.Router.Snapshot(), args.Name, args.User); err != nil {
		return nil, err
	}
	return rpc.Applied(ctx, e.Applier, structs.LogFlowDelete, &structs.FlowDeleteEntry{Name: args.Name, Time: e.Now().UnixNano()})
}
