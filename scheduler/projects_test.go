package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// projects is a cluster with projects, each of one user of the same name, and many jobs.
type projects struct {
	*cluster
	jobs  map[string]*structs.Job
	since map[string]time.Time // of the requests that wait
}

func newProjects(t tester) *projects {
	p := &projects{newCluster(t), map[string]*structs.Job{}, map[string]time.Time{}}
	p.projects = map[string]*structs.ProjectNow{}
	p.configure()
	return p
}

// gives gives a project slots.
func (p *projects) gives(name string, count int, rows ...structs.CalendarRow) {
	if rows == nil && count > 0 {
		rows = []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}}
	}
	p.becomes(&structs.ProjectNow{Name: name, Users: []string{name}, Rows: rows})
}

// becomes states what a project is now.
func (p *projects) becomes(now *structs.ProjectNow) {
	name := now.Name
	p.projects[name] = now
	e := p.w.Edit()
	scheduler.SetProject(e, name, p.projects[name])
	for _, id := range e.LostClaims() { // their rows are the state's to change
		a := *p.allocs[id]
		terms := a.AllocatedResources.Shared.Terms.Opportunistic()
		a.AllocatedResources = a.AllocatedResources.Copy()
		a.AllocatedResources.Shared.Terms, p.allocs[id] = &terms, &a
	}
	p.w = e.World()
}

// slotNode adds a node of so many cores of 1000 MHz with 1000 MiB each.
func (p *projects) slotNode(id string, cores int) { p.setNode(slotNodeOf(id, cores)) }

func slotNodeOf(id string, cores int) *structs.Node {
	return schedtest.Node(id, sized(int64(1000*cores), int64(1000*cores)), func(n *structs.Node) { n.NodeResources.Cpu.TotalCpuCores = uint16(cores) })
}

// submit submits a job of a project ("": of none) of so many instances, each of a core, unless it is changed.
func (p *projects) submit(project, id string, count int, change ...func(*structs.Job)) {
	j := schedtest.Job(structs.JobTypeBatch, count, requests(50, 1000, 1000), func(j *structs.Job) {
		j.ID, j.Project = id, project
		if project != "" {
			j.Submitter = &structs.Submitter{User: project}
		}
	})
	for _, f := range change {
		f(j)
	}
	j.Canonicalize()
	p.jobs[id], p.since[id] = j, p.now
	p.decide(id)
}

// suspended has a job's allocations suspended by hand, or resumed.
func (p *projects) suspended(job string, to bool) {
	p.client(func(a *structs.Allocation) bool { return a.JobID == job }, func(a *structs.Allocation) {
		a.DesiredTransition.Suspend = &to
		if to {
			a.DesiredStatus, a.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientSuspended
		}
	})
}

// decide decides on a job, and returns how many of its instances the plan places.
func (p *projects) decide(id string) int {
	p.t.Helper()
	p.job = p.jobs[id]
	ev := p.newEval()
	ev.JobID, ev.Type, ev.CreateTime = id, structs.JobTypeBatch, p.since[id].UnixNano()
	plan := p.evaluate(ev)
	p.runAll()
	if p.running(id) < p.job.TaskGroups[0].Count && len(plan.FailedTGAllocs) == 0 {
		p.t.Fatalf("%s: %d run, and nothing waits", id, p.running(id))
	}
	return placed(plan)
}

// after lets time pass.
func (p *projects) after(d time.Duration) { p.now = p.now.Add(d) }

// runAll has everything run.
func (p *projects) runAll() {
	p.client(func(a *structs.Allocation) bool {
		return a.ClientStatus == structs.AllocClientPending && a.DesiredStatus == structs.AllocDesiredRun
	}, run)
	p.client(func(a *structs.Allocation) bool { return a.ServerTerminal() && !a.ClientTerminal() }, func(a *structs.Allocation) {
		a.ClientStatus = structs.AllocClientComplete
	})
}

// running counts the running instances of a job.
func (p *projects) running(id string) (n int) {
	for _, a := range p.allocs {
		if a.JobID == id && !a.Terminal() && !a.Suspended() {
			n++
		}
	}
	return n
}

// ends ends so many instances of a job.
func (p *projects) ends(id string, n int) {
	p.client(func(a *structs.Allocation) bool {
		if a.JobID != id || a.Terminal() || n == 0 {
			return false
		}
		n--
		return true
	}, p.ended(false))
}

