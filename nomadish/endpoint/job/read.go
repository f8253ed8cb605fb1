package job

import (
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.JobReply, error) {
	reply := &structs.JobReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Job = snap.Job(ws, rpc.NamespaceOf(&args.QueryOptions), args.ID)
		if reply.Job == nil {
			return snap.TableIndex(state.TableJobs), nil
		}
		index := reply.Job.ModifyIndex
		reply.Job = withSubmission(snap, reply.Job)
		return index, nil
	})
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.JobListReply, error) {
	reply := &structs.JobListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Jobs, err = rpc.PageJobs(args, &reply.QueryMeta, ws, snap, "")
		return max(snap.WrittenIndex(state.TableJobs), snap.WrittenIndex(state.TableSummaries)), err
	})
}

func (e *Endpoint) versions(ctx context.Context, args *structs.JobVersionsRequest) (*structs.JobVersionsReply, error) {
	reply := &structs.JobVersionsReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Versions = snap.JobVersions(ws, rpc.NamespaceOf(&args.QueryOptions), args.ID)
		reply.Diffs = nil
		if len(reply.Versions) == 0 {
			return snap.TableIndex(state.TableJobs), nil
		}
		for i := 0; args.Diffs && i+1 < len(reply.Versions); i++ {
			reply.Diffs = append(reply.Diffs, reply.Versions[i+1].Diff(reply.Versions[i], true))
		}
		return reply.Versions[0].ModifyIndex, nil
	})
}

func (e *Endpoint) allocs(ctx context.Context, args *structs.JobAllocsRequest) (*structs.AllocListReply, error) {
	reply := &structs.AllocListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		allocs := snap.AllocsByJob(ws, rpc.NamespaceOf(&args.QueryOptions), args.ID, args.All)
		var err error
		reply.Allocations, err = rpc.PageAllocs(&args.QueryOptions, &reply.QueryMeta, allocs, true, true)
		return rpc.AllocsIndex(snap, allocs), err
	})
}

func (e *Endpoint) evals(ctx context.Context, args *structs.IDRequest) (*structs.EvalListReply, error) {
	reply := &structs.EvalListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		evals := snap.EvalsByJob(ws, rpc.NamespaceOf(&args.QueryOptions), args.ID)
		index := snap.WrittenIndex(state.TableEvals)
		if len(evals) > 0 {
			index = 0
			for _, ev := range evals {
				index = max(index, ev.ModifyIndex)
			}
		}
		var err error
		reply.Evaluations, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, slices.Values(evals), func(ev *structs.Evaluation) string { return ev.ID })
		return index, err
	})
}

func (e *Endpoint) summary(ctx context.Context, args *structs.IDRequest) (*structs.JobSummaryReply, error) {
	reply := &structs.JobSummaryReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.JobSummary = snap.JobSummary(ws, rpc.NamespaceOf(&args.QueryOptions), args.ID)
		if reply.JobSummary == nil {
			return snap.TableIndex(state.TableSummaries), nil
		}
		return reply.JobSummary.ModifyIndex, nil
	})
}

func (e *Endpoint) submission(ctx context.Context, args *structs.JobSubmissionRequest) (*structs.JobSubmissionReply, error) {
	reply := &structs.JobSubmissionReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(_ *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Submission = snap.JobSubmission(rpc.NamespaceOf(&args.QueryOptions), args.ID, args.Version)
		return snap.TableIndex(state.TableJobs), nil
	})
}

func (e *Endpoint) scaleStatus(ctx context.Context, args *structs.IDRequest) (*structs.JobScaleStatusReply, error) {
	reply := &structs.JobScaleStatusReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		ns := rpc.NamespaceOf(&args.QueryOptions)
		job := snap.Job(ws, ns, args.ID)
		if job == nil {
			reply.JobScaleStatus = nil
			return snap.TableIndex(state.TableJobs), nil
		}
		allocs := snap.AllocsByJob(ws, ns, args.ID, false)
		events := snap.ScalingEvents(ws, ns, args.ID)
		status := &structs.JobScaleStatus{
			JobID: job.ID, Namespace: job.Namespace, JobCreateIndex: job.CreateIndex, JobModifyIndex: job.JobModifyIndex,
			JobStopped: job.Stop, TaskGroups: map[string]structs.TaskGroupScaleStatus{},
		}
		for _, g := range job.TaskGroups {
			t := structs.TaskGroupScaleStatus{Desired: g.Count, Events: events[g.Name]}
			for _, a := range allocs {
				if a.TaskGroup != g.Name || a.Terminal() {
					continue
				}
				t.Placed++
				if a.ClientStatus == structs.AllocClientRunning {
					t.Running++
				}
				if a.DeploymentStatus.IsHealthy() {
					t.Healthy++
				} else if a.DeploymentStatus.IsUnhealthy() {
					t.Unhealthy++
				}
			}
			status.TaskGroups[g.Name] = t
		}
		reply.JobScaleStatus = status
		return max(job.ModifyIndex, rpc.AllocsIndex(snap, allocs)), nil
	})
}
