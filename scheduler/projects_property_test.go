package scheduler_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// projectDay is a day of many projects: jobs of one standard instance each come, run and end; every step all that wait is decided in order.
type projectDay struct {
	*projects
	t       *rapid.T
	slots   int
	given   map[string]int
	owner   map[string]string        // the project of each job
	runs    map[string]time.Duration // how long each job runs
	waiting []string
	taken   int // by force
	gangs   int // every so many jobs are gangs of two; 0: none
	waited  int // steps in which something waited
	full    int // instances that ran in these steps
}

// TestSlotsDay: semantics part 4's promise, over a random day: no project runs fewer instances than it has slots while one of its jobs has been pending
// for longer than the grace, unless all others are on slots or immune; none is given more than its slots by force; nothing idles while anything
// waits; and who leaves is whom a dumb oracle names. Some jobs are gangs of two, which start together, both on slots or neither, and leave together.
func TestSlotsDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gangs := rapid.IntRange(0, 4).Draw(t, "gangs")
		day(t, rapid.IntRange(2, 4).Draw(t, "nodes"), rapid.IntRange(2, 4).Draw(t, "cores"), gangs, time.Hour)
	})
}

func day(t *rapid.T, nodes, cores, gangs int, long time.Duration) *projectDay {
	d := &projectDay{
		projects: newProjects(t), t: t, gangs: gangs, slots: nodes * cores, given: map[string]int{}, owner: map[string]string{}, runs: map[string]time.Duration{},
	}
	d.pending = d.pendingOf
	for i := range nodes {
		d.slotNode(fmt.Sprintf("n%03d", i), cores)
	}
	left := d.slots * 85 / 100
	for i := range 12 {
		name := fmt.Sprint("p", i)
		switch {
		case i >= 8:
			d.gives(name, 0)
		default:
			n := rapid.IntRange(0, left/(8-i)+1).Draw(t, name)
			n = min(n, left)
			left -= n
			d.given[name] = n
			d.gives(name, n)
		}
	}
	const step = 10 * time.Second
	load := rapid.IntRange(80, 200).Draw(t, "load")  // percent of the slots
	each := rapid.IntRange(1, 20).Draw(t, "minutes") // the longest run
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	rate := float64(d.slots) * float64(load) / 100 / (float64(each) * 30) * step.Seconds()
	start, due := d.now, 0.0
	for number := 0; d.now.Sub(start) < long; d.after(step) {
		d.endDue()
		for due += rate; due >= 1 && len(d.waiting) < 2*d.slots; due-- {
			number++
			wave := int(d.now.Sub(start)/(15*time.Minute)) * 5 // some projects submit at a time
			d.arrive(number, fmt.Sprint("p", (wave+rng.IntN(5))%12), time.Duration(1+rng.IntN(60*each))*time.Second)
		}
		for d.decideAll() { // whoever leaves has others under their slots, which are decided on next
		}
		d.check()
	}
	t.Logf("%d nodes of %d cores: %d jobs, %d left by force; something waited in %d steps", nodes, cores, len(d.jobs), d.taken, d.waited)
	return d
}

func (d *projectDay) arrive(number int, project string, runs time.Duration) {
	id := fmt.Sprintf("j%05d", number)
	d.owner[id], d.runs[id] = project, runs
	j := batchOf(id, project)
	if d.gangs > 0 && number%(d.gangs+1) == 0 {
		j.TaskGroups[0].Count, j.TaskGroups[0].Gang = 2, &structs.Gang{}
	}
	d.jobs[id], d.since[id] = j, d.now
	d.waiting = append(d.waiting, id)
}

func batchOf(id, project string) *structs.Job {
	j := &structs.Job{
		ID: id, Type: structs.JobTypeBatch, Priority: 50, CreateIndex: 1, Project: project, Submitter: &structs.Submitter{User: project},
		TaskGroups: []*structs.TaskGroup{{
			Name: "g", Count: 1, EphemeralDisk: &structs.EphemeralDisk{SizeMB: 0},
			Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 1000, MemoryMB: 1000}}},
		}},
	}
	j.Canonicalize()
	return j
}

// endDue ends what has run for as long as it does.
func (d *projectDay) endDue() {
	d.client(func(a *structs.Allocation) bool {
		return !a.Terminal() && !d.now.Before(time.Unix(0, a.CreateTime).Add(d.runs[a.JobID]))
	}, d.ended(false))
	for id, a := range d.allocs { // what has ended is not wanted any more: each has its own place
		if a.Terminal() && (a.NextAllocation != "" || !a.ServerTerminal()) {
			delete(d.allocs, id)
		}
	}
}

