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

// away is a service whose instances outlive a lost connection for an hour.
func away(count int, change ...func(*structs.DisconnectStrategy)) *structs.Job {
	return schedtest.Job(structs.JobTypeService, count, func(j *structs.Job) {
		d := &structs.DisconnectStrategy{LostAfter: time.Hour, Replace: true, Reconcile: structs.ReconcileBestScore}
		for _, f := range change {
			f(d)
		}
		schedtest.Group(j).Disconnect = d
	})
}

// disconnect cuts a node off, and connect brings it back, as the state would do it.
func (c *cluster) disconnect(id string) {
	c.changeNode(id, func(n *structs.Node) {
		n.Status, n.StatusUpdatedAt = structs.NodeStatusDisconnected, c.now.Unix()
	})
}

func (c *cluster) connect(id string) {
	c.changeNode(id, func(n *structs.Node) { n.Status, n.StatusUpdatedAt = structs.NodeStatusReady, c.now.Unix() })
	c.client(func(a *structs.Allocation) bool {
		return a.NodeID == id && a.ClientStatus == structs.AllocClientUnknown
	},
		func(a *structs.Allocation) { a.ClientStatus, a.FollowupEvalID = structs.AllocClientRunning, "" })
}

// one returns the only allocation on a node.
func (c *cluster) one(node string) *structs.Allocation {
	c.t.Helper()
	var got *structs.Allocation
	for _, a := range c.sorted() {
		if a.NodeID == node {
			if got != nil {
				c.t.Fatalf("two on node %s", node)
			}
			got = a
		}
	}
	if got == nil {
		c.t.Fatalf("none on node %s", node)
	}
	return got
}

// cutOff runs one instance of a job on node a, cuts that off, and evaluates the job.
func cutOff(t *testing.T, j *structs.Job) *cluster {
	t.Helper()
	c := newCluster(t)
	c.node("a")
	c.register(j)
	c.eval()
	c.runAll()
	c.node("b")
	c.disconnect("a")
	c.eval()
	return c
}

// An instance on a disconnected node is unknown, and another stands for it until it is
// lost: then it is looked at again.
func TestDisconnectedIsReplaced(t *testing.T) {
	c := cutOff(t, away(1))
	old := c.one("a")
	if old.ClientStatus != structs.AllocClientUnknown || old.DesiredStatus != structs.AllocDesiredRun || c.one("b").PreviousAllocation != old.ID {
		t.Fatalf("the old one is %s, the new one stands for %q", old.ClientStatus, c.one("b").PreviousAllocation)
	}
	follow := c.followUp()
	if follow == nil || !follow.WaitUntil.Equal(c.now.Add(time.Hour)) || old.FollowupEvalID != follow.ID {
		t.Fatalf("it is looked at again by %+v, and waits for %q", follow, old.FollowupEvalID)
	}
	c.eval()
	c.wantPlan(0, 0, 0) // all is in place
	c.runAll()
	c.now = c.now.Add(time.Hour)
	c.eval()
	if old = c.one("a"); old.ClientStatus != structs.AllocClientLost || old.DesiredStatus != structs.AllocDesiredStop {
		t.Fatalf("after its time it is %s, %s", old.ClientStatus, old.DesiredStatus)
	}
	if c.one("b").DesiredStatus != structs.AllocDesiredRun {
		t.Error("its successor is stopped")
	}
}

// followUp is the evaluation that the last plan has made for when a node is not waited for any longer; nil: none.
func (c *cluster) followUp() *structs.Evaluation {
	for _, ev := range c.last.Evals {
		if ev.TriggeredBy == structs.EvalTriggerMaxDisconnect {
			return ev
		}
	}
	return nil
}

// The time has come when its evaluation does, though the clock of who decides is behind; and one that has had its turn to no effect is
// followed by another.
func TestDisconnectedByAClockBehind(t *testing.T) {
	alone := func(d *structs.DisconnectStrategy) { d.Replace = false }
	c := cutOff(t, away(1, alone))
	follow := c.followUp()
	c.now = c.now.Add(30 * time.Minute)
	c.eval()
	c.wantPlan(0, 0, 0) // another evaluation does not mean that
	c.evaluate(follow)
	if a := c.one("a"); a.ClientStatus != structs.AllocClientLost || c.one("b").PreviousAllocation != a.ID {
		t.Errorf("on a it is %s", a.ClientStatus)
	}

	c = cutOff(t, away(1, alone))
	in := c.input()
	in.Past = map[string]bool{c.followUp().ID: true}
	plan, err := scheduler.Schedule(c.w, c.newEval(), in)
	if err != nil || len(plan.Stop) != 1 || !plan.Stop[0].KeepRunning || plan.Stop[0].FollowupEvalID == "" || len(plan.Evals) != 2 {
		t.Errorf("the evaluation after one that came to nothing: %s, %v", asJSON(t, plan), err)
	}
}

