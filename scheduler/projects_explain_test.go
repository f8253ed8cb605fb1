package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// explained returns the explanation of a job that was submitted and has waited since.
func (p *projects) explained(id string) *structs.JobExplanation {
	p.t.Helper()
	p.job = p.jobs[id]
	in := p.input()
	if missing := p.job.TaskGroups[0].Count - p.running(id); missing > 0 {
		in.Requests = []*structs.PendingRequest{{JobID: id, Group: "g", Missing: missing, Since: p.since[id].UnixNano()}}
	}
	x, err := scheduler.Explain(p.w, scheduler.ExplainInput{Input: in})
	if err != nil {
		p.t.Fatal(err)
	}
	return x
}

// noSlotsOf returns the texts of why instances of a group use no slots, each with how many these are.
func noSlotsOf(g *structs.GroupExplanation) (list []string) {
	for _, w := range g.Waits {
		if w.Kind == structs.ReasonNoSlot {
			list = append(list, fmt.Sprintf("%d: %s", w.Instances, w.Text))
		}
	}
	return list
}

// TestExplainSubmission: the explanation of a job states what the submission check finds, whether its instances wait or run, and what to do about it.
func TestExplainSubmission(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 2)
	p.gives("chip", 1, structs.CalendarRow{Type: structs.SlotBatch, Step: "place", Count: 1})
	p.projects["chip"].Steps = []string{"place", "route"}
	p.gives("idle", 0)
	p.gives("gpus", 1, structs.CalendarRow{Type: "gpu", Count: 1})
	e := p.w.Edit()
	scheduler.SetProject(e, "chip", p.projects["chip"])
	p.w = e.World()
	by := func(user string) func(*structs.Job) {
		return func(j *structs.Job) {
			if j.Submitter = (&structs.Submitter{User: user}); user == "" {
				j.Submitter = nil
			}
		}
	}
	step := func(step string) func(*structs.Job) { return func(j *structs.Job) { j.Step = step } }
	for i, row := range []struct {
		project, found, want string
		change               []func(*structs.Job)
	}{
		{"chop", structs.SubmissionUnknownProject, `there is no project "chop": its requests go last; did you mean "chip"?`, nil},
		{"another", structs.SubmissionUnknownProject, `; correct project = in the job, or create the project`, nil},
		{"chip", structs.SubmissionNotAMember, `user "eve", who submits it, is not a member of project "chip": its requests go last; members are user chip: submit it`, []func(*structs.Job){by("eve")}},
		{"chip", structs.SubmissionNotAMember, `(job run -user NAME), and so is not a member of project "chip": its requests go last; members are user chip`, []func(*structs.Job){by("")}},
		{"chip", structs.SubmissionNoSuchStep, `project "chip" has no step "plce": its requests go last; did you mean "place"?`, []func(*structs.Job){step("plce")}},
		{"chip", structs.SubmissionNoSuchStep, `; its steps are place, route`, []func(*structs.Job){step("synthesis")}},
		{"idle", structs.SubmissionNoSuchStep, `; it has no steps: leave step = out of the job`, []func(*structs.Job){step("synthesis")}},
		{"chip", structs.SubmissionNoSlots, "; those that it has are for others, 1 batch (place, any): `nomadish project calendar -type batch -slots N -step route chip`", []func(*structs.Job){step("route")}},
		{"idle", structs.SubmissionNoSlots, "; nor has it any for other jobs: `nomadish project calendar -type batch -slots N idle` gives this job some", nil},
		{"gpus", structs.SubmissionNoSlots, `; it uses slots of type "batch", and those of the project are of type gpu`, nil},
		{"chip", structs.SubmissionRecognised, `project "chip" has slots for it this week`, []func(*structs.Job){step("place")}},
		{"", "", "", nil},
	} {
		for _, count := range []int{1, 3} { // they run; one waits at least
			id := fmt.Sprintf("j%d-%d", i, count)
			p.submit(row.project, id, count, row.change...)
			x := p.explained(id)
			if x.Submission != row.found || !strings.Contains(x.SubmissionText, row.want) {
				t.Errorf("%s: %q: %q, want %q: %q", id, x.Submission, x.SubmissionText, row.found, row.want)
			}
			p.ends(id, count)
		}
	}
}

