package forecast

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// lacking returns the groups of the job that a forecast is of alone, with all instances that wait. Those of a job that was changed, and on which nobody has
// decided since, are known only once that is done: it is, on a fork of its own. The groups as they are are returned for other jobs, and where there is no time.
func lacking(ctx context.Context, base *state.Store, o Options, groups []group) ([]group, error) {
	snap := base.Snapshot()
	job := snap.Job(nil, o.Only.Namespace, o.Only.ID)
	if job == nil || job.Version == 0 || job.Stopped() || !undecided(snap, *o.Only) {
		return groups, nil
	}
	f := newFork(base, o.Entries)
	l := newLeader(f.Store, f.apply, o.Now, ids(fmt.Sprintf("forecast/%d/lacking", base.LatestIndex())), worker.PassOptions{
		ReserveFrom: o.reserveFrom(), Explain: never, ExplainEach: never, Unread: true, Typicals: worker.LearnOnce(), Pace: o.Pace,
	}, o.Queue)
	l.drop = f.Drop
	defer l.stop()
	switch err := l.settle(ctx, func(context.Context) error { return nil }); {
	case f.spent(), ctx.Err() != nil:
		return groups, nil
	case err != nil:
		return nil, fmt.Errorf("forecast: %w", err)
	}
	then, lacks, entitled := f.Store.Snapshot(), map[string]int{}, map[string]int{}
	for _, r := range then.Requests().OfJob(nil, job.Namespace, job.ID) {
		lacks[r.Group] += r.Missing
		entitled[r.Group] = scheduler.Entitled(then.World(), job, r.Group, r.Missing)
	}
	for row := range then.AllocRowsByJob(nil, job.Namespace, job.ID) {
		if !row.Terminal() && snap.AllocRow(row.ID()) == nil { // it is placed at once
			lacks[row.Group()]++
			if entitled[row.Group()] > 0 { // and uses what is left of that before others do
				entitled[row.Group()]++
			}
		}
	}
	out := []group{}
	for _, g := range job.TaskGroups {
		line := group{job: *o.Only, name: g.Name, pool: cmp.Or(job.NodePool, structs.DefaultNodePool), recounted: true}
		for _, part := range []struct {
			missing  int
			entitled bool
		}{{entitled[g.Name], true}, {lacks[g.Name] - entitled[g.Name], false}} {
			if line.missing, line.entitled = part.missing, part.entitled; line.missing > 0 {
				out = append(out, line)
			}
		}
	}
	sortGroups(out)
	return out, nil
}

// undecided reports whether an evaluation of a job may be decided now and is not.
func undecided(snap *state.Snapshot, id structs.NamespacedID) bool {
	for ev := range snap.OpenEvals(nil, structs.EvalStatusPending) {
		if ev.Namespace == id.Namespace && ev.JobID == id.ID {
			return true
		}
	}
	return false
}
