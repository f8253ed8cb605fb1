package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/stages"
	"github.com/nomadish/nomadish/structs"
)

// Ways in which the workflows of a trace run, to be compared.
const (
	// ReservationsLend: a workflow reserves what its stages need before the first one starts, and lends what idles of it (semantics part 5).
	ReservationsLend = "lend"
	// ReservationsWhole: it reserves the same, and lends nothing.
	ReservationsWhole = "whole"
	// ReservationsNone: it reserves nothing. The jobs of a stage come when the stage before is complete, and wait as any job does.
	ReservationsNone = "none"
)

// Reservations returns all ways in which workflows run.
func Reservations() []string {
	return []string{ReservationsNone, ReservationsWhole, ReservationsLend}
}

// WorkflowRow is what a row states that is a job of a workflow. The rows of a workflow stand one after the other, by stage, and arrive at once.
type WorkflowRow struct {
	Name  string
	Stage int // from 1
	// Reserve is one of the Reserve constants of structs, "": max; Lend is to whom the workflow lends. Those of its first row count.
	Reserve string
	Lend    []*structs.WorkflowLend
}

// validate names what is wrong with a row of a workflow.
func (w *WorkflowRow) validate(r *Row) error {
	switch {
	case !structs.ValidWorkflowName(w.Name):
		return fmt.Errorf("workflow %q: must be 1 to 128 letters, digits, dashes or underscores", w.Name)
	case w.Stage < 1 || w.Stage > structs.MaxWorkflowStages:
		return fmt.Errorf("stage %d: must be 1 to %d", w.Stage, structs.MaxWorkflowStages)
	case w.Reserve != "" && w.Reserve != structs.ReserveMax && w.Reserve != structs.ReserveSum:
		return fmt.Errorf("reserve %q: must be %q or %q", w.Reserve, structs.ReserveMax, structs.ReserveSum)
	case r.Duration == Forever:
		return errors.New("duration: must be stated, as a stage ends with its jobs")
	case r.MaxRun > 0 && r.MaxRun < r.Duration:
		return fmt.Errorf("max_run_duration %s: must not be less than the duration (%s): the job of the workflow would fail", r.MaxRun, r.Duration)
	}
	return nil
}

// flow is a workflow that has arrived and not ended.
type flow struct {
	run  *structs.WorkflowRun
	rows map[string]flowRow // by the name of the job
	jobs map[string]*job    // that were registered, by ID

	changed bool  // a job of it began or ended
	arrived int64 // Unix nanoseconds, virtual
	before  int64 // when the stage before the running one ended
	began   int64 // when all jobs of the first stage ran; 0: not yet
	missing int   // jobs of the running stage that have not all been placed
}

// flowRow is a row of a workflow with its number.
type flowRow struct {
	row    *Row
	number uint64
}

// flows is all workflows; nil: the trace has none.
type flows struct {
	mode  string
	open  *structs.Workflow // of which rows still come
	rows  map[string]flowRow
	alive []*flow // in the order of arrival

	fresh   bool   // one has come since reservations were looked at
	release uint64 // as the queue counted then
	figures flowCounts
}

func newFlows(c *Config) (*flows, error) {
	switch {
	case c.Reservations == "":
		return nil, nil // the trace has no workflows
	case !slices.Contains(Reservations(), c.Reservations):
		return nil, fmt.Errorf("reservations %q: must be one of %s", c.Reservations, strings.Join(Reservations(), ", "))
	case c.Drop:
		return nil, errors.New("workflows cannot be combined with the mode drop, in which no job ends")
	case len(c.VirtualClusters) > 0:
		return nil, errors.New("workflows are not replayed together with virtual clusters")
	}
	return &flows{mode: c.Reservations, figures: newFlowCounts()}, nil
}

// reserves reports whether workflows reserve anything.
func (f *flows) reserves() bool { return f != nil && f.mode != ReservationsNone }

