package worker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

const dayTick = 10 * time.Second

// throughputDay is a node of 64 slots that all are of one project, which is to complete 3,000 jobs in a day, and another's job that runs wherever
// it may. What is decided is committed in one log; the project's mean run time and what it had and used come from the state.
type throughputDay struct {
	*journal
	t       *testing.T
	next    func() string
	now     time.Time
	rng     *rand.Rand
	jobs    int // of the project
	waiting []*structs.Evaluation
	other   *structs.Job
	running map[string]int64             // since when each instance of the project runs
	ends    map[int64][]string           // which of them end at a time
	moved   bool                         // something was placed, or ended
	reports []*structs.AllocClientUpdate // not yet committed
	ended   int
}

// TestThroughputDay: semantics part 4, objective "throughput": 3,000 jobs of 10 minutes in 24 hours keep 21 ± 1 running, all are done in 24 hours, and
// the rest of the slots is lent. Until 10 have ended their time limit counts.
func TestThroughputDay(t *testing.T) {
	d := &throughputDay{
		journal: newJournal(), t: t, next: testcluster.IDs("00000000-0000-7000-8000-%012d"), now: time.Unix(1_700_000_000, 0).UTC(),
		rng: rand.New(rand.NewPCG(1, 1)), running: map[string]int64{}, ends: map[int64][]string{},
	}
	start := d.now
	d.prepare()
	fewest, most := 64, 0
	for step := 0; d.ended < 3000 && d.now.Sub(start) < 25*time.Hour; step++ {
		if step%int(time.Hour/dayTick) == 0 && d.jobs < 3000 { // so many that some always wait
			d.submit(200)
		}
		d.end()
		d.decideAll()
		if d.now.Sub(start) == 5*time.Minute && len(d.running) != 32 { // 3,000 of 15 minutes
			t.Errorf("%d run while nothing is known but their time limit, want 32", len(d.running))
		}
		if d.now.Sub(start) > 30*time.Minute && d.ended+len(d.running) < 3000 {
			fewest, most = min(fewest, len(d.running)), max(most, len(d.running))
		}
		d.now = d.now.Add(dayTick)
	}
	took := d.now.Sub(start)
	if d.ended != 3000 || took > 24*time.Hour || fewest < 20 || most > 22 {
		t.Errorf("%d jobs were done in %s, and %d to %d ran at once; want 3000 in 24h, and 21 ± 1", d.ended, took, fewest, most)
	}
	for u := range d.store.Snapshot().ProjectUsage(nil).Weeks("a") {
		used := u.Advanced(d.now.UnixNano()).Type(structs.SlotBatch)
		ran := float64(used.Sum.Used) / float64(took.Milliseconds())
		if used.Sum.Given != 64*took.Milliseconds() || ran < 20 || ran > 22 || used.Lent != used.Sum.Given-used.Sum.Used {
			t.Errorf("in the mean %.2f slots were used; given, used and lent are %+v and %d", ran, used.Sum, used.Lent)
		}
		if used.Counts.Completed != 3000 {
			t.Errorf("%d are counted as completed", used.Counts.Completed)
		}
	}
	t.Logf("%d jobs were done in %s; %d to %d ran at once", d.ended, took, fewest, most)
}

func (d *throughputDay) prepare() {
	week := structs.WeekSpan{Week: "2023-W46", From: d.now.Add(-time.Hour).UnixNano(), To: d.now.Add(72 * time.Hour).UnixNano()}
	at := d.now.UnixNano()
	node := testcluster.Node("n", 64_000)
	node.NodeResources.Memory.MemoryMB, node.NodeResources.Cpu.TotalCpuCores = 64_000, 64
	d.Put(d.t, &structs.NodeRegisterEntry{Node: node, Time: at})
	d.Put(d.t, &structs.ProjectUpsertEntry{Project: &structs.Project{
		Name: "a", Users: []string{"a"}, Objective: structs.ObjectiveThroughput, Throughput: &structs.Throughput{Jobs: 3000, Per: 24 * time.Hour},
	}, Time: at})
	d.Put(d.t, &structs.ProjectCalendarEntry{Week: &structs.ProjectWeek{
		Project: "a", Week: week.Week, From: week.From, To: week.To, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 64}},
	}, Time: at})
	d.Put(d.t, &structs.ClaimsTimeEntry{Now: at, EvalSeed: "t", Week: &week})
	d.other = job("other", structs.NodePoolDefault, 50, 64, 1000, 1000)
	d.register(d.other)
}

