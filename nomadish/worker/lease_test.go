package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/plan"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// journal is the cluster's log, which a watcher reads.
type journal struct {
	*testcluster.Log
	store *state.Store
	delay time.Duration                   // that a commit of plans takes
	watch func(index uint64, payload any) // before the entry is applied
	after func(index uint64)
	// entry, if set, is given each entry as it is in the log.
	entry func(entry []byte)
}

func newJournal() *journal {
	j := &journal{Log: testcluster.New(10, state.Options{})}
	j.store = j.Store
	j.Before = func(t structs.LogType, _ any) error {
		if t == structs.LogPlanApply {
			time.Sleep(j.delay)
		}
		return nil
	}
	j.Committed = func(e testcluster.Entry) {
		if j.watch != nil {
			j.watch(e.Index, e.Payload)
		}
		if j.entry != nil {
			j.entry(e.Data)
		}
	}
	j.Applied = func(e testcluster.Entry) error {
		if j.after != nil {
			j.after(e.Index)
		}
		return nil
	}
	return j
}

// cluster is a leader with workers, without network and disk.
type cluster struct {
	*journal
	next   func() string // makes IDs
	broker *queue.Broker
	plans  *plan.Applier
	nacked sync.Map // evaluations that were given back: they rest
	// explain is how often what waits is looked at to say why (0: as a pass does).
	explain time.Duration
}

func newCluster(gated bool) *cluster {
	c := &cluster{journal: newJournal(), next: testcluster.IDs("00000000-0000-7000-8000-%012d")}
	c.broker = queue.New(queue.Options{NewID: c.next}, c, c.store.LatestIndex)
	opts := plan.Options{}
	if gated {
		opts.Gate = c.broker
	}
	c.plans = plan.New(opts, c.store, c, c.broker)
	return c
}

// run runs the leader's parts and so many workers; the function that it returns stops them.
func (c *cluster) run(ctx context.Context, workers int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.broker.Run(ctx, c.store) })
	wg.Go(func() { c.plans.Run(ctx) })
	for errors.Is(c.reachable(ctx), structs.ErrNoLeader) {
		time.Sleep(time.Millisecond)
	}
	wg.Go(func() {
		worker.NewPass(worker.PassOptions{NewID: c.next, Explain: c.explain}, c.broker, c.broker, c.plans, c.store).Run(ctx)
	})
	assumed := worker.NewAssumed()
	for range workers {
		w := worker.New(worker.Options{
			Schedulers: []string{structs.JobTypeService}, NewID: c.next, Assumed: assumed, Backoff: time.Millisecond,
		}, c, c.store)
		wg.Go(func() { w.Run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// reachable is structs.ErrNoLeader until the leader's parts run.
func (c *cluster) reachable(ctx context.Context) error {
	if _, err := c.broker.Dequeue(ctx, nil, time.Nanosecond); err != nil {
		return err
	}
	_, err := c.plans.Submit(ctx, &structs.Plan{EvalID: "nobody's"})
	return err
}

func (c *cluster) Dequeue(ctx context.Context, kinds []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	return c.broker.Dequeue(ctx, kinds, timeout)
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
	n := testcluster.Node(id, cpu)
	n.NodePool, n.NodeResources.Memory.MemoryMB = pool, cpu
	n.ComputeClass()
	c.Put(t, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano()})
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
	c.Put(t, &structs.JobRegisterEntry{Job: j, Eval: e, Time: time.Now().UnixNano()})
	return e
}

func (c *cluster) deregister(t testing.TB, j *structs.Job) {
	c.Put(t, &structs.JobDeregisterEntry{
		Namespace: j.Namespace, JobID: j.ID, Eval: c.eval(j, structs.EvalTriggerJobDeregister), Time: time.Now().UnixNano(),
	})
}

// configure stores a configuration by which services take from lower bands.
func (c *cluster) configure(t testing.TB, change func(*structs.SchedulerConfiguration)) {
	config := structs.DefaultSchedulerConfiguration()
	config.PreemptionConfig.ServiceSchedulerEnabled = true
	change(&config)
	c.Put(t, &structs.SchedulerConfigEntry{Config: config, Time: time.Now().UnixNano()})
}

// TestNobodyIsOvertaken: 20 sides register, grow and stop jobs of all priorities and sizes,
// gangs among them, in two pools that are too small for them, while 8 workers and the queue
// pass decide. A watcher of every entry sees nobody overtaken. At the end everybody who still
// waits has no room. That is so where jobs take from lower bands and what waits for long
// reserves room; and where nothing helps who waits but what comes free, with jobs of two
// groups, updates by replacement, and instances that a user suspends and lets go on.
func TestNobodyIsOvertaken(t *testing.T) {
	for name, reclaims := range map[string]bool{"who waits reclaims and reserves": true, "who waits waits": false} {
		t.Run(name, func(t *testing.T) {
			for range 4 {
				all := false
				synctest.Test(t, func(t *testing.T) { all = nobodyIsOvertaken(t, reclaims) })
				if all || t.Failed() {
					return
				}
			}
			t.Fatal("something never happened")
		})
	}
}

// nobodyIsOvertaken reports whether all that can happen did: it is drawn, and one thing or the other may not come, once in
// thousands of times.
func nobodyIsOvertaken(t *testing.T, reclaims bool) (all bool) {
	seed := rand.Uint64()
	c := newCluster(true)
	w := mix(t, c, seed, reclaims)
	w.settled(t)
	c.Lock()
	defer c.Unlock()
	if len(w.broken) > 0 {
		t.Fatalf("seed %d: %d were overtaken, the first: %s", seed, len(w.broken), w.broken[0])
	}
	t.Logf("%d entries; %d times something went before, %d times it waited; %d gangs, %d of two groups, %d updated, %d resumed, %d taken back, %d reserved, %d backfilled",
		c.Index(), w.looked, w.waiting, w.gangs, w.twos, w.updated, w.resumed, w.preempted, w.lessee, w.backfilled)
	return w.waiting > 0 && w.gangs > 0 && (!reclaims || w.preempted > 0 && w.lessee > 0) && (reclaims || w.twos > 0 && w.updated > 0 && w.resumed > 0)
}

// TestWatcherSeesOvertakers: the same without a gate before the applier. Somebody is
// overtaken, and the watcher says so: what it says of the gate is worth something.
func TestWatcherSeesOvertakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		c := newCluster(false)
		w := mix(t, c, seed, true)
		c.Lock()
		defer c.Unlock()
		if len(w.broken) == 0 {
			t.Fatalf("seed %d: %d times something that goes before waited, and nobody was overtaken", seed, w.waiting)
		}
		t.Logf("%d were overtaken, the first: %s", len(w.broken), w.broken[0])
	})
}

