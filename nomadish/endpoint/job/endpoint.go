// Package job answers the RPC methods of jobs and of their scaling policies: it checks a job that is registered, mints its
// evaluation, and reads what the state contains about jobs.
package job

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Config bounds what jobs may request.
type Config struct {
	MaxCount int // instances of a job; 0: no limit
	// DefaultPriority is the priority of a job that states none; 0: 50. MaxPriority is the highest that one may state; 0: 100.
	DefaultPriority int
	MaxPriority     int
	MaxSource       int // bytes of a job's source that is kept; 0: no limit
	MaxSize         int // bytes of a job; 0: no limit
}

// Deps are the parts that the endpoint works with.
type Deps struct {
	rpc.Parts
	// Self calls a method as if this server's own agent had called it.
	Self func(ctx context.Context, method string, args, reply any) error
	// Typical returns what the policy least-fragmentation keeps room for when a job is planned;
	// nil: it packs.
	Typical func(*state.Snapshot, *structs.Job, *structs.SchedulerConfiguration) *scheduler.Typical
	// Forecast makes a forecast of a job as if it were registered by an entry now; nil: there are none.
	Forecast func(ctx context.Context, entry *structs.JobRegisterEntry) (*structs.Forecast, error)
	// Identity is who submits jobs; nil: no request is believed.
	Identity *identity.Source
}

// Endpoint answers the methods of jobs.
type Endpoint struct {
	Config
	Deps
	// planning has a slot for each whose job is being planned, which takes up to a second of a core.
	planning chan struct{}
}

// New returns a new endpoint.
func New(c Config, d Deps) *Endpoint {
	if d.Identity == nil {
		d.Identity = identity.New(identity.Options{})
	}
	return &Endpoint{Config: c, Deps: d, planning: make(chan struct{}, maxPlanning)}
}

// Methods returns the table of the methods that the endpoint answers.
func (e *Endpoint) Methods() []rpc.Method {
	r := e.Router
	return []rpc.Method{
		{Name: wire.MethodJobRegister, Handler: byRegion(r, rpc.Write(r, e.register), e.registerEverywhere)},
		{Name: wire.MethodJobDeregister, Handler: byRegion(r, rpc.Write(r, e.deregister), e.deregisterEverywhere)},
		{Name: wire.MethodJobEvaluate, Handler: rpc.Write(r, e.evaluate)},
		{Name: wire.MethodJobScale, Handler: rpc.Write(r, e.scale)},
		{Name: wire.MethodJobRevert, Handler: rpc.Write(r, e.revert)},
		{Name: wire.MethodJobStability, Handler: rpc.VersionedWrite(r, structs.LogJobStability, e.stability)},
		{Name: wire.MethodJobPlan, Handler: rpc.Write(r, e.plan)},
		{Name: wire.MethodJobValidate, Handler: byRegion(r, rpc.InRegion(r, e.validate), e.validateEverywhere)},
		{Name: wire.MethodJobList, Handler: rpc.Read(r, e.list)},
		{Name: wire.MethodJobGet, Handler: rpc.Read(r, e.get)},
		{Name: wire.MethodJobVersions, Handler: rpc.Read(r, e.versions)},
		{Name: wire.MethodJobAllocs, Handler: rpc.Read(r, e.allocs)},
		{Name: wire.MethodJobEvals, Handler: rpc.Read(r, e.evals)},
		{Name: wire.MethodJobSummary, Handler: rpc.Read(r, e.summary)},
		{Name: wire.MethodJobScaleStatus, Handler: rpc.Read(r, e.scaleStatus)},
		{Name: wire.MethodJobSubmission, Handler: rpc.Read(r, e.submission)},
		{Name: wire.MethodScalingList, Handler: rpc.Read(r, e.scalingList)},
		{Name: wire.MethodScalingGet, Handler: rpc.Read(r, e.scalingGet)},
	}
}
