package state

import (
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// onSlots is a batch of instances of a job that use slots of project chip.
func onSlots(jobID, nodeID, seed string, n int) *structs.PlacementBatch {
	b := batch(jobID, 0, nodeID, seed, n)
	b.Resources.Shared.Terms = &structs.AllocTerms{
		Priority: 50, Claim: structs.ClaimSlots,
		Slots: &structs.SlotTerms{Project: "chip", Step: "place", User: "ada", Groups: "users,chip", Type: structs.SlotBatch, Cost: 1},
	}
	return b
}

// claimed counts the allocations of a job that use slots.
func (w *world) claimed(jobID string) (n int) {
	for _, a := range w.store.Snapshot().AllocsByJob(nil, structs.DefaultNamespace, jobID, false) {
		if a.AllocatedResources.Shared.Terms.Claim == structs.ClaimSlots {
			n++
		}
	}
	return n
}

// TestSlotsOfTheWeek: slots change hands when the time entry of a week's turn is applied, once; who started last loses its slots first, and runs
// on without; an edit counts at once; and a World that is made anew has the same.
func TestSlotsOfTheWeek(t *testing.T) {
	w := projectWorld(t)
	w.register(job("sim"))
	used := func() int {
		if account := w.store.Snapshot().World().Slots().Account("chip"); account != nil {
			return account.Used(structs.SlotBatch)
		}
		return -1
	}
	advance := func(at time.Time) *Snapshot {
		return w.must(&structs.ClaimsTimeEntry{Now: at.UnixNano(), EvalSeed: "s"})
	}
	edge := func() time.Time { return time.Unix(0, w.store.Snapshot().ClaimsEdge(nil)).UTC() }

	w.must(weekEdit("chip", 0, slots(3, "place")))
	w.must(weekEdit("chip", 1, slots(1)))
	check(t, "slots before time was ever told", w.store.Snapshot().World().Slots().Account("chip").Given(structs.SlotBatch), 0)
	check(t, "the edge", edge(), firstWeek)
	advance(firstWeek.Add(time.Hour))
	check(t, "slots of this week", w.store.Snapshot().World().Slots().Account("chip").Given(structs.SlotBatch), 3)
	check(t, "the next edge", edge(), firstWeek.Add(weekLength))

	w.plan(&structs.JudgedPlan{Place: []*structs.PlacementBatch{onSlots("sim", "n0", "s1", 2)}, JudgedAt: w.index})
	w.plan(&structs.JudgedPlan{Place: []*structs.PlacementBatch{onSlots("sim", "n1", "s2", 1)}, JudgedAt: w.index})
	check(t, "used", used(), 3)
	check(t, "left of n0", w.store.Snapshot().World().Slots().Left("n0", structs.SlotBatch), 8)

	w.must(weekEdit("chip", 0, slots(2, "place")))
	check(t, "used after an edit", used(), 2)
	check(t, "claims after an edit", w.claimed("sim"), 2)

	feed := w.store.Feed(w.store.Snapshot().Index())
	snap := advance(firstWeek.Add(weekLength))
	check(t, "used in the next week", used(), 1)
	check(t, "claims in the next week", w.claimed("sim"), 1)
	var turned int
	changes, found, err := feed.Poll()
	if !found || err != nil {
		t.Fatal(found, err)
	}
	for _, c := range changes.Items {
		if c.Kind == KindProject && c.Type == structs.EventProjectWeekTurned {
			turned++
		}
	}
	check(t, "projects reported as turned", turned, 1)
	check(t, "the last edge", edge(), firstWeek.Add(2*weekLength))
	again := advance(firstWeek.Add(weekLength))
	check(t, "twice", again.TableIndex(TableClaimsTime), snap.TableIndex(TableClaimsTime))
	advance(firstWeek.Add(2 * weekLength))
	check(t, "used when no week is left", used(), 0)
	check(t, "no edge", w.store.Snapshot().ClaimsEdge(nil), 0)

	w.must(&structs.ProjectDeleteEntry{Name: "chip", Time: w.now()})
	w.must(&structs.ProjectDeleteEntry{Name: "board", Time: w.now()})
	if w.store.Snapshot().World().Slots() != nil {
		t.Error("there are no projects, and the World keeps their slots")
	}
}

// TestLateSlots: what a plan places on slots that are not its project's any more when it is committed is stored without them.
func TestLateSlots(t *testing.T) {
	w := projectWorld(t)
	w.register(job("sim"))
	w.must(weekEdit("chip", 0, slots(1)))
	w.must(&structs.ClaimsTimeEntry{Now: firstWeek.Add(time.Hour).UnixNano(), EvalSeed: "s"})
	judged := w.index
	w.must(weekEdit("chip", 0, slots(0)))
	w.plan(&structs.JudgedPlan{Place: []*structs.PlacementBatch{onSlots("sim", "n0", "s1", 1)}, JudgedAt: judged})
	check(t, "claims", w.claimed("sim"), 0)
	list := w.store.Snapshot().AllocsByJob(nil, structs.DefaultNamespace, "sim", false)
	check(t, "placed", len(list), 1)
	check(t, "described", list[0].DesiredDescription, structs.DescLostClaim)
}

// TestPendingOfProjects: a snapshot counts the pending instances of each project, and those of no project, as they are at its index.
func TestPendingOfProjects(t *testing.T) {
	w := projectWorld(t)
	own := job("sim")
	own.Project = "chip"
	w.register(own)
	w.register(job("other"))
	pending := func(id string, n int) {
		w.plan(&structs.JudgedPlan{Requests: []*structs.RequestUpdate{{Namespace: structs.DefaultNamespace, JobID: id, Group: own.TaskGroups[0].Name, Missing: n, Since: 1}}})
	}
	pending("sim", 3)
	pending("other", 2)
	was := w.store.Snapshot()
	check(t, "of the project", was.Requests().PendingOf("chip"), 3)
	check(t, "of none", was.Requests().PendingOf(""), 2)
	check(t, "of another", was.Requests().PendingOf("board"), 0)
	pending("sim", 1)
	check(t, "later", w.store.Snapshot().Requests().PendingOf("chip"), 1)
	check(t, "at the earlier index", was.Requests().PendingOf("chip"), 3)
}