// on describes what runs: the job, whether it is on slots, and its guards.
func (p *projects) on() string {
	var list []string
	for _, a := range p.sorted() {
		if a.Terminal() {
			continue
		}
		t, text := a.AllocatedResources.Shared.Terms, a.JobID
		switch {
		case a.Suspended():
			text += " suspended"
		case t.Claim == structs.ClaimSlots && t.Slots.Light:
			text += " light"
		case t.Claim == structs.ClaimSlots:
			text += fmt.Sprintf(" %d+%d", t.Slots.Cost, t.Slots.Guards)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (p *projects) wantOn(want string) {
	p.t.Helper()
	if got := p.on(); got != want {
		p.t.Fatalf("there run %s; want %s", got, want)
	}
}

// TestSlotsGuards: part 4's golden example of guards. A node of 16 GiB with 4 slots of 4 GiB, a 12 GiB job: 1 slot + 2 guards; one standard job
// more may land, a second 12 GiB job may not; without the standard job a light one of 1 GiB may run in a guard.
func TestSlotsGuards(t *testing.T) {
	p := newProjects(t)
	p.node("n1", sized(4000, 16_384))
	p.gives("a", 4)
	memory := func(cpu, mb int) func(*structs.Job) { return requests(50, cpu, mb) }
	p.submit("a", "big", 1, memory(1000, 12_288))
	p.wantOn("big 1+2")
	p.submit("a", "big2", 1, memory(1000, 12_288))
	p.wantOn("big 1+2")
	p.submit("a", "light", 1, memory(250, 1024))
	p.wantOn("big 1+2, light light")
	p.ends("light", 1)
	p.submit("a", "standard", 1, memory(1000, 4096))
	p.wantOn("big 1+2, standard 1+0")
}

// TestSlotsCost: a 64-core job costs 64 slots of one core, whether it states cores or the processor of as many.
func TestSlotsCost(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 128)
	p.gives("a", 127)
	p.submit("a", "wide", 1, requests(50, 64_000, 1000))
	p.wantOn("wide 64+0")
	p.submit("a", "second", 1, requests(50, 64_000, 1000)) // free room, and no slots: opportunistic
	p.wantOn("second, wide 64+0")
}

// TestSlotsTakeover: after the grace, and not before, an entitled instance has one opportunistic one leave, in the same plan; never more than the
// project has slots, and never one that is on a slot.
func TestSlotsTakeover(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 2)
	p.submit("", "flood", 4)
	p.after(time.Second)
	p.submit("a", "own", 3)
	p.wantOn("flood, flood, flood, flood")
	if at := p.last.Evals[1].WaitUntil; !at.Equal(p.now.Add(structs.DefaultGrace)) {
		t.Errorf("it is to be looked at again at %s, want %s", at, p.now.Add(structs.DefaultGrace))
	}
	p.after(structs.DefaultGrace - time.Second)
	p.decide("own")
	p.wantOn("flood, flood, flood, flood")
	p.after(time.Second)
	if n := p.decide("own"); n != 2 {
		t.Errorf("%d are placed", n)
	}
	p.wantTaken(map[string]int{"flood": 2})
	p.wantOn("flood, flood, own 1+0, own 1+0")
	for _, s := range p.last.Stop {
		if s.RequeueReason != "reclaimed for a slot of project a" || s.DesiredStatus != structs.AllocDesiredEvict {
			t.Errorf("%+v", s)
		}
	}
	p.gives("b", 2)
	p.submit("b", "others", 2)
	p.after(structs.DefaultGrace)
	p.decide("others")
	p.wantOn("others 1+0, others 1+0, own 1+0, own 1+0")
	p.decide("own")
	p.decide("flood")
	p.wantOn("others 1+0, others 1+0, own 1+0, own 1+0")
}

// TestSlotsVictims: the order in which others leave. Those that failed the submission check go first, immune or not; then the lowest band; then
// what started in the latest cycle; then the project that is furthest over its slots, then the one with most
// pending instances; then what has used the least; and nobody who is immune.
func TestSlotsVictims(t *testing.T) {
	for _, row := range []struct {
		name   string
		submit func(p *projects)
		want   string
	}{
		{"failed first", func(p *projects) {
			p.submit("", "low", 1, func(j *structs.Job) { j.Priority = 1 })
			p.submit("nobody", "failed", 1, func(j *structs.Job) { j.Priority = 99 })
			p.after(time.Minute)
			p.submit("", "late", 2)
		}, "failed"},
		{"lowest band", func(p *projects) {
			p.submit("", "low", 1, func(j *structs.Job) { j.Priority = 1 })
			p.after(time.Minute)
			p.submit("", "late", 3)
		}, "low"},
		{"latest cycle", func(p *projects) {
			p.submit("", "early", 3)
			p.after(time.Minute)
			p.submit("", "late", 1)
		}, "late"},
		{"furthest over", func(p *projects) {
			p.gives("b", 1)
			p.submit("b", "one", 1)
			p.submit("b", "beyond", 2) // on free room: two over
			p.submit("", "other", 1)   // of a project without slots, that runs one
		}, "beyond"},
		{"most pending", func(p *projects) {
			p.gives("b", 1)
			p.gives("c", 2)
			p.submit("b", "beyond", 2, func(j *structs.Job) { j.ID, j.Class = "beyond", structs.ClassOpportunistic })
			p.submit("c", "further", 2, func(j *structs.Job) { j.ID, j.Class = "further", structs.ClassOpportunistic })
			p.gives("c", 1)
			p.pending = func(project string) int { return map[string]int{"b": 1, "c": 2}[project] }
		}, "further"},
		{"least used", func(p *projects) {
			p.submit("", "wide", 1, requests(50, 2000, 1000))
			p.submit("", "slim", 1, requests(50, 1000, 1000))
			p.submit("", "slim2", 1, requests(50, 1000, 1000), func(j *structs.Job) { j.TaskGroups[0].MaxRunDuration = time.Hour })
		}, "slim"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newProjects(t)
			p.now = p.now.Truncate(time.Minute)
			p.config.Bands = []structs.PriorityBand{{Low: 1, High: 49}, {Low: 50, High: 100}}
			p.configure()
			p.slotNode("n1", 4)
			p.gives("a", 1)
			row.submit(p)
			p.submit("a", "own", 1)
			if len(p.reclaimed()) == 0 { // what failed the check leaves at once
				p.after(structs.DefaultGrace)
				p.decide("own")
			}
			p.wantTaken(map[string]int{row.want: 1})
		})
	}
	p := newProjects(t)
	p.slotNode("n1", 1)
	p.gives("a", 1)
	p.submit("", "immune", 1)
	p.client(isLive, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
	p.submit("a", "own", 1)
	p.after(structs.DefaultGrace)
	p.decide("own")
	p.wantOn("immune")
}

// TestSlotsImmuneByDefault: before anybody has stored a configuration the default of max_requeues counts: another leaves than who is immune by it, though
// it would go first.
func TestSlotsImmuneByDefault(t *testing.T) {
	p := newProjects(t)
	p.w = scheduler.NewWorld()
	p.slotNode("n1", 2)
	p.gives("a", 1)
	p.submit("", "early", 1)
	p.after(time.Minute)
	p.submit("", "immune", 1)
	p.client(func(a *structs.Allocation) bool { return a.JobID == "immune" }, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
	p.submit("a", "own", 1)
	p.after(structs.DefaultGrace)
	p.decide("own")
	p.wantOn("immune, own 1+0")
}

// TestSlotsSuspend: who leaves by its own choice is suspended where its memory can stay, and goes on when it has room again.
func TestSlotsSuspend(t *testing.T) {
	p := newProjects(t)
	p.node("n1", sized(1000, 8000), func(n *structs.Node) { n.NodeResources.Cpu.TotalCpuCores = 1 })
	p.gives("a", 1)
	p.submit("", "patient", 1, func(j *structs.Job) { j.Reclaim = structs.ReclaimSuspend })
	p.submit("a", "own", 1)
	p.after(structs.DefaultGrace)
	p.decide("own")
	p.wantOn("own 1+0, patient suspended")
	p.ends("own", 1)
	p.decide("patient")
	p.wantOn("patient")
}

// TestSlotsOfSeveral: where no one that leaves is enough, several leave one node, no more than are needed.
func TestSlotsOfSeveral(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.slotNode("n2", 4)
	p.gives("a", 3)
	p.submit("", "small", 8)
	p.submit("a", "wide", 1, requests(50, 3000, 3000))
	p.after(structs.DefaultGrace)
	p.decide("wide")
	p.wantTaken(map[string]int{"small": 3})
	p.wantOn("small, small, small, small, small, wide 3+0")
}

// TestSlotsRaise: instances that run beside the slots of their project use them in place when it has more, those first that started first.
func TestSlotsRaise(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 1)
	p.submit("a", "own", 3)
	p.wantOn("own, own, own 1+0")
	p.after(time.Minute)
	p.submit("a", "younger", 1)
	p.gives("a", 2)
	owner := scheduler.ProjectOwner("a")
	due := scheduler.DueRaises(p.w, owner, func(structs.NamespacedID, string) bool { return true })
	if !scheduler.MayRaise(p.w, owner) || len(due) != 1 || len(due[0].IDs) != 1 || due[0].Job.ID != "own" {
		t.Fatalf("%+v are to be raised", due)
	}
	p.decide("own")
	p.wantOn("own, own 1+0, own 1+0, younger")
	if scheduler.MayRaise(p.w, owner) {
		t.Error("more may be raised")
	}
}

// TestSlotsFailed: what failed the submission check leaves for any request of higher standing, with bands off and however often it was requeued; for one that
// failed it too it does not.
func TestSlotsFailed(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 2)
	p.gives("a", 1)
	p.submit("stranger", "failed", 2)
	p.client(isLive, func(a *structs.Allocation) { a.Requeues = structs.DefaultMaxRequeues })
	p.submit("guest", "also", 1)
	p.wantOn("failed, failed")
	p.submit("", "normal", 1)
	p.wantTaken(map[string]int{"failed": 1})
	p.wantOn("failed, normal")
	p.submit("", "second", 2)
	p.wantOn("normal, second")
	p.submit("a", "own", 1)
	p.wantOn("normal, second")
}

