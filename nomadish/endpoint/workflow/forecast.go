package workflow

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nomadish/nomadish/structs"
)

// Forecasts are when workflows start.
type Forecasts interface {
	// Last returns the last forecast of the server, which must not be changed; nil: there is none, and why.
	Last() (f *structs.Forecast, why string)
	// IfRun makes a forecast of a workflow as if it were run now by an entry. It is bounded in time.
	IfRun(ctx context.Context, entry *structs.WorkflowRunEntry) (*structs.RunForecast, error)
}

// noForecasts is what makes no forecasts.
type noForecasts struct{}

// Last implements Forecasts.
func (noForecasts) Last() (*structs.Forecast, string) { return nil, "this server makes no forecasts" }

// IfRun implements Forecasts.
func (noForecasts) IfRun(context.Context, *structs.WorkflowRunEntry) (*structs.RunForecast, error) {
	return nil, structs.Errorf(structs.CodeUnsupported, "this server makes no forecasts")
}

// addForecast has a workflow that waits for its reservation state when it starts.
func (e *Endpoint) addForecast(s *structs.WorkflowStatus) {
	if s.State != structs.WorkflowPending || s.Posted {
		return
	}
	f, why := e.Forecasts.Last()
	switch s.Forecast = f.OfWorkflow(s.Namespace, s.ID, s.Run); {
	case s.Forecast != nil:
	case f == nil:
		s.NoForecast = why
	default:
		s.NoForecast = f.NotYet(s.ModifyIndex, e.Now())
	}
}

// stubOf returns the line of a run in a list, with when it starts if it waits for its reservation.
func stubOf(r *structs.WorkflowRun, f *structs.Forecast) *structs.WorkflowStub {
	s := r.Stub()
	if r.State != structs.WorkflowPending || r.Posted {
		return s
	}
	if w := f.OfWorkflow(r.Namespace, r.ID, r.Run); w != nil {
		s.Forecast = &structs.QueueForecast{
			Index: w.Index, Time: w.Time, Expected: w.Expected.Start, Latest: w.Latest.Start, Unknown: cmp.Or(w.Latest.Unknown, w.Expected.Unknown),
		}
	}
	return s
}

// planForecast has a plan state when its stages start and end if it is run now by an entry.
func (e *Endpoint) planForecast(ctx context.Context, plan *structs.WorkflowPlan, entry *structs.WorkflowRunEntry) {
	switch {
	case plan.Never:
		plan.NoForecast = "what is missing does not come free"
		return
	case plan.Alive > 0:
		plan.NoForecast = fmt.Sprintf("run %d has not ended", plan.Alive)
		return
	}
	f, err := e.Forecasts.IfRun(ctx, entry)
	if err != nil {
		plan.NoForecast = err.Error()
		return
	}
	plan.Forecast = f
}