// workflowDriver is a replay as what moves workflows on, as the leader of a cluster does.
type workflowDriver struct{ r *replay }

// gather adds a row to the workflow that it is of.
func (d workflowDriver) gather(row *Row) error {
	r := d.r
	f, w := r.flows, row.Workflow
	if f == nil {
		return errors.New("it is of a workflow, and the replay states no way of reservations")
	}
	namespace := cmp.Or(row.Tenant, structs.DefaultNamespace)
	if f.open != nil && (f.open.ID != w.Name || f.open.Namespace != namespace) {
		if err := d.submit(); err != nil {
			return err
		}
	}
	if f.open == nil {
		if slices.ContainsFunc(f.alive, func(x *flow) bool { return x.run.ID == w.Name && x.run.Namespace == namespace }) {
			return fmt.Errorf("workflow %s: it has not ended; its rows must stand one after the other and arrive at once, and others need another name", w.Name)
		}
		f.open, f.rows = &structs.Workflow{
			ID: w.Name, Namespace: namespace, NodePool: structs.DefaultNodePool, Priority: priority(row), OnFailure: structs.OnFailureStop,
			Reserve: structs.WorkflowReserve{Rule: cmp.Or(w.Reserve, structs.ReserveMax)}, Lend: w.Lend,
		}, map[string]flowRow{}
		if f.mode != ReservationsLend {
			f.open.Lend = nil
		}
	}
	last := len(f.open.Stages)
	switch w.Stage {
	case last:
	case last + 1:
		f.open.Stages = append(f.open.Stages, &structs.WorkflowStage{Name: fmt.Sprintf("stage-%d", w.Stage)})
	default:
		return fmt.Errorf("workflow %s: stage %d comes after stage %d: rows must stand in the order of stages, none left out", w.Name, w.Stage, last)
	}
	stage := f.open.Stages[w.Stage-1]
	name := fmt.Sprintf("%d-%d", w.Stage, len(stage.Jobs)+1)
	if structs.ValidWorkflowName(row.Name) {
		name = row.Name + "-" + name
	}
	f.rows[name] = flowRow{row, r.number}
	stage.Jobs = append(stage.Jobs, &structs.WorkflowJob{Name: name, Job: &structs.Job{
		Namespace: namespace, NodePool: f.open.NodePool, ID: name, Name: name, Type: structs.JobTypeBatch, Priority: priority(row),
		Reclaim: row.Reclaim, TaskGroups: row.groups(),
	}})
	return nil
}

// submit runs the workflow of which all rows have come.
func (d workflowDriver) submit() error {
	r := d.r
	f := r.flows
	if f == nil || f.open == nil {
		return nil
	}
	run, err := structs.StartRun(f.open, 1, 0)
	if err != nil {
		return err
	}
	run.SubmitTime = r.now
	run.Posted = f.mode == ReservationsNone // its first stage waits for no reservation
	x := &flow{run: run, rows: f.rows, jobs: map[string]*job{}, changed: true, arrived: r.now, before: r.now}
	f.alive = append(f.alive, x)
	f.open, f.rows, f.fresh = nil, nil, true
	f.figures.workflows++
	f.figures.stages += int64(len(run.Stages))
	d.claim(x)
	return nil
}

// claim has the World see what a workflow has reserved.
func (d workflowDriver) claim(x *flow) {
	r := d.r
	if !r.flows.reserves() {
		return
	}
	edit := r.world.Edit()
	if c := x.run.Claim(); c != nil {
		scheduler.SetWorkflow(edit, c)
	} else {
		scheduler.DropWorkflow(edit, structs.WorkflowKey(x.run.Namespace, x.run.ID))
	}
	r.world = edit.World()
}