// TestSlotsThroughput: a project that is to complete 3,000 jobs of 10 minutes in 24 hours runs 21 instances at once, by the mean of those that have run or
// by the time limit while it has none; the rest of its slots is for others. Without either it runs as many as it can.
func TestSlotsThroughput(t *testing.T) {
	for _, row := range []struct {
		mean, limit time.Duration
		want        int
	}{{10 * time.Minute, 0, 21}, {0, 10 * time.Minute, 21}, {10 * time.Minute, time.Hour, 21}, {time.Minute, 0, 3}, {0, 0, 40}} {
		p := newProjects(t)
		p.slotNode("n1", 64)
		p.projects["a"] = &structs.ProjectNow{
			Name: "a", Users: []string{"a"}, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 64}},
			Throughput: &structs.Throughput{Jobs: 3000, Per: 24 * time.Hour}, MeanRun: row.mean,
		}
		e := p.w.Edit()
		scheduler.SetProject(e, "a", p.projects["a"])
		p.w = e.World()
		p.submit("a", "own", 40, func(j *structs.Job) { j.TaskGroups[0].MaxRunDuration = row.limit })
		if n := p.running("own"); n != row.want {
			t.Errorf("mean %s, limit %s: %d run, want %d", row.mean, row.limit, n, row.want)
		}
		p.submit("", "others", 40)
		if n := p.running("others"); n != min(40, 64-row.want) {
			t.Errorf("mean %s, limit %s: %d of others run", row.mean, row.limit, n)
		}
		if row.want < 40 {
			p.ends("own", 1)
			p.jobs["own"].TaskGroups[0].Count = 39
			p.decide("own")
			if n := p.running("own"); n != row.want {
				t.Errorf("%d run after one ended", n)
			}
		}
	}
}

