package state

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// input is what the scheduler decides an evaluation with, as a worker's.
func (m *tenantMachine) input() *InputOptions {
	return &InputOptions{Now: later(m.hour), Seed: m.index, NewID: m.id}
}

// gpuJob is a job of so many instances with so many GPUs each.
func (m *tenantMachine) gpuJob(namespace, id string, layout *gpuLayout, count, gpus int) *structs.Job {
	return &structs.Job{
		ID: id, Name: id, Namespace: namespace, Type: structs.JobTypeBatch, Priority: 50, NodePool: structs.NodePoolDefault, Datacenters: []string{"*"},
		TaskGroups: []*structs.TaskGroup{{
			Name: "web", Count: count, EphemeralDisk: &structs.EphemeralDisk{SizeMB: 10},
			Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{
				CPU: 10, MemoryMB: 10, Devices: []*structs.RequestedDevice{{Name: "nvidia/gpu/" + layout.model, Count: gpus}},
			}}},
		}},
	}
}

// submit registers a job and has it decided.
func (m *tenantMachine) submit() string {
	j := m.newJob()
	m.must(&structs.JobRegisterEntry{Job: j, Time: m.now()})
	return fmt.Sprintf("submit %s of %s (%s, class %q, %d × %d, gang %v): %s", j.ID, j.Namespace, j.Type, j.Class, j.TaskGroups[0].Count,
		j.TaskGroups[0].Tasks[0].Resources.Devices[0].Count, j.TaskGroups[0].Gang != nil, m.evaluate(j))
}

func (m *tenantMachine) newJob() *structs.Job {
	m.jobs++
	layout := m.layouts[m.below(len(m.layouts))]
	namespace := []string{"a", "b", "c", "d"}[m.below(4)]
	gpus := 1 + m.below(layout.devices())
	if m.below(2) == 0 {
		namespace, layout, gpus = m.entitled(namespace, layout, gpus)
	}
	j := m.gpuJob(namespace, fmt.Sprint("j", m.jobs), layout, 1+m.below(3), gpus)
	j.Priority = 1 + m.below(100)
	j.Class = []string{"", "", structs.ClassGuaranteed, structs.ClassOpportunistic}[m.below(4)]
	if v := m.row(namespace); j.Class == structs.ClassGuaranteed && (v == nil || len(v.Claims) == 0) {
		j.Class = "" // it would be refused
	}
	switch m.below(8) {
	case 0:
		j.Type, j.Class = structs.JobTypeSystem, ""
	case 1, 2:
		j.TaskGroups[0].Gang = &structs.Gang{Min: m.below(j.TaskGroups[0].Count + 1)}
	}
	j.Canonicalize()
	return j
}

// entitled draws a job's namespace, layout and devices of what is free of what somebody owns; it returns its arguments if nothing is.
func (m *tenantMachine) entitled(namespace string, layout *gpuLayout, gpus int) (string, *gpuLayout, int) {
	type room struct {
		owner  string
		layout *gpuLayout
		most   int
	}
	var list []room
	for _, c := range newOracles(m.store.Snapshot(), m.layouts) {
		doomed, _ := c.doomed()
		for _, owner := range machineOwners {
			if rooms := c.rooms(owner, doomed); len(rooms) > 0 {
				list = append(list, room{owner, c.layout, slices.Max(rooms)})
			}
		}
	}
	if len(list) == 0 {
		return namespace, layout, gpus
	}
	r := list[m.below(len(list))]
	return r.owner, r.layout, 1 + m.below(r.most)
}

// evaluate decides an evaluation of a job on the state as it is, and commits what was decided.
func (m *tenantMachine) evaluate(j *structs.Job) string {
	p, text := m.decide(j)
	if p != nil {
		m.commit(p)
	}
	return text
}

// decide returns the judged plan of an evaluation of a job.
func (m *tenantMachine) decide(j *structs.Job) (*structs.JudgedPlan, string) {
	snap := m.store.Snapshot()
	e := &structs.Evaluation{
		ID: m.id(), Namespace: j.Namespace, JobID: j.ID, Priority: j.Priority, Type: j.Type, TriggeredBy: structs.EvalTriggerJobRegister,
		Status: structs.EvalStatusPending, CreateTime: m.now(), ModifyTime: m.now(),
	}
	plan, err := scheduler.Schedule(snap.World(), e, snap.EvalInput(e, m.input()))
	if err != nil {
		m.failed("%s is not decided: %v", j.ID, err)
	}
	return m.judge(snap, plan), planText(plan)
}

