package trace

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// pass decides, in the order of ranks, what was not tried since the last release
// (semantics part 7): first what requests are entitled to, then what nobody uses.
func (r *replay) pass() error {
	for again := true; again; again = r.flows.stirred() {
		if err := (workflowDriver{r}).moveWorkflows(); err != nil {
			return err
		}
		if err := r.passOnce(); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) passOnce() error {
	pass := scheduler.NewPass(r.world)
	for again := true; again; {
		if err := r.passEntitled(pass); err != nil {
			return err
		}
		var err error
		if again, err = r.passNormal(pass); err != nil {
			return err
		}
		if !again {
			if again, err = r.raise(pass); err != nil {
				return err
			}
		}
	}
	r.world = pass.World()
	r.losing()
	return nil
}

// passNormal decides what is placed on what nobody uses. It ends when something was taken back that may be entitled elsewhere, and
// reports that then.
func (r *replay) passNormal(pass *scheduler.Pass) (again bool, err error) {
	shared := &shares{pass: pass, known: map[string]int{}}
	if r.tenants.by(SharingCounts) { // what a number holds is not distinguished from what is beyond it
		shared.pass = nil
	}
	heads := r.queue.untried(shared)
	for heads.Len() > 0 {
		s := heads.list[0]
		j := s.requests[0]
		if r.hopeless(j) || s.fails.release == r.queue.release && !r.mayReserve(j, normalMode) || !r.mayBorrow(j) {
			r.wake(j)
			heap.Pop(heads)
			continue
		}
		freed, err := r.decide(pass, j, normalMode)
		if err != nil {
			return false, fmt.Errorf("job %s: %w", j.spec.ID, err)
		}
		switch {
		case freed:
			// Room came free beside what was placed: all that waits may be tried again.
			for _, other := range heads.list {
				other.tried = 0
			}
			s.tried = 0
			r.queue.released()
			if j.heapIndex >= 0 {
				j.requestKey.tried = r.queue.release // it took all that it could
			}
			if r.tenants != nil {
				return true, nil
			}
			shared.known = map[string]int{}
			heads = r.queue.untried(shared)
		case j.heapIndex >= 0: // something of it still waits
			s.fails.release = r.queue.release
			heap.Pop(heads)
		case len(s.requests) > 0:
			heap.Fix(heads, 0)
		default:
			s.tried = 0 // the next of its request key has not been tried
			heap.Pop(heads)
		}
		heads.placed(j.spec.Namespace)
	}
	return false, nil
}

// hopeless reports that a job finds no room, as less is free in all than it must have at
// once: then it need not be decided. What may take from others, or reserve, is decided.
func (r *replay) hopeless(j *job) bool {
	if j.spec.Workflow != nil || r.mayReserve(j, normalMode) || r.config.Preempts(structs.JobTypeBatch) && !r.tenants.by(SharingCounts) {
		return false
	}
	n := int64(1)
	if j.row.Gang {
		n = int64(j.request.Missing)
	}
	free := r.ledger.Has
	free.add(r.ledger.Used, -1)
	return n*j.row.instanceMilli() > free.GPUMilli || n*int64(j.row.CPU) > free.CPU || n*int64(j.row.MemoryMB) > free.MemoryMB
}

// mayReserve reports whether a job has waited so long that it may reserve room in a mode. What has some of
// its reservations tries for the others with every release.
func (r *replay) mayReserve(j *job, mode mode) bool {
	if mode != r.reservingMode(j) {
		return false
	}
	return r.now >= j.look || j.usages > 0 && j.usages < j.request.Missing
}

// decide decides one job and does what its plan states. freed: something was taken back.
func (r *replay) decide(pass *scheduler.Pass, j *job, mode mode) (freed bool, err error) {
	spec := r.specFor(j, mode)
	eval := &structs.Evaluation{
		ID: r.newID(), Namespace: spec.Namespace, Priority: spec.Priority, Type: spec.Type, JobID: spec.ID,
		TriggeredBy: structs.EvalTriggerJobRegister, Status: structs.EvalStatusPending, CreateTime: j.request.Since,
	}
	if r.mayReserve(j, mode) {
		eval.TriggeredBy, eval.Status = structs.EvalTriggerQueuedAllocs, structs.EvalStatusBlocked
	}
	in := scheduler.Input{
		Job: spec, Allocs: j.allocs(), Config: r.config, Now: time.Unix(0, r.now).UTC(), Seed: r.seed(), NewID: r.newID,
		Prepared: r.known,
	}
	if r.c.Typical != nil {
		r.c.Typical(&in, r.census.requestKeys())
	}
	start := r.clock()
	plan, err := pass.Plan(eval, in)
	if r.c.Clock != nil {
		r.timing.decided(r.clock() - start)
	}
	r.timing.Decisions++
	r.counts.Decisions++
	if err == nil {
		start = r.clock()
		err = pass.Follow(plan)
		r.timing.Following += r.clock() - start
	}
	if err != nil {
		return false, err
	}
	return r.carry(j, plan, mode, eval.Status == structs.EvalStatusBlocked)
}

// seed is a number for each decision (SplitMix64).
func (r *replay) seed() uint64 {
	z := r.c.Seed*0x9e3779b97f4a7c15 + r.ids
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// carry does what a plan states; the World has done it already.
func (r *replay) carry(j *job, plan *structs.Plan, mode mode, reserving bool) (freed bool, err error) {
	for _, st := range plan.Stop {
		if st.KeepRunning {
			continue
		}
		if err := r.takeBack(st); err != nil {
			return false, err
		}
		freed = true
	}
	if j.heapIndex >= 0 {
		r.queue.leave(j)
	}
	for _, up := range plan.Update {
		if err := r.update(j, up); err != nil {
			return false, err
		}
	}
	for _, batch := range plan.Place {
		if err := r.place(j, batch, mode); err != nil {
			return false, err
		}
	}
	usages := len(plan.Reserve) - len(plan.Unreserve)
	j.usages += usages
	r.usages += usages
	r.counts.Reserved += int64(len(plan.Reserve))
	switch {
	case j.request.Missing > 0:
		r.waitOn(j, plan, reserving)
	case mode != raiseMode || j.request.Since > 0:
		r.placedWhole(j)
	}
	return freed || len(plan.Unreserve) > 0, nil
}

// waitOn puts a job back into the queue. What has reserved room is kept apart from others of its
// request key.
func (r *replay) waitOn(j *job, plan *structs.Plan, reserving bool) {
	if reserving {
		j.look = never
		for _, ev := range plan.Evals {
			if ev.Status == structs.EvalStatusBlocked && !ev.WaitUntil.IsZero() {
				j.look = max(ev.WaitUntil.UnixNano(), r.now+int64(time.Second))
			}
		}
	}
	if old := j.requestKey; j.usages > 0 && old.key.owner == 0 {
		old.jobs--
		r.queue.forget(old)
		if old.tried == r.queue.release && len(old.requests) > 0 {
			r.queue.retry(old) // the next one may reserve room now
		}
		key := old.key
		key.owner = j.spec.CreateIndex
		j.requestKey = r.queue.requestKeyOf(j.row, key)
		j.requestKey.jobs++
		j.requestKey.tried = r.queue.release
	}
	r.queue.join(j)
	r.wake(j)
}

// wake notes when a job that waits as the first of its request key is to be tried though nothing
// came free. One that is due and may not reserve now is tried with the next release.
func (r *replay) wake(j *job) {
	if s := j.requestKey; j.look != never && j.look > r.now && s.requests[0] == j && (s.due == 0 || j.look < s.due) {
		s.due = j.look
		r.dueSeq++
		heap.Push(&r.dues, due{j.look, r.dueSeq, s})
	}
}

// placedWhole notes that nothing of a job waits any more.
func (r *replay) placedWhole(j *job) {
	j.request.Aged += r.config.CycleAt(r.now) - r.config.CycleAt(j.request.Since)
	j.request.Since = 0
	if j.whole {
		return
	}
	j.whole = true
	r.counts.Placed++
	for _, w := range r.tally.of(j) {
		w.add(r.now - j.arrived)
	}
	switch {
	case j.flow != nil:
		workflowDriver{r}.placedOf(j.flow)
	case r.flows != nil:
		r.flows.figures.singles.add(r.now - j.arrived)
	}
	if r.c.Placed != nil {
		r.c.Placed(j.row, time.Duration(r.now-epoch))
	}
}

// place counts what a batch places and notes when it ends.
func (r *replay) place(j *job, batch *structs.PlacementBatch, mode mode) error {
	n := len(batch.Instances)
	x := &run{job: j, batch: batch, ids: make([]string, n), nodes: make([]int, n), live: n, start: r.now, at: -1}
	for i := range batch.Instances {
		in := &batch.Instances[i]
		x.ids[i] = structs.DeriveID(batch.Seed, uint64(in.Ordinal))
		at, known := r.ledger.byID[batch.Nodes[in.Node].ID]
		if !known {
			return fmt.Errorf("placed on a node %s that there is not", batch.Nodes[in.Node].ID)
		}
		x.nodes[i] = at
		if err := r.ledger.move(at, j.row, in, 1, true); err != nil {
			return fmt.Errorf("placed more than there is: %w", err)
		}
		r.allocs[x.ids[i]] = instanceRef{x, i}
	}
	batch.Metrics = nil // nobody reads it
	j.runs = append(j.runs, x)
	if j.flow != nil {
		j.flow.changed = true
	}
	j.request.Missing -= n
	r.counts.Starts += int64(n)
	if j.request.Missing < 0 {
		return fmt.Errorf("%d instances more were placed than were requested", -j.request.Missing)
	}
	r.endAt(x, j.runsFor())
	x.guaranteed = r.byRight(batch, mode)
	return r.begin(x)
}

// runsFor is how long an instance runs.
func (j *job) runsFor() int64 {
	if limit := j.row.MaxRun; limit > 0 && limit < j.row.Duration {
		return int64(limit)
	}
	return int64(j.row.Duration)
}

// endAt lets a run end after a time.
func (r *replay) endAt(x *run, after int64) {
	if x.end = never; after < math.MaxInt64-r.now {
		x.end = r.now + after
	}
	if x.end != never && !r.c.Drop {
		heap.Push(&r.ends, x)
	}
}

// end releases what a run holds. The job is forgotten with its last one.
func (r *replay) end(x *run, edit *scheduler.Edit) error {
	for i := range x.ids {
		if x.gone != nil && x.gone[i] {
			continue
		}
		edit.DeleteAlloc(x.ids[i], "")
		delete(r.allocs, x.ids[i])
		if err := r.ledger.move(x.nodes[i], x.job.row, &x.batch.Instances[i], -1, true); err != nil {
			return fmt.Errorf("job %s ended twice: %w", x.job.spec.ID, err)
		}
	}
	j := x.job
	r.used(x, x.live)
	x.ended = true
	r.leave(x, -1)
	j.ended += x.live
	if j.ended < j.row.Count {
		return nil
	}
	if j.request.Missing != 0 || j.heapIndex >= 0 {
		return fmt.Errorf("job %s has ended, and %d instances of it wait", j.spec.ID, j.request.Missing)
	}
	r.counts.Completed++
	if j.flow != nil {
		j.flow.changed = true
	}
	if j.row.MaxRun > 0 && j.row.MaxRun < j.row.Duration {
		r.counts.CutShort++
	}
	j.requestKey.jobs--
	r.queue.forget(j.requestKey)
	return nil
}

// used counts what instances of a run used until now.
func (r *replay) used(x *run, instances int) {
	for _, w := range r.tally.of(x.job) {
		w.milliSec += float64(x.job.row.instanceMilli()) * float64(instances) * float64(r.now-x.start) / 1e9
	}
}

// takeBack does with an instance what a plan states that takes it back.
func (r *replay) takeBack(st *structs.AllocStop) error {
	at, known := r.allocs[st.AllocID]
	if !known {
		return fmt.Errorf("the plan stops allocation %s, which does not run", st.AllocID)
	}
	x, in := at.run, &at.run.batch.Instances[at.at]
	suspend := st.DesiredStatus == structs.AllocDesiredSuspend
	if x.suspended && suspend {
		return fmt.Errorf("the plan suspends allocation %s twice", st.AllocID)
	}
	if x.gone == nil {
		x.gone = make([]bool, len(x.ids))
	}
	x.gone[at.at] = true
	x.live--
	if !x.suspended {
		r.leave(x, at.at)
	}
	if x.live == 0 && x.at >= 0 {
		heap.Remove(&r.ends, x.at)
	}
	if !x.suspended {
		r.used(x, 1)
		if err := r.ledger.move(x.nodes[at.at], x.job.row, in, -1, !suspend); err != nil {
			return err
		}
	}
	if suspend {
		r.suspend(at, x)
		return nil
	}
	delete(r.allocs, st.AllocID)
	r.counts.Requeued++
	if t := x.job.tenant; t != nil {
		t.requeued++
	}
	ran := x.spent
	if !x.suspended {
		ran += r.now - x.start
	}
	r.lost += float64(x.job.row.instanceMilli()) * float64(ran) / 1e9
	r.lostCPU += float64(x.job.row.CPU) * float64(ran) / 1e9
	if x.suspended { // it waits already, and only its memory is left to release
		r.ledger.giveMemory(x.nodes[at.at], x.job.row)
		return nil
	}
	r.wait(x.job)
	return nil
}

// suspend makes a run of its own of an instance that was suspended.
func (r *replay) suspend(at instanceRef, x *run) {
	batch := *x.batch
	batch.Instances = []structs.Instance{x.batch.Instances[at.at]}
	s := &run{
		job: x.job, batch: &batch, ids: []string{x.ids[at.at]}, nodes: []int{x.nodes[at.at]}, live: 1, start: r.now,
		end: never, rest: x.end - r.now, spent: x.spent + r.now - x.start, suspended: true, at: -1,
	}
	if x.end == never {
		s.rest = never
	}
	x.job.runs = append(x.job.runs, s)
	r.allocs[s.ids[0]] = instanceRef{s, 0}
	r.counts.Suspended++
	r.wait(x.job)
}

// wait lets one more instance of a job wait.
func (r *replay) wait(j *job) {
	if j.heapIndex >= 0 {
		r.queue.leave(j)
	}
	j.runs = slices.DeleteFunc(j.runs, func(x *run) bool { return x.live == 0 })
	j.request.Missing++
	if j.request.Since == 0 {
		j.request.Since = r.now
		j.request.Requeued++
		j.look = never
		if after, ever := r.config.ReserveAfter(); ever {
			j.look = r.now + int64(after)
		}
	}
	j.rank = r.rankOf(j)
	r.queue.join(j)
}

// update does with a running instance what a plan says: a suspended one goes on, another is of another class from now on.
func (r *replay) update(j *job, up *structs.AllocInPlace) error {
	at, known := r.allocs[up.AllocID]
	if !up.Resume {
		if !known {
			return fmt.Errorf("the plan updates allocation %s, which does not run", up.AllocID)
		}
		resources := up.Resources
		if up.ClassTo != "" { // it gives up its class
			resources = at.run.batch.Resources.Copy()
			terms := resources.Shared.Terms.Opportunistic()
			resources.Shared.Terms = &terms
		}
		return r.reclass(at, resources)
	}
	if !known || !at.run.suspended {
		return fmt.Errorf("the plan resumes allocation %s, which is not suspended", up.AllocID)
	}
	x := at.run
	r.ledger.giveMemory(x.nodes[0], j.row)
	if err := r.ledger.move(x.nodes[0], j.row, &x.batch.Instances[0], 1, true); err != nil {
		return fmt.Errorf("resumed more than there is room for: %w", err)
	}
	x.suspended, x.start = false, r.now
	j.request.Missing--
	r.counts.Resumed++
	r.endAt(x, x.rest)
	return r.begin(x)
}
