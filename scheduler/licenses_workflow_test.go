package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// licensedWorkflow is a cluster of 10 licenses, of which a workflow has reserved 6, with 4 of the 16 cores of a node; another node has room for all.
type licensedWorkflow struct{ *workflows }

func newLicensedWorkflow(t tester, lend ...*structs.WorkflowLend) *licensedWorkflow {
	w := &licensedWorkflow{newWorkflows(t, 16, 12, lend...)}
	w.slotNode("n2", 40)
	(&licenses{w.projects}).set("vcs", 10)
	w.claim.Licenses = []structs.RequestedLicense{{Name: "vcs", Count: 6}}
	w.set()
	return w
}

// others submits a job of a namespace of so many instances that use a license each, and little else.
func (w *licensedWorkflow) others(namespace, id string, count int, change ...func(*structs.Job)) {
	w.submit("", id, count, licensed(vcs(1), append(change, func(j *structs.Job) { j.Namespace = namespace })...))
}

// starts submits a job of a stage, of one instance with so many licenses.
func (w *licensedWorkflow) starts(id string, n int, change ...func(*structs.Job)) {
	w.submit("", "wf/1/"+id, 1, licensed(vcs(n), append(change, func(j *structs.Job) { j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: id} })...))
}

// share returns what the workflow has of the license.
func (w *licensedWorkflow) share() license.Share { return w.w.Licenses().ShareOf("vcs", "default/wf") }

func (w *licensedWorkflow) wantShare(used, lent, idle int64) {
	w.t.Helper()
	if s := w.share(); s.Used != used || s.Lent != lent || s.Idle != idle {
		w.t.Fatalf("%+v; want %d used, %d lent, %d idle (there run %s)", s, used, lent, idle, w.on())
	}
}

func (w *licensedWorkflow) waits() string { return (&licenses{w.projects}).waits() }

// TestLicensesReserved: must show 7. Of 10 licenses of which a workflow reserves 6 others have 4, and 10 while its stage needs none and lends; a stage
// that needs them has just enough back, and the borrowers run again after it.
func TestLicensesReserved(t *testing.T) {
	w := newLicensedWorkflow(t)
	w.others("interns", "a", 10, func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 2000 })
	w.wantShare(0, 0, 6)
	if n := w.running("a"); n != 4 || w.waits() != `license "vcs": 1 needed, 0 of 10 free, 6 reserved by workflow default/wf` {
		t.Fatalf("%d run; %q", n, w.waits())
	}
	if l := scheduler.LicenseUse(w.w, &structs.License{Name: "vcs", Count: 10}); l.Used != 4 || l.Free != 0 || l.Reserved != 6 {
		t.Errorf("%+v; want as many free as the explanation states", l)
	}
	if at := slices.IndexFunc(w.explain().Group("g").Smallest, func(r structs.Remedy) bool {
		return r.Kind == structs.RemedyLicense && r.All && r.Text == `6 more of license "vcs": count 16`
	}); at < 0 {
		t.Errorf("%+v", w.explain().Group("g").Smallest)
	}
	w.claim.Lend = []*structs.WorkflowLend{{To: "namespace:interns"}}
	w.set()
	w.decide("a")
	w.wantShare(0, 6, 0)
	t.Logf("%v %s", w.liveOn(), w.waits())
	if w.running("a") != 10 || w.liveOn()["n2"] == 0 {
		t.Fatalf("%d run: %s", w.running("a"), w.on()) // also where the workflow has reserved nothing
	}
	w.starts("s", 4)
	w.wantShare(4, 2, 0)
	if n := w.running("a"); n != 6 {
		t.Fatalf("%d of the borrowers run on, want 6", n)
	}
	w.complete("s")
	w.decide("a")
	w.wantShare(0, 6, 0)
	if n := w.running("a"); n != 10 {
		t.Errorf("%d of the borrowers run again", n)
	}
	users := func() []structs.LicenseUser {
		return scheduler.LicenseUsers(w.w, &structs.License{Name: "vcs", Count: 10}).Users
	}
	if got := users(); len(got) != 2 {
		t.Errorf("%+v; want those who may borrow, and the others", got)
	}
	e := w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w = e.World()
	if got := users(); len(got) != 1 || got[0].Borrows != "" || got[0].Count != 10 {
		t.Errorf("%+v; want one user, as nothing is borrowed of a workflow that has ended", got)
	}
}

