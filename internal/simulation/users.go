package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

var jobTypes = []string{structs.JobTypeService, structs.JobTypeBatch, structs.JobTypeSystem, structs.JobTypeSysBatch}

// jobNames is how many names users have for jobs: what is registered under one that is in use
// is an update.
const jobNames = 24

// users are those who register and stop jobs, drain nodes and change settings, at random, and
// know what was acknowledged to them.
type users struct {
	*sim
	jobs map[string]*vote // by name
}

// vote is what was acknowledged of a job.
type vote struct {
	index  uint64 // of its last registration
	purged bool   // somebody may have had it forgotten since
}

func newUsers(s *sim) *users { return &users{sim: s, jobs: map[string]*vote{}} }

func (u *users) start() { u.after(time.Second, "user", -1, u.act) }

// act does one thing.
func (u *users) act() {
	if u.quiet() {
		return
	}
	u.after(u.between(50*time.Millisecond, 400*time.Millisecond), "user", -1, u.act)
	if u.leader == nil || u.leader.over {
		return
	}
	if u.tenants != nil && u.IntN(8) == 0 {
		u.tenants.act()
		return
	}
	if u.workflows != nil && u.IntN(10) == 0 {
		u.workflows.act()
		return
	}
	switch n := u.IntN(100); {
	case n < 42:
		u.register(u.job(u.some()))
	case n < 45:
		u.redisconnect()
	case n < 60:
		u.stop()
	case n < 68:
		u.scale()
	case n < 75:
		u.stopAlloc()
	case n < 84:
		u.suspend()
	case n < 88:
		u.drain()
	case n < 92:
		u.eligibility()
	case n < 94:
		u.configure()
	case n < 95:
		u.tell("collect", u.call(wire.MethodSystemGC, &structs.GCRequest{}, &structs.WriteReply{}))
	case n < 96:
		u.reconcile()
	default:
		u.evaluate()
	}
}

// tell records what came of a call. What a user requests may be refused, but nothing must break.
func (u *users) tell(what string, err error) {
	if err != nil && structs.CodeOf(err) == structs.CodeInternal {
		u.fail("%s: %v", what, err)
	}
	u.notef(-1, "%s: %v", what, err)
}

func (u *users) register(job *structs.Job) {
	name, reply := job.ID, &structs.JobRegisterReply{}
	err := u.call(wire.MethodJobRegister, &structs.JobRegisterRequest{Job: job}, reply)
	u.tell("register "+job.Type+" "+name, err)
	if err != nil && structs.CodeOf(err) == structs.CodeBadRequest && u.tenants.has(job.Namespace) && !u.tenants.refused(job) {
		if old := u.leader.r.store.Snapshot().Job(nil, job.Namespace, name); old == nil || old.Type == job.Type {
			u.fail("register %s: %v", name, err)
		}
	}
	if err == nil {
		u.jobs[name] = &vote{index: reply.JobModifyIndex}
	}
}

// redisconnect changes what a job says of disconnected nodes, and nothing else.
func (u *users) redisconnect() {
	name := u.some()
	if old := u.leader.r.store.Snapshot().Job(nil, u.tenants.of(name), name); old != nil && !old.Stop {
		job := old.Copy()
		job.TaskGroups[0].Disconnect = u.disconnect()
		u.register(job)
	}
}

// some is a job that may be there.
func (u *users) some() string { return fmt.Sprintf("job-%d", u.IntN(jobNames)) }

func (u *users) stop() {
	name, purge := u.some(), u.IntN(4) == 0
	u.tell("stop "+name, u.call(wire.MethodJobDeregister, &structs.JobDeregisterRequest{
		JobID: name, Purge: purge, WriteRequest: structs.WriteRequest{Namespace: u.tenants.of(name)},
	}, &structs.JobRegisterReply{}))
}

func (u *users) scale() {
	name, count := u.some(), u.Int64N(7)
	u.tell("scale "+name, u.call(wire.MethodJobScale, &structs.JobScaleRequest{
		JobID: name, Target: map[string]string{"Group": "g"}, Count: &count,
		WriteRequest: structs.WriteRequest{Namespace: u.tenants.of(name)},
	}, &structs.JobRegisterReply{}))
}

func (u *users) evaluate() {
	name := u.some()
	u.tell("evaluate "+name, u.call(wire.MethodJobEvaluate, &structs.JobEvaluateRequest{
		JobID: name, ForceReschedule: u.IntN(2) == 0, WriteRequest: structs.WriteRequest{Namespace: u.tenants.of(name)},
	}, &structs.JobRegisterReply{}))
}

