package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// workflows is a cluster with a workflow "wf", and jobs of its own and of others.
type workflows struct {
	*projects
	claim *structs.WorkflowClaim
}

// newWorkflows returns a cluster of a node of so many cores, all of which the workflow has reserved but rest.
func newWorkflows(t tester, cores, rest int, lend ...*structs.WorkflowLend) *workflows {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", cores)
	mhz := int64(1000 * (cores - rest))
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Lend: lend,
		Parts: []structs.WorkflowPart{{NodeID: "n1", CPU: mhz, MemoryMB: mhz, DiskMB: 3000}},
	}
	w.set()
	return w
}

// set has the claim count as it is now.
func (w *workflows) set() {
	c := *w.claim // the test changes its own
	c.Parts = slices.Clone(c.Parts)
	w.workflows = map[string]*structs.WorkflowClaim{c.Key(): &c}
	e := w.w.Edit()
	scheduler.SetWorkflow(e, &c)
	w.lose(e)
	w.checkWorld()
}

// stage submits the jobs of a stage, each of one instance of so many cores.
func (w *workflows) stage(name string, cores ...int) {
	for i, n := range cores {
		w.submit("", fmt.Sprintf("wf/1/%s%d", name, i), 1, requests(50, 1000*n, 1000*n), func(j *structs.Job) {
			j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: name}
		})
	}
}

// complete ends the jobs of a stage.
func (w *workflows) complete(name string) {
	w.client(func(a *structs.Allocation) bool { return !a.Terminal() && strings.HasPrefix(a.JobID, "wf/1/"+name) }, w.ended(false))
}

// flood submits a job of so many instances of a core that runs in a namespace, or has more of one run.
func (w *workflows) flood(namespace string, count int, change ...func(*structs.Job)) {
	w.submit("", "flood-"+namespace, count, append(change, func(j *structs.Job) { j.Namespace = namespace })...)
}

// again decides once more on a job that waits.
func (w *workflows) again(namespace string) { w.decide("flood-" + namespace) }

// part returns what the reservation holds of the node.
func (w *workflows) part() world.Part {
	n, _ := w.w.State("n1")
	p, _ := n.Part("default/wf")
	return p
}

// wantPart checks how many cores of the reservation are used, lent and idle.
func (w *workflows) wantPart(used, lent, idle int) {
	w.t.Helper()
	p := w.part()
	if got := [3]int64{p.Used.Amount.CPU / 1000, p.Lent.Amount.CPU / 1000, p.Idle.Amount.CPU / 1000}; got != [3]int64{int64(used), int64(lent), int64(idle)} {
		w.t.Fatalf("used, lent, idle: %v; want %d, %d, %d (there run %s)", got, used, lent, idle, w.on())
	}
}

// decide decides on a job in its own namespace.
func (w *workflows) decide(id string) int {
	w.t.Helper()
	w.job = w.jobs[id]
	ev := w.newEval()
	ev.JobID, ev.Namespace, ev.Type, ev.CreateTime = id, w.job.Namespace, structs.JobTypeBatch, w.since[id].UnixNano()
	plan := w.evaluate(ev)
	w.runAll()
	return placed(plan)
}

// TestWorkflowLends: part 5's golden example. Stages need 2, 6, 6, 8 (jobs 2; 2+3+1; 5+1; 8). Reserved 8. Lent by stage 6, 2, 2, 0; taken back at
// the start of each 0, 4, 0, 2.
func TestWorkflowLends(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:interns"})
	w.flood("others", 20)
	w.wantPart(0, 0, 8) // it lends to interns alone
	taken := func() int { return w.reclaimed()["flood-interns"] }
	for i, s := range []struct {
		jobs             []int
		used, lent, back int
	}{{[]int{2}, 2, 6, 0}, {[]int{2, 3, 1}, 6, 2, 4}, {[]int{5, 1}, 6, 2, 0}, {[]int{8}, 8, 0, 2}} {
		name, back := string(rune('a'+i)), 0
		for k, cores := range s.jobs {
			w.submit("", fmt.Sprintf("wf/1/%s%d", name, k), 1, requests(50, 1000*cores, 1000*cores), func(j *structs.Job) {
				j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: name}
			})
			back += taken()
		}
		if back != s.back {
			t.Fatalf("stage %d takes %d back, want %d", i+1, back, s.back)
		}
		if i == 0 {
			w.flood("interns", 20)
		}
		w.wantPart(s.used, s.lent, 0)
		w.complete(name)
	}
	w.again("interns")
	w.wantPart(0, 8, 0)
}