// TestLicensesReservedExplained: an explanation states what workflows have reserved of a license, and a count that would do: what comes beside a
// reservation that is lent is reserved first.
func TestLicensesReservedExplained(t *testing.T) {
	for _, posted := range []bool{true, false} {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:interns"})
		w.others("interns", "a", 10)
		reserved := "; workflow default/wf has reserved 6, of which it uses 0 and lends 6"
		if !posted {
			w.claim.Posted, reserved = false, "; workflow default/wf, which waits for its reservation, is to have 6"
			w.set()
			if l := scheduler.LicenseUse(w.w, &structs.License{Name: "vcs", Count: 10}); l.Used+l.Free != 10 || l.Reserved != 0 {
				t.Errorf("%+v", l)
			}
			if k := scheduler.WorkflowKeeps(w.w, "default/wf"); len(k) == 0 || k[0].NodeID != "" || k[0].Amount.Licenses["vcs"] != 6 {
				t.Errorf("the licenses that it keeps as they come free are not listed: %+v", k)
			}
		}
		w.others("others", "c", 2)
		x := w.explain().Group("g")
		if !slices.ContainsFunc(x.Waits, func(w structs.Wait) bool {
			return w.Kind == structs.ReasonLicense && strings.HasSuffix(w.Text, reserved)
		}) {
			t.Errorf("%+v; want %q", x.Waits, reserved)
		}
		if !slices.ContainsFunc(x.Smallest, func(r structs.Remedy) bool { return r.All && r.Text == `8 more of license "vcs": count 18` }) {
			t.Errorf("%+v", x.Smallest)
		}
	}
}

// TestLicensesLentByShare: of 10 licenses a workflow lends 6 to two groups 1:1. In the first round each borrows 3, however many it wants, in the second
// one what the other has not wanted.
func TestLicensesLentByShare(t *testing.T) {
	w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a", Share: 1}, &structs.WorkflowLend{To: "namespace:b", Share: 1})
	w.others("others", "o", 4)
	w.lendRound = 1
	w.others("a", "a", 9)
	w.others("b", "b", 1)
	w.wantShare(0, 4, 2)
	if a, b := w.running("a"), w.running("b"); a != 3 || b != 1 {
		t.Fatalf("%d of a and %d of b run, want 3 and 1", a, b)
	}
	w.lendRound = 2
	w.decide("a")
	w.wantShare(0, 6, 0)
}

// TestLicensesLent: who borrows, and how much, goes by the rules of lending.
func TestLicensesLent(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*structs.WorkflowClaim)
		want   int
	}{
		{"all", func(*structs.WorkflowClaim) {}, 10},
		{"lend_max", func(c *structs.WorkflowClaim) {
			c.LendMax = &structs.WorkflowResources{Licenses: map[string]int64{"vcs": 2}}
		}, 6},
		{"closed", func(c *structs.WorkflowClaim) { c.Closed = true }, 4},
		{"to others", func(c *structs.WorkflowClaim) { c.Lend = []*structs.WorkflowLend{{To: "namespace:b"}} }, 4},
		{"time rule", func(c *structs.WorkflowClaim) { c.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s", Limit: 1}} }, 4},
		{"awaited", func(c *structs.WorkflowClaim) {
			c.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s", Starting: true, Licenses: []structs.RequestedLicense{{Name: "vcs", Count: 5}}}}
		}, 5},
		{"pending", func(c *structs.WorkflowClaim) { c.Posted = false }, 4},
		{"without licenses", func(c *structs.WorkflowClaim) { c.Licenses = nil }, 10},
	} {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
		claim := *w.claim
		w.claim = &claim
		c.change(w.claim)
		w.set()
		if w.others("a", "a", 12); w.running("a") != c.want {
			t.Errorf("%s: %d run, want %d: %s", c.name, w.running("a"), c.want, w.waits())
		}
	}
}

// TestLicensesTakenBack: who leaves for a stage that starts is just enough, by the shares; suspended if its job states so, wherever it runs.
func TestLicensesTakenBack(t *testing.T) {
	for _, c := range []struct{ share, need, a, b int }{{1, 4, 2, 2}, {0, 4, 3, 1}, {0, 5, 3, 2}, {1, 0, 0, 0}} {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a", Share: c.share}, &structs.WorkflowLend{To: "namespace:b", Share: c.share})
		w.others("c", "c", 4)
		suspend := func(j *structs.Job) { j.Reclaim = structs.ReclaimSuspend }
		w.others("a", "a", 3, suspend)
		w.others("b", "b", 3)
		w.wantShare(0, 6, 0)
		stage := scheduler.WorkflowStage{schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(c.need)))}
		if c.need == 0 {
			stage = scheduler.WorkflowStage{schedtest.Job(structs.JobTypeBatch, 1, requests(50, 50, 100))}
		}
		stage[0].Canonicalize()
		start, got := scheduler.StartStage(w.w, "default/wf", stage, w.now.UnixNano()), map[string]int{}
		for _, s := range start.Stops {
			u := w.allocs[s.AllocID]
			if got[u.JobID]++; (s.DesiredStatus == structs.AllocDesiredSuspend) != (u.JobID == "a") {
				t.Errorf("%+v", *s)
			}
		}
		if got["a"] != c.a || got["b"] != c.b || got["c"] != 0 || start.Lacking {
			t.Errorf("shares of %d, %d needed: %v leave", c.share, c.need, got)
		}
	}
}

