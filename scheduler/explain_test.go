package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// TestExplainReasons has a job wait for each reason, and expects to be told it with how
// many nodes, and a change that, when made, places the job.
func TestExplainReasons(t *testing.T) {
	type want struct {
		kind, subject string
		nodes         int
	}
	busy := func(cpu, memory, count int) func(*cluster) {
		return func(c *cluster) {
			c.submit("other", schedtest.Job(structs.JobTypeService, count, func(j *structs.Job) {
				schedtest.Task(j).Resources = &structs.Resources{CPU: cpu, MemoryMB: memory}
			}))
		}
	}
	constraint := func(l, op, r string) func(*structs.Job) {
		return func(j *structs.Job) {
			schedtest.Group(j).Constraints = append(schedtest.Group(j).Constraints, &structs.Constraint{LTarget: l, Operand: op, RTarget: r})
		}
	}
	device := func(d structs.RequestedDevice) func(*structs.Job) {
		return func(j *structs.Job) { schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{&d} }
	}
	for _, tt := range []struct {
		name   string
		world  func(*cluster)
		count  int
		job    func(*structs.Job)
		want   []want
		remedy string // the kind of the smallest
	}{
		{"constraints, each of them", nil, 1, func(j *structs.Job) {
			constraint("${attr.kernel.name}", "=", "plan9")(j)
			constraint("${meta.colour}", "=", "red")(j)
			constraint("${attr.unique.hostname}", "=", "host-n01")(j)
		}, []want{
			{structs.ReasonConstraint, "${attr.kernel.name} = plan9", 4}, {structs.ReasonConstraint, "${meta.colour} = red", 4},
			{structs.ReasonConstraint, "${attr.unique.hostname} = host-n01", 3},
		}, structs.RemedyFilter},
		{"datacenter", nil, 1, func(j *structs.Job) { j.Datacenters = []string{"dc7"} },
			[]want{{structs.ReasonDatacenter, "dc1", 4}}, structs.RemedyFilter},
		{"driver", func(c *cluster) {
			c.changeNode("n01", func(n *structs.Node) {
				n.Drivers = map[string]*structs.DriverInfo{"docker": {Detected: true}}
				n.ComputeClass()
			})
		}, 1, func(j *structs.Job) { schedtest.Task(j).Driver = "docker" }, []want{{structs.ReasonDriver, "docker", 4}}, structs.RemedyNodeState},
		{"pool", func(c *cluster) {
			for id := range c.nodes {
				c.changeNode(id, func(n *structs.Node) { n.NodePool = "gpu"; n.ComputeClass() })
			}
		}, 1, func(*structs.Job) {}, nil, structs.RemedyFilter},
		{"down, draining and not eligible", func(c *cluster) {
			c.changeNode("n00", down)
			c.changeNode("n01", func(n *structs.Node) {
				n.DrainStrategy, n.SchedulingEligibility = &structs.DrainStrategy{}, structs.NodeIneligible
			})
			c.changeNode("n02", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
			c.changeNode("n03", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
		}, 9, func(*structs.Job) {}, []want{
			{structs.ReasonDown, "", 1}, {structs.ReasonDraining, "", 1}, {structs.ReasonIneligible, "", 2},
		}, structs.RemedyNodeState},
		{"a full disk", func(c *cluster) {
			for _, id := range []string{"n00", "n01", "n02", "n03"} {
				c.changeNode(id, func(n *structs.Node) { n.DiskFull = "the disk of /x is full" })
			}
		}, 9, func(*structs.Job) {}, []want{{structs.ReasonDiskFull, "", 4}}, structs.RemedyNodeState},
		{"memory", busy(10, 7000, 4), 3, func(j *structs.Job) { schedtest.Task(j).Resources.MemoryMB = 1500 },
			[]want{{structs.ReasonMemory, "", 4}}, structs.RemedyResources},
		{"cpu and memory at once", busy(3000, 6000, 4), 1, func(j *structs.Job) {
			schedtest.Task(j).Resources = &structs.Resources{CPU: 1200, MemoryMB: 2500}
		}, []want{{structs.ReasonCPU, "", 4}, {structs.ReasonMemory, "", 4}}, structs.RemedyResources},
		{"disk", nil, 1, func(j *structs.Job) { schedtest.Group(j).EphemeralDisk.SizeMB = 200_000 }, []want{{structs.ReasonDisk, "", 4}}, structs.RemedyResources},
		{"cores", nil, 1, func(j *structs.Job) { schedtest.Task(j).Resources = &structs.Resources{Cores: 6, MemoryMB: 10} },
			[]want{{structs.ReasonCPU, "", 4}, {structs.ReasonCores, "", 4}}, structs.RemedyResources},
		{"static port", func(c *cluster) {
			c.submit("other", schedtest.Job(structs.JobTypeService, 4, func(j *structs.Job) {
				constraint("", structs.ConstraintDistinctHosts, "")(j)
				schedtest.Group(j).Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "http", Value: 8080}}}}
			}))
		}, 1, func(j *structs.Job) {
			schedtest.Group(j).Networks = []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "http", Value: 8080}}}}
		}, []want{{structs.ReasonPort, "8080", 4}}, structs.RemedyPort},
		{"distinct hosts", nil, 6, constraint("", structs.ConstraintDistinctHosts, ""), []want{{structs.ReasonDistinctHosts, "distinct_hosts", 4}}, ""},
		{"candidates", busy(4000, 10, 1), 1, func(j *structs.Job) { schedtest.Group(j).Candidates = []string{"n00"} },
			[]want{{structs.ReasonCandidates, "", 3}, {structs.ReasonCPU, "", 1}}, structs.RemedyFilter},
		{"too few GPUs", func(c *cluster) {
			c.node("g0", schedtest.EightGPUs)
			c.submit("other", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 5}))
		}, 1, device(structs.RequestedDevice{Name: "nvidia/gpu", Count: 4}), []want{
			{structs.ReasonDeviceKind, "nvidia/gpu", 4}, {structs.ReasonDevices, "nvidia/gpu", 1},
		}, structs.RemedyResources},
		{"no free cell", func(c *cluster) {
			c.node("g0", schedtest.EightGPUs)
			c.submit("a", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 4}))
			c.submit("b", schedtest.GPUJob(2, structs.RequestedDevice{Name: "gpu", Count: 1}))
			c.client(func(a *structs.Allocation) bool { return a.JobID == "a" }, c.ended(false))
			c.submit("c", schedtest.GPUJob(1, structs.RequestedDevice{Name: "gpu", Count: 1, Topology: &structs.TopologyConstraint{Level: "socket"}}))
		}, 1, device(structs.RequestedDevice{Name: "nvidia/gpu", Count: 5, Topology: &structs.TopologyConstraint{Level: "socket", Required: true}}),
			[]want{{structs.ReasonDeviceKind, "nvidia/gpu", 4}, {structs.ReasonCell, "socket", 1}}, structs.RemedyTopology},
		{"share", func(c *cluster) {
			c.node("g0", schedtest.EightGPUs)
			c.submit("other", schedtest.GPUJob(8, structs.RequestedDevice{Name: "gpu", Count: 1, Share: 700}))
		}, 1, device(structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 400}), []want{
			{structs.ReasonDeviceKind, "nvidia/gpu", 4}, {structs.ReasonShare, "nvidia/gpu", 1},
		}, structs.RemedyResources},
		{"model", func(c *cluster) { c.node("g0", schedtest.EightGPUs) }, 1, device(structs.RequestedDevice{Name: "nvidia/gpu/B200", Count: 4}),
			[]want{{structs.ReasonDeviceKind, "nvidia/gpu/B200", 5}}, structs.RemedyFilter},
		{"volume", nil, 1, func(j *structs.Job) {
			schedtest.Group(j).Volumes = map[string]*structs.VolumeRequest{"v": {Name: "v", Type: structs.VolumeTypeHost, Source: "data"}}
		}, []want{{structs.ReasonVolume, "data", 4}}, structs.RemedyNodeState},
		{"reserved", func(c *cluster) {
			e := c.w.Edit()
			for id := range c.nodes {
				e.Reserve(&structs.Reservation{NodeID: id, Namespace: "default", JobID: "big", Group: "g", CPU: 3900, DueAt: 1, ExpiresAt: 1 << 62})
			}
			c.w = e.World()
		}, 1, func(*structs.Job) {}, []want{{structs.ReasonReserved, "default/big/g", 4}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			nodes(c, 4)
			if tt.world != nil {
				tt.world(c)
			}
			c.submit("j", schedtest.Job(structs.JobTypeService, tt.count, tt.job))
			g := c.explain().Group("g")
			if g.Missing == 0 {
				t.Fatalf("nothing waits: %s", asJSON(t, g))
			}
			for _, w := range tt.want {
				if !slices.ContainsFunc(g.Reasons, func(r structs.NodeReason) bool {
					return r.Kind == w.kind && r.Subject == w.subject && r.Nodes == w.nodes && r.Text != ""
				}) {
					t.Errorf("no reason %v among %s", w, asJSON(t, g.Reasons))
				}
			}
			if len(g.Reasons) != len(tt.want) {
				t.Errorf("%d reasons, want %d: %s", len(g.Reasons), len(tt.want), asJSON(t, g.Reasons))
			}
			n := g.Nodes
			if n.Known != n.OtherPools+n.InPool || n.InPool != n.Refused+n.Holding+n.Lacking+n.Fitting || n.Known != len(c.nodes) || n.Fitting > 0 {
				t.Errorf("the nodes do not add up: %+v of %d", n, len(c.nodes))
			}
			if len(g.Smallest) == 0 || !g.Smallest[0].All {
				t.Fatalf("no change places all: %s", asJSON(t, g.Smallest))
			}
			if got := g.Smallest[0].Kind; tt.remedy != "" && got != tt.remedy {
				t.Errorf("the smallest change is of kind %s: %q, want %s", got, g.Smallest[0].Text, tt.remedy)
			}
			c.helps("g", g)
			if testing.Verbose() {
				for _, r := range g.Reasons {
					t.Logf("%3d %s", r.Nodes, r.Text)
				}
				for _, r := range g.Smallest {
					t.Logf("%.2f %v %s", r.Size, r.All, r.Text)
				}
				t.Logf("%+v, %d tries", *g.Expected, g.Tries)
			}
		})
	}
}