// TestWorkflowLendsByShare: in the first round each has no more than its share, by largest remainder: three groups 2:1:1 with 7 lent get 3, 2, 2. In the second one
// what nobody wanted is for those that have a share, and what is left in the third for the others. Without shares the first named comes first, and so on.
func TestWorkflowLendsByShare(t *testing.T) {
	for _, c := range []struct {
		name              string
		cores             int
		shares, wants     []int
		first, then, last []int // what each has after each round
	}{
		{"2:1:1", 7, []int{2, 1, 1}, []int{9, 9, 9}, []int{3, 2, 2}, []int{3, 2, 2}, []int{3, 2, 2}},
		{"unused", 8, []int{1, 1}, []int{9, 1}, []int{4, 1}, []int{7, 1}, []int{7, 1}},
		{"unused by one of three", 12, []int{2, 1, 1}, []int{12, 12, 1}, []int{6, 3, 1}, []int{7, 4, 1}, []int{7, 4, 1}},
		{"no share", 8, []int{1, 0, 1}, []int{3, 9, 3}, []int{3, 0, 3}, []int{3, 0, 3}, []int{3, 2, 3}},
		{"in order", 8, []int{0, 0, 0}, []int{3, 3, 3}, []int{3, 0, 0}, []int{3, 3, 0}, []int{3, 3, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lend []*structs.WorkflowLend
			for i, share := range c.shares {
				lend = append(lend, &structs.WorkflowLend{To: "namespace:" + string(rune('a'+i)), Share: share})
			}
			w := newWorkflows(t, c.cores, 0, lend...)
			for round, want := range [][]int{c.first, c.then, c.last} {
				w.lendRound = round + 1
				var got []int
				for i := range c.shares {
					namespace := string(rune('a' + i))
					if round == 0 {
						w.flood(namespace, c.wants[i])
					} else {
						w.again(namespace)
					}
				}
				for i := range c.shares {
					got = append(got, w.running("flood-"+string(rune('a'+i))))
				}
				if !slices.Equal(got, want) {
					t.Fatalf("round %d: %v run, want %v", round+1, got, want)
				}
			}
		})
	}
}

// TestWorkflowBesideRoom: who borrowed counts as lent only while the node has no other room for it.
func TestWorkflowBesideRoom(t *testing.T) {
	w := newWorkflows(t, 10, 2, &structs.WorkflowLend{To: "namespace:a"})
	w.flood("others", 4)
	w.wantPart(0, 0, 8)
	if n := w.running("flood-others"); n != 2 {
		t.Fatalf("%d run beside the reservation, want 2", n)
	}
	w.flood("a", 3)
	w.wantPart(0, 3, 5)
	w.ends("flood-others", 2)
	w.wantPart(0, 1, 7)
	w.stage("s", 7)
	if n := w.running("flood-a"); n != 3 {
		t.Errorf("%d of a run on, want 3: there is room beside", n)
	}
	w.wantPart(7, 1, 0)
}