// mix has 20 sides request and free resources for some seconds, while 8 workers decide. Without
// reclaims who waits takes nothing from anybody, reserves nothing and is not looked at again
// but when something comes free; and the sides want more kinds of things.
func mix(t *testing.T, c *cluster, seed uint64, reclaims bool) *watcher {
	c.delay = 2 * time.Millisecond
	w := c.watched()
	c.inOrder(t)
	c.configure(t, func(s *structs.SchedulerConfiguration) {
		s.ReservationAfter, s.ReservationTTL = 200*time.Millisecond, time.Second
		if !reclaims {
			s.PreemptionConfig.ServiceSchedulerEnabled, s.ReservationAfter, c.explain = false, -1, time.Hour
		}
	})
	pools := []string{structs.NodePoolDefault, "other"}
	for i := range 8 {
		c.node(t, fmt.Sprint("node-", i), pools[i%2], 1000)
	}
	t.Cleanup(c.run(t.Context(), 8))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s := side{t: t, cluster: c, all: !reclaims, r: rand.New(rand.NewPCG(seed, uint64(i)))} // a test
			for n := range 25 {
				if len(s.jobs) > 2 && s.r.IntN(3) > 0 {
					c.deregister(t, s.jobs[0])
					s.jobs = s.jobs[1:]
				}
				s.wants(fmt.Sprintf("job-%d-%d", i, n), pools[s.r.IntN(2)])
				time.Sleep(time.Duration(s.r.IntN(40)) * time.Millisecond) // at any time: it is not waited for anything
				if s.all {
					s.thaws(s.r.IntN(2))
					s.suspends()
				}
			}
			s.thaws(0)
		})
	}
	wg.Wait()
	return w
}

// inOrder has the state checked now and then, at whatever moment, from now on.
func (c *cluster) inOrder(t *testing.T) {
	watched := c.after
	c.after = func(index uint64) {
		if watched != nil {
			watched(index)
		}
		if index%every != 0 {
			return
		}
		report, err := check.Run(t.Context(), c.store.Snapshot(), check.Options{Now: time.Now(), FixedNodes: true})
		if err != nil {
			return // the test is over
		}
		for _, f := range report.Faults {
			if f.Rule != structs.CheckStopped { // nothing here says that it has ended
				t.Errorf("at index %d: %s: %s %s: %s", index, f.Rule, f.Kind, f.ID, f.What)
			}
		}
	}
}

// every is after how many entries the state is checked.
const every = 31

// side is one of those who request and free resources.
type side struct {
	*cluster
	t         *testing.T
	r         *rand.Rand
	all       bool           // it wants all kinds of things
	jobs      []*structs.Job // oldest first
	suspended []*structs.Allocation
}