// Nobody is told to have a driver working that no node knows, nor to get nodes with it.
func TestExplainTellsOfADriverThatNoNodeKnows(t *testing.T) {
	f := func(driver, want string, known bool) {
		t.Helper()
		c := newCluster(t)
		nodes(c, 2)
		c.changeNode("n01", func(n *structs.Node) {
			n.Drivers = map[string]*structs.DriverInfo{"raw_exec": {}}
			n.Attributes["driver.old"], n.Attributes["driver.other.suspend"] = "0", "1"
			n.ComputeClass()
		})
		c.submit("j", schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Task(j).Driver = driver }))
		g := c.explain().Group("g")
		if len(g.Reasons) != 1 || g.Reasons[0].Text != want || (len(g.Smallest) > 0) != known {
			t.Errorf("%s: %s %s, want %q", driver, asJSON(t, g.Reasons), asJSON(t, g.Smallest), want)
		}
	}
	f("docker", `no node knows driver "docker"; nodes have mock_driver, old, raw_exec`, false)
	f("rawexec", `no node knows driver "rawexec"; did you mean "raw_exec"?`, false)
	f("other", `no node knows driver "other"; nodes have mock_driver, old, raw_exec`, false)
	f("raw_exec", `driver "raw_exec" is missing or not healthy`, true)
	f("old", `driver "old" is missing or not healthy`, true)
}

