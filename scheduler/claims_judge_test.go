package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

func ownsNodes(t *testing.T, owner string, count int) func(e *scheduler.Edit) {
	chain := chainOf(t)
	return func(e *scheduler.Edit) {
		e.SetQuotas(owner, []world.Quota{{Chain: chain, Level: "node", Count: count, Order: 1}})
	}
}

// TestJudgeChecksClaims: what was decided by a claim is refused if the claim is gone by then, and so is what takes from an allocation
// that has become guaranteed since.
func TestJudgeChecksClaims(t *testing.T) {
	x := newTenants(t, ownsNodes(t, "a", 1), eightGPUs("n1"))
	x.decide("b", "borrows", 1, 8, func(j *structs.Job) { j.Priority = 90 })
	before := x.pass.World()
	plan := x.decide("a", "owner", 1, 8)
	if preemptedBy(plan) != 1 {
		t.Fatalf("%v, %d preempted", placements(plan), preemptedBy(plan))
	}
	judge := func(what, want string, change func(e *scheduler.Edit)) {
		t.Helper()
		e := before.Edit()
		change(e)
		e = e.World().Edit()
		valid, refused, why := scheduler.Judge(e, plan)
		switch {
		case want == "" && (len(refused) > 0 || len(valid.Place) != 1 || len(valid.Stop) != 1):
			t.Errorf("%s: refused %v: %s", what, refused, why)
		case want != "" && (len(valid.Place)+len(valid.Stop) > 0 || !strings.Contains(why, want)):
			t.Errorf("%s: %d placed, %d stopped, refused as %q, want %q", what, len(valid.Place), len(valid.Stop), why, want)
		}
	}
	judge("as it was", "", func(*scheduler.Edit) {})
	judge("nobody owns anything", "claim: no cell of level node is owned there", func(e *scheduler.Edit) { e.SetQuotas("a", nil) })
	judge("the cell is another's", "is guaranteed", func(e *scheduler.Edit) {
		e.SetQuotas("a", nil)
		ownsNodes(t, "b", 1)(e)
		for _, u := range world.Usages(before).All {
			own := *u
			own.Owner = &world.Owner{RequestName: u.Owner.RequestName, Terms: u.Owner.Terms}
			own.Owner.Terms.Claim, own.Owner.Terms.CellLevel = structs.ClaimCells, "node"
			world.Take(e, &own)
		}
	})
	judge("the owner has bound its cell elsewhere", "the owner has no unbound cell of that kind", func(e *scheduler.Edit) {
		e.UpsertNode(eightGPUs("n2"))
		world.Take(e, &world.Usage{
			ID: "elsewhere", NodeID: "n2", Devices: []world.DeviceUsage{{ID: "n2-gpu-0", Share: 1000}},
			Owner: &world.Owner{RequestName: world.RequestName{Namespace: "a"}, Terms: structs.AllocTerms{Claim: structs.ClaimCells, CellLevel: "node"}},
		})
	})
}

// TestLeastLoss: the cell is bound whose work is the least important, then of the fewest instances; and what a request has reserved for
// later does not stand in the way.
func TestLeastLoss(t *testing.T) {
	x := newTenants(t, ownsNodes(t, "a", 1), eightGPUs("n1"), eightGPUs("n2"), eightGPUs("n3"))
	for _, row := range []struct {
		job             string
		priority, count int
		gpus            int
	}{{"high", 90, 1, 8}, {"low", 10, 8, 1}, {"least", 10, 2, 4}} {
		plan := x.decide("b", row.job, row.count, row.gpus, func(j *structs.Job) { j.Priority = row.priority })
		if _, o := classes(plan); o != row.count {
			t.Fatalf("%s: %v", row.job, placements(plan))
		}
	}
	where := map[string]string{} // the node of each job
	for _, u := range world.Usages(x.pass.World()).All {
		where[u.Owner.Job] = u.NodeID
	}
	e := x.pass.World().Edit()
	for _, id := range []string{"n1", "n2", "n3"} {
		e.Reserve(&structs.Reservation{NodeID: id, Namespace: "b", JobID: "later", Group: "g", CPU: 256_000, MemoryMB: 1 << 20, Devices: 8, DueAt: 1, ExpiresAt: 1 << 62})
	}
	x.pass = scheduler.NewPass(e.World())
	plan := x.decide("a", "owner", 1, 8)
	if len(plan.Place) != 1 || plan.Place[0].Nodes[0].ID != where["least"] || preemptedBy(plan) != 2 {
		t.Errorf("%v, on %v, %d preempted; jobs on %v", placements(plan), plan.Place, preemptedBy(plan), where)
	}
}