// TestExplainBesideSlots: why instances run without a slot of their project is stated with the job and with the allocation.
func TestExplainBesideSlots(t *testing.T) {
	for _, row := range []struct {
		name, job string
		before    func(p *projects)
		want      string
		n         int
	}{
		{"in use", "own", func(p *projects) {
			p.submit("a", "first", 2)
			p.submit("a", "own", 2)
		}, `project "a" uses all 3 slots of type "batch" that this job may use this week (used: 2 by job "first", 1 by job "own")`, 1},
		{"cost", "wide", func(p *projects) {
			p.submit("a", "first", 1)
			p.submit("a", "wide", 1, requests(50, 3000, 1000))
		}, `it costs 3 slots of type "batch", and project "a" has 2 free in one row that this job may use this week (used: 1 by job "first")`, 1},
		{"opportunistic", "own", func(p *projects) {
			p.submit("a", "own", 1, func(j *structs.Job) { j.Class = structs.ClassOpportunistic })
		}, `its job states class = "opportunistic"`, 1},
		{"a node without slots", "own", func(p *projects) {
			p.setNode(noSlots(slotNodeOf("n1", 8)))
			p.submit("a", "own", 2)
		}, `its node offers no slots of type "batch"`, 2},
		{"slots of the node in use", "own", func(p *projects) {
			p.setNode(slotNodeOf("n1", 2))
			n := p.nodes["n1"].Copy()
			n.NodeResources.Memory.MemoryMB, n.NodeResources.Cpu.CpuShares = 8000, 8000
			n.NodeResources.Slots = map[string]int{structs.SlotBatch: 1}
			p.setNode(n)
			p.submit("a", "first", 1)
			p.submit("a", "own", 1)
		}, `all 1 slots of type "batch" that its node offers are in use there, guards included`, 1},
	} {
		p := newProjects(t)
		p.slotNode("n1", 8)
		p.gives("a", 3)
		row.before(p)
		want := fmt.Sprintf("%d: placed without a slot: %s", row.n, row.want)
		if got := noSlotsOf(p.explained(row.job).Group("g")); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s: %q, want %q; there run %s", row.name, got, want, p.on())
		}
		stated := 0
		for _, a := range p.sorted() {
			text := strings.Join(scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: p.config, World: p.w}).Text, "\n")
			if strings.Contains(text, "it uses no slot of its project: "+row.want) {
				stated++
			}
		}
		if stated != row.n {
			t.Errorf("%s: stated of %d allocations, want %d", row.name, stated, row.n)
		}
	}
}

// TestExplainMayLoseToSlots: an opportunistic allocation may leave for slots of projects; one that failed the submission check for any job; one on a
// slot, or that left as often as it must, for neither.
func TestExplainMayLoseToSlots(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 8)
	p.gives("a", 1)
	p.submit("", "normal", 1)
	p.submit("stranger", "failed", 1)
	p.submit("a", "own", 1)
	p.submit("", "immune", 1)
	p.client(func(a *structs.Allocation) bool { return a.JobID == "immune" }, func(a *structs.Allocation) { a.Requeues = p.config.RequeuesAllowed() })
	for job, want := range map[string]string{
		"normal": "jobs of projects that have free slots may take its place after the grace of these, whatever their priority (requeue)",
		"failed": "any job that passes the submission check, or names no project, may take its place at once, whatever its priority (requeue)",
		"own":    "", "immune": "",
	} {
		var got string
		for _, a := range p.sorted() {
			if a.JobID == job {
				for _, th := range scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: p.config, World: p.w}).MayLoseTo {
					if th.Kind == "claim" {
						got += th.Text
					}
				}
			}
		}
		if got != want {
			t.Errorf("%s: it may lose to %q, want %q", job, got, want)
		}
	}
}

// TestExplainGraceAndBeyond: of a request that waits for slots, those for which there are slots are told apart from those beyond, and when others leave is stated.
func TestExplainGraceAndBeyond(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 6)
	p.gives("a", 4)
	p.submit("", "flood", 6)
	p.after(time.Second)
	p.submit("a", "own", 6)
	since := p.now.UnixNano()
	p.after(time.Second)
	g := p.explained("own").Group("g")
	want := []string{
		`4: slots: no free slot of type "batch" has room; others leave for it after the grace of 1m0s`,
		`2: slots: project "a" has 4 slots of type "batch" that this job may use this week, which are too few for these instances`,
	}
	if got := noSlotsOf(g); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	ends := since + int64(structs.DefaultGrace)
	if g.Waits[0].Until != ends || g.Expected.First != ends || !strings.Contains(g.Expected.Because, "slots of its project") {
		t.Errorf("until %d, expected %+v, want %d", g.Waits[0].Until, g.Expected, ends)
	}
	p.after(structs.DefaultGrace)
	p.decide("own")
	g = p.explained("own").Group("g")
	want = []string{`2: slots: project "a" uses all slots of type "batch" that this job may use this week (used: 4 by job "own")`}
	if got := noSlotsOf(g); !slices.Equal(got, want) || g.Expected.First != 0 {
		t.Errorf("%q, expected %+v", got, g.Expected)
	}
}