// What nodes say of a driver that they lack is told, with how many of them say it.
func TestExplainTellsWhatNodesReportOfADriver(t *testing.T) {
	c := newCluster(t)
	nodes(c, 4)
	says := func(id, text string) {
		c.changeNode(id, func(n *structs.Node) {
			n.Drivers = map[string]*structs.DriverInfo{"raw_exec": {HealthDescription: text}}
			n.ComputeClass()
		})
	}
	f := func(want string) {
		t.Helper()
		if g := c.explain().Group("g"); len(g.Reasons) != 1 || g.Reasons[0].Text != want {
			t.Errorf("reasons %s, want %q", asJSON(t, g.Reasons), want)
		}
	}
	c.submit("j", schedtest.Job(structs.JobTypeService, 1, func(j *structs.Job) { schedtest.Task(j).Driver = "raw_exec" }))
	f(`no node knows driver "raw_exec"; nodes have mock_driver`)
	says("n02", "broken")
	says("n01", "switched off")
	says("n03", "switched off")
	f(`driver "raw_exec" is missing or not healthy; 2 of them report: switched off`)
	says("n00", "switched off")
	says("n02", "switched off")
	f(`driver "raw_exec" is missing or not healthy: switched off`)
}

// The amount named is exact: a MiB more does not fit.
func TestExplainExactAmount(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.changeNode("n01", func(n *structs.Node) { n.NodeResources.Memory.MemoryMB = 5000 })
	c.submit("j", schedtest.Job(structs.JobTypeService, 5, func(j *structs.Job) { schedtest.Task(j).Resources = &structs.Resources{CPU: 10, MemoryMB: 4500} }))
	g := c.explain().Group("g")
	at := slices.IndexFunc(g.Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyResources })
	if at < 0 || len(g.Smallest[at].Edits) != 1 || string(g.Smallest[at].Edits[0].Value) != "1166" {
		t.Fatalf("3 more find room on 3500 and 500 MiB with 1166 each at most; told: %s", asJSON(t, g.Smallest))
	}
	c.helps("g", g)
}