// TestWorkflowTimeRule: a job whose limit is longer than the rest of the stage does not borrow, unless the workflow lends for longer.
func TestWorkflowTimeRule(t *testing.T) {
	limit := func(d time.Duration) func(*structs.Job) {
		return func(j *structs.Job) { j.TaskGroups[0].MaxRunDuration = d }
	}
	for _, c := range []struct {
		longer bool
		limit  time.Duration
		want   int
	}{{false, 10 * time.Minute, 4}, {false, 11 * time.Minute, 0}, {false, 0, 0}, {true, time.Hour, 4}, {true, 0, 4}} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a", LendLonger: c.longer})
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s0", Limit: 20 * time.Minute}}
		w.set()
		w.submit("", "wf/1/s0", 1, requests(50, 4000, 4000), limit(20*time.Minute), func(j *structs.Job) {
			j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"}
		})
		w.after(10 * time.Minute)
		w.flood("a", 4, limit(c.limit))
		if n := w.running("flood-a"); n != c.want {
			t.Errorf("limit %s, lend_longer %v: %d borrow, want %d", c.limit, c.longer, n, c.want)
		}
	}
}

// TestWorkflowSeveralBlocks: a job that several lend blocks name borrows by the first of them that permits it.
func TestWorkflowSeveralBlocks(t *testing.T) {
	limit := func(j *structs.Job) { j.TaskGroups[0].MaxRunDuration = 20 * time.Minute }
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"}, &structs.WorkflowLend{To: "node_pool:default", LendLonger: true})
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s0", Limit: 20 * time.Minute}}
	w.set()
	w.lendRound = 1 // the second block comes in the second round
	w.flood("a", 3)
	if n := w.running("flood-a"); n != 0 {
		t.Errorf("in the first round %d borrow by the second block", n)
	}
	w.lendRound = 2
	w.again("a")
	w.submit("", "short", 2, limit, func(j *structs.Job) { j.Namespace = "a" })
	if long, short := w.running("flood-a"), w.running("short"); long != 3 || short != 2 {
		t.Errorf("%d without a limit borrow, and %d with one", long, short)
	}
	to := scheduler.WorkflowUse(w.w, "default/wf").To
	if to[0].Amount.CPU != 2000 || to[1].Amount.CPU != 3000 {
		t.Errorf("by the first block %+v are lent, by the second %+v", to[0].Amount, to[1].Amount)
	}
}

// TestWorkflowHistory: a job without a limit borrows if 95 % of at least 5 runs of its user's were no longer than the rest of the stage, where the
// workflow lends by history.
func TestWorkflowHistory(t *testing.T) {
	runs := func(count int, took time.Duration) (out []time.Duration) {
		for range count {
			out = append(out, took)
		}
		return out
	}
	for i, c := range []struct {
		history bool
		runs    []time.Duration
		want    int
	}{
		{true, runs(5, 10*time.Minute), 4}, {true, runs(4, 10*time.Minute), 0}, {true, runs(5, 11*time.Minute), 0}, {false, runs(5, 10*time.Minute), 0},
		{true, append(runs(19, time.Minute), time.Hour), 4}, {true, append(runs(18, time.Minute), time.Hour, time.Hour), 0}, {true, nil, 0},
	} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a", History: c.history})
		w.took = map[string][]time.Duration{"ada": c.runs, "": runs(9, time.Minute)}
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s0", Limit: 10 * time.Minute}}
		w.set()
		w.flood("a", 4, func(j *structs.Job) { j.Submitter = &structs.Submitter{User: "ada"} })
		if n := w.running("flood-a"); n != c.want {
			t.Errorf("row %d: %d borrow, want %d", i, n, c.want)
		}
		w.submit("", "nobody", 4, func(j *structs.Job) { j.Namespace = "a" })
		if n := w.running("nobody"); n != 0 {
			t.Errorf("row %d: %d of a job without a user borrow", i, n)
		}
	}
}

