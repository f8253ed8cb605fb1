package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// suspendedFor is a cluster with a job of n instances on a node of their own each, which were suspended some time ago, and whose processors
// are others' now.
func suspendedFor(t *testing.T, n int, since time.Duration, change ...func(*structs.Job)) *cluster {
	t.Helper()
	c := newCluster(t)
	nodes(c, n)
	c.register(schedtest.Job(structs.JobTypeService, n, append(change, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 3000 })...))
	c.eval()
	c.client(isLive, healthy)
	c.taken(func(a *structs.Allocation) bool { return isLive(a) })
	c.client(isLive, func(a *structs.Allocation) { a.SuspendedAt = c.now.Add(-since).UnixNano() })
	for _, a := range c.sorted() {
		c.guest("guest-"+a.NodeID, a.NodeID, 2000)
	}
	return c
}

// blockedNow is the evaluation that waits, as the last plan left it.
func (c *cluster) blockedNow() *structs.Evaluation {
	c.t.Helper()
	i := slices.IndexFunc(c.last.Evals, func(e *structs.Evaluation) bool { return e.Status == structs.EvalStatusBlocked })
	if i < 0 {
		c.t.Fatal("nothing waits")
	}
	return c.last.Evals[i]
}

// TestSuspendLimit: what is suspended for longer than suspend_limit is requeued, told so, and placed anew; until then its evaluation waits
// for that time.
func TestSuspendLimit(t *testing.T) {
	c := suspendedFor(t, 1, 0)
	c.decide(c.newEval())
	if got := c.blockedNow().WaitUntil; !got.Equal(c.now.Add(structs.DefaultReservationAfter)) {
		t.Fatalf("it waits until %s, not until it may reserve room", got)
	}
	c.config.ReservationAfter = -1
	c.decide(c.newEval())
	due := c.now.Add(time.Hour)
	if got := c.blockedNow().WaitUntil; !got.Equal(due) {
		t.Fatalf("it waits until %s, want %s", got, due)
	}
	start := c.now
	c.now = start.Add(59 * time.Minute)
	c.decide(c.blockedNow())
	c.wantPlan(0, 0, 0)
	if got := c.blockedNow().WaitUntil; !got.Equal(due) {
		t.Fatalf("later it waits until %s, want %s", got, due)
	}
	c.now = due
	c.decide(c.blockedNow())
	c.wantPlan(0, 1, 0)
	a := c.sorted()[0]
	if a.DesiredStatus != structs.AllocDesiredEvict || c.last.Stop[0].Reclaim != structs.ReclaimRequeue || a.Requeues != 1 ||
		a.RequeueReason != "suspended for longer than 1h" || a.DesiredDescription != "requeued: suspended for longer than 1h" {
		t.Fatalf("it is to %s: %q, requeued %d times: %q", a.DesiredStatus, a.DesiredDescription, a.Requeues, a.RequeueReason)
	}
	next := c.last.Evals[slices.IndexFunc(c.last.Evals, func(e *structs.Evaluation) bool { return e.Status == structs.EvalStatusPending })]
	if next.TriggeredBy != structs.EvalTriggerSuspendLimit || c.done.QueuedAllocations["g"] != 1 {
		t.Fatalf("then: %+v, %v", next, c.done.QueuedAllocations)
	}
	if until := c.blockedNow().WaitUntil; !until.IsZero() && !until.After(c.now) {
		t.Errorf("it waits until %s, which has passed", until)
	}
	c.goes("guest-" + a.NodeID)
	c.decide(next)
	c.wantPlan(1, 0, 0)
	if got := c.requeues(); !strings.HasSuffix(got, ": 1 suspended for longer than 1h\n") {
		t.Errorf("its successor: %s", got)
	}
}