func TestExplainGang(t *testing.T) {
	c := newCluster(t)
	c.racks(2, 3)
	c.config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}}
	c.submit("j", gangJob(structs.JobTypeBatch, 4, 8, inRack(true)))
	g := c.explain().Group("g")
	if g.Missing != 4 || g.PlacedNow != 0 || len(g.Reasons) != 1 {
		t.Fatalf("%s", asJSON(t, g))
	}
	r := g.Reasons[0]
	if r.Kind != structs.ReasonTopology || r.Nodes != 5 || len(r.Rooms) != 2 || r.Rooms[0] != (structs.CellRoom{Level: "rack", Name: "r2", Room: 3, Want: 4}) ||
		r.Rooms[1] != (structs.CellRoom{Level: "rack", Name: "r1", Room: 2, Want: 4}) {
		t.Errorf("told: %s", asJSON(t, r))
	}
	if len(g.Smallest) == 0 || g.Smallest[0].Kind != structs.RemedyTopology {
		t.Errorf("smallest: %s", asJSON(t, g.Smallest))
	}
	c.helps("g", g)
}

func TestExplainExpectedStart(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	limited := func(hours int) func(*structs.Job) {
		return func(j *structs.Job) {
			schedtest.Group(j).MaxRunDuration = time.Duration(hours) * time.Hour
			schedtest.Task(j).Resources = &structs.Resources{CPU: 4000, MemoryMB: 100}
		}
	}
	c.submit("long", schedtest.Job(structs.JobTypeBatch, 1, limited(3)))
	c.submit("short", schedtest.Job(structs.JobTypeBatch, 1, limited(1)))
	c.submit("j", schedtest.Job(structs.JobTypeBatch, 2, limited(1)))
	e := c.explain().Group("g").Expected
	if !e.Known || e.First != c.now.Add(time.Hour).UnixNano() || e.All != c.now.Add(3*time.Hour).UnixNano() {
		t.Errorf("expected: %s", asJSON(t, e))
	}
	c.update(func(j *structs.Job) {
		schedtest.Group(j).Constraints = []*structs.Constraint{{Operand: structs.ConstraintDistinctHosts}}
	})
	if d := c.explain().Group("g").Expected; d.First != e.First || d.All != e.All {
		t.Errorf("expected by the scheduler itself: %s", asJSON(t, d))
	}
	c.update(setCount(3))
	if e = c.explain().Group("g").Expected; e.Known || e.First == 0 || e.All != 0 {
		t.Errorf("of three, the last is not known: %s", asJSON(t, e))
	}
	c.update(func(j *structs.Job) { schedtest.Task(j).Resources.CPU = 5000 })
	if e = c.explain().Group("g").Expected; e.Known || e.First != 0 || !strings.Contains(e.Because, "even when empty") {
		t.Errorf("no node is large enough: %s", asJSON(t, e))
	}
}