// TestWorkflowLendMax: no more is lent at once than lend_max states.
func TestWorkflowLendMax(t *testing.T) {
	for _, most := range []structs.WorkflowResources{{Cores: 3}, {CPU: 3000}, {Cores: 2, CPU: 1000}} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
		w.claim.LendMax = &most
		w.set()
		w.flood("a", 8)
		w.wantPart(0, 3, 5)
		if to := scheduler.WorkflowUse(w.w, "default/wf").To[0]; to.Due.CPU+1000*to.Due.Cores != 3000 {
			t.Errorf("lend_max %+v: %+v may be lent", most, to.Due)
		}
	}
}

// TestWorkflowLendMaxExplained: whole cores are counted as such, too, where lend_max is reached: their MHz may be free all the same.
func TestWorkflowLendMaxExplained(t *testing.T) {
	core := func(j *structs.Job) { schedtest.Task(j).Resources = &structs.Resources{Cores: 1, MemoryMB: 10} }
	for _, c := range []struct {
		most structs.WorkflowResources
		want string
	}{
		{structs.WorkflowResources{Cores: 2}, "which lends no more at once than lend_max states, cores = 2"},
		{structs.WorkflowResources{CPU: 500}, "which lends no more at once than lend_max states, cpu = 500"},
	} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
		w.claim.Parts[0].Cores, w.claim.LendMax = 8, &c.most
		w.set()
		w.flood("a", 8, core)
		if reasons := w.explain().Group("g").Reasons; !slices.ContainsFunc(reasons, func(r structs.NodeReason) bool { return strings.Contains(r.Text, c.want) }) {
			t.Errorf("lend_max %+v: %+v", c.most, reasons)
		}
	}
}

// TestWorkflowRefusalExplained: who may not borrow learns why from the explanation of its job.
func TestWorkflowRefusalExplained(t *testing.T) {
	user := func(j *structs.Job) { j.Submitter = &structs.Submitter{User: "alice"} }
	lends := func(l structs.WorkflowLend) *structs.WorkflowLend { l.To = "namespace:a"; return &l }
	for _, c := range []struct {
		lend  *structs.WorkflowLend
		most  int64         // cores of lend_max
		limit time.Duration // of the job
		runs  int           // completed runs of its user, of an hour each
		want  string
	}{
		{lend: nil, want: "which lends to nobody"},
		{lend: &structs.WorkflowLend{To: "namespace:b"}, want: "which lends to namespace:b only, and this job is not of these"},
		{lend: lends(structs.WorkflowLend{}), limit: time.Hour,
			want: "which lends to namespace:a for the rest of its running stage only, at most 10m0s, and this job has a max_run_duration of 1h0m0s"},
		{lend: lends(structs.WorkflowLend{}),
			want: "which lends to namespace:a for the rest of its running stage only, at most 10m0s, and this job has no max_run_duration"},
		{lend: lends(structs.WorkflowLend{History: true}), runs: 4, want: "no max_run_duration: of its user 4 completed runs are known, and at least 5 must be"},
		{lend: lends(structs.WorkflowLend{History: true}), runs: 5, want: "no max_run_duration: 95 % of its user's completed runs took up to 1h0m0s"},
		{lend: lends(structs.WorkflowLend{LendLonger: true}), most: 3, want: "which lends no more at once than lend_max states, cores = 3"},
	} {
		w := newWorkflows(t, 8, 0)
		if c.lend != nil {
			w.claim.Lend = []*structs.WorkflowLend{c.lend}
		}
		if c.most > 0 {
			w.claim.LendMax = &structs.WorkflowResources{Cores: c.most}
		}
		w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s0", Limit: 20 * time.Minute}}
		w.set()
		w.submit("", "wf/1/s0", 1, requests(50, 4000, 4000), func(j *structs.Job) {
			j.TaskGroups[0].MaxRunDuration, j.Workflow = 20*time.Minute, &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"}
		})
		w.after(10 * time.Minute)
		w.flood("a", 4, user, func(j *structs.Job) { j.TaskGroups[0].MaxRunDuration = c.limit })
		if why, nodes := w.last.FailedTGAllocs["g"].MainReason(); why != "cpu: reserved by workflow default/wf" || nodes != 1 {
			t.Errorf("%+v: the queue states %q on %d nodes", c.lend, why, nodes)
		}
		in := scheduler.ExplainInput{Input: w.input()}
		in.UserRuns = func(string) []time.Duration { return slices.Repeat([]time.Duration{time.Hour}, c.runs) }
		x, err := scheduler.Explain(w.w, in)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range x.Group("g").Reasons {
			got = append(got, r.Text)
		}
		if want := "cpu, memory: what is free is reserved by workflow default/wf, "; !strings.Contains(strings.Join(got, "\n"), want) || !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%+v, limit %s: %q, want %q", c.lend, c.limit, got, c.want)
		}
		for _, wait := range x.Group("g").Waits {
			if strings.Contains(wait.Text, "lent by workflow") {
				t.Errorf("%+v: it is stated once more: %q", c.lend, wait.Text)
			}
		}
		if got := x.Group("g").Expected.Because; !strings.Contains(got, "workflows have reserved room") {
			t.Errorf("%+v, limit %s: expected start: %q", c.lend, c.limit, got)
		}
	}
}