func (d *throughputDay) register(j *structs.Job) *structs.Evaluation {
	e := d.eval(j)
	d.Put(d.t, &structs.JobRegisterEntry{Job: j, Eval: e, Time: d.now.UnixNano()})
	return e
}

func (d *throughputDay) eval(j *structs.Job) *structs.Evaluation {
	return &structs.Evaluation{
		ID: d.next(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, Status: structs.EvalStatusPending,
		TriggeredBy: structs.EvalTriggerJobRegister, CreateTime: d.now.UnixNano(),
	}
}

// submit submits so many more jobs of the project, of 15 minutes at most.
func (d *throughputDay) submit(n int) {
	for range n {
		j := job(fmt.Sprintf("own-%04d", d.jobs), structs.NodePoolDefault, 50, 1, 1000, 1000)
		j.Type, j.Project, j.Submitter = structs.JobTypeBatch, "a", &structs.Submitter{User: "a"}
		j.TaskGroups[0].MaxRunDuration = 15 * time.Minute
		j.Canonicalize()
		d.jobs++
		d.waiting = append(d.waiting, d.register(j))
	}
}

// decideAll decides what waits: the project's, as it is entitled, and then the other's.
func (d *throughputDay) decideAll() {
	for len(d.waiting) > 0 && d.decide(d.waiting[0]) > 0 {
		d.waiting = d.waiting[1:]
	}
	if d.moved {
		d.decide(d.eval(d.other))
	}
	d.moved = false
	d.report()
}

// decide decides an evaluation, commits what comes of it, and returns how many instances are placed.
func (d *throughputDay) decide(e *structs.Evaluation) (placed int) {
	d.report()
	snap := d.store.Snapshot()
	plan, err := scheduler.Schedule(snap.World(), e, snap.EvalInput(e, &state.InputOptions{Now: d.now, Seed: 1, NewID: d.next}))
	if err != nil {
		d.t.Fatal(err)
	}
	if len(plan.Place)+len(plan.Stop)+len(plan.Update) == 0 {
		return 0
	}
	judged, refused, why := scheduler.Judge(snap.World().Edit(), plan)
	if len(refused) > 0 {
		d.t.Fatal(why)
	}
	judged.Time, judged.JudgedAt, d.moved = d.now.UnixNano(), snap.Index(), true
	d.Put(d.t, testcluster.Commit(judged))
	for _, b := range judged.Place {
		for i := range b.Instances {
			id := b.Allocation(i).ID
			placed++
			d.became(id, structs.AllocClientRunning, d.now.UnixNano(), false)
			if e.JobID != d.other.ID { // it runs for 8 to 12 minutes
				d.running[id] = d.now.UnixNano()
				end := d.now.Add(8*time.Minute + dayTick*time.Duration(d.rng.IntN(25))).UnixNano()
				d.ends[end] = append(d.ends[end], id)
			}
		}
	}
	for _, s := range judged.Stop {
		d.became(s.AllocID, structs.AllocClientComplete, d.now.UnixNano(), true)
	}
	return placed
}

// end ends what has run for as long as it does.
func (d *throughputDay) end() {
	at := d.now.UnixNano()
	for _, id := range d.ends[at] {
		d.became(id, structs.AllocClientComplete, d.running[id], true)
		delete(d.running, id)
		d.moved = true
		d.ended++
	}
	delete(d.ends, at)
}

// became notes what the node's client reports of an instance.
func (d *throughputDay) became(id, status string, began int64, over bool) {
	s := &structs.TaskState{State: "running", StartedAt: time.Unix(0, began)}
	if over {
		s.State, s.FinishedAt = structs.TaskStateDead, d.now
	}
	d.reports = append(d.reports, &structs.AllocClientUpdate{
		ID: id, ClientStatus: status, ModifyTime: d.now.UnixNano(), TaskStates: map[string]*structs.TaskState{"t": s},
	})
}

// report commits what the node's client has reported.
func (d *throughputDay) report() {
	if len(d.reports) > 0 {
		d.Put(d.t, &structs.AllocClientEntry{Time: d.now.UnixNano(), Updates: slices.Clone(d.reports)})
		d.reports = d.reports[:0]
	}
}
