package rpc

import (
	"cmp"
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

func (e *Endpoints) jobGet(ctx context.Context, args *structs.IDRequest) (*structs.JobReply, error) {
	reply := &structs.JobReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Job = snap.Job(ws, namespaceOf(&args.QueryOptions), args.ID)
		if reply.Job == nil {
			return snap.TableIndex(state.TableJobs), nil
		}
		return reply.Job.ModifyIndex, nil
	})
}

func (e *Endpoints) jobList(ctx context.Context, args *structs.ListRequest) (*structs.JobListReply, error) {
	reply := &structs.JobListReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Jobs, err = pageJobs(args, &reply.QueryMeta, ws, snap, "")
		return max(snap.WrittenIndex(state.TableJobs), snap.WrittenIndex(state.TableSummaries)), err
	})
}

// pageJobs takes a page of the jobs that name a node pool; "": of all.
func pageJobs(args *structs.ListRequest, meta *structs.QueryMeta, ws *state.WatchSet, snap *state.Snapshot, pool string) ([]*structs.JobListStub, error) {
	return page(&args.QueryOptions, meta, func(yield func(*structs.JobListStub) bool) {
		for job := range snap.Jobs(ws, namespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
			if pool != "" && cmp.Or(job.NodePool, structs.NodePoolDefault) != pool {
				continue
			}
			if !yield(jobStub(job, snap.JobSummary(nil, job.Namespace, job.ID), args.Fields["meta"])) {
				return
			}
		}
	}, func(j *structs.JobListStub) string { return j.Namespace + "." + j.ID })
}

func jobStub(j *structs.Job, summary *structs.JobSummary, meta bool) *structs.JobListStub {
	s := &structs.JobListStub{
		ID: j.ID, ParentID: j.ParentID, Name: j.Name, Namespace: j.Namespace, Datacenters: j.Datacenters, NodePool: j.NodePool,
		Type: j.Type, Priority: j.Priority, Periodic: j.Periodic != nil, ParameterizedJob: j.ParameterizedJob != nil,
		Stop: j.Stop, Status: j.Status, StatusDescription: j.StatusDescription, JobSummary: summary,
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex, JobModifyIndex: j.JobModifyIndex, SubmitTime: j.SubmitTime,
	}
	if meta {
		s.Meta = j.Meta
	}
	return s
}

func (e *Endpoints) jobVersions(ctx context.Context, args *structs.JobVersionsRequest) (*structs.JobVersionsReply, error) {
	reply := &structs.JobVersionsReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Versions = snap.JobVersions(ws, namespaceOf(&args.QueryOptions), args.ID)
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

func (e *Endpoints) jobAllocs(ctx context.Context, args *structs.JobAllocsRequest) (*structs.AllocListReply, error) {
	reply := &structs.AllocListReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		allocs := snap.AllocsByJob(ws, namespaceOf(&args.QueryOptions), args.ID, args.All)
		var err error
		reply.Allocations, err = pageAllocs(&args.QueryOptions, &reply.QueryMeta, allocs, true, true)
		return allocsIndex(snap, allocs), err
	})
}

// allocsIndex is the latest change among allocations that were read; of none, that
// of the table.
func allocsIndex(snap *state.Snapshot, allocs []*structs.Allocation) uint64 {
	var index uint64
	for _, a := range allocs {
		index = max(index, a.ModifyIndex)
	}
	if index == 0 {
		index = snap.WrittenIndex(state.TableAllocs)
	}
	return index
}

func pageAllocs(opts *structs.QueryOptions, meta *structs.QueryMeta, allocs []*structs.Allocation, resources, tasks bool) ([]*structs.AllocListStub, error) {
	return page(opts, meta, func(yield func(*structs.AllocListStub) bool) {
		if opts.Reverse {
			allocs = slices.Clone(allocs)
			slices.Reverse(allocs)
		}
		for _, a := range allocs {
			if !yield(a.Stub(resources, tasks)) {
				return
			}
		}
	}, func(a *structs.AllocListStub) string { return a.ID })
}

func (e *Endpoints) jobEvals(ctx context.Context, args *structs.IDRequest) (*structs.EvalListReply, error) {
	reply := &structs.EvalListReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		evals := snap.EvalsByJob(ws, namespaceOf(&args.QueryOptions), args.ID)
		index := snap.WrittenIndex(state.TableEvals)
		if len(evals) > 0 {
			index = 0
			for _, ev := range evals {
				index = max(index, ev.ModifyIndex)
			}
		}
		var err error
		reply.Evaluations, err = page(&args.QueryOptions, &reply.QueryMeta, slices.Values(evals), func(ev *structs.Evaluation) string { return ev.ID })
		return index, err
	})
}

func (e *Endpoints) jobSummary(ctx context.Context, args *structs.IDRequest) (*structs.JobSummaryReply, error) {
	reply := &structs.JobSummaryReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.JobSummary = snap.JobSummary(ws, namespaceOf(&args.QueryOptions), args.ID)
		if reply.JobSummary == nil {
			return snap.TableIndex(state.TableSummaries), nil
		}
		return reply.JobSummary.ModifyIndex, nil
	})
}

func (e *Endpoints) jobSubmission(ctx context.Context, args *structs.JobSubmissionRequest) (*structs.JobSubmissionReply, error) {
	reply := &structs.JobSubmissionReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(_ *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Submission = snap.JobSubmission(namespaceOf(&args.QueryOptions), args.ID, args.Version)
		return snap.TableIndex(state.TableJobs), nil
	})
}

func (e *Endpoints) jobScaleStatus(ctx context.Context, args *structs.IDRequest) (*structs.JobScaleStatusReply, error) {
	reply := &structs.JobScaleStatusReply{}
	return reply, e.query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		ns := namespaceOf(&args.QueryOptions)
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
		return max(job.ModifyIndex, allocsIndex(snap, allocs)), nil
	})
}
