package scheduler_test

import (
	"maps"
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

// TestTermsNameUser: an instance has the user who submitted the version of the job that it was placed by, also when another user's version
// updates it in place.
func TestTermsNameUser(t *testing.T) {
	for _, user := range []string{"", "ada"} {
		c := newCluster(t)
		c.node("n")
		by := func(user string, count int) {
			c.register(schedtest.Job(structs.JobTypeService, count, func(j *structs.Job) {
				if user != "" {
					j.Submitter = &structs.Submitter{User: user, Source: structs.SubmitterSourceHeader}
				}
			}))
			c.eval()
		}
		by(user, 1)
		by("bob", 2)
		c.wantPlan(1, 0, 1)
		got := map[string]string{}
		for _, a := range c.sorted() {
			got[a.Name] = a.AllocatedResources.Shared.Terms.User
		}
		if want := map[string]string{"j.g[0]": user, "j.g[1]": "bob"}; !maps.Equal(got, want) {
			t.Errorf("users %q, want %q", got, want)
		}
	}
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

// TestReclaimRequeuesWhatHasDevices: a suspended process keeps the memory of its devices, so an instance with devices is requeued,
// also where nobody else needs them, and its gang with it.
func TestReclaimRequeuesWhatHasDevices(t *testing.T) {
	f := func(gang string, devices ...[]string) {
		t.Helper()
		c := preempting(t)
		c.node("n", schedtest.EightGPUs, sized(200, 100))
		terms := structs.AllocTerms{Reclaim: structs.ReclaimSuspend, Gang: gang}
		if gang != "" {
			terms.GangMin = 2
		}
		ids := c.runs(other{job: "low", priority: 1, cpu: 100, mem: 1, terms: terms, devices: devices}, 2, "n")
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(4, 150, 50)))
		c.eval()
		for _, id := range ids {
			a := c.allocs[id]
			if a.DesiredStatus != structs.AllocDesiredEvict || !strings.Contains(a.DesiredDescription, "; not suspended, as a suspended process keeps the memory of its devices") {
				t.Errorf("gang %q: %s is to %s, as it is %q", gang, id, a.DesiredStatus, a.DesiredDescription)
			}
		}
	}
	f("", []string{"n-gpu-0"}, []string{"n-gpu-1"})
	f("g", []string{"n-gpu-0"}, []string{"n-gpu-1"})
	f("g", []string{"n-gpu-0"})
}

// TestClaimSuspendsBesideItOnly: a claim takes what is opportunistic as bands do: what has no devices is suspended if its memory can
// stay beside the newcomer's, and else requeued, and told so.
func TestClaimSuspendsBesideItOnly(t *testing.T) {
	f := func(memory int64, devices []string, want, told string) {
		t.Helper()
		c := newCluster(t)
		c.node("n1", schedtest.EightGPUs, sized(8000, 1000))
		e := c.w.Edit()
		ownsNodes(t, "default", 1)(e)
		c.w = e.World()
		terms := structs.AllocTerms{Reclaim: structs.ReclaimSuspend}
		ids := c.runs(other{job: "low", priority: 90, cpu: 4000, mem: memory, terms: terms, devices: [][]string{devices}}, 1, "n1")
		c.register(schedtest.Job(structs.JobTypeService, 1, requests(1, 6000, 500), func(j *structs.Job) {
			schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 8}}
		}))
		c.eval()
		a := c.allocs[ids[0]]
		if c.wantPlan(1, 1, 0); a.DesiredStatus != want || !strings.HasSuffix(a.DesiredDescription, told) {
			t.Errorf("memory %d, devices %v: it is to %s, as it is %q; want %s, %q", memory, devices, a.DesiredStatus, a.DesiredDescription, want, told)
		}
	}
	f(500, nil, structs.AllocDesiredSuspend, "")
	f(501, nil, structs.AllocDesiredEvict, "; not suspended, as its memory cannot stay beside it")
	f(1, []string{"n1-gpu-0"}, structs.AllocDesiredEvict, "; not suspended, as a suspended process keeps the memory of its devices")
}