// What a new version says of disconnected nodes holds for what is awaited already.
func TestDisconnectedAndUpdated(t *testing.T) {
	c := cutOff(t, away(1, func(d *structs.DisconnectStrategy) { d.Replace = false }))
	first := c.followUp()
	c.update(func(j *structs.Job) { schedtest.Group(j).Disconnect.LostAfter = 3 * time.Hour })
	c.eval()
	later := c.followUp()
	if later == nil || !later.WaitUntil.Equal(c.now.Add(3*time.Hour)) || c.one("a").FollowupEvalID != later.ID {
		t.Fatalf("it is looked at again by %+v", later)
	}
	c.now = c.now.Add(time.Hour)
	c.evaluate(first)
	if a := c.one("a"); a.ClientStatus != structs.AllocClientUnknown || len(c.sorted()) != 1 {
		t.Errorf("at the time that held before it is %s", a.ClientStatus)
	}
	c.update(func(j *structs.Job) {
		schedtest.Group(j).Disconnect.LostAfter, schedtest.Group(j).Disconnect.Replace = time.Hour*2, true
	})
	c.eval()
	if c.one("a").ClientStatus != structs.AllocClientUnknown || c.one("b").DesiredStatus != structs.AllocDesiredRun {
		t.Error("it is not replaced, though it is to be now")
	}
}

// Who stands for others goes on, though the newest version would have nobody stand for them; and their time is the newest version's.
func TestDisconnectedReplacedAndUpdated(t *testing.T) {
	c := cutOff(t, away(3))
	c.runAll()
	first := c.followUp()
	c.update(func(j *structs.Job) {
		d := schedtest.Group(j).Disconnect
		d.Replace, d.LostAfter, d.Reconcile = false, 3*time.Hour, structs.ReconcileKeepOriginal
	})
	c.eval()
	running := 0
	for _, a := range c.sorted() {
		if a.NodeID == "b" && a.DesiredStatus == structs.AllocDesiredRun {
			running++
		}
	}
	later := c.followUp()
	if running != 3 || len(c.last.Place) > 0 || later == nil || !later.WaitUntil.Equal(c.now.Add(3*time.Hour)) {
		t.Fatalf("%d run where they stand for others, %d were placed; the next look is %+v", running, placed(c.last), later)
	}
	c.now = c.now.Add(time.Hour)
	c.evaluate(first)
	for _, a := range c.sorted() {
		if a.NodeID == "a" && a.ClientStatus != structs.AllocClientUnknown {
			t.Errorf("at the time of the version before: %s", a.ClientStatus)
		}
	}
	c.update(func(j *structs.Job) { schedtest.Group(j).Disconnect.LostAfter = 90 * time.Minute })
	c.eval()
	if sooner := c.followUp(); sooner == nil || !sooner.WaitUntil.Equal(c.now.Add(30*time.Minute)) {
		t.Errorf("with less time left the next look is %+v", sooner)
	}
}

// What is awaited may run, and cannot be stopped: a new version that would run it anew waits for its node.
func TestDisconnectedAndRunAnew(t *testing.T) {
	c := cutOff(t, away(1, func(d *structs.DisconnectStrategy) { d.LostAfter, d.Replace = 0, false }))
	c.update(func(j *structs.Job) { schedtest.Task(j).Env = map[string]string{"A": "1"} })
	c.eval()
	c.wantPlan(0, 0, 0)
	c.connect("a")
	c.eval()
	c.wantPlan(1, 1, 0)
}

// A purged job's allocations are stopped wherever they are.
func TestDisconnectedAndPurged(t *testing.T) {
	c := cutOff(t, away(1))
	in := c.input()
	in.Job = nil
	plan, err := scheduler.Schedule(c.w, c.newEval(), in)
	if err != nil || len(plan.Stop) != 2 || len(plan.Place) > 0 {
		t.Errorf("%v: %s", err, asJSON(t, plan))
	}
}

