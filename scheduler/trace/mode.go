package trace

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// mode is for what a job is decided.
type mode int

const (
	normalMode   mode = iota // for what nobody uses
	entitledMode             // for what its tenant owns
	raiseMode                // its running instances may become guaranteed
	modes        = 3
)

// Bands of jobs where tenants own numbers of GPUs: those within the number preempt those beyond it.
const (
	beyondPriority = 40
	withinPriority = 100
)

// shareByCounts lets the scheduler preempt as tenants who own numbers of GPUs do. The priorities of rows decide the order in the queue
// alone then.
func shareByCounts(c *structs.SchedulerConfiguration) {
	c.Bands = []structs.PriorityBand{{Low: 1, High: beyondPriority}, {Low: beyondPriority + 1, High: structs.JobMaxPriority}}
	c.PreemptionConfig.BatchSchedulerEnabled = true
}

// specFor returns a job as it is decided in a mode.
func (r *replay) specFor(j *job, mode mode) *structs.Job {
	t := j.tenant
	if t == nil || r.tenants.sharing == SharingQueue || mode == raiseMode || r.tenants.sharing == SharingCells && t.gpus == 0 {
		return j.spec
	}
	if j.specs[mode] == nil {
		spec := *j.spec
		switch {
		case r.tenants.sharing == SharingCounts:
			if spec.Priority = beyondPriority; mode == entitledMode {
				spec.Priority = withinPriority
			}
		case mode == entitledMode:
			spec.Class = structs.ClassGuaranteed
		default:
			spec.Class = structs.ClassOpportunistic
		}
		j.specs[mode] = &spec
	}
	return j.specs[mode]
}

// reservingMode returns in which mode a job may reserve room. Reservations bind no request that is entitled to cells, but all others: where
// tenants own numbers of GPUs those reserve that are entitled, and those that never can be.
func (r *replay) reservingMode(j *job) mode {
	if t := j.tenant; t != nil && r.tenants.sharing == SharingCounts && j.row.GPUs > 0 && j.row.gpuMilli() <= int64(t.gpus)*structs.DeviceShareWhole {
		return entitledMode
	}
	return normalMode
}

// byRight reports whether what was placed in a mode is guaranteed.
func (r *replay) byRight(batch *structs.PlacementBatch, mode mode) bool {
	if r.tenants.by(SharingCounts) {
		return mode == entitledMode
	}
	return batch.Resources != nil && batch.Resources.Shared.Terms != nil && batch.Resources.Shared.Terms.Claim != ""
}

// releases counts what may give an entitled request room that found none: cells that were unbound, or any room.
func (r *replay) releases() uint64 {
	if r.tenants.sharing == SharingCells {
		return r.tenants.unbound
	}
	return r.queue.release
}

// passEntitled decides, in the order of ranks, requests for what their tenants own.
func (r *replay) passEntitled(pass *scheduler.Pass) error {
	if r.tenants == nil || r.tenants.sharing == SharingQueue {
		return nil
	}
	for {
		var first *job
		for _, s := range r.queue.waiting {
			if j := s.requests[0]; s.entitled != r.releases() && r.wants(j) && (first == nil || j.rank.Compare(&first.rank) < 0) {
				first = j
			}
		}
		if first == nil {
			return nil
		}
		s, had := first.requestKey, first.request.Missing
		freed, err := r.decide(pass, first, entitledMode)
		if err != nil {
			return fmt.Errorf("job %s: %w", first.spec.ID, err)
		}
		if freed {
			r.queue.released()
		}
		if first.heapIndex >= 0 && first.request.Missing == had {
			s.entitled, first.requestKey.entitled = r.releases(), r.releases()
		}
	}
}

// raise lets running work become guaranteed in place, the oldest first, where what its tenant owns has room for it. It comes after all
// entitled requests, and reports whether something was taken back.
func (r *replay) raise(pass *scheduler.Pass) (freed bool, err error) {
	o := r.tenants
	if o == nil || o.sharing == SharingQueue || o.raised == o.unbound {
		return false, nil
	}
	o.raised = o.unbound
	for _, t := range o.list {
		for _, x := range slices.Clone(t.opportunistic) {
			if x.over() || x.guaranteed {
				continue
			}
			some, err := r.raiseRun(pass, x)
			if err != nil {
				return false, fmt.Errorf("job %s: %w", x.job.spec.ID, err)
			}
			freed = freed || some
		}
		t.opportunistic = slices.DeleteFunc(t.opportunistic, func(x *run) bool { return x.over() || x.guaranteed })
	}
	if freed {
		r.queue.released()
	}
	return freed, nil
}