// What waits for no node: each kind is told.
func TestExplainWaits(t *testing.T) {
	kinds := func(c *cluster) (out []string) {
		for _, w := range c.explain().Group("g").Waits {
			out = append(out, fmt.Sprint(w.Kind, " ", w.Instances))
		}
		return out
	}
	c := newCluster(t)
	nodes(c, 1)
	f := func(want ...string) {
		t.Helper()
		if got := kinds(c); !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	c.register(schedtest.Job(structs.JobTypeService, 3))
	f("not-tried 3")
	c.config.PauseEvalBroker = true
	f("evaluations-paused 3", "not-tried 3")
	if r := c.explain().Group("g").Smallest; len(r) != 1 || r[0].Kind != structs.RemedyUnpause {
		t.Errorf("to go on: %s", asJSON(t, r))
	}
	c.config.PauseEvalBroker = false
	c.eval()
	f()
	c.runAll()
	c.update(destructive)
	c.eval()
	f("update-limit 2")
	c.update(func(j *structs.Job) { j.Stop = true })
	f("job-stopped 0")
	c.update(func(j *structs.Job) { j.Stop = false; schedtest.Group(j).Count = 1 })
	c.eval()
	c.client(isLive, c.ended(true))
	if w := c.explain().Group("g").Waits; len(w) != 1 || w[0].Kind != structs.ReasonReschedule || w[0].Until <= c.now.UnixNano() || w[0].AllocCount != 1 {
		t.Errorf("a failed one: %s", asJSON(t, w))
	}
}

// TestExplainTries: a job that has failed and is tried again, on its node or on another, states how often it was tried, when it is again, and what failed last.
func TestExplainTries(t *testing.T) {
	c := newCluster(t)
	nodes(c, 1)
	c.submit("j", schedtest.Job(structs.JobTypeBatch, 2))
	c.runAll()
	f := func(kind string, instances int, at time.Time, text string) {
		t.Helper()
		w := c.explain().Group("g").Waits
		if len(w) != 1 || w[0].Kind != kind || w[0].Instances != instances || w[0].Text != text || w[0].Until != 0 && w[0].Until != at.UnixNano() || w[0].AllocCount != instances {
			t.Errorf("have %s, want %d at %s: %s", asJSON(t, w), instances, at, text)
		}
	}
	missing := &structs.TaskEvent{Type: structs.TaskDriverFailure, Time: c.now.UnixNano(), DisplayMessage: "no such program"}
	after := func(a *structs.Allocation, s *structs.TaskState) {
		a.TaskStates = map[string]*structs.TaskState{"t": s}
	}
	delay := 15 * time.Second
	for restarts := 1; restarts <= 2; restarts++ {
		restart := &structs.TaskEvent{Type: structs.TaskRestarting, Time: c.now.UnixNano(), StartDelay: int64(delay)}
		c.client(isLive, func(a *structs.Allocation) {
			after(a, &structs.TaskState{State: structs.TaskStatePending, Restarts: uint64(restarts), Events: []*structs.TaskEvent{missing, restart}})
		})
		f(structs.ReasonRestart, 2, c.now.Add(delay), fmt.Sprintf("a task has ended, and is started again in place after the delay of the restart policy "+
			`(restart %d; 3 within 24h0m0s at most); the last failure: task "t": no such program; the next try is due`, restarts))
		c.now = c.now.Add(time.Minute)
	}
	first := true
	c.client(isLive, func(a *structs.Allocation) {
		if first {
			first = false
			a.ClientStatus = structs.AllocClientFailed
			after(a, &structs.TaskState{State: structs.TaskStateDead, Failed: true, FinishedAt: c.now, Events: []*structs.TaskEvent{missing}})
			return
		}
		a.TaskStates = nil
	})
	f(structs.ReasonReschedule, 1, c.now.Add(5*time.Second), `failed; placed again after the delay of the reschedule policy (try 1 of 1); the last failure: task "t": no such program; the next try is due`)
	c.now = c.now.Add(time.Minute)
	c.eval()
	c.runAll()
	c.client(isLive, func(a *structs.Allocation) {
		if a.PreviousAllocation != "" {
			a.ClientStatus = structs.AllocClientFailed
			after(a, &structs.TaskState{State: structs.TaskStateDead, Failed: true, FinishedAt: c.now, Events: []*structs.TaskEvent{missing}})
		}
	})
	f(structs.ReasonGaveUp, 1, time.Time{}, `failed, and not placed again: the attempts of the reschedule policy are used up; the last failure: task "t": no such program`)
}

// TestExplainAllOrNothing: a job that takes nothing unless it gets all is told so, however
// it says it, and how many it may ask for.
func TestExplainAllOrNothing(t *testing.T) {
	f := func(says string, change func(*structs.Job)) {
		t.Helper()
		c := newCluster(t)
		for i := range 3 {
			c.node(fmt.Sprint("n", i), sized(1000, 1000))
		}
		c.submit("j", schedtest.Job(structs.JobTypeBatch, 5, requests(50, 1000, 1000), change))
		g := c.explain().Group("g")
		if len(g.Waits) != 1 || g.Waits[0].Kind != structs.ReasonAllAtOnce || g.Waits[0].Instances != 5 || !strings.Contains(g.Waits[0].Text, says) {
			t.Errorf("told: %s", asJSON(t, g.Waits))
		}
		if !slices.ContainsFunc(g.Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyCount && r.Places == 3 }) {
			t.Errorf("to ask for three is no remedy: %s", asJSON(t, g.Smallest))
		}
		c.helps("g", g)
	}
	f("all_at_once", func(j *structs.Job) { j.AllAtOnce = true })
	f(`partial = "none"`, func(j *structs.Job) { j.Partial = structs.PartialNone })
}

