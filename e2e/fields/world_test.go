package fields

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

const fieldsLayouts = `shape "dgx" {
  count      = 1
  cores      = 16
  memory     = 65536
  class      = "gpu"
  gpus "nvidia/gpu/h100" {
    count  = 2
    memory = 81920
  }
}
shape "small" {
  count  = 2
  cores  = 4
  memory = 4096
  class  = "plain"
  meta   = { rack = "r1" }
}
`

// fieldsAgent is this machine as a node with all that can be configured, beside
// simulated ones.
func fieldsAgent(t *testing.T) *harness.Agent {
	volume := t.TempDir()
	config := strings.Replace(harness.Simulate(t, fieldsLayouts), "client {", fmt.Sprintf(`client {
  simulate_beside = true
  node_class      = "real"
  meta            = { owner = "e2e" }
  reserved {
    cpu            = 50
    memory         = 64
    disk           = 128
    reserved_ports = "22"
  }
  host_volume "shared" {
    path      = %q
    read_only = true
  }
`, volume), 1) + "telemetry {\n  collection_interval = \"500ms\"\n}\n"
	a := harness.NewAgent(t, true, config)
	a.Start()
	a.WaitReady(4)
	return a
}

// world is an agent on which so much has happened that every field of an answer has
// its occasion.
type world struct {
	t         *testing.T
	a         *harness.Agent
	c         *nomad.Client
	started   time.Time
	nodes     map[string]*nomad.NodeListStub // by name; this machine's as "real"
	requested map[string]*nomad.Job          // as registered last, by ID
	events    <-chan *nomad.Events
	cancel    context.CancelFunc
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, started: time.Now(), a: fieldsAgent(t), nodes: map[string]*nomad.NodeListStub{}, requested: map[string]*nomad.Job{}}
	w.c = w.a.Nomad
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	t.Cleanup(cancel)
	var err error
	w.events, err = w.c.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicAll: {"*"}}, 0, nil)
	w.must(err)
	list, _, err := w.c.Nodes().List(&nomad.QueryOptions{Params: map[string]string{"resources": "true", "os": "true"}})
	w.must(err)
	for _, n := range list {
		name := n.Name
		if n.NodeClass == "real" {
			name = "real"
		}
		w.nodes[name] = n
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// mockJob is a job of one mock task.
func mockJob(id, kind string, config map[string]any) *nomad.Job {
	job := harness.OfficialJob(id, "")
	job.Type = &kind
	task := job.TaskGroups[0].Tasks[0]
	task.Driver, task.Config = "mock_driver", config
	return job
}

func (w *world) register(job *nomad.Job) *nomad.JobRegisterResponse {
	w.t.Helper()
	reg, _, err := w.c.Jobs().Register(job, nil)
	w.must(err)
	w.requested[*job.ID] = job
	return reg
}

// on keeps a job to the nodes of a class.
func on(job *nomad.Job, class string) *nomad.Job {
	return job.Constrain(nomad.NewConstraint("${node.class}", "=", class))
}

// allocs waits until good holds for a job's allocations.
func (w *world) allocs(id, what string, good func(allocs []*nomad.AllocationListStub) bool) []*nomad.AllocationListStub {
	w.t.Helper()
	var allocs []*nomad.AllocationListStub
	harness.Within(w.t, 20*time.Second, id+": "+what, func(context.Context) error {
		var err error
		allocs, _, err = w.c.Jobs().Allocations(id, true, &nomad.QueryOptions{Params: map[string]string{"resources": "true"}})
		if err == nil && !good(allocs) {
			err = fmt.Errorf("there are %d", len(allocs))
			for _, a := range allocs {
				err = fmt.Errorf("%w; %s %s (%s)", err, a.Name, a.ClientStatus, a.DesiredStatus)
			}
		}
		return err
	})
	return allocs
}

func (w *world) alloc(id string) *nomad.Allocation {
	w.t.Helper()
	alloc, _, err := w.c.Allocations().Info(id, nil)
	w.must(err)
	return alloc
}

func allIn(status string) func([]*nomad.AllocationListStub) bool {
	return func(allocs []*nomad.AllocationListStub) bool {
		return len(allocs) > 0 && !slices.ContainsFunc(allocs, func(a *nomad.AllocationListStub) bool { return a.ClientStatus != status })
	}
}

// webJob runs on this machine, with ports, files and all that a service has.
func webJob() *nomad.Job {
	job := on(harness.OfficialJob("web", `echo started; while true; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i >/dev/null; done; sleep 0.05; done`), "real").SetMeta("team", "a")
	g := job.TaskGroups[0]
	g.Meta = map[string]string{"part": "front"}
	g.Networks = []*nomad.NetworkResource{{
		Mode: "host", ReservedPorts: []nomad.Port{{Label: "fixed", Value: 29871, To: 80, HostNetwork: "default", IgnoreCollision: true}},
		DynamicPorts: []nomad.Port{{Label: "http", To: 8080, HostNetwork: "default"}},
	}}
	g.Update = &nomad.UpdateStrategy{MinHealthyTime: harness.Ptr(time.Millisecond), HealthyDeadline: harness.Ptr(time.Minute)}
	g.Tasks[0].Env = map[string]string{"A": "b"}
	g.Tasks[0].KillTimeout = harness.Ptr(time.Second)
	return job
}

// flakyJob ends badly at once, is started again once, and then elsewhere later.
func flakyJob() *nomad.Job {
	job := on(mockJob("flaky", "batch", map[string]any{"run_for": "10ms", "exit_code": 3, "exit_signal": 6, "exit_err_msg": "broken"}), "plain")
	g := job.TaskGroups[0]
	g.RestartPolicy = &nomad.RestartPolicy{Attempts: harness.Ptr(1), Delay: harness.Ptr(10 * time.Millisecond), Interval: harness.Ptr(time.Hour), Mode: harness.Ptr("fail")}
	g.ReschedulePolicy = &nomad.ReschedulePolicy{
		Attempts: harness.Ptr(1), Interval: harness.Ptr(time.Hour), Delay: harness.Ptr(2 * time.Second), DelayFunction: harness.Ptr("constant"), Unlimited: harness.Ptr(false),
	}
	return job
}

// teamJob is a leader that ends at once, a follower that is stopped for it, and one
// that cannot start.
func teamJob() *nomad.Job {
	job := on(mockJob("team", "batch", map[string]any{"run_for": "200ms"}), "plain")
	g := job.TaskGroups[0]
	g.Tasks[0].Leader = true
	follower := *g.Tasks[0]
	follower.Name, follower.Leader, follower.Config = "follower", false, map[string]any{"run_for": "1h"}
	g.AddTask(&follower)
	return job
}

func brokenJob() *nomad.Job {
	job := on(mockJob("broken", "batch", map[string]any{"start_error": "no luck"}), "plain")
	g := job.TaskGroups[0]
	g.RestartPolicy = &nomad.RestartPolicy{Attempts: harness.Ptr(0), Mode: harness.Ptr("fail")}
	g.ReschedulePolicy = &nomad.ReschedulePolicy{Attempts: harness.Ptr(0), Unlimited: harness.Ptr(false)}
	sibling := *g.Tasks[0]
	sibling.Name, sibling.Config = "sibling", map[string]any{"run_for": "1h"}
	g.AddTask(&sibling)
	return job
}

// hugeJob fits nowhere: too large for some nodes, not allowed on the others.
func hugeJob() *nomad.Job {
	job := mockJob("huge", "service", map[string]any{"run_for": "1h"})
	job.Constrain(nomad.NewConstraint("${node.class}", "!=", "gpu")).Constrain(nomad.NewConstraint("${attr.unique.hostname}", "!=", "x"))
	job.TaskGroups[0].Count = harness.Ptr(3)
	job.TaskGroups[0].Tasks[0].Resources.MemoryMB = harness.Ptr(10_000_000)
	return job
}

// gpuJob has devices, whole cores and memory to grow into, and a field that is answered with a warning.
func gpuJob() *nomad.Job {
	job := mockJob("gpu", "service", map[string]any{"run_for": "1h"})
	r := job.TaskGroups[0].Tasks[0].Resources
	r.CPU, r.Cores, r.MemoryMB, r.MemoryMaxMB = nil, harness.Ptr(2), harness.Ptr(5000), harness.Ptr(6000)
	r.Devices = []*nomad.RequestedDevice{{Name: "nvidia/gpu", Count: harness.Ptr[uint64](1)}}
	job.TaskGroups[0].ShutdownDelay = harness.Ptr(time.Millisecond)
	return job
}

// movingJob runs on a simulated node and takes its time to stop.
func movingJob() *nomad.Job {
	job := on(mockJob("moving", "service", map[string]any{"run_for": "1h", "kill_after": "2s"}), "plain")
	job.TaskGroups[0].Tasks[0].KillTimeout = harness.Ptr(5 * time.Second)
	job.TaskGroups[0].Migrate = &nomad.MigrateStrategy{MaxParallel: harness.Ptr(1), MinHealthyTime: harness.Ptr(time.Millisecond), HealthyDeadline: harness.Ptr(time.Minute)}
	return job
}

// everywhereJob runs on each plain node.
func everywhereJob() *nomad.Job {
	return on(mockJob("everywhere", "system", map[string]any{"run_for": "1h"}), "plain")
}

// sickJob runs, but never long enough to be found healthy.
func sickJob() *nomad.Job {
	job := on(mockJob("sick", "service", map[string]any{"run_for": "300ms", "exit_code": 1}), "plain")
	g := job.TaskGroups[0]
	g.RestartPolicy = &nomad.RestartPolicy{Attempts: harness.Ptr(1000), Interval: harness.Ptr(time.Hour), Delay: harness.Ptr(10 * time.Millisecond), Mode: harness.Ptr("delay")}
	g.Update = &nomad.UpdateStrategy{MinHealthyTime: harness.Ptr(time.Second), HealthyDeadline: harness.Ptr(2 * time.Second), ProgressDeadline: harness.Ptr(time.Minute)}
	return job
}

// slowJob does not get to run while the test looks.
func slowJob() *nomad.Job {
	return on(mockJob("slow", "service", map[string]any{"start_block_for": "1m", "run_for": "1h"}), "plain")
}