// TestExplainEndsEntitledLast: a remedy ends what runs on slots of other projects only where nothing else helps, says so, and comes last; what runs
// on slots of the job's own project is the project's to end. Instances of one job are named together.
func TestExplainEndsEntitledLast(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 8)
	p.gives("a", 2)
	p.gives("b", 1)
	p.submit("a", "slots", 2)
	p.submit("", "flood", 6)
	p.submit("", "one", 1)
	p.submit("", "wide", 1, requests(50, 6000, 1000))
	p.submit("", "wider", 1, requests(50, 7000, 1000))
	ends := func(job string) (texts []string) {
		t.Helper()
		g := p.explained(job).Group("g")
		p.helps("g", g)
		for i, r := range g.Smallest {
			if r.Kind != structs.RemedyEnd {
				continue
			}
			if r.Entitled > 0 && i < len(g.Smallest)-1 {
				t.Errorf("%s: what others are guaranteed is to end in remedy %d of %d: %q", job, i+1, len(g.Smallest), r.Text)
			}
			texts = append(texts, fmt.Sprintf("%d of %d: %s", r.Entitled, len(r.Edits), r.Text))
		}
		return texts
	}
	if got := ends("one"); len(got) != 1 || !strings.HasPrefix(got[0], `0 of 1: let 1 allocation end: `) || !strings.Contains(got[0], ` on name-n1 (job "flood", priority 50)`) {
		t.Errorf("one: %q", got)
	}
	if got := ends("wide"); len(got) != 1 || !strings.HasPrefix(got[0], `0 of 6: let 6 allocations end: 6 instances of job "flood", priority 50: `) || !strings.Contains(got[0], " and 1 more") {
		t.Errorf("wide: %q", got)
	}
	if got := ends("wider"); len(got) != 1 || !strings.HasPrefix(got[0], `1 of 7: let 7 allocations end, 1 of them that is guaranteed to others: 6 instances of job "flood"`) ||
		!strings.Contains(got[0], `(job "slots", priority 50, on slots of project "a")`) {
		t.Errorf("wider: %q", got)
	}
	p.submit("a", "second", 1, requests(50, 7000, 1000))
	if got := ends("second"); len(got) != 1 || !strings.HasPrefix(got[0], `0 of 7: let 7 allocations end: 6 instances`) {
		t.Errorf("of the same project: %q", got)
	}
	full := newProjects(t)
	full.slotNode("n1", 2)
	full.gives("a", 2)
	full.submit("a", "slots", 2)
	full.submit("", "small", 1)
	g := full.explained("small").Group("g")
	if last := len(g.Smallest) - 1; last < 1 || g.Smallest[last].Entitled != 1 || g.Smallest[last].Size > g.Smallest[0].Size {
		t.Errorf("that which ends what is guaranteed is not the last one, though it is small: %+v", g.Smallest)
	}
	p.slotNode("n2", 1) // where something helps that nobody is guaranteed, nothing else is suggested
	p.submit("b", "other", 1)
	p.submit("", "two", 9, func(j *structs.Job) {
		j.TaskGroups[0].Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	})
	if got := ends("two"); len(got) != 1 || !strings.HasPrefix(got[0], `0 of 1: let 1 allocation end: `) {
		t.Errorf("on a node without and one with guaranteed ones: %q", got)
	}
}

// TestExplainPreemptionByJob: the allocations that could be preempted are counted by job.
func TestExplainPreemptionByJob(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 6)
	for i, n := range []int{2, 1, 1, 1, 1} {
		p.submit("", fmt.Sprint("low", i), n, ofPriority(10))
	}
	p.submit("", "high", 1)
	want := `6 allocations (2 of job "low0", 1 of job "low1", 1 of job "low2", 2 of other jobs) of lower bands`
	for _, w := range p.explained("high").Group("g").Waits {
		if w.Kind == structs.ReasonPreemption && strings.Contains(w.Text, want) {
			return
		}
	}
	t.Errorf("%+v", p.explained("high").Group("g").Waits)
}
