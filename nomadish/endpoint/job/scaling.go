package job

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// scalingList lists the scaling policies of jobs that are not stopped, by ID.
func (e *Endpoint) scalingList(ctx context.Context, args *structs.ScalingPolicyListRequest) (*structs.ScalingPolicyListReply, error) {
	reply := &structs.ScalingPolicyListReply{}
	ns := rpc.NamespaceOf(&args.QueryOptions)
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var stubs []*structs.ScalingPolicyListStub
		for job := range snap.JobsOf(ws, state.ScalingJobs) {
			if (ns != structs.AllNamespaces && job.Namespace != ns) || (args.Job != "" && job.ID != args.Job) ||
				(args.Type != "" && args.Type != structs.ScalingHorizontal) {
				continue
			}
			for _, g := range job.TaskGroups {
				if p := scalingPolicy(snap, job, g); p != nil && strings.HasPrefix(p.ID, args.Prefix) {
					stubs = append(stubs, p.Stub())
				}
			}
		}
		slices.SortFunc(stubs, func(a, b *structs.ScalingPolicyListStub) int { return cmp.Compare(a.ID, b.ID) })
		if args.Reverse {
			slices.Reverse(stubs)
		}
		var err error
		reply.Policies, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, slices.Values(stubs), func(p *structs.ScalingPolicyListStub) string { return p.ID })
		return snap.WrittenIndex(state.TableJobs), err
	})
}

func (e *Endpoint) scalingGet(ctx context.Context, args *structs.IDRequest) (*structs.ScalingPolicyReply, error) {
	if err := rpc.CheckUUID("scaling policy", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.ScalingPolicyReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Policy = nil
		for job := range snap.JobsOf(nil, state.ScalingJobs) {
			for _, g := range job.TaskGroups {
				if g.Scaling == nil || structs.ScalingPolicyID(job.Namespace, job.ID, g.Name) != args.ID {
					continue
				}
				snap.Job(ws, job.Namespace, job.ID) // only a change of this job is waited for
				reply.Policy = scalingPolicy(snap, job, g)
				return reply.Policy.ModifyIndex, nil
			}
		}
		snap.JobsOf(ws, state.ScalingJobs)
		return snap.WrittenIndex(state.TableJobs), nil
	})
}

// scalingPolicy is the policy of a group; nil if it has none. Since when there has been one, and since when it has been as it
// is, is read from the versions that are kept of the job: the indexes never fall, and rise when it changes, but also when
// a version is forgotten.
func scalingPolicy(snap *state.Snapshot, job *structs.Job, g *structs.TaskGroup) *structs.ScalingPolicy {
	p := job.ScalingPolicyOf(g)
	if p == nil {
		return nil
	}
	same := true
	for _, old := range snap.JobVersions(nil, job.Namespace, job.ID) { // the newest first: the job itself
		was := old.LookupTaskGroup(g.Name)
		if was == nil || was.Scaling == nil || old.Stop {
			break
		}
		p.CreateIndex = old.JobModifyIndex
		if same = same && p.SameAs(was.Scaling); same {
			p.ModifyIndex = old.JobModifyIndex
		}
	}
	return p
}