// TestExplainTooMuch: a job may ask for any number; looking for less of it ends all the same.
func TestExplainTooMuch(t *testing.T) {
	c := newCluster(t)
	for i := range 100 {
		c.node(fmt.Sprint("n", i), gpuNode)
	}
	c.submit("j", schedtest.Job(structs.JobTypeBatch, 1, func(j *structs.Job) {
		schedtest.Task(j).Resources.Devices = []*structs.RequestedDevice{{Name: "gpu", Count: 1_000_000, Share: structs.DeviceShareWhole}}
	}))
	g := c.explain().Group("g")
	if !slices.ContainsFunc(g.Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyResources }) {
		t.Errorf("to ask for less is no remedy: %s", asJSON(t, g.Smallest))
	}
	c.helps("g", g)
}

func TestExplainPreemption(t *testing.T) {
	c := newCluster(t)
	nodes(c, 2)
	c.submit("low", schedtest.Job(structs.JobTypeService, 2, func(j *structs.Job) {
		j.Priority = 10
		schedtest.Task(j).Resources.CPU = 4000
	}))
	c.submit("j", schedtest.Job(structs.JobTypeBatch, 1))
	g := c.explain().Group("g")
	if len(g.Waits) != 1 || g.Waits[0].Kind != structs.ReasonPreemption || g.Waits[0].AllocCount != 2 || !strings.Contains(g.Waits[0].Text, "preemption is off for batch") {
		t.Errorf("told: %s", asJSON(t, g.Waits))
	}
	if !slices.ContainsFunc(g.Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyPreemption }) {
		t.Errorf("preemption is no remedy: %s", asJSON(t, g.Smallest))
	}
	c.helps("g", g)
	c.config.PreemptionConfig.BatchSchedulerEnabled = true
	if g = c.explain().Group("g"); g.PlacedNow != 1 || g.Waits[0].AllocCount != 1 {
		t.Errorf("with preemption: %s", asJSON(t, g))
	}
	c.update(func(j *structs.Job) { j.Priority = 20 })
	g = c.explain().Group("g")
	if !strings.Contains(g.Waits[0].Text, "is in a lower priority band") || !slices.ContainsFunc(g.Smallest, func(r structs.Remedy) bool {
		return r.Kind == structs.RemedyPriority
	}) {
		t.Errorf("in the band of the others: %s %s", asJSON(t, g.Waits), asJSON(t, g.Smallest))
	}
	c.helps("g", g)
}

