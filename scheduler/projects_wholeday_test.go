package scheduler_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

var slotsDay = flag.Duration("slots-day", 0, "run TestSlotsWholeDay with 1,000 slots for so long in virtual time (make slots-day)")

// dayStep is how often things are looked at.
const dayStep = 10 * time.Second

// wholeDay is a day of many projects: jobs of one standard instance each come, run and end; every step all that wait is decided in order.
type wholeDay struct {
	*projects
	t     *rapid.T
	slots int
	given map[string]int
	names []string                 // of the projects
	owner map[string]string        // the project of each job
	runs  map[string]time.Duration // how long each job runs
	queue map[string]*projectQueue // of each project
	of    map[string][]string      // the allocations of each job
	ends  map[int64][]string       // the allocations that end at a time, if they still run
	live  dayCount                 // moved on with what is placed and leaves
	dayFigures
}

// projectQueue are the jobs of a project that wait: by band, the highest first, those of each that were requeued before the others; each in the
// order in which they began to wait.
type projectQueue [6][]string

func (q *projectQueue) len() (n int) {
	if q == nil {
		return 0
	}
	for _, list := range q {
		n += len(list)
	}
	return n
}

// of returns where a job waits.
func (q *projectQueue) of(job *structs.Job, requeued bool) *[]string {
	at := 2 * (2 - bandOf(job))
	if !requeued {
		at++
	}
	return &q[at]
}

// bandOf is the number of a job's band, of those that there are by default.
func bandOf(job *structs.Job) int {
	switch {
	case job.Priority <= 40:
		return 0
	case job.Priority <= 70:
		return 1
	}
	return 2
}

// dayFigures are what a day is measured by.
type dayFigures struct {
	submitted, decisions int
	taken, takenFailed   int           // by force, for slots and from those that failed the submission check
	raised               int           // to slots in place
	steps, waited        int           // steps, and those in which something waited
	full                 int           // instances that ran in these steps
	immune               int           // steps in which a project was under its slots for longer than the grace, as all others were immune
	longest              time.Duration // that a job of a project under its slots has waited otherwise
}

func (f *dayFigures) add(o *dayFigures) {
	f.submitted, f.decisions, f.taken, f.takenFailed = f.submitted+o.submitted, f.decisions+o.decisions, f.taken+o.taken, f.takenFailed+o.takenFailed
	f.raised, f.steps, f.waited, f.full, f.immune = f.raised+o.raised, f.steps+o.steps, f.waited+o.waited, f.full+o.full, f.immune+o.immune
	f.longest = max(f.longest, o.longest)
}

// TestSlotsWholeDay: semantics part 4's promise, over a random day: no project runs fewer instances than it has slots while one of its jobs has been pending
// for longer than the grace, unless all others are on slots or immune; none is given more than its slots by force; nothing idles while anything
// waits; and who leaves is whom a dumb oracle names.
func TestSlotsWholeDay(t *testing.T) {
	var all dayFigures
	slots := 0
	rapid.Check(t, func(r *rapid.T) {
		nodes, cores, long := rapid.IntRange(2, 4).Draw(r, "nodes"), rapid.IntRange(2, 4).Draw(r, "cores"), time.Hour
		if *slotsDay > 0 {
			nodes, cores, long = 50, 20, *slotsDay
		}
		d := newWholeDay(r, nodes, cores, long)
		slots += d.waited * d.slots
		all.add(&d.dayFigures)
		if *slotsDay > 0 {
			t.Logf("%d slots, given %v", d.slots, d.given)
		}
	})
	utilisation := 100 * float64(all.full) / float64(max(1, slots))
	if utilisation < 98 && slots > 0 {
		t.Errorf("utilisation was %.2f %% while anything waited", utilisation)
	}
	t.Logf("%d jobs, %d decisions; utilisation while anything waited %.2f %% (%d of %d steps); %d left for slots, %d left that had failed the submission "+
		"check; %d were raised; what was entitled waited for %s at most, but in %d steps, in which all others were immune",
		all.submitted, all.decisions, utilisation, all.waited, all.steps, all.taken, all.takenFailed, all.raised,
		all.longest, all.immune)
}