// wants registers a job, which may be a gang or have two groups, and may have it grow or
// replace its instances by some of another size at once.
func (s *side) wants(id, pool string) {
	r := s.r
	j := job(id, pool, 1+r.IntN(100), 1+r.IntN(3), size(r), size(r))
	g := j.TaskGroups[0]
	atOnce := 0
	g.Update = &structs.UpdateStrategy{MaxParallel: &atOnce}
	if r.IntN(4) > 0 {
		g.MaxRunDuration = time.Duration(1+r.IntN(20)) * 100 * time.Millisecond
	}
	kind := r.IntN(5)
	switch {
	case kind == 0:
		g.Gang, g.Count = &structs.Gang{}, 2+r.IntN(3)
	case kind == 1 && s.all:
		second := g.Copy()
		second.Name, second.Count = "second", 1
		second.Tasks[0].Resources.CPU, second.Tasks[0].Resources.MemoryMB = size(r), size(r)
		j.TaskGroups = append(j.TaskGroups, second)
	}
	j.Canonicalize()
	s.register(s.t, j)
	s.jobs = append(s.jobs, j)
	if kind == 0 {
		return // a gang of another size is another gang
	}
	more := j.Copy()
	switch change := r.IntN(6); {
	case change < 2:
		more.TaskGroups[0].Count += 2
	case change < 4 && s.all:
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		more.TaskGroups[0].Tasks[0].Resources.CPU += 20 * (1 + r.IntN(10))
	default:
		return
	}
	s.register(s.t, more)
	s.jobs[len(s.jobs)-1] = more
}

// suspends has an instance of one of the jobs suspended, if there is one.
func (s *side) suspends() {
	j := s.jobs[s.r.IntN(len(s.jobs))]
	if own := s.running(j); len(own) > 0 && j.TaskGroups[0].Gang == nil && s.r.IntN(2) == 0 {
		a := own[s.r.IntN(len(own))]
		s.suspend(s.t, j, a.ID, true)
		s.suspended = append(s.suspended, a)
	}
}

// thaws resumes what was suspended, but for so many.
func (s *side) thaws(but int) {
	for ; len(s.suspended) > but; s.suspended = s.suspended[1:] {
		a := s.suspended[0]
		if j := s.store.Snapshot().Job(nil, a.Namespace, a.JobID); j != nil && !j.Stop {
			s.suspend(s.t, j, a.ID, false)
		}
	}
}

// size is mostly small, and now and then nearly all of a node.
func size(r *rand.Rand) int {
	if r.IntN(5) == 0 {
		return 700 + 20*r.IntN(16)
	}
	return 20 + 20*r.IntN(20)
}

// settled waits until nothing is pending any more, and nobody of those that are blocked
// could use any node.
func (w *watcher) settled(t *testing.T) {
	t.Helper()
	var why string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if why = w.unsettled(); why == "" {
			return
		}
	}
	t.Errorf("never settled: %s; %+v", why, w.broker.Stats())
}

func (w *watcher) unsettled() string {
	w.Lock()
	defer w.Unlock()
	w.rebase(w.Index())
	snap := w.history[w.Index()]
	for _, e := range snap.PendingEvals() {
		if e.Status == structs.EvalStatusPending {
			return fmt.Sprintf("evaluation %s of %s is pending (%s)", e.ID, e.JobID, e.TriggeredBy)
		}
		j := snap.Job(nil, e.Namespace, e.JobID)
		for n := range snap.Nodes(nil, "", false) {
			if why := w.couldUse(snap, j, n.ID, nil); n.InPool(j.NodePool) && why != "" {
				return fmt.Sprintf("%s waits, and could use %s for %s", j.ID, n.ID, why)
			}
		}
	}
	return ""
}

// planted is one who would take what another, who goes before, could use.
type planted struct {
	low, high *structs.Job
	busy      bool // what is taken is used by a job of the lowest band, and taken back
	reserved  bool // it is reserved for the lower one
	fair      bool // the other cannot use it
}

// TestPlantedOvertaker: with the applier's gate switched off, a plan that overtakes is
// committed, and the watcher says so; through the gate it is sent back, what goes before it is
// placed first, and the watcher has nothing to say. One that takes what the other cannot use
// is never reported.
func TestPlantedOvertaker(t *testing.T) {
	low, high := job("low", structs.NodePoolDefault, 50, 1, 600, 600), job("high", structs.NodePoolDefault, 90, 1, 600, 600)
	pair := job("high", structs.NodePoolDefault, 90, 2, 600, 600)
	pair.TaskGroups[0].Gang = &structs.Gang{}
	three := job("high", structs.NodePoolDefault, 90, 3, 600, 600)
	three.TaskGroups[0].Gang = &structs.Gang{}
	large := job("high", structs.NodePoolDefault, 90, 1, 1100, 1100)
	for name, p := range map[string]planted{
		"an ask":                 {low: low, high: high},
		"a gang":                 {low: low, high: pair},
		"what is taken back":     {low: low, high: high, busy: true},
		"a gang that is too big": {low: low, high: three, fair: true},
		"an ask that is too big": {low: low, high: large, fair: true},
		"reserved room":          {low: low, high: pair, reserved: true, fair: true},
	} {
		for _, gated := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", gated: ", gated), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { plant(t, p, gated) }) })
		}
	}
}