func (r *replay) raiseRun(pass *scheduler.Pass, x *run) (freed bool, err error) {
	j := x.job
	if r.tenants.sharing == SharingCounts {
		if j.tenant.guaranteed+int64(x.live)*j.row.instanceMilli() > int64(j.tenant.gpus)*structs.DeviceShareWhole {
			return false, nil
		}
		return false, r.raiseByCount(pass, x)
	}
	n := 1
	if j.row.Gang { // its members are raised together
		n = j.row.Count - j.request.Missing
	}
	if !j.row.wholeGPUs() || n*j.row.GPUs > j.tenant.tree.most() || r.amongOthers(pass.World(), x) {
		return false, nil
	}
	return r.decide(pass, j, raiseMode)
}

// amongOthers reports whether all instances of a run use devices of cells that others have bound: they cannot become guaranteed there.
func (r *replay) amongOthers(w *scheduler.World, x *run) bool {
	for i := range x.ids {
		if x.gone != nil && x.gone[i] {
			continue
		}
		of, _, mask, err := r.devicesOf(w, x, i)
		if err != nil {
			continue
		}
		others := false
		of.BoundOn(r.ledger.Machines[x.nodes[i]].ID, func(b cells.Binding, devices uint64) {
			others = others || b.Owner != x.job.tenant.name && devices&mask != 0
		})
		if !others {
			return false
		}
	}
	return true
}

// raiseByCount puts a run above those that are beyond the numbers of their tenants.
func (r *replay) raiseByCount(pass *scheduler.Pass, x *run) error {
	edit := pass.World().Edit()
	for i, id := range x.ids {
		if x.gone != nil && x.gone[i] {
			continue
		}
		u, known := world.Usages(world.Base(edit)).Get(id)
		if !known {
			return fmt.Errorf("allocation %s runs, and uses nothing", id)
		}
		raised, owner := *u, *u.Owner
		owner.Terms.Priority = withinPriority
		raised.Owner = &owner
		world.Take(edit, &raised)
	}
	*pass = *scheduler.NewPass(edit.World())
	r.setGuaranteed(x, true)
	return nil
}

// reclass notes that an instance uses what its tenant owns from now on, or no more.
func (r *replay) reclass(at instanceRef, resources *structs.AllocatedResources) error {
	x, t := at.run, at.run.job.tenant
	if t == nil || resources == nil || resources.Shared.Terms == nil || x.suspended || (resources.Shared.Terms.Claim != "") == x.guaranteed {
		return nil
	}
	if len(x.ids) > 1 {
		x = r.split(at)
	}
	own, batch := *x.batch.Resources, *x.batch
	own.Shared.Terms = resources.Shared.Terms
	batch.Resources = &own
	x.batch = &batch
	r.setGuaranteed(x, !x.guaranteed)
	if x.guaranteed {
		return r.useCells(x)
	}
	return nil
}

// setGuaranteed notes of what class a run is.
func (r *replay) setGuaranteed(x *run, guaranteed bool) {
	t, milli := x.job.tenant, int64(x.live)*x.job.row.instanceMilli()
	if x.guaranteed, t.changed = guaranteed, true; guaranteed {
		t.guaranteed += milli
		return
	}
	t.guaranteed -= milli
	for _, uses := range x.cells {
		for _, u := range uses {
			t.tree.release(u)
		}
	}
	x.cells = nil
	t.opportunistic = append(t.opportunistic, x)
	r.tenants.unbound++
}

// split makes a run of its own of an instance.
func (r *replay) split(at instanceRef) *run {
	x := at.run
	batch := *x.batch
	batch.Instances = []structs.Instance{x.batch.Instances[at.at]}
	s := &run{
		job: x.job, batch: &batch, ids: []string{x.ids[at.at]}, nodes: []int{x.nodes[at.at]}, live: 1, start: x.start, end: x.end, spent: x.spent,
		at: -1, guaranteed: x.guaranteed,
	}
	if x.gone == nil {
		x.gone = make([]bool, len(x.ids))
	}
	x.gone[at.at] = true
	if x.live--; x.live == 0 && x.at >= 0 {
		heap.Remove(&r.ends, x.at)
	}
	if s.end != never {
		heap.Push(&r.ends, s)
	}
	x.job.runs = append(x.job.runs, s)
	r.allocs[s.ids[0]] = instanceRef{s, 0}
	if x.cells != nil {
		s.cells, x.cells[at.at] = [][]cellUse{x.cells[at.at]}, nil
	}
	t := x.job.tenant
	if last := len(x.alone) - 1; last >= 0 {
		s.alone, x.alone = []cellUse{x.alone[last]}, x.alone[:last]
	} else {
		t.beyond = append(t.beyond, s)
	}
	if !s.guaranteed {
		t.opportunistic = append(t.opportunistic, s)
	}
	return s
}