// moveWorkflows moves workflows on as the leader does: first stages, then reservations, until nothing is left to do now.
func (d workflowDriver) moveWorkflows() error {
	r := d.r
	if r.flows == nil {
		return nil
	}
	for again := true; again; {
		again = false
		for _, x := range slices.Clone(r.flows.alive) {
			if !x.changed {
				continue
			}
			x.changed = false
			if err := d.step(x); err != nil {
				return fmt.Errorf("workflow %s: %w", x.run.ID, err)
			}
		}
		if f := r.flows; f.reserves() && (f.fresh || f.release != r.queue.release) {
			f.fresh, f.release = false, r.queue.release
			var err error
			if again, err = d.reserveWorkflows(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stirred reports whether a job of a workflow began or ended since workflows were moved on.
func (f *flows) stirred() bool {
	return f != nil && slices.ContainsFunc(f.alive, func(x *flow) bool { return x.changed })
}

// step moves a workflow on as far as it can go now.
func (d workflowDriver) step(x *flow) error {
	r := d.r
	for {
		entry, _ := stages.Next(x.run, stages.Jobs{Progress: x.progress})
		if entry == nil {
			return nil
		}
		places, err := d.start(x, entry)
		if err == nil && places == nil {
			err = d.takeBackFor(x, entry)
		}
		if err != nil {
			return err
		}
		run, register, err := stages.Advance(x.run, entry, r.now)
		if err != nil {
			return err
		}
		x.run = run
		d.claim(x)
		if len(register) > 0 || !run.Alive() {
			r.queue.released() // more, or less, may be lent from now on
		}
		if len(register) > 0 {
			x.before, x.missing = r.now, len(register)
		}
		for _, spec := range register {
			d.register(x, spec)
		}
		for _, batch := range places {
			if err := d.place(x.jobs[batch.JobID], batch); err != nil {
				return err
			}
		}
		if !run.Alive() {
			r.flows.alive = slices.DeleteFunc(r.flows.alive, func(o *flow) bool { return o == x })
			r.flows.figures.ended(x, r.now)
		}
	}
}

// progress returns how far a job of the workflow is.
func (x *flow) progress(id string) stages.Progress {
	switch j := x.jobs[id]; {
	case j == nil:
		return stages.Stopped
	case j.ended == j.row.Count:
		return stages.Complete
	case len(j.runs) > 0:
		return stages.Running
	}
	return stages.Pending
}

// register lets a job of a stage wait.
func (d workflowDriver) register(x *flow, spec *structs.Job) {
	r := d.r
	from := x.rows[x.nameOf(spec.ID)]
	j := r.newJob(from.row, from.number, &flowJob{x, spec})
	x.jobs[spec.ID] = j
	r.queue.join(j)
}

// nameOf returns the name in the workflow of a job that it registers.
func (x *flow) nameOf(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// flowJob is a job that a workflow registers.
type flowJob struct {
	flow *flow
	spec *structs.Job
}

// takeBackFor takes back from those who borrow what the jobs that an entry registers need of the reservation, just before they are registered.
func (d workflowDriver) takeBackFor(x *flow, entry *structs.WorkflowAdvanceEntry) error {
	r := d.r
	if !r.flows.reserves() || !x.run.Posted {
		return nil
	}
	for i := range entry.Stages {
		m := &entry.Stages[i]
		if !m.Start {
			continue
		}
		start := scheduler.StartStage(r.world, structs.WorkflowKey(x.run.Namespace, x.run.ID), stages.JobsOf(x.run, m.Stage, nil), r.now)
		if len(start.Stops) == 0 {
			continue
		}
		to := x.reservation()
		to.Closed = true
		holds, err := d.commit(x, &structs.Plan{Priority: x.run.Workflow.Priority, Stop: start.Stops, Workflow: to})
		if err == nil && !holds {
			err = errors.New("what was to be taken back was refused")
		}
		if err != nil {
			return err
		}
		if err := d.leave(entry, m.Stage, start.Stops); err != nil {
			return err
		}
	}
	return nil
}

// reservation returns what a workflow has reserved, as plans state it.
func (x *flow) reservation() *structs.WorkflowReservation {
	r := x.run
	return &structs.WorkflowReservation{Namespace: r.Namespace, ID: r.ID, Run: r.Run, Parts: r.Parts, Licenses: r.Licenses, Posted: r.Posted, Missing: r.Missing}
}

// commit has a plan for a workflow judged. What holds is done in the World and is so in the run.
func (d workflowDriver) commit(x *flow, plan *structs.Plan) (holds bool, err error) {
	r := d.r
	plan.Namespace, plan.JobID = x.run.Namespace, x.run.ID
	edit := r.world.Edit()
	valid, refused, why := scheduler.Judge(edit, plan)
	if len(refused) > 0 {
		return false, fmt.Errorf("its plan is invalid: %s", why)
	}
	if valid.Workflow == nil {
		return false, nil
	}
	r.world = edit.World()
	to := valid.Workflow
	x.run = x.run.Copy()
	x.run.Parts, x.run.Licenses, x.run.Posted, x.run.Closed, x.run.Missing = to.Parts, to.Licenses, to.Posted, to.Closed, to.Missing
	return true, nil
}

// maxReserving bounds the workflows that wait for their reservation and are looked at in one round, as the leader does.
const maxReserving = 16

// reserveWorkflows reserves for the workflows that wait for it as far as it can be had now. It reports whether one of them got all.
func (d workflowDriver) reserveWorkflows() (posted bool, err error) {
	r := d.r
	bands := scheduler.WorkflowBands{Config: &r.config, Now: r.now} // traces have no system jobs
	for {
		list := r.flows.waiting()
		again, wait := false, 0
		for _, x := range list {
			c := stages.Choose(r.world, x.run, wait > 0, bands)
			if !c.Posted && !c.Never {
				if wait++; wait > maxReserving {
					break
				}
				if wait == 1 {
					if err := d.letGo(x.key()); err != nil {
						return false, err
					}
				}
			}
			to := stages.Reservation(x.run, c)
			if stages.Same(x.run, to) {
				continue
			}
			holds, err := d.commit(x, &structs.Plan{Priority: x.run.Workflow.Priority, Workflow: to, Stop: c.Stops, AllAtOnce: len(c.Stops) > 0})
			if err != nil {
				return false, err
			}
			for _, st := range c.Stops {
				if !holds {
					break
				}
				if err := r.takeBack(st); err != nil {
					return false, err
				}
			}
			if again = holds && to.Posted; again {
				x.changed, posted = true, true
				break // the others see what is left
			}
		}
		if !again {
			return posted, nil
		}
	}
}

// letGo has the workflows that wait keep nothing any more, but for the one of a key, which is the first of them that may fit.
func (d workflowDriver) letGo(key string) error {
	r := d.r
	for _, x := range r.flows.alive {
		if x.run.Posted || len(x.run.Parts) == 0 || x.key() == key {
			continue
		}
		to := x.reservation()
		to.Parts, to.Licenses = nil, nil
		if _, err := d.commit(x, &structs.Plan{Workflow: to}); err != nil {
			return err
		}
	}
	return nil
}

func (x *flow) key() string { return structs.WorkflowKey(x.run.Namespace, x.run.ID) }

// waiting returns the workflows that wait for their reservation, the highest rank first.
func (f *flows) waiting() (list []*flow) {
	for _, x := range f.alive {
		if x.run.State == structs.WorkflowPending && !stages.Reserved(x.run) {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *flow) int { return stages.Compare(a.run, b.run) })
	return list
}

// placedOf notes that all instances of a job of a workflow run.
func (d workflowDriver) placedOf(x *flow) {
	r := d.r
	if x.missing--; x.missing > 0 {
		return
	}
	if c := &r.flows.figures; x.began == 0 {
		x.began = r.now
		c.starts.add(r.now - x.arrived)
	} else {
		c.waits.add(r.now - x.before)
	}
}