// TestSuspendLimitOfWhom: what a user suspended waits for its user; what finds room goes on, however long it was suspended; the limit is
// the configuration's.
func TestSuspendLimitOfWhom(t *testing.T) {
	f := func(what string, stops int, change func(c *cluster, a *structs.Allocation)) {
		t.Helper()
		c := suspendedFor(t, 1, 2*time.Hour)
		c.client(isLive, func(a *structs.Allocation) { change(c, a) })
		c.decide(c.newEval())
		if len(c.last.Stop) != stops {
			t.Errorf("%s: %d stop, want %d", what, len(c.last.Stop), stops)
		}
	}
	yes, short, long := true, time.Minute, 3*time.Hour
	f("after two hours", 1, func(*cluster, *structs.Allocation) {})
	f("by a user", 0, func(_ *cluster, a *structs.Allocation) { a.DesiredTransition.Suspend = &yes })
	f("resumed by a user and without room", 0, func(_ *cluster, a *structs.Allocation) { a.SuspendedAt = 0 })
	f("of three hours", 0, func(c *cluster, _ *structs.Allocation) { c.config.Slots = &structs.SlotSettings{SuspendLimit: &long} })
	f("of a minute", 1, func(c *cluster, a *structs.Allocation) {
		c.config.Slots, a.SuspendedAt = &structs.SlotSettings{SuspendLimit: &short}, c.now.Add(-time.Minute).UnixNano()
	})
	c := suspendedFor(t, 1, 2*time.Hour)
	c.goes("guest-" + c.sorted()[0].NodeID)
	c.decide(c.newEval())
	if c.wantPlan(0, 0, 1); len(resumed(c.last)) != 1 {
		t.Error("it has room and does not go on")
	}
	// Decided for what its namespace owns only, it is left alone until its other position comes.
	c = suspendedFor(t, 1, 2*time.Hour)
	c.entitledOnly = true
	c.decide(c.newEval())
	if c.wantPlan(0, 0, 0); c.blockedNow().WaitUntil.After(c.now) {
		t.Errorf("it waits until %s", c.blockedNow().WaitUntil)
	}
}

// TestExplainSuspendLimit: who looks at what is suspended is told when it is requeued at the latest, and, when it was, why.
func TestExplainSuspendLimit(t *testing.T) {
	f := func(since time.Duration, byUser bool) *structs.JobExplanation {
		c := suspendedFor(t, 2, since)
		if byUser {
			c.client(isLive, func(a *structs.Allocation) { a.SuspendedAt = 0 })
		}
		last := c.sorted()[1].ID
		c.client(func(a *structs.Allocation) bool { return a.ID == last && !byUser }, func(a *structs.Allocation) { a.SuspendedAt += int64(time.Minute) })
		return c.explain()
	}
	for _, byUser := range []bool{false, true} {
		x := f(30*time.Minute, byUser)
		at := slices.IndexFunc(x.Group("g").Waits, func(w structs.Wait) bool { return w.Kind == structs.ReasonSuspended })
		if at < 0 {
			t.Fatalf("told: %s", asJSON(t, x.Group("g")))
		}
		w, want := x.Group("g").Waits[at], newCluster(t).now.Add(30*time.Minute).UnixNano()
		if byUser {
			want = 0
		}
		if w.Until != want || strings.HasSuffix(w.Text, "; without room the first of them is requeued") == byUser {
			t.Errorf("by a user: %v: %q, %d, want %d", byUser, w.Text, w.Until, want)
		}
	}
	c := suspendedFor(t, 1, time.Hour)
	c.decide(c.newEval())
	x := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: c.sorted()[0], Config: c.config})
	if x.Lost == nil || x.Lost.How != structs.ReclaimRequeue || !slices.ContainsFunc(x.Text, func(s string) bool {
		return strings.Contains(s, "its request went back to the queue: suspended for longer than 1h")
	}) {
		t.Errorf("%+v, %q", x.Lost, x.Text)
	}
}

// TestSuspendLimitOfGang: a gang that is suspended goes as a whole, and comes back as a whole.
func TestSuspendLimitOfGang(t *testing.T) {
	c := suspendedFor(t, 2, time.Minute, gang(0))
	first := c.sorted()[0].ID
	c.client(func(a *structs.Allocation) bool { return a.ID == first }, func(a *structs.Allocation) { a.SuspendedAt = c.now.Add(-time.Hour).UnixNano() })
	c.decide(c.newEval())
	c.wantPlan(0, 2, 0)
	for _, a := range c.sorted() {
		c.goes("guest-" + a.NodeID)
	}
	c.client(func(*structs.Allocation) bool { return true }, func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientComplete })
	c.decide(c.newEval())
	c.wantPlan(2, 0, 0)
	if got := c.requeues(); strings.Count(got, ": 1 suspended for longer than 1h\n") != 2 {
		t.Errorf("they know %s", got)
	}
}

