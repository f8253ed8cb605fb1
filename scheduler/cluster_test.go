package scheduler_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// tester is what *testing.T, *testing.B and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// cluster is a small stand-in for the state: it keeps nodes, one job and its
// allocations, and commits plans as the applier would.
type cluster struct {
	prepared *scheduler.Prepared // by which every second decision goes
	t        tester
	w        *scheduler.World
	nodes    map[string]*structs.Node
	allocs   map[string]*structs.Allocation
	job      *structs.Job
	now      time.Time
	config   structs.SchedulerConfiguration
	index    uint64
	ids      int
	seed     uint64
	// typical is what the policy least-fragmentation keeps room for.
	typical *scheduler.Typical
	// last is the newest plan, and its evaluation's record.
	last *structs.Plan
	done *structs.Evaluation
	// entitledOnly: evaluations are decided at the entitled positions of their requests.
	entitledOnly bool
	lendRound    int
	// projects are those that there are, by name; pending is how many of their instances are, nil: not known.
	projects map[string]*structs.ProjectNow
	pending  func(project string) int
	took     map[string][]time.Duration // how long users' latest completed runs took
	// workflows are the reservations of workflows, by key.
	workflows map[string]*structs.WorkflowClaim
	// licenses are how many there are of each.
	licenses map[string]int64
}

func newCluster(t tester) *cluster {
	return &cluster{
		t: t, w: scheduler.NewWorld(), nodes: map[string]*structs.Node{}, allocs: map[string]*structs.Allocation{},
		now: time.Unix(1_700_000_000, 0).UTC(), config: structs.DefaultSchedulerConfiguration(), seed: 1,
	}
}

// node adds a ready node.
func (c *cluster) node(id string, change ...func(*structs.Node)) *structs.Node {
	n := schedtest.Node(id, change...)
	c.setNode(n)
	return n
}

func (c *cluster) setNode(n *structs.Node) {
	c.index++
	n.ModifyIndex = c.index
	c.nodes[n.ID] = n
	e := c.w.Edit()
	e.UpsertNode(n)
	c.lose(e)
}

// lose takes an edit in, and has what lost its claim by it run on without.
func (c *cluster) lose(e *scheduler.Edit) {
	for _, id := range e.LostClaims() {
		terms := c.allocs[id].AllocatedResources.Shared.Terms.Opportunistic()
		c.allocs[id].AllocatedResources.Shared.Terms = &terms
	}
	for _, key := range scheduler.LostReservations(e) {
		c.workflows[key] = scheduler.WorkflowClaimOf(e, key)
	}
	c.w = e.World()
}

func (c *cluster) changeNode(id string, f func(*structs.Node)) {
	n := c.nodes[id].Copy()
	f(n)
	c.setNode(n)
}

func down(n *structs.Node) { n.Status = structs.NodeStatusDown }

func up(n *structs.Node) { n.Status = structs.NodeStatusReady }

// register stores a new version of the job.
func (c *cluster) register(j *structs.Job) {
	if c.job != nil {
		j.Version, j.CreateIndex = c.job.Version+1, c.job.CreateIndex
	}
	c.index++
	j.ModifyIndex, j.JobModifyIndex = c.index, c.index
	c.job = j
}

func (c *cluster) update(f func(*structs.Job)) {
	j := c.job.Copy()
	f(j)
	j.Canonicalize()
	c.register(j)
}

func (c *cluster) sorted() []*structs.Allocation {
	out := make([]*structs.Allocation, 0, len(c.allocs))
	for _, a := range c.allocs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *structs.Allocation) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (c *cluster) sortedNodes() (out []*structs.Node) {
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		out = append(out, c.nodes[id])
	}
	return out
}

// own are the job's allocations: others may run beside them.
func (c *cluster) own() []*structs.Allocation {
	return slices.DeleteFunc(c.sorted(), func(a *structs.Allocation) bool { return c.job != nil && a.JobID != c.job.ID })
}

func (c *cluster) input() scheduler.Input { return c.inputOf(c.own()) }

// inputOf is the input with these as the job's allocations.
func (c *cluster) inputOf(own []*structs.Allocation) scheduler.Input {
	ids := c.ids
	return scheduler.Input{
		Job: c.job, Allocs: own, Config: c.config, Now: c.now, Seed: c.seed, Annotate: true, SnapshotIndex: c.index,
		Typical: c.typical, EntitledOnly: c.entitledOnly, LendRound: c.lendRound, Pending: c.pending, UserRuns: func(user string) []time.Duration { return c.took[user] },
		NewID: func() string { ids++; return fmt.Sprintf("id-%06d", ids) },
	}
}

func (c *cluster) newEval() *structs.Evaluation {
	c.ids += 100
	return &structs.Evaluation{
		ID: fmt.Sprintf("eval-%06d", c.ids), Namespace: "default", Priority: 50, JobID: "j", Status: structs.EvalStatusPending,
		TriggeredBy: structs.EvalTriggerJobRegister, Type: structs.JobTypeService,
	}
}

// eval decides one new evaluation and commits its plan.
func (c *cluster) eval() *structs.Plan { c.t.Helper(); return c.evaluate(c.newEval()) }