// alloc is one of those that run; nil: none does.
func (u *users) alloc(of func(*structs.Allocation) bool) *structs.Allocation {
	snap := u.leader.r.store.Snapshot()
	var all []*structs.Allocation
	for _, a := range snap.AllocsByNode(nil, one(u.sim, u.clients...).node.ID) {
		if !a.Terminal() && of(a) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return one(u.sim, all...)
}

func (u *users) stopAlloc() {
	if a := u.alloc(func(*structs.Allocation) bool { return true }); a != nil {
		u.tell("stop allocation "+a.Name, u.call(wire.MethodAllocStop, &structs.AllocStopRequest{AllocID: a.ID}, &structs.AllocStopReply{}))
	}
}

func (u *users) suspend() {
	resume := u.IntN(2) == 0
	a := u.alloc(func(a *structs.Allocation) bool { return a.Suspended() == resume })
	if a != nil {
		u.tell("suspend or resume "+a.Name, u.call(wire.MethodAllocSuspend, &structs.AllocSuspendRequest{AllocID: a.ID, Resume: resume}, &structs.AllocStopReply{}))
	}
}

func (u *users) drain() {
	c := one(u.sim, u.clients...)
	args := &structs.NodeDrainRequest{NodeID: c.node.ID, MarkEligible: true}
	if u.IntN(3) > 0 {
		args.DrainSpec = &structs.DrainSpec{Deadline: one(u.sim, -1, 0, 10*time.Second, time.Minute), IgnoreSystemJobs: u.IntN(3) == 0}
		u.after(u.between(5*time.Second, 40*time.Second), "end of the drain", c.id, func() { u.undrain(c) })
	}
	u.tell("drain "+c.node.Name, u.call(wire.MethodNodeDrain, args, &structs.NodeUpdateReply{}))
}

// undrain has a node take work again.
func (u *users) undrain(c *client) {
	err := u.call(wire.MethodNodeDrain, &structs.NodeDrainRequest{NodeID: c.node.ID, MarkEligible: true}, &structs.NodeUpdateReply{})
	u.tell("drain "+c.node.Name+" no more", err)
	if err != nil && structs.CodeOf(err) != structs.CodeNotFound {
		u.after(time.Second, "end of the drain", c.id, func() { u.undrain(c) })
	}
}

func (u *users) eligibility() {
	c := one(u.sim, u.clients...)
	set := func(to string) error {
		return u.call(wire.MethodNodeEligibility, &structs.NodeEligibilityRequest{NodeID: c.node.ID, Eligibility: to}, &structs.NodeUpdateReply{})
	}
	u.tell("close "+c.node.Name, set(structs.NodeIneligible))
	u.after(u.between(time.Second, 20*time.Second), "open a node", c.id, func() { u.tell("open "+c.node.Name, set(structs.NodeEligible)) })
}

func (u *users) configure() {
	u.tell("configure", u.call(wire.MethodSchedulerSet, &structs.SchedulerConfigRequest{Config: u.config()}, &structs.SchedulerSetReply{}))
}

// config draws settings of the scheduler.
func (u *users) config() structs.SchedulerConfiguration {
	c := structs.DefaultSchedulerConfiguration()
	c.PreemptionConfig = structs.PreemptionConfig{
		SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: u.IntN(2) == 0, BatchSchedulerEnabled: u.IntN(4) > 0, ServiceSchedulerEnabled: u.IntN(4) > 0,
	}
	c.Policy = one(u.sim, "", "", "binpack", "spread", "first-fit", "next-fit", "random", "least-fragmentation")
	c.ReservationAfter = one(u.sim, -1, 5*time.Second, time.Minute)
	c.ReservationTTL = one(u.sim, 20*time.Second, 2*time.Minute)
	c.KeepWhole = u.IntN(2) == 0
	limit, requeues := one(u.sim, 20*time.Second, time.Minute, time.Hour), one(u.sim, 0, 1, 3)
	c.Slots = &structs.SlotSettings{SuspendLimit: &limit, MaxRequeues: &requeues}
	c.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
	return c
}

func (u *users) reconcile() {
	reply := &structs.ReconcileReply{}
	u.tell("reconcile", u.call(wire.MethodReconcile, &structs.GCRequest{}, reply))
	if len(reply.Differences) > 0 {
		u.fail("what is derived was wrong: %v", reply.Differences)
	}
}

// job draws a job of a name.
func (u *users) job(name string) *structs.Job {
	j := &structs.Job{
		ID: name, Name: name, Region: structs.DefaultRegion, Namespace: u.tenants.of(name), Datacenters: []string{"*"},
		Type: structs.JobTypeService, Priority: one(u.sim, 20, 35, 50, 60, 80, 95), Reclaim: one(u.sim, "", structs.ReclaimRequeue, structs.ReclaimSuspend),
		Partial: one(u.sim, "", "", "preempt", "free", "none"), AllAtOnce: u.IntN(12) == 0,
		Meta: map[string]string{"draw": fmt.Sprint(u.IntN(3))},
	}
	switch n := u.IntN(100); { // a name keeps its type, mostly: the type of a job cannot be changed
	case n < 4:
		j.Type = one(u.sim, jobTypes...)
	default:
		j.Type = typeOf(name)
	}
	g := &structs.TaskGroup{Name: "g", Count: 1 + u.IntN(5), Tasks: []*structs.Task{u.task()}}
	j.TaskGroups = []*structs.TaskGroup{g}
	if u.IntN(4) == 0 {
		g.Networks = []*structs.NetworkResource{{Mode: "host", DynamicPorts: []structs.Port{{Label: "http"}}}}
		if u.IntN(3) == 0 {
			g.Networks[0].ReservedPorts = []structs.Port{{Label: "fixed", Value: 8000 + u.IntN(3)}}
		}
	}
	if u.IntN(8) == 0 {
		g.Constraints = []*structs.Constraint{{LTarget: "${meta.rack}", Operand: "=", RTarget: fmt.Sprintf("r%d", u.IntN(3))}}
	}
	u.tenants.demand(j)
	u.workflows.limit(j)
	if j.Type == structs.JobTypeSystem || j.Type == structs.JobTypeSysBatch {
		g.Count, j.AllAtOnce = 1, false
		if j.Type == structs.JobTypeSystem && j.Reclaim == structs.ReclaimSuspend {
			j.Reclaim = "" // it would be refused
		}
		return j
	}
	g.ReschedulePolicy = &structs.ReschedulePolicy{
		Delay: new(5 * time.Second), DelayFunction: new("constant"), Unlimited: new(true), MaxDelay: new(time.Hour),
		Attempts: new(0), Interval: new(time.Duration(0)),
	}
	if u.IntN(6) == 0 {
		g.Gang = &structs.Gang{Min: u.IntN(g.Count + 1), OnLoss: one(u.sim, structs.GangOnLossGang, structs.GangOnLossMember)}
		if u.IntN(3) == 0 {
			g.Topology = &structs.TopologyConstraint{Level: "rack", Required: u.IntN(2) == 0}
		}
	}
	if u.IntN(15) == 0 {
		g.Spreads = []*structs.Spread{{Attribute: "${meta.rack}", Weight: 50}}
	}
	if u.IntN(4) == 0 {
		g.Disconnect = u.disconnect()
	}
	if j.Type == structs.JobTypeService && u.IntN(2) == 0 {
		g.Update = &structs.UpdateStrategy{MaxParallel: new(1 + u.IntN(2)), HealthCheck: new(structs.HealthCheckTaskStates), MinHealthyTime: new(time.Second)}
	}
	return j
}

// disconnect draws what a group says of disconnected nodes.
func (u *users) disconnect() *structs.DisconnectStrategy {
	d := &structs.DisconnectStrategy{
		LostAfter: u.between(5*time.Second, time.Minute), Replace: u.IntN(3) > 0,
		Reconcile: one(u.sim, "", structs.ReconcileBestScore, structs.ReconcileKeepOriginal, structs.ReconcileKeepReplacement, structs.ReconcileLongestRunning),
	}
	if !d.Replace && u.IntN(2) == 0 {
		d.LostAfter = 0 // never replaced
	}
	return d
}

// typeOf is the type of the jobs of a name.
func typeOf(name string) string {
	switch n := name[len(name)-1]; {
	case n < '5':
		return structs.JobTypeService
	case n < '9':
		return structs.JobTypeBatch
	}
	if slices.Contains([]string{"job-9", "job-19"}, name) {
		return structs.JobTypeSystem
	}
	return structs.JobTypeSysBatch
}

// task draws what an instance wants.
func (u *users) task() *structs.Task {
	t := &structs.Task{
		Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1h"}, Env: map[string]string{"draw": fmt.Sprint(u.IntN(3))},
		Resources: &structs.Resources{CPU: one(u.sim, 100, 100, 500, 1000, 4000), MemoryMB: one(u.sim, 64, 500, 2000, 8000)},
	}
	if u.IntN(6) == 0 {
		t.Resources.CPU, t.Resources.Cores = 0, 1+u.IntN(4)
	}
	if u.IntN(4) == 0 {
		d := &structs.RequestedDevice{Name: "nvidia/gpu", Count: one(u.sim, 1, 1, 2, 4), Share: structs.DeviceShareWhole}
		if u.IntN(3) == 0 {
			d.Count, d.Share = 1, one(u.sim, 250, 400, 600)
		} else if u.IntN(4) == 0 {
			d.Topology = &structs.TopologyConstraint{Level: structs.LevelPCIe, Required: u.IntN(2) == 0}
		}
		t.Resources.Devices = []*structs.RequestedDevice{d}
	}
	return t
}

// names are the jobs of which something was acknowledged.
func (u *users) names() []string { return slices.Sorted(maps.Keys(u.jobs)) }
