package view

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const (
	// maxForecastEntries bounds one page of a forecast: up to about 3 KiB each.
	maxForecastEntries = 1000
	// newerNamed bounds the groups that are named as not yet part of a forecast.
	newerNamed = 100
	// firstForecast is how long a question waits for a server's first forecast.
	firstForecast = 2 * time.Second
	// maxBlocked is how long a blocking query waits at most.
	maxBlocked = 10 * time.Minute
)

// forecast returns the last forecast of this server, or makes one of a job. A blocking query waits for one of a state after its index.
func (e *Endpoint) forecast(ctx context.Context, args *structs.ForecastRequest) (*structs.ForecastReply, error) {
	most := e.Forecasts.Horizon()
	if args.Horizon < 0 || args.Horizon > most {
		return nil, structs.Errorf(structs.CodeBadRequest, "horizon %s: must be more than 0 and at most %s, which is how far forecasts look here (server.forecast.horizon)",
			args.Horizon, most)
	}
	if args.Fresh && args.JobID == "" {
		return nil, structs.Errorf(structs.CodeBadRequest, "fresh: a forecast of the newest state is of one job").WithHint("name it with job")
	}
	if args.PerPage == 0 || args.PerPage > maxForecastEntries {
		args.PerPage = maxForecastEntries
	}
	reply := &structs.ForecastReply{}
	f, why, err := e.forecastOf(ctx, args)
	if err != nil {
		return nil, err
	}
	args.MinQueryIndex = 0 // it was waited for
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(_ *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		if reply.Why = why; f == nil {
			return 1, nil
		}
		shown := *f
		shown.Workflows = workflowsOf(f, args)
		shown.Requests, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, requestsOf(f, args), func(r *structs.RequestForecast) string {
			return tokenOf(r)
		})
		reply.Forecast = &shown
		if err != nil || args.Fresh {
			return f.Index, err
		}
		lines, err := e.queue.Lines(ctx, snap)
		reply.Newer, reply.NewerCount = newer(f, lines, args)
		return f.Index, err
	})
}

// tokenOf returns a token of a request, in the order of a forecast: of those of a group that are entitled before the others.
func tokenOf(r *structs.RequestForecast) string {
	if r.Entitled {
		return queueview.TokenOf(r.Namespace, r.JobID, r.Group)
	}
	return queueview.TokenOf(r.Namespace, r.JobID, r.Group+"\x00")
}

