package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/broker"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// journal is a Raft of one that a watcher reads: entries go through their encoding into a
// real state, one after the other.
type journal struct {
	store  *state.Store
	writer *state.Writer
	mu     sync.Mutex
	index  uint64
	delay  time.Duration                   // that a commit of plans takes
	watch  func(index uint64, payload any) // before the entry is applied
	after  func(index uint64)
}

func newJournal() *journal {
	j := &journal{index: 10}
	j.store, j.writer = state.New(state.Options{})
	return j
}

func (j *journal) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	entry, err := fsm.Encode(t, payload)
	if err != nil {
		return 0, err
	}
	if _, payload, err = fsm.Decode(entry); err != nil {
		return 0, err
	}
	if t == structs.LogPlanApply {
		time.Sleep(j.delay)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.index++
	if j.watch != nil {
		j.watch(j.index, payload)
	}
	err = j.writer.Apply(j.index, t, payload)
	if j.after != nil {
		j.after(j.index)
	}
	return j.index, err
}

func (j *journal) must(t testing.TB, typ structs.LogType, payload any) {
	t.Helper()
	if _, err := j.Apply(t.Context(), typ, payload); err != nil {
		t.Errorf("apply %d: %v", typ, err)
	}
}

// ids makes IDs of the form that IDs have.
type ids struct{ n atomic.Int64 }

func (i *ids) next() string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i.n.Add(1)) }

// cluster is a leader with workers, without network and disk.
type cluster struct {
	*journal
	ids
	broker *broker.Broker
	plans  *plan.Applier
	nacked sync.Map // evaluations that were given back: they rest
}

func newCluster(gated bool) *cluster {
	c := &cluster{journal: newJournal()}
	c.broker = broker.New(broker.Options{NewID: c.next, HoldLimit: time.Hour}, c, c.store.LatestIndex)
	opts := plan.Options{}
	if gated {
		opts.Gate = c.broker
	}
	c.plans = plan.New(opts, c.store, c, c.broker)
	return c
}

// run runs the leader's parts and so many workers; the function that it gives stops them.
func (c *cluster) run(ctx context.Context, workers int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.broker.Run(ctx, c.store) })
	wg.Go(func() { c.plans.Run(ctx) })
	for errors.Is(c.reachable(ctx), structs.ErrNoLeader) {
		time.Sleep(time.Millisecond)
	}
	wg.Go(func() {
		worker.NewPass(worker.PassOptions{NewID: c.next}, c.broker, c.plans, c.store).Run(ctx)
	})
	foresight := worker.NewForesight()
	for range workers {
		w := worker.New(worker.Options{
			Schedulers: []string{structs.JobTypeService}, NewID: c.next, Foresight: foresight, Backoff: time.Millisecond,
		}, c, c.store)
		wg.Go(func() { w.Run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// reachable is structs.ErrNoLeader until the leader's parts run.
func (c *cluster) reachable(ctx context.Context) error {
	if _, _, _, err := c.broker.Dequeue(ctx, nil, time.Nanosecond); err != nil {
		return err
	}
	_, err := c.plans.Submit(ctx, &structs.Plan{EvalID: "nobody's"})
	return err
}

func (c *cluster) Dequeue(ctx context.Context, kinds []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	e, token, index, err := c.broker.Dequeue(ctx, kinds, timeout)
	return &structs.EvalDequeueReply{Eval: e, Token: token, WaitIndex: index}, err
}

func (c *cluster) Ack(_ context.Context, id, token string) error { return c.broker.Ack(id, token) }

func (c *cluster) Nack(_ context.Context, id, token string) error {
	c.nacked.Store(id, true)
	return c.broker.Nack(id, token)
}

func (c *cluster) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	return c.plans.Submit(ctx, p)
}

func (c *cluster) Update(ctx context.Context, _, _ string, evals []*structs.Evaluation) error {
	_, err := c.Apply(ctx, structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: evals, Time: time.Now().UnixNano()})
	return err
}

func (c *cluster) node(t testing.TB, id, pool string, cpu int64) {
	n := &structs.Node{
		ID: id, SecretID: "s", Name: id, Datacenter: "dc1", NodePool: pool, Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{"kernel.name": "linux"},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu: structs.NodeCpuResources{CpuShares: cpu, TotalCpuCores: 4}, Memory: structs.NodeMemoryResources{MemoryMB: cpu},
			Disk: structs.NodeDiskResources{DiskMB: 1 << 30}, MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
	n.ComputeClass()
	c.must(t, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano()})
}

// job is a job of one group.
func job(id, pool string, priority, count, cpu, memory int) *structs.Job {
	j := &structs.Job{ID: id, Type: structs.JobTypeService, NodePool: pool, Priority: priority, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: count, EphemeralDisk: &structs.EphemeralDisk{},
		Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: cpu, MemoryMB: memory}}},
	}}}
	j.Canonicalize()
	return j
}

