package forecasts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// singleTime bounds the time of a forecast of one job, with the wait for those of others.
const singleTime = 2 * time.Second

// singleBuffer is how many changes the fork keeps of a state that a job is registered in.
const singleBuffer = 256

// Job makes a forecast of one job, of the newest state. What is not known within 2 s of time is unknown.
func (s *Service) Job(ctx context.Context, job structs.NamespacedID) (*structs.Forecast, error) {
	return s.one(ctx, forecast.Options{Only: &job}, 0, nil)
}

// IfRegistered makes a forecast of a job as if it were registered now: of the newest state with the entry applied to it. It is bounded as Job is.
func (s *Service) IfRegistered(ctx context.Context, entry *structs.JobRegisterEntry) (*structs.Forecast, error) {
	e := *entry
	e.Job = entry.Job.Copy() // the fork keeps it
	job := e.Job.NamespacedID()
	return s.one(ctx, forecast.Options{Only: &job}, structs.LogJobRegister, &e)
}

// IfRun makes a forecast of a workflow as if it were run now by an entry that states it, until its last stage has ended. It is bounded as Job is.
func (s *Service) IfRun(ctx context.Context, entry *structs.WorkflowRunEntry) (*structs.RunForecast, error) {
	e := *entry
	e.Workflow = entry.Workflow.Copy() // the fork keeps it
	id := structs.NamespacedID{Namespace: e.Workflow.Namespace, ID: e.Workflow.ID}
	f, err := s.one(ctx, forecast.Options{Workflow: &id}, structs.LogWorkflowRun, &e)
	switch {
	case err != nil:
		return nil, err
	case len(f.Workflows) == 0:
		return nil, structs.Errorf(structs.CodeInternal, "workflow %q: the forecast states nothing of it", id.ID)
	}
	return &structs.RunForecast{Index: f.Index, Time: f.Time, WorkflowForecast: *f.Workflows[0]}, nil
}

// one makes a forecast of what its options name, of the newest state, with an entry applied to it; nil: none is.
func (s *Service) one(ctx context.Context, o forecast.Options, t structs.LogType, entry any) (*structs.Forecast, error) {
	if !s.opts.On {
		return nil, structs.Errorf(structs.CodeUnsupported, "this server makes no forecasts").WithHint("server.forecast.enabled switches them on")
	}
	limited, cancel := context.WithTimeout(ctx, singleTime)
	defer cancel()
	select {
	case s.single <- struct{}{}:
		defer func() { <-s.single }()
	case <-limited.Done():
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, structs.Errorf(structs.CodeLimited, "not known within %s: forecasts for others are being made", singleTime).WithHint("try again")
	}
	fork := fsm.NewFork(s.store, singleBuffer)
	index := fork.Store.LatestIndex()
	if entry != nil {
		if _, err := fork.Apply(t, entry); err != nil {
			return nil, err
		}
	}
	o.Now, o.Horizon, o.Groups, o.Queue = s.opts.Clock.Now(), s.opts.Horizon, maxGroups, s.opts.Queue
	f, err := s.opts.Make(limited, fork.Store, o)
	if err != nil {
		return nil, err
	}
	f.Index = index
	if limited.Err() != nil && ctx.Err() == nil {
		in := ""
		if entry == nil {
			in = s.expected(index)
		}
		outOfTime(f, in)
	}
	return f, nil
}

// outOfTime has a forecast state of what it does not know as there was no time for it that this was so, where it ended, and in how long there is one that has
// more time, if that is known.
func outOfTime(f *structs.Forecast, in string) {
	known := func(why *string) {
		if at, is := strings.CutPrefix(*why, forecast.RanOutOfTime); is {
			at, more, _ := strings.Cut(at, ";")
			if *why = fmt.Sprintf("not known within %s of computing (the forecast ended at %s)", singleTime, at); in != "" {
				*why += "; a forecast with more time is there " + in
			}
			if more != "" {
				*why += ";" + more
			}
		}
	}
	for _, r := range f.Requests {
		for _, at := range []*structs.StartForecast{&r.Expected, &r.Latest} {
			known(&at.Unknown)
		}
	}
	for _, w := range f.Workflows {
		for _, at := range []*structs.WorkflowStartForecast{&w.Expected, &w.Latest} {
			known(&at.Unknown)
		}
	}
}