// When the node comes back its group says who stays.
func TestReconnected(t *testing.T) {
	for strategy, stays := range map[string]string{
		structs.ReconcileKeepOriginal: "a", structs.ReconcileKeepReplacement: "b", structs.ReconcileLongestRunning: "a", structs.ReconcileBestScore: "a",
	} {
		t.Run(strategy, func(t *testing.T) {
			c := cutOff(t, away(1, func(d *structs.DisconnectStrategy) { d.Reconcile = strategy }))
			since := func(a *structs.Allocation) {
				run(a)
				a.TaskStates = map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning, StartedAt: time.Unix(int64(a.CreateIndex), 0)}} // small
			}
			c.client(isLive, since)
			c.connect("a")
			c.eval()
			for _, node := range []string{"a", "b"} {
				if stayed := c.one(node).DesiredStatus == structs.AllocDesiredRun; stayed != (node == stays) {
					t.Errorf("on %s: %s", node, c.one(node).DesiredStatus)
				}
			}
			c.eval()
			c.wantPlan(0, 0, 0)
		})
	}
}

// A replacement that does not run yet does not cost the original its place, unless the
// group wants it so.
func TestReconnectedBeforeItsReplacementRuns(t *testing.T) {
	c := cutOff(t, away(1))
	c.connect("a")
	c.eval()
	if c.one("a").DesiredStatus != structs.AllocDesiredRun || c.one("b").DesiredStatus != structs.AllocDesiredStop {
		t.Errorf("on a %s, on b %s", c.one("a").DesiredStatus, c.one("b").DesiredStatus)
	}
}

func TestDisconnectedIsNotReplaced(t *testing.T) {
	c := cutOff(t, away(1, func(d *structs.DisconnectStrategy) { d.Replace = false }))
	if c.one("a").ClientStatus != structs.AllocClientUnknown || c.live() != 1 {
		t.Fatalf("%s, %d live", c.one("a").ClientStatus, c.live())
	}
	c.connect("a")
	c.eval()
	c.wantPlan(0, 0, 0)
}

// Without lost_after, replace = false means never: however long its node is away, the instance is awaited, and no evaluation is made
// for a time that will not come. Whoever stops it, or has the node forgotten, says that another may stand for it.
func TestDisconnectedIsNeverReplaced(t *testing.T) {
	never := func() *cluster {
		c := cutOff(t, away(1, func(d *structs.DisconnectStrategy) { d.LostAfter, d.Replace = 0, false }))
		if len(c.last.Evals) != 1 {
			t.Fatalf("%d evaluations", len(c.last.Evals))
		}
		for range 2 {
			c.now = c.now.Add(10 * 365 * 24 * time.Hour)
			c.eval()
			if c.one("a").ClientStatus != structs.AllocClientUnknown || len(c.sorted()) != 1 || c.live() != 1 {
				t.Fatalf("%s, of %d", c.one("a").ClientStatus, len(c.sorted()))
			}
			c.wantPlan(0, 0, 0)
		}
		return c
	}
	c := never()
	c.connect("a")
	c.eval()
	c.wantPlan(0, 0, 0)

	for what, do := range map[string]func(*cluster){
		"stopped": func(c *cluster) {
			c.client(func(a *structs.Allocation) bool { return a.NodeID == "a" }, func(a *structs.Allocation) { a.DesiredTransition.Migrate = new(true) })
		},
		"its node is down": func(c *cluster) { c.changeNode("a", func(n *structs.Node) { n.Status = structs.NodeStatusDown }) },
	} {
		c := never()
		do(c)
		c.eval()
		if c.one("a").DesiredStatus != structs.AllocDesiredStop || c.one("b").DesiredStatus != structs.AllocDesiredRun {
			t.Errorf("%s: on a %s", what, c.one("a").DesiredStatus)
		}
	}
}

// TestExplainDisconnected: instances of a disconnected node are told of, and what becomes of them.
func TestExplainDisconnected(t *testing.T) {
	for what, row := range map[string]struct {
		change func(*structs.DisconnectStrategy)
		says   string
		until  time.Duration
	}{
		"replaced":       {func(*structs.DisconnectStrategy) {}, "they have been replaced", time.Hour},
		"waited for":     {func(d *structs.DisconnectStrategy) { d.Replace = false }, "then lost, and placed again", time.Hour},
		"never replaced": {func(d *structs.DisconnectStrategy) { d.LostAfter, d.Replace = 0, false }, "alloc stop", 0},
	} {
		c := cutOff(t, away(1, row.change))
		until := int64(0)
		if row.until > 0 {
			until = c.now.Add(row.until).UnixNano()
		}
		c.now = c.now.Add(time.Second)
		g := c.explain().Group("g")
		if g.Placed != 1 || g.Wanted != 1 || g.Missing != 0 || len(g.Waits) != 1 {
			t.Fatalf("%s: %s", what, asJSON(t, g))
		}
		w := g.Waits[0]
		if w.Kind != structs.ReasonAway || !strings.Contains(w.Text, row.says) || w.Instances != 1 || w.Until/int64(time.Second) != until/int64(time.Second) ||
			len(w.Allocs) != 1 || w.Allocs[0] != c.one("a").ID {
			t.Errorf("%s: %s", what, asJSON(t, w))
		}
	}
}