// TestLendersExplained: whoever a lend block names learns why nothing is lent, also where nothing idles; nobody else learns of that workflow.
func TestLendersExplained(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
	w.stage("s", 8)
	for namespace, want := range map[string]bool{"a": true, "b": false} { // order does not matter: both wait
		w.flood(namespace, 2)
		text := "nothing is lent by workflow default/wf, of whose reservation nothing idles now: its own jobs and others that borrow use it"
		if got := slices.ContainsFunc(w.explain().Group("g").Waits, func(r structs.Wait) bool { return r.Text == text }); got != want {
			t.Errorf("namespace %s: %+v", namespace, w.explain().Group("g").Waits)
		}
	}
	w.claim.Closed = true
	w.set()
	borrows := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
	borrows.flood("a", 10)
	borrows.waitsAs("of whose reservation nothing idles now: its own jobs and others that borrow use it")
	if got := borrows.explain().Group("g").Waits; !slices.ContainsFunc(got, func(r structs.Wait) bool {
		return strings.HasPrefix(r.Text, "nothing more is lent by workflow default/wf,")
	}) {
		t.Errorf("%+v", got)
	}
	w.flood("a", 2)
	if got := w.explain().Group("g").Waits; !slices.ContainsFunc(got, func(r structs.Wait) bool {
		return strings.Contains(r.Text, "which lends nothing now, as a stage of it is about to start")
	}) {
		t.Errorf("%+v", got)
	}
}

// TestWorkflowPending: a reservation that is pending keeps what comes free from others, and takes nothing from who runs.
func TestWorkflowPending(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.claim.Posted = false
	w.claim.Parts = slices.Clone(w.claim.Parts)
	w.claim.Parts[0].CPU, w.claim.Parts[0].MemoryMB = 6000, 6000
	e := w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w = e.World()
	w.workflows = nil
	w.flood("a", 8)
	w.set()
	if n := w.running("flood-a"); n != 8 {
		t.Fatalf("%d run, want 8", n)
	}
	w.ends("flood-a", 6)
	w.flood("b", 3)
	if n := w.running("flood-b"); n != 0 {
		t.Errorf("%d of b run in what is kept", n)
	}
	w.ends("flood-a", 1)
	w.again("b")
	if n := w.running("flood-b"); n != 1 {
		t.Errorf("%d of b run beside what is kept, want 1", n)
	}
}

// TestWorkflowAwaits: what jobs of the running stage still have to take is not lent: those that were just registered, and those of which nothing is there
// for now, as they have ended and the next stage is about to start.
func TestWorkflowAwaits(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a", LendLonger: true})
	needs := structs.WorkflowPart{CPU: 5000, MemoryMB: 5000}
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/s0", Starting: true, Needs: needs}}
	w.set()
	w.flood("a", 8)
	w.wantPart(0, 3, 5)
	w.stage("s", 5)
	w.wantPart(5, 3, 0)
	w.claim.Jobs[0].Starting = false
	w.set()
	w.complete("s")
	w.again("a")
	w.wantPart(0, 3, 5)
	w.claim.Jobs = nil
	w.set()
	w.again("a")
	w.wantPart(0, 8, 0)
}