// TestSuspendLimitOfAGangThatMoves: of a gang of which a member has been suspended for too long while another runs or is to move, all goes.
func TestSuspendLimitOfAGangThatMoves(t *testing.T) {
	for what, change := range map[string]func(*structs.Allocation){
		"moves": func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) },
		"runs":  func(a *structs.Allocation) { a.DesiredStatus, a.SuspendedAt = structs.AllocDesiredRun, 0 },
	} {
		c := suspendedFor(t, 2, time.Hour, gang(0), byMember)
		c.node("empty")
		second := c.sorted()[1].ID
		c.client(func(a *structs.Allocation) bool { return a.ID == second }, change)
		c.decide(c.newEval())
		if c.wantPlan(0, 2, 0); c.done.QueuedAllocations["g"] == 0 {
			t.Errorf("%s: nothing of it waits", what)
		}
	}
}

// TestReclaimNotesSuspension: what is suspended for others has the time at which that was decided.
func TestReclaimNotesSuspension(t *testing.T) {
	c := preempting(t)
	c.node("n", sized(100, 100))
	id := c.runs(other{job: "low", priority: 1, cpu: 100, mem: 1, terms: structs.AllocTerms{Reclaim: structs.ReclaimSuspend}}, 1, "n")[0]
	c.register(schedtest.Job(structs.JobTypeService, 1, requests(4, 50, 50)))
	c.eval()
	if a := c.allocs[id]; a.SuspendedAt != c.now.UnixNano() {
		t.Errorf("suspended at %d, not %d", a.SuspendedAt, c.now.UnixNano())
	}
}

// TestSuspendedGivesItsMemory: a suspended instance that keeps memory which another needs is requeued, and told so, for what may reclaim:
// by bands or by a claim.
func TestSuspendedGivesItsMemory(t *testing.T) {
	f := func(what string, memory, priority int, claims bool, requeues int, want string) {
		t.Helper()
		c := preempting(t)
		c.node("n", schedtest.EightGPUs, sized(8000, 1000))
		id := c.runs(other{job: "low", priority: 50, cpu: 8000, mem: 600, terms: structs.AllocTerms{Reclaim: structs.ReclaimSuspend}}, 1, "n")[0]
		c.taken(func(a *structs.Allocation) bool { return a.ID == id })
		c.client(func(a *structs.Allocation) bool { return a.ID == id }, func(a *structs.Allocation) { a.Requeues = requeues })
		job := schedtest.Job(structs.JobTypeService, 1, requests(priority, 500, memory))
		if claims {
			e := c.w.Edit()
			owns(t, "default", "node", 1)(e)
			c.w = e.World()
			schedtest.Task(job).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 8}}
		}
		c.register(job)
		c.eval()
		a := c.allocs[id]
		if a.DesiredStatus != want {
			t.Fatalf("%s: it is to %s, want %s", what, a.DesiredStatus, want)
		}
		if told := a.RequeueReason == "its node needed the memory" &&
			strings.HasSuffix(a.DesiredDescription, "; it was suspended, and its node needed the memory"); told != (want == structs.AllocDesiredEvict) {
			t.Errorf("%s: it is told %q, its successor %q", what, a.DesiredDescription, a.RequeueReason)
		}
	}
	evict, suspend := structs.AllocDesiredEvict, structs.AllocDesiredSuspend
	f("both fit", 400, 90, false, 0, suspend)
	f("the memory is needed", 401, 90, false, 0, evict)
	f("of no lower band", 401, 50, false, 0, suspend)
	f("requeued too often", 401, 90, false, 3, suspend)
	f("for a claim", 401, 1, true, 0, evict)
	f("for a claim, beside it", 400, 1, true, 0, suspend)
	f("for a claim, requeued too often", 401, 1, true, 3, evict)
}
