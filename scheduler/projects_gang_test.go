package scheduler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// ganged makes a job a gang of which so many must start together; 0: all.
func ganged(least int, change ...func(*structs.Job)) func(*structs.Job) {
	return func(j *structs.Job) {
		for _, f := range change {
			f(j)
		}
		j.TaskGroups[0].Gang = &structs.Gang{Min: least}
	}
}

// waitsFor reports whether metrics have a reason.
func waitsFor(m *structs.AllocMetric, text string) bool {
	return m != nil && (strings.Contains(strings.Join(m.QuotaExhausted, " "), text) || slices.ContainsFunc(slices.Collect(maps.Keys(m.DimensionExhausted)), func(why string) bool {
		return strings.Contains(why, text)
	}))
}

// TestGangSlots: the first min of a gang all use slots of their project or are all opportunistic, those above it one by one (semantics part 0, rule 5).
func TestGangSlots(t *testing.T) {
	for _, row := range []struct {
		name                string
		given, count, least int
		want                string
	}{
		{"all", 3, 3, 0, "gang 1+0, gang 1+0, gang 1+0"},
		{"too few slots", 2, 3, 0, "gang, gang, gang"},
		{"its min", 2, 3, 2, "gang, gang 1+0, gang 1+0"},
		{"fewer than its min", 1, 3, 2, "gang, gang, gang"},
		{"more than its min", 3, 3, 2, "gang 1+0, gang 1+0, gang 1+0"},
	} {
		p := newProjects(t)
		p.slotNode("n1", 2)
		p.slotNode("n2", 2)
		p.gives("a", row.given)
		p.submit("a", "gang", row.count, ganged(row.least))
		if got := p.on(); got != row.want {
			t.Errorf("%s: there run %s, want %s", row.name, got, row.want)
		}
	}
	// Rows have room for all, and nodes with slots left have not: what is left of the memory is.
	p := newProjects(t)
	p.slotNode("n1", 2)
	p.slotNode("n2", 2)
	p.setNode(noSlots(slotNodeOf("n3", 2)))
	p.gives("a", 4)
	p.submit("", "other", 2)
	p.submit("a", "gang", 4, ganged(0))
	p.wantOn("gang, gang, gang, gang, other, other")
}

func noSlots(n *structs.Node) *structs.Node {
	n.NodeResources.Slots = map[string]int{structs.SlotBatch: 0}
	return n
}

// TestGangSlotsOfGroups: the first instances of all groups of a gang use slots together.
func TestGangSlotsOfGroups(t *testing.T) {
	for _, row := range []struct {
		given int
		want  string
	}{{1, "gang, gang, gang"}, {2, "gang, gang 1+0, gang 1+0"}, {3, "gang 1+0, gang 1+0, gang 1+0"}} {
		p := newProjects(t)
		p.slotNode("n1", 4)
		p.gives("a", row.given)
		p.submit("a", "gang", 2, ganged(1), func(j *structs.Job) {
			head := j.TaskGroups[0].Copy()
			head.Name, head.Count, head.Gang = "head", 1, nil
			j.TaskGroups[0].Gang.Groups = []string{"head"}
			j.TaskGroups = append(j.TaskGroups, head)
		})
		if got := p.on(); got != row.want {
			t.Errorf("%d given: there run %s, want %s", row.given, got, row.want)
		}
	}
}

// TestGangSlotsTakeover: after the grace others leave for all of a gang's min in one plan, one for one, or nobody does; never for a project that would run
// more instances than it has slots.
func TestGangSlotsTakeover(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 2)
	p.slotNode("n2", 2)
	p.gives("a", 3)
	p.submit("", "flood", 4)
	p.submit("a", "gang", 4, ganged(3))
	p.wantOn("flood, flood, flood, flood")
	if at := p.last.Evals[1].WaitUntil; !at.Equal(p.now.Add(structs.DefaultGrace)) {
		t.Errorf("it is to be looked at again at %s, want %s", at, p.now.Add(structs.DefaultGrace))
	}
	p.after(structs.DefaultGrace)
	p.decide("gang")
	p.wantTaken(map[string]int{"flood": 3})
	p.wantOn("flood, gang 1+0, gang 1+0, gang 1+0")
	if !p.last.AllAtOnce {
		t.Error("its plan may hold in part")
	}

	// Two of the four may be taken from: no one leaves.
	p = newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 3)
	p.submit("", "flood", 4)
	n := 0
	p.client(isLive, func(a *structs.Allocation) {
		if n++; n <= 2 {
			a.Requeues = structs.DefaultMaxRequeues
		}
	})
	p.submit("a", "gang", 3, ganged(0))
	p.after(structs.DefaultGrace)
	p.decide("gang")
	p.wantOn("flood, flood, flood, flood")

	// One runs beside: with three more the project would run more than it has slots.
	p = newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 0)
	p.submit("a", "beside", 1)
	p.submit("", "flood", 3)
	p.gives("a", 3)
	p.submit("a", "gang", 3, ganged(0))
	p.after(structs.DefaultGrace)
	p.decide("gang")
	p.wantOn("beside, flood, flood, flood")
}

