package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// reservations lets another job hold all GPUs of a node.
func (c *cluster) reservations(node string, priority int) {
	ids := c.runs(other{job: fmt.Sprint("p", priority), priority: priority, cpu: 1, mem: 1}, 1, node)
	a := c.allocs[ids[0]].Copy()
	d := &structs.AllocatedDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "h100"}
	for i := range 8 {
		d.DeviceIDs = append(d.DeviceIDs, fmt.Sprintf("%s-gpu-%d", node, i))
	}
	a.AllocatedResources.Tasks["t"].Devices = []*structs.AllocatedDeviceResource{d}
	c.allocs[a.ID] = a
	e := c.w.Edit()
	e.UpsertAlloc(a)
	c.w = e.World()
}

// TestReclaimForGang: a gang takes what it lacks in the rack that loses least, or nothing.
func TestReclaimForGang(t *testing.T) {
	f := func(want string, taken map[string]int, fill func(c *cluster)) {
		t.Helper()
		c := preempting(t)
		c.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
		c.racks(2, 2, 2) // n01 n02, n03 n04, n05 n06
		fill(c)
		c.register(gangJob(structs.JobTypeBatch, 2, 8, inRack(true), requests(50, 1, 1), func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 8}}
		}))
		plan := c.eval()
		var on []string
		for _, b := range plan.Place {
			for _, n := range b.Nodes {
				on = append(on, n.ID)
			}
		}
		slices.Sort(on)
		if got := strings.Join(on, " "); got != want {
			t.Fatalf("on %q, want %q", got, want)
		}
		c.wantTaken(taken)
	}
	all := func(c *cluster, priorities ...int) {
		for i, p := range priorities {
			if p > 0 {
				c.reservations(fmt.Sprintf("n%02d", i+1), p)
			}
		}
	}
	f("n03 n04", map[string]int{"p4": 1, "p5": 1}, func(c *cluster) { all(c, 6, 1, 4, 5, 60, 1) })
	f("n05 n06", map[string]int{"p5": 1}, func(c *cluster) { all(c, 6, 1, 4, 5, 5, 0) })
	f("", map[string]int{}, func(c *cluster) { all(c, 60, 1, 1, 60, 60, 1) })
}

// TestReclaimGangWhole: a gang below its min goes whole, wherever its members are; above
// it, one goes.
func TestReclaimGangWhole(t *testing.T) {
	f := func(least, want int, says string) {
		t.Helper()
		c := preempting(t)
		for _, id := range []string{"a", "b", "c"} {
			c.node(id, sized(100, 100))
			c.runs(other{job: "gang", priority: 1, cpu: 100, mem: 1, terms: structs.AllocTerms{Gang: "g", GangMin: least}}, 1, id)
		}
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 50, 50)))
		c.eval()
		c.wantTaken(map[string]int{"gang": want})
		for _, s := range c.last.Stop {
			if !strings.Contains(s.DesiredDescription, says) {
				t.Fatalf("%q, want %q", s.DesiredDescription, says)
			}
		}
	}
	f(3, 3, "preempted by allocation")
	f(2, 1, "its gang runs on without it")
}

// TestReclaimJudgedTogether: if the newcomer's node has no room any more, all of the gang
// that was to make room runs on, on other nodes too; and the other way round nothing is
// placed if a victim is of the newcomer's band by then.
func TestReclaimJudgedTogether(t *testing.T) {
	f := func(change func(c *cluster, e *scheduler.Edit), reservations bool) {
		t.Helper()
		c := preempting(t)
		for _, id := range []string{"a", "b"} {
			c.node(id, sized(100, 100))
			c.runs(other{job: "gang", priority: 1, cpu: 100, mem: 1, terms: structs.AllocTerms{Gang: "g", GangMin: 2}}, 1, id)
		}
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(50, 50, 50)))
		plan, err := scheduler.Schedule(c.w, c.newEval(), c.input())
		if err != nil || len(plan.Stop) != 2 {
			t.Fatal(err, len(plan.Stop))
		}
		e := c.w.Edit()
		change(c, e)
		before := e.World()
		e = before.Edit()
		got, _, why := scheduler.Judge(e, plan)
		evals := 0
		for _, ev := range got.Evals {
			if ev.TriggeredBy == structs.EvalTriggerPreemption {
				evals++
			}
		}
		if reservations != (len(got.Place) == 1) || reservations != (len(got.Stop) == 2) || reservations != (evals == 1) {
			t.Fatalf("%d placed, %d taken back, %d evaluations (%s); want all %v", len(got.Place), len(got.Stop), evals, why, reservations)
		}
		if diff := before.Diff(e.World()); !reservations && diff != nil {
			t.Fatalf("nothing holds, and the World has changed: %v", diff)
		}
	}
	f(func(*cluster, *scheduler.Edit) {}, true)
	f(func(c *cluster, e *scheduler.Edit) { n := c.nodes["a"].Copy(); down(n); e.UpsertNode(n) }, false)
	f(func(c *cluster, e *scheduler.Edit) { // another member has come
		c.runs(other{job: "gang", priority: 1, terms: structs.AllocTerms{Gang: "g", GangMin: 2}}, 1, "b")
		*e = *c.w.Edit()
	}, false)
	f(func(c *cluster, e *scheduler.Edit) {
		for _, a := range c.sorted() {
			if a.NodeID == "b" {
				b := a.Copy()
				b.AllocatedResources.Shared.Terms.Priority = 50
				e.UpsertAlloc(b)
			}
		}
	}, false)
}