// TestSlotsResumed: what was suspended by hand and goes on when others use its slots runs without.
func TestSlotsResumed(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 1)
	p.submit("a", "one", 1)
	p.suspended("one", true)
	p.submit("a", "two", 1)
	p.wantOn("one suspended, two 1+0")
	p.suspended("one", false)
	p.decide("one")
	p.wantOn("one, two 1+0")
}

// TestSlotsGangs: of a gang nobody leaves for a slot who is immune, nor those without whom too few would run.
func TestSlotsGangs(t *testing.T) {
	for _, row := range []struct {
		least, immune int
		want          string
	}{{2, 0, "own 1+0"}, {2, 1, "gang, gang"}, {1, 1, "gang, own 1+0"}} {
		p := newProjects(t)
		p.slotNode("n1", 2)
		p.gives("a", 1)
		p.submit("", "gang", 2, func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{Min: row.least} })
		n := 0
		p.client(isLive, func(a *structs.Allocation) {
			if n++; n <= row.immune {
				a.Requeues = structs.DefaultMaxRequeues
			}
		})
		p.submit("a", "own", 1)
		p.after(structs.DefaultGrace)
		p.decide("own")
		if got := p.on(); got != row.want {
			t.Errorf("%d must run, %d are immune: there run %s, want %s", row.least, row.immune, got, row.want)
		}
	}
}

// TestSlotsLightTakes: for a light instance others leave, too, where only guards are left of its node's slots.
func TestSlotsLightTakes(t *testing.T) {
	p := newProjects(t)
	p.node("n1", sized(4000, 16_384))
	p.gives("a", 4)
	p.submit("a", "big", 1, requests(50, 1000, 12_288))
	p.submit("a", "standard", 1, requests(50, 1000, 2048))
	p.submit("", "other", 1, requests(50, 2000, 100))
	p.submit("a", "light", 1, requests(50, 250, 1024))
	p.after(structs.DefaultGrace)
	p.decide("light")
	p.wantOn("big 1+2, light light, standard 1+0")
}

