package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// suspending lets a node say which drivers can suspend their tasks ("1") and which cannot ("0").
func suspending(says map[string]string) func(*structs.Node) {
	return func(n *structs.Node) {
		for driver, can := range says {
			n.Attributes[structs.AttrDriverSuspend(driver)] = can
		}
	}
}

// TestReclaimSuspendsOnlyWhatCanBeSuspended: where the node says that a driver of the victim cannot
// suspend, it is requeued, and its description says why.
func TestReclaimSuspendsOnlyWhatCanBeSuspended(t *testing.T) {
	f := func(drivers string, says map[string]string, suspends bool) {
		t.Helper()
		c := preempting(t)
		c.node("n", sized(100, 100), suspending(says))
		terms := structs.AllocTerms{Reclaim: structs.ReclaimSuspend, Drivers: drivers}
		ids := c.runs(other{job: "low", priority: 1, cpu: 100, mem: 1, terms: terms}, 1, "n")
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(4, 50, 50)))
		c.eval()
		want, reclaim := structs.AllocDesiredEvict, structs.ReclaimRequeue
		if suspends {
			want, reclaim = structs.AllocDesiredSuspend, structs.ReclaimSuspend
		}
		a := c.allocs[ids[0]]
		told := strings.HasSuffix(a.DesiredDescription, "; not suspended, as a driver of it cannot suspend tasks")
		if len(c.last.Stop) != 1 || c.last.Stop[0].Reclaim != reclaim || a.DesiredStatus != want || told == suspends {
			t.Errorf("%q where %v: it is to %s, as it is %q; want %s", drivers, says, a.DesiredStatus, a.DesiredDescription, want)
		}
	}
	f("a", map[string]string{"a": "0"}, false)
	f("a", map[string]string{"a": "1"}, true)
	f("a", map[string]string{"b": "0"}, true)
	f("a", nil, true) // an older client
	f("a,b", map[string]string{"a": "1", "b": "0"}, false)
	f("a,b", map[string]string{"a": "1", "b": "1"}, true)
	f("", map[string]string{"a": "0"}, true) // placed by an older version: its client says if it cannot
}

// TestReclaimSuspendsGangWholeOrNot: one member that cannot be suspended, on whatever node, and the
// gang is requeued.
func TestReclaimSuspendsGangWholeOrNot(t *testing.T) {
	f := func(cannot, status string) {
		t.Helper()
		c := preempting(t)
		for _, id := range []string{"a", "b"} {
			can := "1"
			if id == cannot {
				can = "0"
			}
			c.node(id, sized(100, 100), suspending(map[string]string{"x": can}))
			terms := structs.AllocTerms{Gang: "g", GangMin: 2, Reclaim: structs.ReclaimSuspend, Drivers: "x"}
			c.runs(other{job: "gang", priority: 1, cpu: 100, mem: 1, terms: terms}, 1, id)
		}
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(4, 50, 50)))
		c.eval()
		if len(c.last.Stop) != 2 {
			t.Fatalf("%d of the gang's two members give way", len(c.last.Stop))
		}
		for _, s := range c.last.Stop {
			if s.DesiredStatus != status {
				t.Errorf("node %q cannot freeze: %s is to %s (%s), want %s", cannot, s.AllocID, s.DesiredStatus, s.DesiredDescription, status)
			}
		}
	}
	f("", structs.AllocDesiredSuspend)
	f("a", structs.AllocDesiredEvict)
	f("b", structs.AllocDesiredEvict)
}

// TestTermsNameDrivers: what is suspended knows the drivers of the tasks that are suspended then.
// What is requeued needs none.
func TestTermsNameDrivers(t *testing.T) {
	f := func(reclaim, want string, tasks ...*structs.Task) {
		t.Helper()
		c := newCluster(t)
		c.node("n", func(n *structs.Node) {
			for _, driver := range []string{"a", "b", "c"} {
				n.Drivers[driver] = &structs.DriverInfo{Detected: true, Healthy: true}
			}
		})
		c.register(schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) {
			j.Reclaim = reclaim
			schedtest.Group(j).Tasks = tasks
		}))
		c.eval()
		c.wantPlan(1, 0, 0)
		if got := c.sorted()[0].AllocatedResources.Shared.Terms.Drivers; got != want {
			t.Errorf("drivers %q, want %q", got, want)
		}
	}
	with := func(name, driver, hook string, sidecar bool) *structs.Task {
		k := &structs.Task{Name: name, Driver: driver, Resources: &structs.Resources{CPU: 1, MemoryMB: 10}}
		if hook != "" {
			k.Lifecycle = &structs.TaskLifecycle{Hook: hook, Sidecar: sidecar}
		}
		return k
	}
	f(structs.ReclaimSuspend, "a", with("t", "a", "", false))
	f(structs.ReclaimRequeue, "", with("t", "a", "", false))
	f("", "", with("t", "a", "", false))
	f(structs.ReclaimSuspend, "a,b", with("t", "b", "", false), with("u", "a", "", false), with("v", "b", "", false))
	f(structs.ReclaimSuspend, "a,b,c", with("t", "a", "", false), with("u", "b", structs.TaskLifecycleHookPrestart, true), with("v", "c", structs.TaskLifecycleHookPoststart, false))
	// What has ended before the others run, or runs after them, is not there to be suspended.
	f(structs.ReclaimSuspend, "a", with("t", "a", "", false), with("u", "b", structs.TaskLifecycleHookPrestart, false), with("v", "c", structs.TaskLifecycleHookPoststop, false))
}