// TestWorkflowsTogether: a workflow that waits keeps what comes free beside what others have reserved, does not keep borrowers out of that, and has all of it
// at once when their runs end.
func TestWorkflowsTogether(t *testing.T) {
	w := newWorkflows(t, 8, 2, &structs.WorkflowLend{To: "namespace:a"})
	second := &structs.WorkflowClaim{
		Namespace: "default", ID: "second", Run: 1, NodePool: "default", Priority: 40,
		Parts: []structs.WorkflowPart{{NodeID: "n1", CPU: 8000, MemoryMB: 8000, DiskMB: 3000}},
	}
	e := w.w.Edit()
	scheduler.SetWorkflow(e, second)
	w.w = e.World()
	w.workflows[second.Key()] = second
	w.checkWorld()
	w.flood("b", 2)
	w.flood("a", 4)
	if a, b := w.running("flood-a"), w.running("flood-b"); a != 4 || b != 0 {
		t.Errorf("%d of a and %d of b run, want 4 that borrow, and none in what is kept", a, b)
	}
	w.ends("flood-a", 4)
	e = w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w = e.World()
	delete(w.workflows, "default/wf")
	w.again("b")
	if b := w.running("flood-b"); b != 0 {
		t.Errorf("%d of b run in what is kept", b)
	}
	if c := scheduler.ChooseReservation(w.w, second.Key(), "default", stagesOf([]int{8}), structs.WorkflowReserve{}, false); !c.Posted {
		t.Errorf("the second: %+v", c)
	}
}

// TestWorkflowBorrowersAreRaisedBeside: who borrows from a workflow is raised to cells of its namespace only where it has room beside the reservation: in it,
// nobody could take the room back. Then it borrows no more.
func TestWorkflowBorrowersAreRaisedBeside(t *testing.T) {
	for beside, want := range map[int64]int{0: 0, 3000: 3} {
		w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
		w.setNode(schedtest.Node("n1", schedtest.EightGPUs))
		all := w.nodes["n1"].NodeResources
		w.claim.Parts = []structs.WorkflowPart{{NodeID: "n1", CPU: all.Cpu.CpuShares, MemoryMB: all.Memory.MemoryMB, Devices: 0}}
		w.set()
		w.flood("a", 3, func(j *structs.Job) {
			j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1}}
		})
		if n := w.running("flood-a"); n != 3 {
			t.Fatalf("%d borrow, want 3", n)
		}
		w.claim.Parts = slices.Clone(w.claim.Parts)
		w.claim.Parts[0].CPU -= beside
		w.claim.Parts[0].MemoryMB -= beside
		w.set()
		e := w.w.Edit()
		e.SetQuotas("a", []world.Quota{{Chain: chainOf(t), Level: "node", Count: 1, Order: 1}})
		w.w = e.World()
		if due := len(scheduler.DueRaises(w.w, "a", func(structs.NamespacedID, string) bool { return true })); (due > 0) != (want > 0) {
			t.Errorf("with %d beside, %d jobs are to be raised", beside, due)
		}
		w.again("a")
		raised := 0
		for _, u := range world.Usages(w.w).All {
			if u.Owner.Terms.Claim == structs.ClaimCells {
				if raised++; u.Owner.Terms.WorkflowKey() != "" {
					t.Errorf("%s is raised, and borrows", u.ID)
				}
			}
		}
		if raised != want {
			t.Errorf("with %d MHz beside, %d are raised, want %d", beside, raised, want)
		}
	}
}

