package forecasts

import (
	"context"
	"fmt"
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
	return s.one(ctx, job, nil)
}

// IfRegistered makes a forecast of a job as if it were registered now: of the newest state with the entry applied to it. It is bounded as Job is.
func (s *Service) IfRegistered(ctx context.Context, entry *structs.JobRegisterEntry) (*structs.Forecast, error) {
	e := *entry
	e.Job = entry.Job.Copy() // the fork keeps it
	return s.one(ctx, e.Job.NamespacedID(), &e)
}

func (s *Service) one(ctx context.Context, job structs.NamespacedID, entry *structs.JobRegisterEntry) (*structs.Forecast, error) {
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
		if _, err := fork.Apply(structs.LogJobRegister, entry); err != nil {
			return nil, err
		}
	}
	f, err := s.opts.Make(limited, fork.Store, forecast.Options{
		Now: s.opts.Clock.Now(), Horizon: s.opts.Horizon, Groups: maxGroups, Queue: s.opts.Queue, Only: &job,
	})
	if err != nil {
		return nil, err
	}
	f.Index = index
	if limited.Err() != nil && ctx.Err() == nil {
		for _, r := range f.Requests {
			for _, at := range []*structs.StartForecast{&r.Expected, &r.Latest} {
				if at.All == 0 {
					at.Unknown = fmt.Sprintf("not known within %s of computing", singleTime)
				}
			}
		}
	}
	return f, nil
}