// TestLicensesToReserve: a workflow reserves its licenses with its nodes, whole or not at all, and says which are missing; a plan that counts on what
// somebody else has got by then does not hold.
func TestLicensesToReserve(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 16)
	l := &licenses{w.projects}
	l.set("vcs", 10)
	stage := func(n int) scheduler.WorkflowStage {
		j := schedtest.Job(structs.JobTypeBatch, 2, licensed(vcs(n)))
		j.Canonicalize()
		return scheduler.WorkflowStage{j}
	}
	rule := structs.WorkflowReserve{Rule: structs.ReserveMax}
	choose := func(kept bool, stages ...scheduler.WorkflowStage) scheduler.WorkflowChoice {
		return scheduler.ChooseReservation(w.w, "default/wf", "default", stages, rule, kept)
	}
	want := []structs.RequestedLicense{{Name: "vcs", Count: 6}}
	free := choose(false, stage(1), stage(3))
	if !free.Posted || !slices.Equal(free.Licenses, want) {
		t.Fatalf("%+v", free)
	}
	l.submit("", "a", 5, licensed(vcs(1)))
	if c := choose(false, stage(3)); c.Posted || len(c.Parts) == 0 || !slices.Equal(c.Licenses, want) || c.Missing != `there is not enough free: 1 of license "vcs" is missing` {
		t.Errorf("5 of 10 used: %+v", c)
	}
	if c := choose(true, stage(3)); c.Posted || len(c.Parts)+len(c.Licenses) > 0 {
		t.Errorf("while another one keeps what comes free: %+v", c)
	}
	if c := choose(false, stage(6)); c.Posted || len(c.Parts)+len(c.Licenses) > 0 || c.Missing != `12 of license "vcs" are to be reserved, and there are 10` {
		t.Errorf("more than there are: %+v", c)
	}
	rule.Amounts = &structs.WorkflowResources{Licenses: map[string]int64{"spice": 1}}
	if c := choose(false, stage(1)); c.Posted || !strings.Contains(c.Missing, `there is no license "spice"`) {
		t.Errorf("of one that does not exist: %+v", c)
	}
	claim := &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default"}
	e := w.w.Edit()
	scheduler.SetWorkflow(e, claim)
	judge := func(n int64) string {
		judged, _, why := scheduler.Judge(e, &structs.Plan{Namespace: "default", JobID: "wf", Workflow: &structs.WorkflowReservation{
			Namespace: "default", ID: "wf", Run: 1, Posted: true, Parts: free.Parts, Licenses: []structs.RequestedLicense{{Name: "vcs", Count: n}},
		}})
		if (judged.Workflow == nil) != (why != "") {
			t.Errorf("%+v, %q", judged, why)
		}
		return why
	}
	if why := judge(6); why != `workflow wf: license "vcs": 6 needed, 5 of 10 free to be reserved` {
		t.Errorf("%q", why)
	}
	if why := judge(5); why != "" {
		t.Errorf("%q", why)
	}
}

// TestLicensesPending: a reservation that is pending keeps what comes free, from all but those who have a claim.
func TestLicensesPending(t *testing.T) {
	w := newLicensedWorkflow(t)
	w.others("a", "a", 3)
	claim := *w.claim
	claim.Posted, claim.Licenses = false, []structs.RequestedLicense{{Name: "vcs", Count: 8}}
	w.claim = &claim
	w.set()
	if w.others("b", "b", 1); w.running("b") != 1 { // 10, of which 3 are used and 8 kept
		return
	}
	t.Errorf("it is given away: %s", w.on())
}