// TestSlotsHelped: room that came free on a node helps a request for which others leave as well.
func TestSlotsHelped(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 1)
	p.submit("", "normal", 2)
	p.submit("stranger", "failed", 2)
	p.submit("", "wide", 1, requests(50, 4000, 4000))
	p.wantOn("failed, failed, normal, normal")
	p.ends("normal", 2)
	key := scheduler.RequestKeyOf(p.w, p.jobs["wide"], []string{"g"}, nil, p.config, false)
	if !key.Helped(p.w, "n1") {
		t.Error("it is not looked at again")
	}
	if p.decide("wide") != 1 {
		t.Errorf("there run %s", p.on())
	}
}

// TestSlotsNotBeyond: nobody leaves for a project that runs as many instances as it has slots, though some of them run elsewhere and slots are free.
func TestSlotsNotBeyond(t *testing.T) {
	p := newProjects(t)
	p.slotNode("n1", 4)
	p.gives("a", 0)
	p.submit("a", "beside", 2)
	p.submit("", "others", 2)
	p.gives("a", 2)
	p.submit("a", "own", 1)
	p.after(structs.DefaultGrace)
	p.decide("own")
	p.wantOn("beside, beside, others, others")
}

// TestSlotsMemory: where an entitled instance lacks but the memory that suspended instances keep, these are requeued, no more than are needed, and nobody
// who runs leaves; those that a user suspended stay.
func TestSlotsMemory(t *testing.T) {
	for _, row := range []struct {
		byHand bool
		memory int
		want   string
	}{
		{false, 4000, "big 1+0, other, patient suspended"}, {false, 5000, "big 1+0, other"}, {true, 4000, "big 1+0, patient suspended, patient suspended"},
	} {
		p := newProjects(t)
		p.node("n1", sized(2000, 10_000), func(n *structs.Node) { n.NodeResources.Cpu.TotalCpuCores = 2 })
		p.gives("a", 2)
		p.submit("", "patient", 2, requests(50, 1000, 3000), func(j *structs.Job) { j.Reclaim = structs.ReclaimSuspend })
		p.submit("a", "own", 2)
		p.after(structs.DefaultGrace)
		p.decide("own")
		p.wantOn("own 1+0, own 1+0, patient suspended, patient suspended")
		if row.byHand {
			p.client((*structs.Allocation).Suspended, func(a *structs.Allocation) { a.SuspendedAt = 0 })
		}
		p.ends("own", 2)
		p.after(time.Minute)
		p.submit("", "other", 1, requests(50, 1000, 3000))
		p.submit("a", "big", 1, requests(50, 1000, row.memory))
		p.wantOn("other, patient suspended, patient suspended")
		p.after(structs.DefaultGrace)
		p.decide("big")
		if got := p.on(); got != row.want {
			t.Errorf("%+v: there run %s", row, got)
		}
		for _, s := range p.last.Stop {
			if why := p.allocs[s.AllocID].RequeueReason; !row.byHand && why != "its memory was needed" && !strings.Contains(why, "memory") {
				t.Errorf("%+v: it is requeued, as %q", row, why)
			}
		}
	}
}

// TestSlotsOverflow: overflow slots are used by jobs of any project or none, after everything else found no room.
func TestSlotsOverflow(t *testing.T) {
	p := newProjects(t)
	for _, id := range []string{"a", "b", "c"} {
		n := slotNodeOf(id, 4)
		if id != "b" {
			n.NodeResources.Slots = map[string]int{structs.SlotOverflow: 3}
		}
		p.setNode(n)
	}
	p.gives("chip", 2)
	on := func() string {
		n := map[string]int{}
		for _, a := range p.allocs {
			n[a.NodeID]++
		}
		return strings.TrimPrefix(fmt.Sprint(n), "map")
	}
	p.submit("chip", "first", 2)
	p.submit("", "few", 4)
	if got := on(); got != "[a:1 b:4 c:1]" {
		t.Errorf("beside overflow slots: %s", got)
	}
	p.submit("", "more", 4)
	p.submit("", "large", 2, func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 2000 })
	if got := on(); got != "[a:3 b:4 c:4]" && got != "[a:4 b:4 c:3]" {
		t.Errorf("on overflow slots: %s", got)
	}
	p.submit("", "gang", 1, asGang)
	if got := len(p.allocs); got != 11 {
		t.Errorf("%d run, and nothing else is left", got)
	}
}