// judge checks a plan as the applier does: on the state that it was made of, all of it must hold.
func (m *tenantMachine) judge(snap *Snapshot, plan *structs.Plan) *structs.JudgedPlan {
	m.checkPlan(snap, plan)
	p, refused, why := scheduler.Judge(snap.World().Edit(), plan)
	if len(refused) > 0 || len(p.Place) != len(plan.Place) || len(p.Update) != len(plan.Update) {
		m.failed("the plan of %s is refused on %v: %s", plan.JobID, refused, why)
	}
	p.Time, p.JudgedAt = m.now(), snap.Index()
	return p
}

func (m *tenantMachine) commit(p *structs.JudgedPlan) {
	if m.fault.plan != nil {
		m.fault.plan(m, p)
	}
	m.must(&structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

func planText(p *structs.Plan) (text string) {
	for _, b := range p.Place {
		terms := b.Resources.Shared.Terms
		for _, in := range b.Instances {
			text += fmt.Sprintf("[%s %s %s %d]", b.Nodes[in.Node].ID, terms.Claim, terms.CellLevel, terms.CellSize)
			for _, d := range in.Devices["t"] {
				text += fmt.Sprint(d.DeviceIDs)
			}
		}
	}
	return fmt.Sprintf("%s, %d stopped, %d updated", text, len(p.Stop), len(p.Update))
}

// end has a client report that some allocations have ended.
func (m *tenantMachine) end() string {
	var ids []string
	for a := range m.store.Snapshot().Allocs(nil, "*", "", false) {
		if !a.Terminal() {
			ids = append(ids, a.ID)
		}
	}
	e := &structs.AllocClientEntry{Time: m.now()}
	for range min(len(ids), 1+m.below(3)) {
		at := m.below(len(ids))
		e.Updates = append(e.Updates, &structs.AllocClientUpdate{ID: ids[at], ClientStatus: structs.AllocClientComplete, ModifyTime: m.now()})
		ids = slices.Delete(ids, at, at+1)
	}
	if len(e.Updates) == 0 {
		return "nothing"
	}
	m.must(e)
	m.count("ended", len(e.Updates))
	return fmt.Sprintf("end of %d", len(e.Updates))
}

// registered returns the jobs that are registered and not stopped.
func (m *tenantMachine) registered() (list []*structs.Job) {
	for j := range m.store.Snapshot().Jobs(nil, "*", "", false) {
		if !j.Stopped() {
			list = append(list, j)
		}
	}
	return list
}

func (m *tenantMachine) stopJob() string {
	list := m.registered()
	if len(list) == 0 {
		return "nothing"
	}
	j := list[m.below(len(list))]
	m.must(&structs.JobDeregisterEntry{Namespace: j.Namespace, JobID: j.ID, Time: m.now()})
	return "stop " + j.ID + ": " + m.evaluate(j)
}

// again evaluates some job again, as when room came free or a node was lost.
func (m *tenantMachine) again() string {
	list := m.registered()
	if len(list) == 0 {
		return "nothing"
	}
	j := list[m.below(len(list))]
	return "again " + j.ID + ": " + m.evaluate(j)
}

// raise raises what may be raised, as the pass over the queue does.
func (m *tenantMachine) raise() (did string) {
	for _, owner := range m.store.Snapshot().World().Owners() {
		snap := m.store.Snapshot()
		allowed := func(id structs.NamespacedID, alloc string) bool {
			j := snap.Job(nil, id.Namespace, id.ID)
			return j != nil && !j.Stopped() && !j.PerNode() && j.Class != structs.ClassOpportunistic
		}
		for _, r := range scheduler.DueRaises(snap.World(), owner, allowed) {
			snap = m.store.Snapshot()
			e := &structs.Evaluation{
				ID: m.id(), Namespace: r.Job.Namespace, JobID: r.Job.ID, Priority: 50, Type: structs.JobTypeBatch, TriggeredBy: structs.EvalTriggerVirtualCluster,
				Status: structs.EvalStatusPending, CreateTime: m.now(), ModifyTime: m.now(),
			}
			plan, err := scheduler.NewPass(snap.World()).DecideRaise(e, snap.EvalInput(e, m.input()), r.IDs)
			if err != nil {
				m.failed("raise %v: %v", r, err)
			}
			m.count("raised", len(plan.Update))
			m.commit(m.judge(snap, plan))
			did += fmt.Sprintf(" %v", r)
		}
	}
	return "raise" + did
}

// commitLate commits a plan after what is owned, or what a node is, has changed since it was judged.
func (m *tenantMachine) commitLate() string {
	j := m.newJob()
	m.must(&structs.JobRegisterEntry{Job: j, Time: m.now()})
	p, text := m.decide(j)
	between := []func() string{m.edit, m.advance, m.end, m.changeNode}[m.below(4)]()
	m.commit(p)
	m.count("committed late", 1)
	return fmt.Sprintf("submit %s of %s, class %q: %s, but first %s", j.ID, j.Namespace, j.Class, text, between)
}
