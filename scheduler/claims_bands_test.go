package scheduler_test

import (
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

func (x *tenants) withBands() *tenants { x.bands = true; return x }

func ofPriority(priority int) func(*structs.Job) {
	return func(j *structs.Job) { j.Priority = priority }
}

// lowered returns the allocations that a plan lets give up their class.
func lowered(p *structs.Plan) (ids []string) {
	for _, up := range p.Update {
		if up.ClassTo != "" {
			ids = append(ids, up.AllocID)
		}
	}
	return ids
}

// TestBandsInsideOneOwner: where preemption is enabled, a higher band of an owner takes what its lower bands are guaranteed: their class
// where only the quota is short, else their room (semantics part 0, rules 1 and 9; part 2, "Class before room").
func TestBandsInsideOneOwner(t *testing.T) {
	guaranteedOf := func(x *tenants, job string) (guaranteed, all int) {
		for _, u := range world.Usages(x.pass.World()).All {
			if u.Owner.Job == job {
				all++
				if u.Guaranteed() {
					guaranteed++
				}
			}
		}
		return guaranteed, all
	}
	node := gives(t, "a", "node", 1)
	// Only the quota is short: another node is idle.
	x := newTenants(t, node, eightGPUs("n1"), eightGPUs("n2")).withBands()
	x.decide("a", "low", 8, 1, ofPriority(10))
	plan := x.decide("a", "high", 1, 8, ofPriority(90))
	x.wantClasses("class before room", plan, 1, 0)
	if g, all := guaranteedOf(x, "low"); g != 0 || all != 8 || len(lowered(plan)) != 8 || len(plan.Stop) != 0 {
		t.Errorf("class before room: %d of %d are guaranteed, %d lowered, %d stopped", g, all, len(lowered(plan)), len(plan.Stop))
	}
	// There is no other room.
	x = newTenants(t, node, eightGPUs("n1")).withBands()
	x.decide("a", "low", 8, 1, ofPriority(10))
	plan = x.decide("a", "high", 1, 6, ofPriority(90))
	x.wantClasses("room", plan, 1, 0)
	if g, all := guaranteedOf(x, "low"); g != 2 || all != 2 || len(lowered(plan)) != 0 || preemptedBy(plan) != 6 {
		t.Errorf("room: %d of %d are guaranteed, %d lowered, %d preempted", g, all, len(lowered(plan)), preemptedBy(plan))
	}
	// As few as do, the lowest band first, then what was submitted last.
	x = newTenants(t, gives(t, "a", "gpu", 4), eightGPUs("n1"), eightGPUs("n2")).withBands()
	submitted := func(index uint64, priority int) func(*structs.Job) {
		return func(j *structs.Job) { j.CreateIndex, j.Priority = index, priority }
	}
	x.decide("a", "first", 1, 1, submitted(1, 50))
	x.decide("a", "last", 1, 1, submitted(2, 50))
	x.decide("a", "important", 2, 1, submitted(3, 90))
	plan = x.decide("a", "high", 1, 1, ofPriority(95))
	x.wantClasses("one of two", plan, 1, 0)
	first, _ := guaranteedOf(x, "first")
	last, _ := guaranteedOf(x, "last")
	if important, _ := guaranteedOf(x, "important"); first != 1 || last != 0 || important != 2 || len(plan.Stop) != 0 {
		t.Errorf("one of two: %d, %d and %d are guaranteed, %d stopped", first, last, important, len(plan.Stop))
	}
	// Not of its own band, not while preemption is off, not of another owner, not by a class that waits for nothing.
	x = newTenants(t, func(e *scheduler.Edit) { node(e); gives(t, "b", "node", 1)(e) }, eightGPUs("n1"), eightGPUs("n2")).withBands()
	x.decide("a", "low", 8, 1, ofPriority(50))
	x.decide("b", "other", 8, 1, ofPriority(10))
	for _, f := range []func() *structs.Plan{
		func() *structs.Plan { return x.decide("a", "same", 1, 8, ofPriority(60)) },
		func() *structs.Plan { x.bands = false; return x.decide("a", "off", 1, 8, ofPriority(90)) },
		func() *structs.Plan { x.bands = true; return x.decide("c", "nobody", 1, 8, ofPriority(90)) },
		func() *structs.Plan {
			return x.decide("a", "idle", 1, 8, ofPriority(90), func(j *structs.Job) { j.Class = structs.ClassOpportunistic })
		},
	} {
		if plan := f(); len(plan.Place)+len(plan.Stop)+len(plan.Update) != 0 {
			t.Errorf("job %s: %v, %d stopped, %d lowered", plan.JobID, placements(plan), len(plan.Stop), len(lowered(plan)))
		}
	}
}

// TestWhoGivesUpClassIsForeseen: which of several instances of one job gives up its class does not go by their IDs, which a forecast cannot know.
func TestWhoGivesUpClassIsForeseen(t *testing.T) {
	given := map[string]bool{}
	for ids := range 8 {
		x := newTenants(t, gives(t, "a", "gpu", 4), eightGPUs("n1"), eightGPUs("n2")).withBands()
		x.ids = 100 * ids
		x.decide("a", "low", 4, 1, ofPriority(10))
		plan := x.decide("a", "high", 1, 1, ofPriority(90))
		if len(lowered(plan)) != 1 {
			t.Fatalf("%d lowered", len(lowered(plan)))
		}
		for _, id := range lowered(plan) {
			u, _ := world.Usages(x.pass.World()).Get(id)
			given[u.Devices[0].ID] = true
		}
	}
	if len(given) != 1 {
		t.Errorf("one of %v gives up its class, as the IDs are", given)
	}
}

// TestGangTakesClassOfLowerBands: a gang takes the class of what its owner has in lower bands, and a gang gives it up whole.
func TestGangTakesClassOfLowerBands(t *testing.T) {
	x := newTenants(t, gives(t, "a", "gpu", 4), eightGPUs("n1"), eightGPUs("n2")).withBands()
	x.decide("a", "low", 3, 1, gang(0), ofPriority(10))
	plan := x.decide("a", "high", 2, 1, gang(0), ofPriority(90))
	x.wantClasses("a gang", plan, 2, 0)
	if len(lowered(plan)) != 3 || len(plan.Stop) != 0 {
		t.Errorf("a gang: %d lowered, %d stopped", len(lowered(plan)), len(plan.Stop))
	}
	// A gang that is too large takes nothing from anybody.
	plan = x.decide("a", "higher", 5, 1, gang(0), ofPriority(100))
	if x.wantClasses("a gang of 5", plan, 0, 5); len(lowered(plan)) != 0 {
		t.Errorf("a gang of 5: %d lowered", len(lowered(plan)))
	}
}

// TestJudgeChecksClassTaken: a plan that takes the class of an allocation is refused if that is of no lower band of the same owner, and
// gives the class back where the newcomer's node refuses.
func TestJudgeChecksClassTaken(t *testing.T) {
	x := newTenants(t, gives(t, "a", "node", 1), eightGPUs("n1"), eightGPUs("n2")).withBands()
	x.decide("a", "low", 8, 1, ofPriority(10))
	before := x.pass.World()
	plan := x.decide("a", "high", 1, 8, ofPriority(90))
	judge := func(what string, valid bool, change func(e *scheduler.Edit), plan structs.Plan) {
		t.Helper()
		e := before.Edit()
		change(e)
		got, _, why := scheduler.Judge(e, &plan)
		guaranteed := 0
		for _, u := range world.Usages(e.World()).All {
			if u.Guaranteed() && u.Owner.Job == "low" {
				guaranteed++
			}
		}
		if valid && (guaranteed != 0 || len(got.Place) != 1 || len(got.Update) != 8) || !valid && (guaranteed != 8 || len(got.Place)+len(got.Update) != 0) {
			t.Errorf("%s: %d stay guaranteed, %d placed, %d updated: %s", what, guaranteed, len(got.Place), len(got.Update), why)
		}
	}
	as := func(*scheduler.Edit) {}
	judge("as it was", true, as, *plan)
	judge("the node is down", false, func(e *scheduler.Edit) { e.UpsertNode(eightGPUs("n2", down)) }, *plan)
	low := *plan
	low.Priority, low.Place = 10, []*structs.PlacementBatch{{}}
	*low.Place[0] = *plan.Place[0]
	low.Place[0].Resources = plan.Place[0].Resources.Copy()
	low.Place[0].Resources.Shared.Terms.Priority = 10
	judge("it is of the same band", false, as, low)
	other := *plan
	other.Namespace = "b"
	judge("it is of another namespace", false, as, other)
}