// TestGangSlotsLost: where an edit of the calendar takes a slot of one of a gang's min, all lose theirs; where it takes that of one above it, that one
// alone does. All are raised again when there are enough, and not before.
func TestGangSlotsLost(t *testing.T) {
	for _, row := range []struct {
		least, left int
		want        string
	}{{3, 2, "gang, gang, gang"}, {2, 2, "gang, gang 1+0, gang 1+0"}, {2, 1, "gang, gang, gang"}} {
		p := newProjects(t)
		p.slotNode("n1", 4)
		p.gives("a", 3)
		p.submit("a", "gang", 3, ganged(row.least))
		p.wantOn("gang 1+0, gang 1+0, gang 1+0")
		p.gives("a", row.left)
		p.wantOn(row.want)
		p.decide("gang")
		p.wantOn(row.want)
		owner := scheduler.ProjectOwner("a")
		due := func() (n int) {
			for _, d := range scheduler.DueRaises(p.w, owner, func(structs.NamespacedID, string) bool { return true }) {
				n += len(d.IDs)
			}
			return n
		}
		if n := due(); n != 0 {
			t.Errorf("%+v: %d are to be raised too early", row, n)
		}
		if p.gives("a", 3); due() == 0 {
			t.Errorf("%+v: nothing is to be raised", row)
		}
		p.decide("gang")
		p.wantOn("gang 1+0, gang 1+0, gang 1+0")
	}
}

// TestGangSlotsMember: who joins a gang that runs uses slots if those of its min do, and else none.
func TestGangSlotsMember(t *testing.T) {
	member := func(j *structs.Job) {
		j.Type, j.TaskGroups[0].Gang.OnLoss = structs.JobTypeService, structs.GangOnLossMember
		j.TaskGroups[0].ReschedulePolicy = &structs.ReschedulePolicy{Unlimited: new(true)}
	}
	for _, row := range []struct {
		given int
		want  string
	}{{3, "gang 1+0, gang 1+0, gang 1+0"}, {2, "gang, gang, gang"}} {
		p := newProjects(t)
		p.slotNode("n1", 4)
		p.gives("a", row.given)
		p.submit("a", "gang", 3, ganged(0), member)
		one := ""
		p.client(func(a *structs.Allocation) bool { return isLive(a) && one == "" }, func(a *structs.Allocation) {
			one = a.ID
			p.ended(true)(a)
		})
		p.after(time.Hour)
		p.decide("gang")
		if got := p.on(); got != row.want {
			t.Errorf("%d given: there run %s, want %s", row.given, got, row.want)
		}
	}
	// Others use its slot by now: one of the min waits rather than to run without.
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 3)
	p.submit("a", "gang", 3, ganged(0), member)
	one := ""
	p.client(func(a *structs.Allocation) bool { return isLive(a) && one == "" }, func(a *structs.Allocation) {
		one = a.ID
		p.ended(true)(a)
	})
	p.submit("a", "other", 1)
	p.after(time.Hour)
	p.decide("gang")
	p.wantOn("gang 1+0, gang 1+0, other 1+0")
	if m := p.last.FailedTGAllocs["g"]; !waitsFor(m, "its gang uses slots") {
		t.Errorf("it waits as %+v", m)
	}
}

// TestGangSlotsResumed: a gang that was suspended by hand goes on without slots if others use one of those that its min had.
func TestGangSlotsResumed(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 3)
	p.submit("a", "gang", 2, ganged(0))
	p.suspended("gang", true)
	p.submit("a", "two", 2)
	p.wantOn("gang suspended, gang suspended, two 1+0, two 1+0")
	p.suspended("gang", false)
	p.decide("gang")
	p.wantOn("gang, gang, two 1+0, two 1+0")
}

// TestGangSlotsUnderTopology: a gang that is kept on one node uses the slots of one node, from which others leave for all of it.
func TestGangSlotsUnderTopology(t *testing.T) {
	rack := func(id, r string) *structs.Node {
		return schedtest.Node(id, sized(2000, 2000), func(n *structs.Node) { n.NodeResources.Cpu.TotalCpuCores, n.Meta["rack"] = 2, r })
	}
	for _, level := range []string{"node", "rack"} {
		p := newProjects(t)
		p.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
		p.configure()
		p.setNode(rack("n1", "r1"))
		p.setNode(rack("n2", "r2"))
		p.gives("a", 2)
		p.gives("b", 1)
		p.submit("b", "keeps", 1)
		p.submit("", "flood", 3)
		p.submit("a", "gang", 2, ganged(0), func(j *structs.Job) {
			j.TaskGroups[0].Topology = &structs.TopologyConstraint{Level: level, Required: true}
		})
		p.wantOn("flood, flood, flood, keeps 1+0")
		p.after(structs.DefaultGrace)
		p.decide("gang")
		if got := p.on(); got != "flood, gang 1+0, gang 1+0, keeps 1+0" {
			t.Errorf("%s: there run %s", level, got)
		}
	}
}