func (c *cluster) evaluate(ev *structs.Evaluation) *structs.Plan {
	c.t.Helper()
	plan, err := scheduler.Schedule(c.w, ev, c.input())
	if err != nil {
		c.t.Fatalf("schedule: %v", err)
	}
	in := c.input()
	if in.Prepared = c.prepared; c.prepared == nil {
		c.prepared = scheduler.NewPrepared()
		in.Prepared = c.prepared
	}
	again, err := scheduler.Schedule(c.w, ev, in)
	if err != nil || !bytes.Equal(asJSON(c.t, plan), asJSON(c.t, again)) {
		c.t.Fatalf("the same input gave another plan (%v):\n%s\n%s", err, asJSON(c.t, plan), asJSON(c.t, again))
	}
	e := c.w.Edit()
	reservations, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		c.t.Fatalf("the World that a plan was made on refuses it: %v, %s", refused, why)
	}
	if len(reservations.Place) != len(plan.Place) || len(reservations.Stop) != len(plan.Stop) || len(reservations.Evals) != len(plan.Evals) {
		c.t.Fatalf("not all of the plan holds")
	}
	judged := e.World()
	c.commit(reservations)
	if diff := judged.Diff(c.w); diff != nil {
		c.t.Fatalf("judging and committing differ: %v", diff)
	}
	c.last, c.done = plan, plan.Evals[0]
	c.checkWorld()
	return plan
}

func asJSON(t tester, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// commit applies what holds of a plan, as the state would.
func (c *cluster) commit(p *structs.JudgedPlan) {
	c.index++
	e := c.w.Edit()
	set := func(a *structs.Allocation) {
		a.ModifyIndex = c.index
		c.allocs[a.ID] = a
		e.UpsertAlloc(a)
	}
	for _, s := range p.Stop {
		a := *c.allocs[s.AllocID]
		if !s.KeepRunning {
			a.DesiredStatus, a.DesiredDescription, a.SuspendedAt = s.DesiredStatus, s.DesiredDescription, s.SuspendedAt
			if s.RequeueReason != "" && !a.ClientTerminal() {
				a.Requeues, a.RequeueReason = a.Requeues+1, s.RequeueReason
			}
		}
		if s.ClientStatus != "" {
			a.ClientStatus = s.ClientStatus
		}
		if s.FollowupEvalID != "" {
			a.FollowupEvalID = s.FollowupEvalID
		}
		set(&a)
	}
	for _, u := range p.Update {
		a := *c.allocs[u.AllocID]
		if u.ClassTo != "" {
			terms := a.AllocatedResources.Shared.Terms.Opportunistic()
			a.AllocatedResources = a.AllocatedResources.Copy()
			a.AllocatedResources.Shared.Terms = &terms
			set(&a)
			continue
		}
		a.JobVersion, a.Job = u.JobVersion, c.job
		if u.Resources != nil {
			a.AllocatedResources = u.Resources
		}
		if u.Resume {
			a.DesiredStatus, a.SuspendedAt = structs.AllocDesiredRun, 0
		}
		set(&a)
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			a.Job, a.CreateIndex = c.job, c.index
			if prev := c.allocs[a.PreviousAllocation]; prev != nil {
				old := *prev
				old.NextAllocation = a.ID
				set(&old)
			}
			set(a)
		}
	}
	for _, id := range p.Unreserve {
		e.Unreserve(id)
	}
	for _, r := range p.Reserve {
		e.Reserve(r)
	}
	c.w = e.World()
}

// client changes allocations as their client would.
func (c *cluster) client(pick func(*structs.Allocation) bool, f func(*structs.Allocation)) (n int) {
	e := c.w.Edit()
	for _, a := range c.sorted() {
		if pick(a) {
			b := *a
			f(&b)
			c.index++
			b.ModifyIndex = c.index
			c.allocs[b.ID] = &b
			e.UpsertAlloc(&b)
			n++
		}
	}
	c.w = e.World()
	return n
}

func (c *cluster) runAll() {
	c.client(func(a *structs.Allocation) bool {
		return !a.Terminal() && c.nodes[a.NodeID].Status == structs.NodeStatusReady
	}, run)
	c.client((*structs.Allocation).ServerTerminal, func(a *structs.Allocation) {
		if !a.ClientTerminal() {
			a.ClientStatus = structs.AllocClientComplete
		}
	})
}

func run(a *structs.Allocation) { a.ClientStatus = structs.AllocClientRunning }

func healthy(a *structs.Allocation) {
	run(a)
	a.DeploymentStatus = &structs.AllocDeploymentStatus{Healthy: new(true)}
}

func (c *cluster) ended(failed bool) func(*structs.Allocation) {
	at := c.now
	return func(a *structs.Allocation) {
		a.ClientStatus = structs.AllocClientComplete
		if failed {
			a.ClientStatus = structs.AllocClientFailed
		}
		a.TaskStates = map[string]*structs.TaskState{"t": {State: structs.TaskStateDead, Failed: failed, FinishedAt: at}}
	}
}

func isLive(a *structs.Allocation) bool { return !a.Terminal() }