// With no room for who is to stand for it, an instance that is awaited does not count as placed.
func TestExplainDisconnectedWithoutRoom(t *testing.T) {
	c := newCluster(t)
	c.node("a")
	c.register(away(1))
	c.eval()
	c.runAll()
	c.disconnect("a")
	c.eval()
	g := c.explain().Group("g")
	if g.Wanted != 1 || g.Placed != 0 || g.Missing != 1 || !slices.ContainsFunc(g.Waits, func(w structs.Wait) bool {
		return w.Kind == structs.ReasonAway && strings.Contains(w.Text, "others are to stand for them")
	}) {
		t.Errorf("%s", asJSON(t, g))
	}
}

// A gang waits for its members, and what nobody wants any more is stopped though nobody
// hears of it.
func TestDisconnectedGangAndUnwanted(t *testing.T) {
	j := away(2)
	schedtest.Group(j).Gang = &structs.Gang{Min: 2}
	j.Canonicalize()
	c := cutOff(t, j)
	if c.live() != 2 || len(c.last.Place) != 0 {
		t.Errorf("%d of the gang live, %d placed", c.live(), placed(c.last))
	}

	c = cutOff(t, away(1))
	c.runAll()
	c.update(func(j *structs.Job) { schedtest.Group(j).Count = 0 })
	c.eval()
	for _, node := range []string{"a", "b"} {
		if c.one(node).DesiredStatus != structs.AllocDesiredStop {
			t.Errorf("on %s: %s", node, c.one(node).DesiredStatus)
		}
	}
}

// Without lost_after a disconnected node's work is lost at once.
func TestDisconnectedWithoutTime(t *testing.T) {
	c := cutOff(t, schedtest.Job(structs.JobTypeService, 1))
	if c.one("a").ClientStatus != structs.AllocClientLost || c.one("b").DesiredStatus != structs.AllocDesiredRun {
		t.Errorf("on a %s, on b %s", c.one("a").ClientStatus, c.one("b").DesiredStatus)
	}
}

// TestKept: what runs on a node that gossip hears still is kept, and nothing runs in its place, until that is over; with the node
// lost altogether, or without gossip, it is replaced at once.
func TestKept(t *testing.T) {
	plain := func() *structs.Job { return schedtest.Job(structs.JobTypeService, 1) }
	for what, row := range map[string]struct {
		job  *structs.Job
		kept time.Duration // 0: the node is not heard
		want time.Duration // how long it is kept; 0: not at all
	}{
		"a plain group":              {plain(), 5 * time.Minute, 5 * time.Minute},
		"not heard":                  {plain(), 0, 0},
		"its client stops it sooner": {away(1, func(d *structs.DisconnectStrategy) { d.LostAfter, d.StopOnClientAfter = 0, time.Minute }), 5 * time.Minute, time.Minute},
		"the same, and not replaced": {away(1, func(d *structs.DisconnectStrategy) {
			d.LostAfter, d.StopOnClientAfter, d.Replace = 0, time.Minute, false
		}), 0, time.Minute},
		"its own word, which is to wait":    {away(1, func(d *structs.DisconnectStrategy) { d.Replace = false }), 5 * time.Minute, time.Hour},
		"a block that says nothing of that": {away(1, func(d *structs.DisconnectStrategy) { d.LostAfter = 0 }), 5 * time.Minute, 5 * time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t)
			c.node("a")
			c.register(row.job)
			c.eval()
			c.runAll()
			c.node("b")
			c.disconnect("a")
			if row.kept > 0 {
				c.changeNode("a", func(n *structs.Node) { n.KeptUntil = c.now.Add(row.kept).Unix() })
			}
			c.eval()
			old := c.one("a")
			if row.want == 0 { // its node is gone, and nothing says that it is waited for
				if old.ClientStatus != structs.AllocClientLost || c.one("b").DesiredStatus != structs.AllocDesiredRun {
					t.Fatalf("it is %s", old.ClientStatus)
				}
				return
			}
			if old.ClientStatus != structs.AllocClientUnknown || old.DesiredStatus != structs.AllocDesiredRun || len(c.sorted()) != 1 {
				t.Fatalf("it is %s, of %d", old.ClientStatus, len(c.sorted()))
			}
			c.now = c.now.Add(row.want + time.Second)
			c.eval()
			if old := c.one("a"); old.ClientStatus != structs.AllocClientLost || len(c.sorted()) != 2 {
				t.Fatalf("when its time is over it is %s, of %d", old.ClientStatus, len(c.sorted()))
			}
		})
	}
}
