package plan

import (
	"context"

	"github.com/nomadish/nomadish/structs"
)

// Withdraw takes requests out of the queue, as if nothing of them were missing, and ends the reservations of nodes, for jobs of
// which no evaluation is left that could. It takes no turn among the plans, as it only frees room. Only the names of an
// update are read. When it fails, a part may have been committed; doing it again does no harm.
func (a *Applier) Withdraw(ctx context.Context, requests []*structs.RequestUpdate, nodes []string) error {
	for len(requests)+len(nodes) > 0 {
		p := &structs.JudgedPlan{Time: a.opts.Clock.Now().UnixNano(), JudgedAt: a.store.LatestIndex()}
		size := 0 // so that each entry takes something
		for ; len(nodes) > 0 && size < a.opts.EntryBytes; nodes = nodes[1:] {
			p.Unreserve = append(p.Unreserve, nodes[0])
			size += sizeOfIDs(nodes[:1])
		}
		for ; len(requests) > 0 && size < a.opts.EntryBytes; requests = requests[1:] {
			u := requests[0]
			p.Requests = append(p.Requests, &structs.RequestUpdate{Namespace: u.Namespace, JobID: u.JobID, Group: u.Group})
			size += sizeOfRequests(requests[:1])
		}
		if _, err := a.commit.Apply(ctx, structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}}); err != nil {
			return err
		}
	}
	return nil
}