func newWholeDay(t *rapid.T, nodes, cores int, long time.Duration) *wholeDay {
	d := &wholeDay{
		projects: newProjects(t), t: t, slots: nodes * cores, given: map[string]int{}, owner: map[string]string{}, runs: map[string]time.Duration{},
		queue: map[string]*projectQueue{}, of: map[string][]string{}, ends: map[int64][]string{}, live: newDayCount(),
	}
	d.pending = func(project string) int { return d.queue[project].len() }
	for i := range nodes {
		d.slotNode(fmt.Sprintf("n%03d", i), cores)
	}
	d.now = d.now.Truncate(dayStep)
	rng := rand.New(rand.NewChaCha8([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed")))) // a single number is too often the same
	d.giveOut(rng)
	longest := map[string]time.Duration{} // that a project's jobs run
	for _, name := range d.names {
		longest[name] = time.Duration(5+rng.IntN(60)) * time.Minute
		if *slotsDay > 0 { // with shorter ones as many end as others want, and nobody has to leave
			longest[name] = time.Duration(10+rng.IntN(240)) * time.Minute
		}
	}
	const wave = int(10 * time.Minute / dayStep) // steps in which a few projects submit at a time
	var active []int                             // these projects
	start, step := d.now, 0
	load, work := 0, 0.0 // percent of the slots; what is to come, in seconds of one slot
	for ; d.now.Sub(start) < long; d.after(dayStep) {
		d.endDue()
		if step%wave == 0 {
			active, load = rng.Perm(12)[:5], 50+rng.IntN(250)
		}
		if step++; load < 125 {
			work += float64(d.slots*load) / 100 * dayStep.Seconds()
		} else if step%wave == 1 { // all at once
			work += float64(d.slots*load) / 100 * dayStep.Seconds() * float64(wave)
		}
		for work > 0 {
			name := d.names[active[rng.IntN(5)]]
			runs := time.Duration(1 + rng.Int64N(int64(longest[name])))
			work -= runs.Seconds()
			if d.queue[name].len() <= d.slots/4 {
				d.arrive(name, runs)
			}
		}
		for d.decideAll() || d.raiseAll() { // whoever leaves has others under their slots, which are decided on next
		}
		d.check()
	}
	d.steps = step
	return d
}

// giveOut gives 85 % of the slots to eight of twelve projects, at random.
func (d *wholeDay) giveOut(rng *rand.Rand) {
	most := d.slots * 85 / 100
	cuts := []int{0, most}
	for range 7 {
		cuts = append(cuts, rng.IntN(most+1))
	}
	slices.Sort(cuts)
	for i := range 12 {
		name, n := fmt.Sprint("p", i), 0
		if i < 8 {
			n = cuts[i+1] - cuts[i]
		}
		d.given[name], d.names, d.queue[name] = n, append(d.names, name), &projectQueue{}
		d.gives(name, n)
	}
}

func (d *wholeDay) waiting() (n int) {
	for _, q := range d.queue {
		n += q.len()
	}
	return n
}

func (d *wholeDay) arrive(project string, runs time.Duration) {
	d.submitted++
	id := fmt.Sprintf("j%07d", d.submitted)
	d.owner[id], d.runs[id] = project, runs
	j := batchOf(id, project)
	j.CreateIndex, j.Priority = uint64(d.submitted), []int{20, 50, 50, 50, 80}[d.submitted%5]
	if d.submitted%3 > 0 { // more than any that has run so far
		j.TaskGroups[0].MaxRunDuration = 24*time.Hour + runs
	}
	d.jobs[id], d.since[id] = j, d.now
	list := d.queue[project].of(j, false)
	*list = append(*list, id)
}

// change changes one allocation as its client would.
func (d *wholeDay) change(id string, f func(*structs.Allocation)) {
	a := *d.allocs[id]
	f(&a)
	d.index++
	a.ModifyIndex = d.index
	d.allocs[id] = &a
	e := d.w.Edit()
	e.UpsertAlloc(&a)
	d.w = e.World()
}

// endDue ends what has run for as long as it does, and forgets its job: what has ended is not wanted any more.
func (d *wholeDay) endDue() {
	at := d.now.UnixNano()
	for _, id := range d.ends[at] {
		a := d.allocs[id]
		if a == nil || a.Terminal() {
			continue
		}
		d.live.add(a, d.owner[a.JobID], -1)
		d.change(id, d.ended(false))
		for _, own := range d.of[a.JobID] {
			delete(d.allocs, own)
		}
		delete(d.of, a.JobID)
		delete(d.jobs, a.JobID)
		delete(d.owner, a.JobID)
		delete(d.runs, a.JobID)
		delete(d.since, a.JobID)
	}
	delete(d.ends, at)
}

// decideAll decides what waits in the order of the queue: what is entitled first, then what is recognised, then the rest; of each those that were
// requeued, then the oldest. It reports whether anything was placed.
func (d *wholeDay) decideAll() (any bool) {
	failed := map[*[]string]bool{} // of which nothing else finds room
	for {
		var list *[]string
		best := [3]int64{}
		for _, name := range d.names {
			q, standing := d.queue[name], int64(1)
			switch {
			case d.given[name] == 0:
				standing = 2
			case d.live.onSlots[name] < d.given[name]:
				standing = 0
			}
			for i := range q {
				l := &q[i]
				if len(*l) == 0 || failed[l] {
					continue
				}
				rank := [3]int64{standing, int64(i), d.since[(*l)[0]].UnixNano()}
				if list == nil || slices.Compare(rank[:], best[:]) < 0 {
					list, best = l, rank
				}
			}
		}
		switch {
		case list == nil:
			return any
		case d.decideOne((*list)[0]):
			*list, any = (*list)[1:], true
		default:
			failed[list] = true
		}
	}
}

// raiseAll raises what runs beside the slots of its project where these have come free, as the queue does. It reports whether anything was.
func (d *wholeDay) raiseAll() (any bool) {
	for _, name := range d.names {
		owner := scheduler.ProjectOwner(name)
		if !scheduler.MayRaise(d.w, owner) {
			continue
		}
		for _, due := range scheduler.DueRaises(d.w, owner, func(structs.NamespacedID, string) bool { return true }) {
			if plan := d.plan(due.Job.ID); len(plan.Update) == 1 && len(plan.Place)+len(plan.Stop) == 0 {
				d.raised++
				any = true
			} else {
				d.t.Fatalf("%s may be raised, and is not: %+v", due.Job.ID, plan)
			}
		}
	}
	return any
}

// plan decides on a job and commits what comes of it.
func (d *wholeDay) plan(id string) *structs.Plan {
	d.decisions++
	d.job = d.jobs[id]
	ev := d.newEval()
	ev.JobID, ev.Type, ev.CreateTime = id, structs.JobTypeBatch, d.since[id].UnixNano()
	in := d.inputOf(nil)
	for _, own := range d.of[id] {
		in.Allocs = append(in.Allocs, d.allocs[own])
	}
	plan, err := scheduler.Schedule(d.w, ev, in)
	if err != nil {
		d.t.Fatal(err)
	}
	if len(plan.Place)+len(plan.Update) == 0 {
		return plan
	}
	before := d.live.running[d.owner[id]]
	oracle := ""
	if len(plan.Stop) > 0 {
		oracle = d.victim(plan.Place[0].Resources.Shared.Terms.Claim != "")
	}
	e := d.w.Edit()
	judged, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		d.t.Fatal(why)
	}
	for _, s := range plan.Stop {
		d.live.add(d.allocs[s.AllocID], d.owner[d.allocs[s.AllocID].JobID], -1)
	}
	for _, u := range judged.Update { // raised
		d.live.add(d.allocs[u.AllocID], d.owner[id], -1)
	}
	d.commit(judged)
	for _, u := range judged.Update {
		d.live.add(d.allocs[u.AllocID], d.owner[id], 1)
	}
	for _, s := range plan.Stop {
		d.left(d.allocs[s.AllocID], d.owner[id], before, oracle)
	}
	for _, b := range judged.Place {
		for i := range b.Instances {
			a := b.Allocation(i).ID
			d.of[id] = append(d.of[id], a)
			d.change(a, run)
			d.live.add(d.allocs[a], d.owner[id], 1)
			end := d.now.Add(d.runs[id] + dayStep - 1).Truncate(dayStep).UnixNano()
			d.ends[end] = append(d.ends[end], a)
		}
	}
	return plan
}

// decideOne decides on a job that waits. It reports whether the job was placed.
func (d *wholeDay) decideOne(id string) bool { return placed(d.plan(id)) > 0 }

// left checks that whoever has to leave for a project is whom the oracle names, and not for more than the project has.
func (d *wholeDay) left(a *structs.Allocation, project string, before int, oracle string) {
	p := d.owner[a.JobID]
	if before+1 > d.given[project] && d.given[p] > 0 {
		d.t.Fatalf("%s runs %d of %d, and takes %s", project, before, d.given[project], a.JobID)
	}
	if a.ID != oracle {
		d.t.Fatalf("%s leaves, and not %s", a.ID, oracle)
	}
	if d.given[p] == 0 {
		d.takenFailed++
	} else {
		d.taken++
	}
	d.change(a.ID, func(a *structs.Allocation) { a.ClientStatus = structs.AllocClientComplete })
	list := d.queue[p].of(d.jobs[a.JobID], true)
	*list = append(*list, a.JobID)
	d.since[a.JobID] = d.now
}

// dayCount is what runs, counted by hand.
type dayCount struct {
	all              int
	running, onSlots map[string]int // by project: all, and what uses slots
	slotsOf          map[string]int // used slots of each node
}

func newDayCount() dayCount {
	return dayCount{running: map[string]int{}, onSlots: map[string]int{}, slotsOf: map[string]int{}}
}

// add adds an allocation of a project, or (-1) takes it out.
func (c *dayCount) add(a *structs.Allocation, project string, sign int) {
	c.all += sign
	c.running[project] += sign
	if a.AllocatedResources.Shared.Terms.Claim == structs.ClaimSlots {
		c.onSlots[project] += sign
		c.slotsOf[a.NodeID] += sign
	}
}

// counted counts anew.
func (d *wholeDay) counted() dayCount {
	c := newDayCount()
	for _, a := range d.allocs {
		if !a.Terminal() {
			c.add(a, d.owner[a.JobID], 1)
		}
	}
	return c
}

// victim is the dumb oracle: who must leave, if anybody must, for a slot or else of those that failed the submission check.
func (d *wholeDay) victim(slot bool) string {
	var first *structs.Allocation
	for _, a := range d.allocs {
		failed := d.given[d.owner[a.JobID]] == 0
		if !a.Terminal() && a.AllocatedResources.Shared.Terms.Claim == "" && (a.Requeues < structs.DefaultMaxRequeues || failed) &&
			(failed || slot) && (!slot || d.live.slotsOf[a.NodeID] < int(d.nodes[a.NodeID].NodeResources.Cpu.TotalCpuCores)) &&
			(first == nil || d.leavesBefore(a, first)) {
			first = a
		}
	}
	if first == nil {
		return ""
	}
	return first.ID
}

func (d *wholeDay) leavesBefore(a, b *structs.Allocation) bool {
	p, q := d.owner[a.JobID], d.owner[b.JobID]
	over := func(p string) int { return d.live.running[p] - d.given[p] }
	fails := func(p string) int { return min(1, d.given[p]) }
	cycle := func(a *structs.Allocation) int64 { return a.CreateTime / int64(20*time.Second) }
	until := func(a *structs.Allocation) int64 { // by its time limit
		if limit := d.jobs[a.JobID].TaskGroups[0].MaxRunDuration; limit > 0 {
			return a.CreateTime + int64(limit)
		}
		return math.MaxInt64
	}
	return cmp.Or(
		cmp.Compare(fails(p), fails(q)), cmp.Compare(bandOf(d.jobs[a.JobID]), bandOf(d.jobs[b.JobID])), cmp.Compare(cycle(b), cycle(a)),
		cmp.Compare(over(q), over(p)), cmp.Compare(d.queue[q].len(), d.queue[p].len()), cmp.Compare(b.CreateTime, a.CreateTime), cmp.Compare(until(b), until(a)), strings.Compare(a.ID, b.ID),
	) < 0
}

// check checks the promise as things stand.
func (d *wholeDay) check() {
	now := d.counted()
	for _, c := range []*dayCount{&now, &d.live} { // what comes to nothing is left out
		for _, m := range []map[string]int{c.running, c.onSlots, c.slotsOf} {
			maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
		}
	}
	if !reflect.DeepEqual(now, d.live) {
		d.t.Fatalf("the test has counted %v, not %v", d.live, now)
	}
	if waiting := d.waiting(); waiting > 0 {
		d.waited, d.full = d.waited+1, d.full+now.all
		if now.all < d.slots {
			d.t.Fatalf("%d of %d slots idle while %d jobs wait", d.slots-now.all, d.slots, waiting)
		}
	}
	for _, p := range d.names {
		if now.onSlots[p] > d.given[p] {
			d.t.Fatalf("%s uses %d slots of %d", p, now.onSlots[p], d.given[p])
		}
		if now.running[p] >= d.given[p] {
			continue
		}
		for _, list := range d.queue[p] {
			if len(list) == 0 {
				continue
			}
			waited := d.now.Sub(d.since[list[0]])
			switch {
			case waited <= structs.DefaultGrace:
				d.longest = max(d.longest, waited)
			case d.victim(true) != "":
				d.t.Fatalf("%s runs %d of %d while %s has waited for %s", p, now.running[p], d.given[p], list[0], waited)
			default:
				d.immune++
			}
		}
	}
}