func (c *cluster) eval(j *structs.Job, trigger string) *structs.Evaluation {
	return &structs.Evaluation{
		ID: c.next(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, Status: structs.EvalStatusPending,
		TriggeredBy: trigger, CreateTime: time.Now().UnixNano(),
	}
}

func (c *cluster) register(t testing.TB, j *structs.Job) *structs.Evaluation {
	e := c.eval(j, structs.EvalTriggerJobRegister)
	c.must(t, structs.LogJobRegister, &structs.JobRegisterEntry{Job: j, Eval: e, Time: time.Now().UnixNano()})
	return e
}

func (c *cluster) deregister(t testing.TB, j *structs.Job) {
	c.must(t, structs.LogJobDeregister, &structs.JobDeregisterEntry{
		Namespace: j.Namespace, JobID: j.ID, Eval: c.eval(j, structs.EvalTriggerJobDeregister), Time: time.Now().UnixNano(),
	})
}

// watcher looks at every entry of the log: nothing may be placed on a node while an ask
// that goes before it, and waited in the state that the plan was judged on, fits there.
// It knows what fits by adding up, not by the scheduler.
type watcher struct {
	*cluster
	history map[uint64]*state.Snapshot
	// chain is what was committed since the state of base.
	base    uint64
	used    map[string][2]int64          // by node: CPU and memory
	chain   map[structs.NamespacedID]int // instances placed since base, less those stopped
	plans   []committed                  // all, in order
	looked  int                          // placements that something went before
	waiting int
	broken  []string
}

type committed struct {
	index uint64
	plan  *structs.JudgedPlan
}

func (c *cluster) watched() *watcher {
	w := &watcher{cluster: c, history: map[uint64]*state.Snapshot{}}
	c.after = func(index uint64) { w.history[index] = c.store.Snapshot() }
	c.watch = func(index uint64, payload any) {
		if entry, ok := payload.(*structs.PlanCommit); ok {
			for _, p := range entry.Plans {
				w.see(p)
				w.plans = append(w.plans, committed{index, p})
			}
		}
	}
	return w
}

// volume is what an instance of a job takes.
func volume(j *structs.Job) [2]int64 {
	r := j.TaskGroups[0].Tasks[0].Resources
	return [2]int64{int64(r.CPU), int64(r.MemoryMB)}
}

// rebase begins with the state of another index and does what was committed since.
func (w *watcher) rebase(base uint64) {
	w.base, w.used, w.chain = base, map[string][2]int64{}, map[structs.NamespacedID]int{}
	snap := w.history[base]
	for n := range snap.Nodes(nil, "", false) {
		for _, a := range snap.AllocsByNode(nil, n.ID) {
			if !a.Terminal() {
				w.use(n.ID, a, 1)
			}
		}
	}
	for _, c := range w.plans {
		if c.index > base {
			w.do(c.plan)
		}
	}
}

func (w *watcher) use(node string, a *structs.Allocation, by int64) {
	u := w.used[node]
	cpu, memory, _, _ := a.AllocatedResources.Total()
	w.used[node] = [2]int64{u[0] + by*cpu, u[1] + by*memory}
}

// do does what a plan does.
func (w *watcher) do(p *structs.JudgedPlan) {
	for _, s := range p.Stop {
		if a := w.store.Snapshot().Alloc(nil, s.AllocID); a != nil && w.history[w.base].Alloc(nil, s.AllocID) != nil &&
			!w.history[w.base].Alloc(nil, s.AllocID).Terminal() {
			w.use(a.NodeID, a, -1)
			w.chain[structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}]--
		}
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			w.use(a.NodeID, a, 1)
			w.chain[structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}]++
		}
	}
}