// TestGangSlotsFailed: what failed the submission check leaves for all of a gang's min, or not at all.
func TestGangSlotsFailed(t *testing.T) {
	for _, row := range []struct {
		level string
		count int
		want  string
	}{{"", 2, "gang, gang, other, other"}, {"", 3, "failed, failed, other, other"}, {"node", 2, "gang, gang, other, other"}} {
		p := newProjects(t)
		p.slotNode("n1", 2)
		p.slotNode("n2", 2)
		p.gives("a", 1)
		p.submit("", "other", 2)
		p.submit("stranger", "failed", 2)
		p.submit("", "gang", row.count, ganged(0), func(j *structs.Job) {
			if row.level != "" {
				j.TaskGroups[0].Topology = &structs.TopologyConstraint{Level: row.level, Required: true}
			}
		})
		if got := p.on(); got != row.want {
			t.Errorf("%+v: there run %s", row, got)
		}
	}
}

// TestGangSlotsThroughput: a gang starts only if its project does not run more instances with its min than complete its jobs in time; those above its
// min one by one.
func TestGangSlotsThroughput(t *testing.T) {
	for _, row := range []struct {
		before, count, least, want int
	}{{0, 3, 0, 3}, {0, 4, 0, 0}, {0, 5, 2, 3}, {1, 3, 0, 0}, {1, 3, 2, 2}} {
		p := newProjects(t)
		p.slotNode("n1", 16)
		p.projects["a"] = &structs.ProjectNow{
			Name: "a", Users: []string{"a"}, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 16}},
			Throughput: &structs.Throughput{Jobs: 18, Per: time.Hour}, MeanRun: 10 * time.Minute,
		}
		e := p.w.Edit()
		scheduler.SetProject(e, "a", p.projects["a"])
		p.w = e.World()
		if row.before > 0 {
			p.submit("a", "before", row.before)
		}
		p.submit("a", "gang", row.count, ganged(row.least))
		if n := p.running("gang"); n != row.want {
			t.Errorf("%+v: %d run", row, n)
		}
		if m := p.last.FailedTGAllocs["g"]; row.want < row.count && !waitsFor(m, "complete 18 in 1h0m0s") {
			t.Errorf("%+v: it waits as %+v", row, m)
		}
	}
}

// TestGangSlotsEntitled: a gang is entitled if its project has slots free for all of its min; one that runs already if there is a slot for one more.
func TestGangSlotsEntitled(t *testing.T) {
	for _, row := range []struct {
		given, count, least, missing, want int
		runs                               bool
	}{{2, 3, 0, 3, 0, false}, {3, 3, 0, 3, 3, false}, {2, 3, 2, 3, 2, false}, {1, 3, 2, 3, 0, false}, {2, 3, 1, 2, 1, true}, {4, 5, 4, 1, 0, true}} {
		p := newProjects(t)
		p.slotNode("n1", 8)
		p.gives("a", row.given)
		j := schedtest.Job(structs.JobTypeBatch, row.count, requests(50, 1000, 1000), func(j *structs.Job) {
			j.ID, j.Project, j.Submitter = "gang", "a", &structs.Submitter{User: "a"}
			j.TaskGroups[0].Gang = &structs.Gang{Min: row.least}
		})
		j.Canonicalize()
		if row.runs {
			p.submit("a", "gang", row.count-row.missing, ganged(min(row.least, row.count-row.missing)))
		}
		if n := scheduler.Entitled(p.w, j, "g", row.missing); n != row.want {
			t.Errorf("%+v: %d are entitled", row, n)
		}
		if c := scheduler.EntitlementOf(p.w, j, []string{"g"}); c.Free(p.w, 1) > 0 != (row.want > 0) {
			t.Errorf("%+v: its slots are free: %v", row, row.want == 0)
		}
	}
}

// TestGangSlotsJudged: a plan that would leave a gang with too few of its min on slots is refused.
func TestGangSlotsJudged(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 3)
	p.submit("a", "gang", 3, ganged(0))
	p.wantOn("gang 1+0, gang 1+0, gang 1+0")
	p.jobs["gang"].TaskGroups[0].Gang.OnLoss = structs.GangOnLossMember
	p.client(func(a *structs.Allocation) bool { return a.JobID == "gang" && a.Index() == 0 }, p.ended(true))
	p.job = schedtest.Job(structs.JobTypeBatch, 3, func(j *structs.Job) { *j = *p.jobs["gang"] })
	p.job.TaskGroups[0].ReschedulePolicy = &structs.ReschedulePolicy{Unlimited: new(true)}
	ev := p.newEval()
	ev.JobID, ev.Type = "gang", structs.JobTypeBatch
	plan, err := scheduler.Schedule(p.w, ev, p.input())
	if err != nil || placed(plan) != 1 || plan.Place[0].Resources.Shared.Terms.Claim != structs.ClaimSlots {
		t.Fatalf("the plan places %d (%v)", placed(plan), err)
	}
	// Meanwhile the others have lost their slots, and one is free again.
	p.gives("a", 0)
	p.gives("a", 1)
	judged, refused, why := scheduler.Judge(p.w.Edit(), plan)
	if len(refused) != 1 || len(judged.Place) > 0 || !strings.Contains(why, "gang") {
		t.Errorf("it is not refused: %v, %s", refused, why)
	}
}