// liveOn lists the nodes of live allocations, with how many each has.
func (c *cluster) liveOn() map[string]int {
	out := map[string]int{}
	for _, a := range c.allocs {
		if isLive(a) {
			out[a.NodeID]++
		}
	}
	return out
}

func (c *cluster) live() (n int) {
	for _, k := range c.liveOn() {
		n += k
	}
	return n
}

func (c *cluster) wantLive(n int) {
	c.t.Helper()
	if got := c.live(); got != n {
		c.t.Fatalf("%d live allocations, want %d", got, n)
	}
}

func (c *cluster) wantPlan(place, stop, update int) {
	c.t.Helper()
	p, s := placed(c.last), 0
	for _, st := range c.last.Stop {
		if !st.KeepRunning {
			s++
		}
	}
	if p != place || s != stop || len(c.last.Update) != update {
		c.t.Fatalf("the plan places %d, stops %d, updates %d; want %d, %d, %d", p, s, len(c.last.Update), place, stop, update)
	}
}

func placed(p *structs.Plan) (n int) {
	for _, b := range p.Place {
		n += len(b.Instances)
	}
	return n
}

// checkWorld compares the World with one rebuilt from the tables, and both with
// a count by hand.
func (c *cluster) checkWorld() {
	c.t.Helper()
	if diff := c.w.Diff(c.rebuilt()); diff != nil {
		c.t.Fatalf("the World differs from one rebuilt: %v", diff)
	}
	if err := overcommitted(c.nodes, c.sorted()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) rebuilt() *scheduler.World {
	e := scheduler.NewWorld().Edit()
	e.Configure(&c.config)
	owned := map[string][]world.Quota{}
	for _, name := range c.w.Owners() {
		owned[name] = c.w.Quotas(name)
	}
	if len(owned) > 0 { // what is bound is safe beside all nodes
		for _, n := range c.nodes {
			e.UpsertNode(n)
		}
	}
	e.RestoreQuotas(owned)
	for name, count := range c.licenses {
		scheduler.SetLicense(e, name, count)
	}
	for _, a := range c.allocs {
		e.UpsertAlloc(a)
	}
	for _, n := range c.nodes {
		e.UpsertNode(n)
	}
	for _, wf := range c.workflows {
		scheduler.SetWorkflow(e, wf)
	}
	e.RetryPins()
	var projects []*structs.ProjectNow
	for _, name := range slices.Sorted(maps.Keys(c.projects)) {
		projects = append(projects, c.projects[name])
	}
	scheduler.RestoreProjects(e, projects)
	for _, h := range world.Reservations(c.w).All { // no table has them
		e.Reserve(&structs.Reservation{
			NodeID: h.NodeID, Namespace: h.Namespace, JobID: h.Job, Group: h.Group, CPU: h.Amount.CPU, MemoryMB: h.Amount.MemoryMB,
			DiskMB: h.Amount.DiskMB, Cores: h.Cores, Devices: h.Devices, DueAt: h.Due, ExpiresAt: h.Expires,
		})
	}
	return e.World()
}

// overcommitted is the dumb second opinion: it adds up by hand, of full
// allocations, and names the first node that has given too much or one thing twice.
func overcommitted(nodes map[string]*structs.Node, allocs []*structs.Allocation) error {
	type sum struct{ cpu, mem, disk int64 }
	sums, seen, shares := map[string]sum{}, map[string]string{}, map[string]int{}
	for _, a := range allocs {
		if a.Terminal() {
			continue
		}
		r := a.AllocatedResources
		s := sums[a.NodeID]
		s.disk += r.Shared.DiskMB
		var names []string
		if a.Suspended() { // memory and disk are all that it holds
			for _, t := range r.Tasks {
				s.mem += t.Memory.MemoryMB
			}
			sums[a.NodeID] = s
			continue
		}
		for _, p := range r.Shared.Ports {
			names = append(names, fmt.Sprint("port ", p.Value))
		}
		for _, t := range r.Tasks {
			s.cpu += t.Cpu.CpuShares
			s.mem += t.Memory.MemoryMB
			for _, core := range t.Cpu.ReservedCores {
				names = append(names, fmt.Sprint("core ", core))
			}
			for _, d := range t.Devices {
				for _, id := range d.DeviceIDs {
					key := a.NodeID + " device " + id
					if shares[key] += cmp.Or(d.Share, 1000); shares[key] > 1000 {
						return fmt.Errorf("%s is given more than once, at last to %s", key, a.ID)
					}
				}
			}
		}
		for _, name := range names {
			key := a.NodeID + ": " + name
			if other, taken := seen[key]; taken {
				return fmt.Errorf("%s is given to %s and %s", key, other, a.ID)
			}
			seen[key] = a.ID
		}
		sums[a.NodeID] = s
	}
	for id, s := range sums {
		n := nodes[id]
		if n == nil {
			continue
		}
		has := n.NodeResources
		if s.cpu > has.Cpu.CpuShares || s.mem > has.Memory.MemoryMB || s.disk > has.Disk.DiskMB {
			return fmt.Errorf("node %s is over-committed: %+v", id, s)
		}
	}
	return nil
}