// see looks at a judged plan.
func (w *watcher) see(p *structs.JudgedPlan) {
	if p.JudgedAt != w.base || w.used == nil {
		w.rebase(p.JudgedAt)
	}
	snap, now := w.history[w.base], w.store.Snapshot()
	for _, b := range p.Place {
		mine := now.Job(nil, b.Namespace, b.JobID)
		rank := w.rank(now, mine)
		for i := range b.Instances {
			w.overtaken(snap, now, mine, rank, b.Nodes[b.Instances[i].Node].ID)
		}
	}
	w.do(p)
}

// rank is a job's place in the queue.
func (w *watcher) rank(snap *state.Snapshot, j *structs.Job) structs.Rank {
	since := int64(0)
	for _, e := range snap.EvalsByJob(nil, j.Namespace, j.ID) {
		if !e.Terminal() && (since == 0 || e.CreateTime < since) {
			since = e.CreateTime
		}
	}
	config := snap.SchedulerConfig(nil)
	return config.Rank(j, snap.Ask(nil, j.Namespace, j.ID, "g"), since)
}

// overtaken notes who waited, goes before a job that takes a node, and fits there.
func (w *watcher) overtaken(snap, now *state.Snapshot, mine *structs.Job, rank structs.Rank, nodeID string) {
	seen := map[structs.NamespacedID]bool{}
	node := snap.Node(nil, nodeID)
	for _, e := range snap.PendingEvals() {
		j := snap.Job(nil, e.Namespace, e.JobID)
		if seen[e.Job()] || j == nil || j.Stop || j.NodePool != mine.NodePool || j.ID == mine.ID || e.WaitUntil.After(time.Now()) {
			continue
		}
		if _, rests := w.nacked.Load(e.ID); rests {
			continue
		}
		if cur := now.Job(nil, j.Namespace, j.ID); cur == nil || cur.Stop {
			continue // it is not wanted any more
		}
		seen[e.Job()] = true
		if r := w.rank(snap, j); r.Compare(&rank) >= 0 {
			continue
		}
		w.looked++
		have := w.chain[e.Job()]
		for _, a := range snap.AllocsByJob(nil, j.Namespace, j.ID, true) {
			if !a.Terminal() {
				have++
			}
		}
		if have >= j.TaskGroups[0].Count {
			continue
		}
		w.waiting++
		v, u := volume(j), w.used[nodeID]
		if u[0]+v[0] <= node.NodeResources.Cpu.CpuShares && u[1]+v[1] <= node.NodeResources.Memory.MemoryMB {
			w.broken = append(w.broken, fmt.Sprintf("%s (priority %d) took node %s at %d, where %s (priority %d, %s evaluation) fits",
				mine.ID, mine.Priority, nodeID, w.base, j.ID, j.Priority, e.Status))
		}
	}
}

// TestNobodyIsOvertaken: 20 sides register, grow and stop jobs of all priorities and
// sizes in two pools that are too small for them, while 8 workers and the queue pass
// decide. At the end everybody who still waits has no room.
func TestNobodyIsOvertaken(t *testing.T) { synctest.Test(t, nobodyIsOvertaken) }