// forecastOf returns the forecast that a request is answered from; nil: there is none, and why.
func (e *Endpoint) forecastOf(ctx context.Context, args *structs.ForecastRequest) (f *structs.Forecast, why string, err error) {
	if args.Fresh {
		f, err = e.Forecasts.Job(ctx, structs.NamespacedID{Namespace: rpc.NamespaceOf(&args.QueryOptions), ID: args.JobID})
		return f, "", err
	}
	wait := firstForecast
	if args.MinQueryIndex > 0 {
		if wait = args.MaxQueryTime; wait <= 0 || wait > maxBlocked {
			wait = maxBlocked
		}
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	e.Forecasts.Await(waiting, args.MinQueryIndex)
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	f, why = e.Forecasts.Last()
	return f, why, nil
}

// requestsOf walks what a request requests of a forecast.
func requestsOf(f *structs.Forecast, args *structs.ForecastRequest) iter.Seq[*structs.RequestForecast] {
	ns := rpc.NamespaceOf(&args.QueryOptions)
	horizon := f.Time + int64(args.Horizon)
	return func(yield func(*structs.RequestForecast) bool) {
		all := f.Requests
		if args.Reverse {
			all = slices.Clone(all)
			slices.Reverse(all)
		}
		for _, r := range all {
			if ns != structs.AllNamespaces && ns != r.Namespace || args.JobID != "" && args.JobID != r.JobID {
				continue
			}
			if args.Horizon > 0 {
				near := *r
				near.Expected, near.Latest = within(r.Expected, horizon, args.Horizon), within(r.Latest, horizon, args.Horizon)
				r = &near
			}
			if !yield(r) {
				return
			}
		}
	}
}

// workflowsOf returns what a request requests of the workflows of a forecast, with its first page.
func workflowsOf(f *structs.Forecast, args *structs.ForecastRequest) (list []*structs.WorkflowForecast) {
	if args.JobID != "" || args.NextToken != "" {
		return nil
	}
	ns, horizon := rpc.NamespaceOf(&args.QueryOptions), f.Time+int64(args.Horizon)
	for _, w := range f.Workflows {
		if ns != structs.AllNamespaces && ns != w.Namespace || len(list) == maxForecastEntries {
			continue
		}
		if args.Horizon > 0 {
			near := *w
			near.Expected, near.Latest = startsWithin(w.Expected, horizon, args.Horizon), startsWithin(w.Latest, horizon, args.Horizon)
			w = &near
		}
		list = append(list, w)
	}
	return list
}

// startsWithin returns the start of a workflow as a forecast has it that looks no further than a time.
func startsWithin(s structs.WorkflowStartForecast, end int64, horizon time.Duration) structs.WorkflowStartForecast {
	if s.Start > end {
		s.Start, s.Unknown = 0, fmt.Sprintf("not within %s", horizon)
	}
	s.WaitsFor = endsWithin(s.WaitsFor, end)
	return s
}

// endsWithin returns the ends that are not after a time.
func endsWithin(ends []structs.EndForecast, end int64) []structs.EndForecast {
	return slices.DeleteFunc(slices.Clone(ends), func(x structs.EndForecast) bool { return x.Time > end })
}

// within returns a start as a forecast has it that looks no further than a time.
func within(s structs.StartForecast, end int64, horizon time.Duration) structs.StartForecast {
	if s.First > end {
		s.First = 0
	}
	if s.All > end {
		s.All, s.Unknown = 0, fmt.Sprintf("not within %s", horizon)
	}
	s.WaitsFor = endsWithin(s.WaitsFor, end)
	return s
}

// newer returns the groups that wait and are not yet part of a forecast, the first of them by name, and how many there are.
func newer(f *structs.Forecast, lines []*queueview.Line, args *structs.ForecastRequest) (list []structs.RequestName, n int) {
	ns := rpc.NamespaceOf(&args.QueryOptions)
	seen := map[structs.RequestName]bool{}
	for _, l := range lines {
		if ns != structs.AllNamespaces && ns != l.Job.Namespace || args.JobID != "" && args.JobID != l.Job.ID {
			continue
		}
		name := structs.RequestName{Namespace: l.Job.Namespace, JobID: l.Job.ID, Group: l.Group.Name}
		if seen[name] || isPartOf(f, l.Job, l.Group.Name) {
			continue
		}
		seen[name] = true
		if n++; len(list) < newerNamed {
			list = append(list, name)
		}
	}
	return list, n
}

// isPartOf reports whether a forecast states something of a group, of its job as it is now.
func isPartOf(f *structs.Forecast, job *structs.Job, group string) bool {
	return f != nil && job.JobModifyIndex <= f.Index && len(f.Lines(job.Namespace, job.ID, group)) > 0
}

// inQueue returns what a forecast states of a line of the queue; nil: nothing.
func inQueue(f *structs.Forecast, l *queueview.Line) *structs.QueueForecast {
	if !isPartOf(f, l.Job, l.Group.Name) {
		return nil
	}
	r := f.Line(l.Job.Namespace, l.Job.ID, l.Group.Name, l.Rank.IsEntitled())
	return &structs.QueueForecast{
		Index: f.Index, Time: f.Time, Expected: r.Expected.All, Latest: r.Latest.All, Unknown: cmp.Or(r.Latest.Unknown, r.Expected.Unknown),
	}
}

// addForecast has an explanation state when the groups that wait start, in place of what follows from what runs now alone.
func (e *Endpoint) addForecast(x *structs.JobExplanation, snap *state.Snapshot, job *structs.Job) {
	f, why := e.Forecasts.Last()
	for _, g := range x.Groups {
		if g.Missing == 0 {
			continue
		}
		switch {
		case isPartOf(f, job, g.Group):
			g.Forecast, g.Expected = &structs.GroupForecast{Index: f.Index, Time: f.Time, RequestForecast: *f.Of(job.Namespace, job.ID, g.Group)}, nil
		case f != nil:
			g.NoForecast = f.NotYet(waitsSince(snap, job, g.Group), e.Now())
		default:
			g.NoForecast = why
		}
	}
}

// waitsSince returns an index from which on a forecast has a group that waits: it may wait since long after its job came, or changed.
func waitsSince(snap *state.Snapshot, job *structs.Job, group string) uint64 {
	if request := snap.Requests().Get(nil, job.Namespace, job.ID, group); request != nil {
		return max(job.JobModifyIndex, request.ModifyIndex)
	}
	return job.JobModifyIndex
}