// decideAll decides what waits in the order of the queue: what is entitled first, then what is recognised, then the rest; of each the oldest first.
// It reports whether anything was placed.
func (d *projectDay) decideAll() (any bool) {
	standings := map[string]int{} // by project
	for _, p := range d.owner {
		switch _, known := standings[p]; {
		case known:
		case d.given[p] == 0:
			standings[p] = 2
		case d.runningOf(p, true) < d.given[p]:
			standings[p] = 0
		default:
			standings[p] = 1
		}
	}
	order := slices.Clone(d.waiting)
	rank := map[string]int{}
	for _, id := range order {
		rank[id] = standings[d.owner[id]]
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), d.since[a].Compare(d.since[b]))
	})
	failed := map[string]bool{} // projects of which nothing else of as many instances finds room
	for _, id := range order {
		if key := fmt.Sprint(d.owner[id], d.count(id)); !failed[key] {
			failed[key] = !d.decideOne(id)
			any = any || !failed[key]
		}
	}
	return any
}

// decideOne decides on a job, and checks who leaves. It reports whether the job was placed.
func (d *projectDay) decideOne(id string) bool {
	d.job = d.jobs[id]
	ev := d.newEval()
	ev.JobID, ev.Type, ev.CreateTime = id, structs.JobTypeBatch, d.since[id].UnixNano()
	project, before := d.owner[id], d.runningOf(d.owner[id], false)
	plan, err := scheduler.Schedule(d.w, ev, d.input())
	if err != nil {
		d.t.Fatal(err)
	}
	if placed(plan) == 0 {
		return false
	}
	if claim := d.checkWhole(plan, id); len(plan.Stop) > 0 {
		d.checkVictims(plan, id, claim != "")
	}
	e := d.w.Edit()
	judged, refused, why := scheduler.Judge(e, plan)
	if len(refused) > 0 {
		d.t.Fatal(why)
	}
	d.commit(judged)
	for _, s := range plan.Stop {
		a := d.allocs[s.AllocID]
		if before+d.count(id) > d.given[project] && d.given[d.owner[a.JobID]] > 0 {
			d.t.Fatalf("%s runs %d of %d, and takes %s", project, before, d.given[project], a.JobID)
		}
		d.taken++
		if !slices.Contains(d.waiting, a.JobID) {
			d.waiting = append(d.waiting, a.JobID)
		}
		d.since[a.JobID] = d.now
	}
	d.runAll()
	for i, w := range d.waiting {
		if w == id {
			d.waiting = slices.Delete(d.waiting, i, i+1)
			break
		}
	}
	return true
}

// pendingOf counts the pending instances of a project.
func (d *projectDay) pendingOf(project string) (n int) {
	for _, id := range d.waiting {
		if d.owner[id] == project {
			n += d.count(id)
		}
	}
	return n
}

// count is how many instances a job has.
func (d *projectDay) count(id string) int { return d.jobs[id].TaskGroups[0].Count }

// checkWhole checks that a plan places all of a job, all by the same right, and returns by which.
func (d *projectDay) checkWhole(plan *structs.Plan, id string) (claim string) {
	for i, b := range plan.Place {
		if c := b.Resources.Shared.Terms.Claim; i == 0 {
			claim = c
		} else if c != claim {
			d.t.Fatalf("%s runs in part on slots", id)
		}
	}
	if placed(plan) != d.count(id) {
		d.t.Fatalf("%d of %s are placed", placed(plan), id)
	}
	return claim
}