// TestLicensesOfBands: a higher band takes just as many licenses from lower bands as it lacks, wherever these run.
func TestLicensesOfBands(t *testing.T) {
	of := func(priority int) func(*structs.Job) { return func(j *structs.Job) { j.Priority = priority } }
	l := newLicenses(t, map[string]int64{"vcs": 10})
	l.config.PreemptionConfig.BatchSchedulerEnabled = true
	l.configure()
	l.submit("", "low", 3, licensed(vcs(2), of(10)))
	l.submit("", "lower", 4, licensed(vcs(1), of(5)))
	if l.submit("", "same", 1, licensed(vcs(1), of(30))); l.running("same") != 0 {
		t.Error("it took from its own band")
	}
	l.submit("", "high", 1, licensed(vcs(5), of(90)))
	// the four of priority 5 and one of 10 are walked; of what is left over nobody can have anything back
	if got := [3]int{l.running("high"), l.running("low"), l.running("lower")}; got != [3]int{1, 2, 1} {
		t.Errorf("high, low, lower: %v", got)
	}
	l.submit("", "too-high", 1, licensed(vcs(11), of(90)))
	if got := [3]int{l.running("too-high"), l.running("low"), l.running("lower")}; got != [3]int{0, 2, 1} {
		t.Errorf("stopped though nothing is gained: %v", got)
	}
}

// TestLicensesConserve: whatever stages, borrowers and others do, what is reserved is used, lent and idle, each license once; others never use what is
// reserved and not lent; who leaves for a stage is enough, and none of them could stay.
func TestLicensesConserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a", Share: 2}, &structs.WorkflowLend{To: "namespace:b", Share: 1})
		w.config.PreemptionConfig.BatchSchedulerEnabled = rapid.Bool().Draw(t, "bands")
		w.configure()
		jobs, stage := 0, 0
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				w.complete("s")
				stage++
				if n := rapid.IntRange(1, 6).Draw(t, "needs"); w.share().Idle+w.share().Lent >= int64(n) {
					w.startsMinimal(n)
					if w.starts(fmt.Sprintf("s%d", stage), n); w.running(fmt.Sprintf("wf/1/s%d", stage)) != 1 {
						t.Fatalf("the stage waits: %s; %s", w.waits(), w.on())
					}
				}
			case 1:
				w.complete("s")
			case 2, 3:
				jobs++
				n := rapid.IntRange(1, 3).Draw(t, "each")
				w.submit("", fmt.Sprintf("j%d", jobs), rapid.IntRange(1, 5).Draw(t, "count"), licensed(vcs(n), func(j *structs.Job) {
					j.Namespace = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
					j.Priority = rapid.SampledFrom([]int{20, 50, 90}).Draw(t, "priority")
					j.Reclaim = rapid.SampledFrom([]string{"", structs.ReclaimSuspend}).Draw(t, "reclaim")
					j.TaskGroups[0].Tasks[0].Resources.CPU = rapid.SampledFrom([]int{50, 2000}).Draw(t, "cpu")
					if least := rapid.IntRange(0, j.TaskGroups[0].Count).Draw(t, "gang"); least > 0 {
						gangOf(least)(j)
					}
				}))
			case 4:
				if jobs > 0 {
					w.ends(fmt.Sprintf("j%d", rapid.IntRange(1, jobs).Draw(t, "job")), rapid.IntRange(1, 3).Draw(t, "end"))
				}
			case 5:
				if jobs > 0 {
					w.decide(fmt.Sprintf("j%d", rapid.IntRange(1, jobs).Draw(t, "again")))
				}
			case 6:
				w.claim.Closed = !w.claim.Closed
				w.set()
			}
			w.licensesConserved()
			w.gangsWhole()
			w.conserved()
		}
		w.complete("s")
		w.client(func(a *structs.Allocation) bool { return !a.Terminal() }, w.ended(false))
		w.wantShare(0, 0, 6)
	})
}

// uses counts, from the allocations alone, what the workflow's own instances, borrowers and others use.
func (w *licensedWorkflow) uses() (own, borrowed, others int64) {
	for _, a := range w.allocs {
		if a.Terminal() || a.Suspended() {
			continue
		}
		t := a.AllocatedResources.Shared.Terms
		for _, r := range t.Licenses.List() {
			switch {
			case strings.HasPrefix(a.JobID, "wf/"):
				own += r.Count
			case t.BorrowsFrom() != "":
				borrowed += r.Count
			default:
				others += r.Count
			}
		}
	}
	return own, borrowed, others
}