func nobodyIsOvertaken(t *testing.T) {
	c := newCluster(true)
	c.delay = 2 * time.Millisecond
	w := c.watched()
	pools := []string{structs.NodePoolDefault, "other"}
	for i := range 8 {
		c.node(t, fmt.Sprint("node-", i), pools[i%2], 1000)
	}
	defer c.run(t.Context(), 8)()
	var wg sync.WaitGroup
	seed := rand.Uint64()
	for side := range 20 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(side))) //nolint:gosec // a test
			var own []*structs.Job
			for i := range 25 {
				if len(own) > 2 && r.IntN(3) > 0 {
					c.deregister(t, own[0])
					own = own[1:]
				}
				j := job(fmt.Sprintf("job-%d-%d", side, i), pools[r.IntN(2)], 1+r.IntN(100), 1+r.IntN(3), size(r), size(r))
				c.register(t, j)
				own = append(own, j)
				if r.IntN(3) == 0 {
					more := j.Copy()
					more.TaskGroups[0].Count += 2
					c.register(t, more)
				}
				time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond) // at any time: it is not waited for anything
			}
		})
	}
	wg.Wait()
	c.settled(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(w.broken) > 0 {
		t.Fatalf("seed %d: %d were overtaken, the first: %s", seed, len(w.broken), w.broken[0])
	}
	t.Logf("%d entries; %d times something went before, %d times it waited", c.index, w.looked, w.waiting)
	if w.waiting == 0 {
		t.Fatal("nobody ever waited: nothing was looked at")
	}
}

// size is mostly small, and now and then nearly all of a node.
func size(r *rand.Rand) int {
	if r.IntN(5) == 0 {
		return 700 + 20*r.IntN(16)
	}
	return 20 + 20*r.IntN(20)
}

// settled waits until nothing is pending any more, and what is blocked fits nowhere.
func (c *cluster) settled(t *testing.T) {
	t.Helper()
	var why string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if why = c.unsettled(); why == "" {
			return
		}
	}
	t.Errorf("never settled: %s; %+v", why, c.broker.Stats())
}

func (c *cluster) unsettled() string {
	snap := c.store.Snapshot()
	for _, e := range snap.PendingEvals() {
		if e.Status == structs.EvalStatusPending {
			return fmt.Sprintf("evaluation %s of %s is pending (%s)", e.ID, e.JobID, e.TriggeredBy)
		}
		j := snap.Job(nil, e.Namespace, e.JobID)
		for n := range snap.Nodes(nil, "", false) {
			free, v := snap.World().Free(n.ID), volume(j)
			if n.InPool(j.NodePool) && free.CPU >= v[0] && free.MemoryMB >= v[1] {
				return fmt.Sprintf("%s waits, and fits on %s", j.ID, n.ID)
			}
		}
	}
	return ""
}

// TestPlantedOvertaker: a plan that goes around the gate is seen by the watcher; through
// the gate it is sent back, and placed after the ask that goes before it.
func TestPlantedOvertaker(t *testing.T) {
	f := func(gated bool) {
		t.Helper()
		c := newCluster(gated)
		w := c.watched()
		c.node(t, "node", structs.NodePoolDefault, 1000)
		low, high := job("low", structs.NodePoolDefault, 10, 1, 600, 600), job("high", structs.NodePoolDefault, 90, 1, 600, 600)
		first := c.register(t, low)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		stop := c.run(ctx, 0)
		defer stop()
		var got *structs.EvalDequeueReply
		for err := error(structs.ErrNoLeader); errors.Is(err, structs.ErrNoLeader); {
			got, err = c.Dequeue(ctx, []string{structs.JobTypeService}, time.Second)
		}
		if got.Eval == nil || got.Eval.ID != first.ID {
			t.Fatalf("got %+v", got.Eval)
		}
		c.register(t, high)
		p := &structs.Plan{
			EvalID: first.ID, EvalToken: got.Token, Namespace: low.Namespace, JobID: low.ID, Priority: 10,
			Place: []*structs.PlacementBatch{{
				Namespace: low.Namespace, JobID: low.ID, Group: "g", EvalID: first.ID, Seed: c.next(), CreateTime: 1,
				Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{
					"t": {Cpu: structs.AllocatedCpuResources{CpuShares: 600}, Memory: structs.AllocatedMemoryResources{MemoryMB: 600}},
				}},
				Nodes: []structs.PlacedNode{{ID: "node", Name: "node"}}, Instances: []structs.Instance{{}},
			}},
		}
		r, err := c.Submit(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		broken := len(w.broken)
		c.mu.Unlock()
		if r.Overtook != gated || (broken == 0) != gated {
			t.Fatalf("gated: %v, result: %+v, seen by the watcher: %v", gated, r, w.broken)
		}
	}
	f(false)
	f(true)
}