// checkVictims checks that those leave whom the oracle names, one after the other: as many as there is no free room for.
func (d *projectDay) checkVictims(plan *structs.Plan, id string, slot bool) {
	was, free := d.allocs, d.slots-d.running()
	d.allocs = maps.Clone(d.allocs)
	var want, got []string
	other := "" // the node of the other of a gang
	for n := range d.count(id) {
		node := ""
		if free > 0 {
			free--
		} else {
			one := d.victim(slot)
			if one == "" {
				d.t.Fatalf("somebody leaves for %s, and nobody may", id)
			}
			node = d.allocs[one].NodeID
			for _, a := range was { // of a gang both leave
				if a.JobID == was[one].JobID && !a.Terminal() && !d.allocs[a.ID].Terminal() {
					gone := *a
					gone.ClientStatus, d.allocs[a.ID] = structs.AllocClientComplete, &gone
					want, free = append(want, a.ID), free+1
					if a.ID != one {
						other = a.NodeID
					}
				}
			}
			free--
		}
		terms := &structs.AllocTerms{}
		if slot {
			terms.Claim = structs.ClaimSlots
		}
		d.allocs[fmt.Sprint("new", n)] = &structs.Allocation{
			ID: fmt.Sprint("new", n), JobID: id, NodeID: node, DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning, CreateTime: d.now.UnixNano(),
			AllocatedResources: &structs.AllocatedResources{Shared: structs.AllocatedSharedResources{Terms: terms}}, Requeues: math.MaxInt32,
		}
	}
	if len(want) == 3 && was[want[0]].NodeID == other { // one, and then a gang: it stays if the gang's other had its room beside it
		want = want[1:]
	}
	d.allocs = was
	for _, s := range plan.Stop {
		got = append(got, s.AllocID)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		d.t.Fatalf("for %s there leave %v, and not %v", id, got, want)
	}
}

// running counts what runs.
func (d *projectDay) running() (n int) {
	for _, a := range d.allocs {
		if !a.Terminal() {
			n++
		}
	}
	return n
}

// runningOf counts what runs of a project, or what of it is on slots.
func (d *projectDay) runningOf(project string, onSlots bool) (n int) {
	for _, a := range d.allocs {
		if !a.Terminal() && d.owner[a.JobID] == project && (!onSlots || a.AllocatedResources.Shared.Terms.Claim == structs.ClaimSlots) {
			n++
		}
	}
	return n
}

// victim is the dumb oracle: who must leave, if anybody must, for a slot or else of those that failed the submission check.
func (d *projectDay) victim(slot bool) string {
	var list []*structs.Allocation
	onSlots := map[string]int{}
	for _, a := range d.allocs {
		if !a.Terminal() && a.AllocatedResources.Shared.Terms.Claim == structs.ClaimSlots {
			onSlots[a.NodeID]++
		}
	}
	for _, a := range d.sorted() {
		if d.mayLeave(a, slot) && (!slot || onSlots[a.NodeID] < int(d.nodes[a.NodeID].NodeResources.Cpu.TotalCpuCores)) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return ""
	}
	over := map[string]int{}
	for _, a := range list {
		p := d.owner[a.JobID]
		over[p] = d.runningOf(p, false) - d.given[p]
	}
	cycle := func(a *structs.Allocation) int64 { return a.CreateTime / int64(20*time.Second) }
	return slices.MinFunc(list, func(a, b *structs.Allocation) int {
		p, q := d.owner[a.JobID], d.owner[b.JobID]
		fails := func(p string) int { return min(1, d.given[p]) }
		return cmp.Or(
			cmp.Compare(fails(p), fails(q)), cmp.Compare(cycle(b), cycle(a)), cmp.Compare(over[q], over[p]),
			cmp.Compare(d.pendingOf(q), d.pendingOf(p)),
			cmp.Compare(b.CreateTime, a.CreateTime), strings.Compare(a.ID, b.ID),
		)
	}).ID
}

// check checks the promise as things stand.
func (d *projectDay) check() {
	running := d.running()
	least := d.slots // the fewest instances that something waits for
	for _, id := range d.waiting {
		least = min(least, d.count(id))
	}
	if len(d.waiting) > 0 {
		d.waited, d.full = d.waited+1, d.full+running
		if running+least <= d.slots {
			d.t.Fatalf("%d of %d slots idle while %d jobs wait", d.slots-running, d.slots, len(d.waiting))
		}
	}
	takeable := d.slots - running
	for _, a := range d.allocs {
		if d.mayLeave(a, true) {
			takeable++
		}
	}
	for _, id := range d.waiting {
		p := d.owner[id]
		if n := d.runningOf(p, false); d.now.Sub(d.since[id]) > structs.DefaultGrace && n+d.count(id) <= d.given[p] && takeable >= d.count(id) {
			d.t.Fatalf("%s runs %d of %d while %s has waited for %s", p, n, d.given[p], id, d.now.Sub(d.since[id]))
		}
	}
}

// mayLeave reports whether an instance may be taken from for a slot, or else by anybody.
func (d *projectDay) mayLeave(a *structs.Allocation, slot bool) bool {
	failed := d.given[d.owner[a.JobID]] == 0
	return !a.Terminal() && a.AllocatedResources.Shared.Terms.Claim == "" && (a.Requeues < structs.DefaultMaxRequeues || failed) && (failed || slot)
}
