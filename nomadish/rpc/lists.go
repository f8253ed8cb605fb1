package rpc

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// PageJobs takes a page of the jobs that name a node pool; "": of all.
func PageJobs(args *structs.ListRequest, meta *structs.QueryMeta, ws *state.WatchSet, snap *state.Snapshot, pool string) ([]*structs.JobListStub, error) {
	return Page(&args.QueryOptions, meta, func(yield func(*structs.JobListStub) bool) {
		for job := range snap.Jobs(ws, NamespaceOf(&args.QueryOptions), args.Prefix, args.Reverse) {
			if pool != "" && cmp.Or(job.NodePool, structs.NodePoolDefault) != pool {
				continue
			}
			if !yield(jobStub(job, snap.JobSummary(nil, job.Namespace, job.ID), args.Fields["meta"])) {
				return
			}
		}
	}, func(j *structs.JobListStub) string {
		return j.Namespace + "," + j.ID // a comma sorts before whatever names of namespaces consist of: the keys are in the state's order
	})
}

func jobStub(j *structs.Job, summary *structs.JobSummary, meta bool) *structs.JobListStub {
	s := &structs.JobListStub{
		ID: j.ID, ParentID: j.ParentID, Name: j.Name, Namespace: j.Namespace, Datacenters: j.Datacenters, NodePool: j.NodePool,
		Type: j.Type, Priority: j.Priority, Periodic: j.Periodic != nil, ParameterizedJob: j.ParameterizedJob != nil,
		Stop: j.Stop, Status: j.Status, StatusDescription: j.StatusDescription, JobSummary: summary,
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex, JobModifyIndex: j.JobModifyIndex, SubmitTime: j.SubmitTime, Submitter: j.UserName(),
	}
	if meta {
		s.Meta = j.Meta
	}
	return s
}

// AllocsIndex is the latest change among allocations that were read; of none, that
// of the table.
func AllocsIndex(snap *state.Snapshot, allocs []*structs.Allocation) uint64 {
	var index uint64
	for _, a := range allocs {
		index = max(index, a.ModifyIndex)
	}
	if index == 0 {
		index = snap.WrittenIndex(state.TableAllocs)
	}
	return index
}

// PageAllocs takes a page of allocations.
func PageAllocs(opts *structs.QueryOptions, meta *structs.QueryMeta, allocs []*structs.Allocation, resources, tasks bool) ([]*structs.AllocListStub, error) {
	return Page(opts, meta, func(yield func(*structs.AllocListStub) bool) {
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

// ShowNetwork fills in the network of an allocation that shares its node's, once its client has received it: the node's
// address. It is not kept, because it follows from the node. The allocation is changed.
func ShowNetwork(snap *state.Snapshot, a *structs.Allocation) {
	if a.NetworkStatus != nil || len(a.TaskStates) == 0 || a.Job == nil {
		return
	}
	if g := a.Job.LookupTaskGroup(a.TaskGroup); g == nil || len(g.Networks) > 0 && g.Networks[0].Mode != "" && g.Networks[0].Mode != structs.NetworkModeHost {
		return
	}
	node := snap.Node(nil, a.NodeID)
	if node == nil || node.NodeResources == nil || len(node.NodeResources.Networks) == 0 || node.NodeResources.Networks[0] == nil {
		return
	}
	a.NetworkStatus = &structs.AllocNetworkStatus{Address: node.NodeResources.Networks[0].IP}
}