// TestExplainPartial: what the job itself withholds is named, and to give it up is a remedy
// where that would help.
func TestExplainPartial(t *testing.T) {
	f := func(partial string, count, others int, says string, helps bool) {
		t.Helper()
		c := preempting(t)
		nodes(c, 2)
		c.submit("low", schedtest.Job(structs.JobTypeService, 1, requests(10, 4000, 10)))
		if others > 0 {
			c.submit("high", schedtest.Job(structs.JobTypeService, others, requests(90, 4000, 10)))
		}
		c.submit("j", schedtest.Job(structs.JobTypeBatch, count, requests(50, 4000, 10), func(j *structs.Job) { j.Partial = partial }))
		g := c.explain().Group("g")
		if !slices.ContainsFunc(g.Waits, func(w structs.Wait) bool { return w.Kind == structs.ReasonPreemption && strings.Contains(w.Text, says) }) {
			t.Errorf("%s: told %s, not %q", partial, asJSON(t, g.Waits), says)
		}
		if told := slices.ContainsFunc(g.Smallest, func(r structs.Remedy) bool { return strings.Contains(r.Text, "partial") }); told != helps {
			t.Errorf("%s: partial is among %s: %v, want %v", partial, asJSON(t, g.Smallest), told, helps)
		}
		c.helps("g", g)
	}
	f(structs.PartialFree, 2, 0, `partial = "free" uses free resources only; with "preempt" it could preempt 1 allocation of lower bands`, true)
	f(structs.PartialNone, 2, 1, `the job must be placed whole (partial = "none")`, true)
	f(structs.PartialPreempt, 3, 0, "", false)
	f("", 1, 2, "", false)
}

// TestExplainPartialOfGang: a gang takes nothing unless it finds room for all that must start.
func TestExplainPartialOfGang(t *testing.T) {
	c := preempting(t)
	nodes(c, 2)
	c.submit("low", schedtest.Job(structs.JobTypeService, 1, requests(10, 4000, 10)))
	c.submit("high", schedtest.Job(structs.JobTypeService, 1, requests(90, 4000, 10)))
	c.submit("j", schedtest.Job(structs.JobTypeBatch, 2, requests(50, 4000, 10), func(j *structs.Job) { schedtest.Group(j).Gang = &structs.Gang{} }))
	g := c.explain().Group("g")
	if !slices.ContainsFunc(g.Waits, func(w structs.Wait) bool {
		return strings.Contains(w.Text, "1 allocation of lower bands than its own (50 to 50) would not be enough for all of the gang")
	}) {
		t.Errorf("told %s", asJSON(t, g.Waits))
	}
	c.helps("g", g)
}