func (w *licensedWorkflow) licensesConserved() {
	w.t.Helper()
	own, borrowed, others := w.uses()
	s := w.share()
	switch beside := 10 - own - borrowed - others; {
	case s.Used != own || s.Used+s.Lent+s.Idle != 6 || s.Lent > borrowed || s.Idle > beside:
		w.t.Fatalf("%+v; %d used by the workflow, %d by borrowers, %d by others", s, own, borrowed, others)
	case others > 4:
		w.t.Fatalf("others use %d, and only 4 are not reserved", others)
	}
}

// startsMinimal checks who would leave for a stage of one instance that needs so many licenses, by sums alone.
func (w *licensedWorkflow) startsMinimal(n int) {
	w.t.Helper()
	j := schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(n)))
	j.Canonicalize()
	start := scheduler.StartStage(w.w, "default/wf", scheduler.WorkflowStage{j}, w.now.UnixNano())
	own, borrowed, others := w.uses()
	free := 10 - own - borrowed - others
	leave, victims := map[string][]string{}, map[string]int64{} // by who leaves together
	lent := map[string]bool{}
	for _, s := range start.Stops {
		a := w.allocs[s.AllocID]
		with := s.AllocID
		if runs := w.running(a.JobID); a.AllocatedResources.Shared.Terms.Gang != "" && w.leaveOf(start.Stops, a.JobID) == runs+w.suspendedOf(a.JobID) {
			with = a.JobID // all of its gang
		}
		leave[with] = append(leave[with], s.AllocID)
		lent[with] = lent[with] || a.AllocatedResources.Shared.Terms.BorrowsFrom() == "default/wf"
		if a.Suspended() {
			continue
		}
		for _, r := range a.AllocatedResources.Shared.Terms.Licenses.List() {
			victims[with] += r.Count
			free += r.Count
		}
	}
	if free < int64(n) || start.Lacking {
		w.t.Fatalf("%d are needed, and %d free when %v have left", n, free, victims)
	}
	part := w.part()
	for _, with := range slices.Sorted(maps.Keys(leave)) {
		if !lent[with] {
			w.t.Fatalf("%s leaves, and has borrowed nothing", with)
		}
		onNode := part.Idle.Amount.CPU < 50 && slices.ContainsFunc(leave[with], func(id string) bool { return w.allocs[id].NodeID == "n1" })
		if !onNode && free-victims[with] >= int64(n) {
			w.t.Fatalf("%d are needed, and %s could stay of %v", n, with, victims)
		}
	}
}

// leaveOf counts the instances of a job among those that stop.
func (w *licensedWorkflow) leaveOf(stops []*structs.AllocStop, job string) (n int) {
	for _, s := range stops {
		if w.allocs[s.AllocID].JobID == job {
			n++
		}
	}
	return n
}

// suspendedOf counts the suspended instances of a job.
func (w *licensedWorkflow) suspendedOf(job string) (n int) {
	for _, a := range w.allocs {
		if a.JobID == job && !a.Terminal() && a.Suspended() {
			n++
		}
	}
	return n
}

// gangsWhole checks that of each gang as many run as must, or nobody. Those that have ended are not replaced: their work is done.
func (w *licensedWorkflow) gangsWhole() {
	w.t.Helper()
	runs, done, least := map[string]int{}, map[string]int{}, map[string]int{}
	for _, a := range w.allocs {
		terms := a.AllocatedResources.Shared.Terms
		switch {
		case terms.Gang == "":
		case a.ClientStatus == structs.AllocClientComplete && !a.ServerTerminal():
			done[a.JobID]++
		case !a.Terminal() && !a.Suspended():
			runs[a.JobID], least[a.JobID] = runs[a.JobID]+1, terms.GangMin
		}
	}
	for job, n := range runs { // any: the order does not matter
		if n+done[job] < least[job] {
			w.t.Fatalf("%d members of the gang %s run and %d are done, of at least %d: %s", n, job, done[job], least[job], w.on())
		}
	}
}

// TestLicensesMoreForBorrower: who may borrow has to have fewer more of a license than who may not: the count that an explanation names is the least.
func TestLicensesMoreForBorrower(t *testing.T) {
	w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:interns"})
	w.starts("s", 1)
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s"}}
	w.set()
	w.others("interns", "a", 13)
	x := w.explain().Group("g")
	if !slices.ContainsFunc(x.Smallest, func(r structs.Remedy) bool { return r.All && r.Text == `4 more of license "vcs": count 14` }) {
		t.Errorf("%d run: %+v", w.running("a"), x.Smallest)
	}
}