// TestWorkflowSharesDevices: instances of a workflow that share a device use one of those that are reserved.
func TestWorkflowSharesDevices(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.setNode(schedtest.Node("n1", schedtest.EightGPUs))
	w.claim.Parts = []structs.WorkflowPart{{NodeID: "n1", CPU: 8000, MemoryMB: 8000, DiskMB: 3000, Devices: 4}}
	w.set()
	w.submit("", "wf/1/s0", 2, func(j *structs.Job) {
		j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"}
		j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1, Share: 250}}
	})
	if p := w.part(); w.running("wf/1/s0") != 2 || p.Used.Devices != 1 || p.Idle.Devices != 3 {
		t.Errorf("%d run, %d devices are used and %d idle, want 1 and 3", w.running("wf/1/s0"), p.Used.Devices, p.Idle.Devices)
	}
}

// TestWorkflowSharedDevices: nobody else takes the rest of a device of which a borrower has a part: it would keep it when the borrower leaves.
func TestWorkflowSharedDevices(t *testing.T) {
	for _, namespace := range []string{"a", "b"} {
		w := &workflows{projects: newProjects(t)}
		w.setNode(schedtest.Node("n1", schedtest.EightGPUs))
		w.claim = &structs.WorkflowClaim{
			Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Lend: []*structs.WorkflowLend{{To: "namespace:a"}},
			Parts: []structs.WorkflowPart{{NodeID: "n1", Devices: 8}},
		}
		w.set()
		share := func(id, namespace string) int {
			w.submit("", id, 1, func(j *structs.Job) {
				j.Namespace = namespace
				schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "gpu", Count: 1, Share: 400}}
			})
			return w.running(id)
		}
		if n := share("first", "a"); n != 1 {
			t.Fatalf("%d borrow", n)
		}
		if n, want := share("second", namespace), map[string]int{"a": 1, "b": 0}[namespace]; n != want {
			t.Errorf("of namespace %s %d run, want %d: %s", namespace, n, want, w.on())
		}
	}
}

// ofStage makes a job one of the stage a of the workflow.
func ofStage(j *structs.Job) { j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "a"} }

// TestWorkflowGang: a gang of a workflow runs in its reservation, all of it; those who borrow leave for it, and a member that fails comes back there.
func TestWorkflowGang(t *testing.T) {
	gang := func(least int) func(*structs.Job) {
		return func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{Min: least} }
	}
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "node_pool:default", LendLonger: true})
	w.flood("default", 6)
	w.wantPart(0, 6, 2)
	w.submit("", "wf/1/a", 6, ofStage, gang(4))
	w.wantPart(6, 2, 0)
	w.client(func(a *structs.Allocation) bool { return a.JobID == "wf/1/a" && a.Name == "wf/1/a.g[5]" }, w.ended(true))
	w.again("default")
	w.wantPart(5, 3, 0)
	w.after(time.Hour)
	w.decide("wf/1/a")
	w.wantPart(6, 2, 0)
}

// TestWorkflowGangTopology: a gang is kept under one cell of the level that it requires, within the reservation.
func TestWorkflowGangTopology(t *testing.T) {
	for _, required := range []bool{true, false} {
		w := newWorkflows(t, 4, 0)
		w.slotNode("n2", 4)
		w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 4000, MemoryMB: 4000, DiskMB: 3000})
		w.set()
		w.stage("a", 2)
		w.submit("", "wf/1/gang", 4, ofStage, requests(50, 1000, 1000), func(j *structs.Job) {
			j.TaskGroups[0].Gang, j.TaskGroups[0].Topology = &structs.Gang{}, &structs.TopologyConstraint{Level: structs.LevelNode, Required: required}
		})
		on := map[string]int{}
		for _, a := range w.allocs {
			if a.JobID == "wf/1/gang" {
				on[a.NodeID]++
			}
		}
		if len(on) != 1 || on["n1"]+on["n2"] != 4 {
			t.Errorf("required %v: the gang is on %v", required, on)
		}
	}
}