func plant(t *testing.T, p planted, gated bool) {
	c := newCluster(gated)
	w := c.watched()
	c.configure(t, func(*structs.SchedulerConfiguration) {})
	c.node(t, "node", structs.NodePoolDefault, 1000)
	c.node(t, "second", structs.NodePoolDefault, 1000)
	stop := c.run(t.Context(), 0)
	defer func() { stop() }()
	if p.busy {
		for _, node := range []string{"node", "second"} {
			busy := job("busy-"+node, structs.NodePoolDefault, 5, 1, 600, 600)
			c.submit(t, c.take(t, c.register(t, busy)), busy, node, "")
		}
	}
	mine := c.take(t, c.register(t, p.low))
	if p.reserved {
		c.Put(t, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "reserves", JudgedAt: c.store.LatestIndex(), Reserve: []*structs.Reservation{{
			NodeID: "node", Namespace: p.low.Namespace, JobID: p.low.ID, Group: "g", CPU: 600, MemoryMB: 600, MadeAt: 1, DueAt: 2, ExpiresAt: 1 << 62,
		}}}}})
	}
	c.register(t, p.high)
	victim := ""
	if p.busy {
		for _, a := range c.store.Snapshot().AllocsByNode(nil, "node") {
			victim = a.ID
		}
	}
	synctest.Wait()
	r := c.submit(t, mine, p.low, "node", victim)
	seen := func() int {
		c.Lock()
		defer c.Unlock()
		return len(w.broken)
	}
	if r.Overtook != gated || (seen() > 0) != (!gated && !p.fair) {
		t.Fatalf("result: %+v, seen by the watcher: %v", r, w.broken)
	}
	if !gated {
		return
	}
	stop() // and what was sent back is decided by workers
	stop = c.run(t.Context(), 2)
	w.settled(t)
	if seen() > 0 {
		t.Fatalf("in its turn it was placed, and the watcher says %v", w.broken)
	}
	if n := len(c.store.Snapshot().AllocsByJob(nil, p.high.Namespace, p.high.ID, true)); !p.fair && n != p.high.TaskGroups[0].Count {
		t.Fatalf("%d of what goes before are placed", n)
	}
}

// take has a worker take an evaluation, which is the first.
func (c *cluster) take(t *testing.T, e *structs.Evaluation) *structs.EvalDequeueReply {
	t.Helper()
	synctest.Wait()
	got, err := c.Dequeue(t.Context(), []string{structs.JobTypeService}, time.Second)
	if err != nil || got.Eval == nil || got.Eval.ID != e.ID {
		t.Fatalf("got %+v, %v", got, err)
	}
	return got
}

// submit submits a plan that places one instance on a node, and ends the evaluation.
func (c *cluster) submit(t *testing.T, got *structs.EvalDequeueReply, j *structs.Job, node, victim string) *structs.PlanResult {
	t.Helper()
	r, err := c.Submit(t.Context(), c.places(got, j, node, victim))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Overtook {
		if err := c.Ack(t.Context(), got.Eval.ID, got.Token); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// places is a plan that places one instance on a node, where a victim, if one is named, makes room, and ends the evaluation.
func (c *cluster) places(got *structs.EvalDequeueReply, j *structs.Job, node, victim string) *structs.Plan {
	v, seed, p := volume(j), c.next(), finish(got, j)
	p.Place = []*structs.PlacementBatch{{
		Namespace: j.Namespace, JobID: j.ID, Group: "g", EvalID: got.Eval.ID, Seed: seed, CreateTime: 1,
		Resources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{
				"t": {Cpu: structs.AllocatedCpuResources{CpuShares: v[0]}, Memory: structs.AllocatedMemoryResources{MemoryMB: v[1]}},
			},
			Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Priority: j.Priority}},
		},
		Nodes: []structs.PlacedNode{{ID: node, Name: node}}, Instances: []structs.Instance{{}},
	}}
	if victim != "" {
		p.Stop = []*structs.AllocStop{{
			AllocID: victim, DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue, PreemptedBy: structs.DeriveID(seed, 0),
		}}
	}
	return p
}
