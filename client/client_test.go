package client

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func ptr[T any](v T) *T { return &v }

// job makes a job with one group of tasks.
func job(id, kind string, tasks ...*structs.Task) *structs.Job {
	return &structs.Job{
		ID: id, Name: id, Namespace: "default", Type: kind, Priority: 50, Meta: map[string]string{"owner": "me"},
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: tasks, RestartPolicy: &structs.RestartPolicy{
			Attempts: ptr(0), Interval: ptr(time.Hour), Delay: ptr(10 * time.Millisecond), Mode: ptr(structs.RestartPolicyModeFail),
		}}},
	}
}

func fake(name string, config map[string]any) *structs.Task {
	return &structs.Task{Name: name, Driver: "fake", Config: config, KillTimeout: time.Second}
}

type rig struct {
	t      *testing.T
	s      *fakeServer
	w      *world
	config Config
	c      *Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	s, w := newFakeServer(t), newWorld()
	r := &rig{t: t, s: s, w: w, config: Config{
		Servers: []string{s.addr}, StateDir: filepath.Join(dir, "state"), AllocDir: filepath.Join(dir, "allocs"),
		Node: NodeConfig{Name: "n1", Meta: map[string]string{"rack": "r7"}}, Drivers: []driver.Driver{fakeDriver{"fake", w}, fakeDriver{MockDriver, w}},
		NoGPUs: true, // those of this machine would be its own
	}}
	return r
}

func (r *rig) start() *rig {
	r.t.Helper()
	c, err := New(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.c = c
	r.t.Cleanup(r.stop)
	r.s.until("the node registers", func() bool { return r.s.sessions[c.NodeID()] != nil })
	return r
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := r.c.Shutdown(ctx); err != nil {
		r.t.Error(err)
	}
}

func TestBatchJobRunsAndReports(t *testing.T) {
	r := newRig(t).start()
	begun := time.Now()
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "1ms"})), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	t.Logf("placed to complete: %v", time.Since(begun))
	got := r.s.eventTypes(a.ID, "main")
	want := []string{structs.TaskReceived, structs.TaskSetup, structs.TaskStarted, structs.TaskTerminated}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	state := r.s.alloc(a.ID).TaskStates["main"]
	if state.State != structs.TaskStateDead || state.Failed || state.StartedAt.IsZero() || state.FinishedAt.IsZero() {
		t.Errorf("task state %+v", state)
	}
}

// TestStopAll: nothing that comes while all is stopped is run, as the replacements of what is stopped do.
func TestStopAll(t *testing.T) {
	r := newRig(t).start()
	service := func() *structs.Job {
		return job("j", structs.JobTypeService, fake("main", map[string]any{"run_for": "1h"}))
	}
	a := r.s.place(r.c.NodeID(), service(), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	n := r.c.nodes[0]
	if err := r.c.StopAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := n.heard.Load()
	b := r.s.place(r.c.NodeID(), service(), 1, nil)
	r.s.until("the client hears of it", func() bool { return n.heard.Load() > before })
	for _, one := range n.all() {
		if one.ID() == b.ID {
			t.Error("what came later is run")
		}
		if _, ended := one.EndedAt(); !ended {
			t.Errorf("allocation %s runs", one.ID())
		}
	}
}

func TestDirectoriesAndEnvironment(t *testing.T) {
	r := newRig(t).start()
	task := fake("main", map[string]any{"command": "${NOMAD_TASK_DIR}/run", "args": []any{"${meta.rack}", "${SHELLS_OWN}"}})
	task.Env = map[string]string{"WHERE": "${node.unique.name}"}
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeService, task), 3, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	r.w.mu.Lock()
	c := r.w.configs[a.ID+"/main"]
	r.w.mu.Unlock()
	base := filepath.Join(r.config.AllocDir, a.ID)
	for _, p := range []string{"alloc/data", "alloc/logs", "alloc/tmp", "main/local", "main/secrets", "main/tmp"} {
		info, err := os.Stat(filepath.Join(base, p))
		if err != nil || !info.IsDir() {
			t.Errorf("%s: %v", p, err)
		} else if strings.HasSuffix(p, "secrets") && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
	}
	for k, want := range map[string]string{
		"NOMAD_ALLOC_ID": a.ID, "NOMAD_ALLOC_INDEX": "3", "NOMAD_TASK_DIR": base + "/main/local", "NOMAD_META_OWNER": "me",
		"NOMAD_META_owner": "me", "WHERE": "n1", "NOMAD_CPU_LIMIT": "100", "NOMAD_MEMORY_LIMIT": "64",
	} {
		if c.Env[k] != want {
			t.Errorf("%s = %q, want %q", k, c.Env[k], want)
		}
	}
	if c.Config["command"] != base+"/main/local/run" {
		t.Errorf("command %q", c.Config["command"])
	}
	if args := c.Config["args"].([]any); args[0] != "r7" || args[1] != "${SHELLS_OWN}" {
		t.Errorf("args %q", args)
	}
}

func TestFailuresAreReported(t *testing.T) {
	r := newRig(t).start()
	f := func(id string, config map[string]any, event string) {
		t.Helper()
		a := r.s.place(r.c.NodeID(), job(id, structs.JobTypeBatch, fake("main", config)), 0, nil)
		r.s.untilStatus(a.ID, structs.AllocClientFailed)
		if got := r.s.eventTypes(a.ID, "main"); !slices.Contains(got, event) {
			t.Errorf("%s: events %q, want %q among them", id, got, event)
		}
	}
	f("exit", map[string]any{"run_for": "1ms", "exit_code": 3}, structs.TaskNotRestarting)
	f("start", map[string]any{"start_error": "no such file"}, structs.TaskDriverFailure)
	f("invalid", map[string]any{"invalid": true}, structs.TaskFailedValidation)
}

func TestUnknownDriverFails(t *testing.T) {
	r := newRig(t).start()
	task := fake("main", nil)
	task.Driver = "nope"
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeBatch, task), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientFailed)
}

func TestStopEndsInOrder(t *testing.T) {
	r := newRig(t).start()
	leader := fake("leader", nil)
	leader.Leader = true
	side := fake("side", nil)
	side.Lifecycle = &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPrestart, Sidecar: true}
	last := fake("last", map[string]any{"run_for": "1ms"})
	last.Lifecycle = &structs.TaskLifecycle{Hook: structs.TaskLifecycleHookPoststop}
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeService, leader, side, last), 0, nil)
	r.s.until("leader and sidecar run", func() bool {
		ts := r.s.allocs[a.ID].TaskStates
		return ts["leader"] != nil && ts["leader"].State == structs.TaskStateRunning && ts["side"].State == structs.TaskStateRunning
	})
	r.s.edit(a.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	ts := r.s.alloc(a.ID).TaskStates
	if ts["leader"].FinishedAt.After(ts["side"].FinishedAt) || ts["side"].FinishedAt.After(ts["last"].FinishedAt) {
		t.Errorf("ended out of order: leader %v, side %v, last %v", ts["leader"].FinishedAt, ts["side"].FinishedAt, ts["last"].FinishedAt)
	}
	if got := r.s.eventTypes(a.ID, "leader"); !slices.Contains(got, structs.TaskKilling) || !slices.Contains(got, structs.TaskKilled) {
		t.Errorf("events of the leader: %q", got)
	}
	if _, ok := ts["last"].ExitCode(); !ok {
		t.Error("the poststop task did not run")
	}
}

func TestFailedTaskEndsItsSiblings(t *testing.T) {
	r := newRig(t).start()
	a := r.s.place(r.c.NodeID(), job("j", structs.JobTypeBatch, fake("bad", map[string]any{"run_for": "5ms", "exit_code": 1}), fake("good", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientFailed)
	if got := r.s.eventTypes(a.ID, "good"); !slices.Contains(got, structs.TaskSiblingFailed) {
		t.Errorf("events of the sibling: %q", got)
	}
	if r.s.alloc(a.ID).TaskStates["good"].Failed {
		t.Error("the sibling counts as failed")
	}
}

func TestRestartPolicy(t *testing.T) {
	r := newRig(t).start()
	j := job("j", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "1ms", "exit_code": 1}))
	j.TaskGroups[0].RestartPolicy.Attempts = ptr(2)
	a := r.s.place(r.c.NodeID(), j, 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientFailed)
	if n := r.s.alloc(a.ID).TaskStates["main"].Restarts; n != 2 {
		t.Errorf("%d restarts, want 2", n)
	}
}

func TestReattachAfterRestartOfTheAgent(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	run := r.s.place(id, job("run", structs.JobTypeService, fake("main", nil)), 0, nil)
	ends := r.s.place(id, job("ends", structs.JobTypeBatch, fake("main", nil)), 0, nil)
	r.s.untilStatus(run.ID, structs.AllocClientRunning)
	r.s.untilStatus(ends.ID, structs.AllocClientRunning)
	r.stop()
	r.w.mu.Lock()
	for runID, task := range r.w.tasks {
		if strings.HasPrefix(runID, ends.ID) {
			task.end(driver.ExitResult{ExitCode: 0})
		}
	}
	starts := r.w.starts
	r.w.mu.Unlock()

	r.s.change(func() { delete(r.s.sessions, id) })
	r.start()
	if r.c.NodeID() != id {
		t.Fatalf("the node is %s, was %s", r.c.NodeID(), id)
	}
	r.s.untilStatus(ends.ID, structs.AllocClientComplete)
	r.s.until("the running task is found", func() bool {
		for _, e := range r.s.allocs[run.ID].TaskStates["main"].Events {
			if e.Type == structs.TaskReattached {
				return true
			}
		}
		return false
	})
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.starts != starts || r.w.stops != 0 {
		t.Errorf("%d starts (were %d), %d stops (want none)", r.w.starts, starts, r.w.stops)
	}
}

func TestLostTaskIsStartedAgainOnceServersWantIt(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	a := r.s.place(id, job("a", structs.JobTypeService, fake("main", nil)), 0, nil)
	b := r.s.place(id, job("b", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	r.s.untilStatus(b.ID, structs.AllocClientRunning)
	r.stop()
	r.w.mu.Lock()
	clear(r.w.tasks) // the machine was switched off
	r.w.mu.Unlock()
	r.s.edit(b.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	r.s.change(func() { delete(r.s.sessions, id) })
	r.start()
	r.s.untilStatus(b.ID, structs.AllocClientComplete)
	r.s.until("a runs again", func() bool {
		ts := r.s.allocs[a.ID].TaskStates["main"]
		return ts.State == structs.TaskStateRunning && ts.Restarts == 1
	})
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.starts != 3 {
		t.Errorf("%d starts, want 3: b must not have been started again", r.w.starts)
	}
}

func TestNewAllocationWaitsForThePortOfTheOld(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	port := func(a *structs.Allocation) {
		a.AllocatedResources.Shared.Ports = []structs.PortMapping{{Label: "http", Value: 8080, HostIP: "10.0.0.1"}}
	}
	old := r.s.place(id, job("old", structs.JobTypeService, fake("main", map[string]any{"stop_for": "50ms"})), 0, port)
	r.s.untilStatus(old.ID, structs.AllocClientRunning)
	r.s.edit(old.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	next := r.s.place(id, job("new", structs.JobTypeService, fake("main", nil)), 0, port)
	r.s.untilStatus(next.ID, structs.AllocClientRunning)
	r.s.untilStatus(old.ID, structs.AllocClientComplete)
	ended, begun := r.s.alloc(old.ID).TaskStates["main"].FinishedAt, r.s.alloc(next.ID).TaskStates["main"].StartedAt
	if begun.Before(ended) {
		t.Errorf("started at %v, before the port was free at %v", begun, ended)
	}
}

func TestMaxRunDuration(t *testing.T) {
	r := newRig(t).start()
	j := job("j", structs.JobTypeBatch, fake("main", nil))
	j.TaskGroups[0].MaxRunDuration = 20 * time.Millisecond
	a := r.s.place(r.c.NodeID(), j, 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	if d := r.s.alloc(a.ID).ClientDescription; d != "max_run_duration exceeded" {
		t.Errorf("description %q", d)
	}
	if got := r.s.eventTypes(a.ID, "main"); !slices.Contains(got, structs.TaskMaxRunDurationEnded) {
		t.Errorf("events %q", got)
	}
}

func TestHealthOfAnUpdate(t *testing.T) {
	r := newRig(t).start()
	update := func(j *structs.Job) *structs.Job {
		j.TaskGroups[0].Update = &structs.UpdateStrategy{
			HealthCheck: ptr(structs.HealthCheckTaskStates), MinHealthyTime: ptr(10 * time.Millisecond), HealthyDeadline: ptr(time.Minute),
		}
		return j
	}
	good := r.s.place(r.c.NodeID(), update(job("good", structs.JobTypeService, fake("main", nil))), 0, nil)
	bad := r.s.place(r.c.NodeID(), update(job("bad", structs.JobTypeService, fake("main", map[string]any{"start_error": "x"}))), 0, nil)
	r.s.until("healthy", func() bool { return r.s.allocs[good.ID].DeploymentStatus.IsHealthy() })
	r.s.until("unhealthy", func() bool { return r.s.allocs[bad.ID].DeploymentStatus.IsUnhealthy() })
}

func TestForgottenAllocationIsRemoved(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	a := r.s.place(id, job("a", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	r.s.change(func() { delete(r.s.allocs, a.ID) })
	b := r.s.place(id, job("b", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(b.ID, structs.AllocClientRunning)
	eventually(t, "the directory is removed", func() bool {
		_, err := os.Stat(filepath.Join(r.config.AllocDir, a.ID))
		return os.IsNotExist(err)
	})
}

// Who waits for room does not wait until the files of others are removed.
func TestRoomIsGivenWhileFilesAreRemoved(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	removing, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once // it may be forgotten again meanwhile
	r.c.nodes[0].erase = func(d alloc.Dir) error {
		once.Do(func() { close(removing) })
		<-goOn
		return d.Remove()
	}
	port := func(a *structs.Allocation) {
		a.AllocatedResources.Shared.Ports = []structs.PortMapping{{Label: "http", Value: 8080, HostIP: "10.0.0.1"}}
	}
	large := r.s.place(id, job("large", structs.JobTypeService, fake("main", nil)), 0, nil)
	old := r.s.place(id, job("old", structs.JobTypeService, fake("main", nil)), 0, port)
	r.s.untilStatus(large.ID, structs.AllocClientRunning)
	r.s.untilStatus(old.ID, structs.AllocClientRunning)
	r.s.change(func() { delete(r.s.allocs, large.ID) })
	r.s.place(id, job("news", structs.JobTypeService, fake("main", nil)), 0, nil)
	<-removing
	r.s.edit(old.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	next := r.s.place(id, job("new", structs.JobTypeService, fake("main", nil)), 0, port)
	r.s.untilStatus(next.ID, structs.AllocClientRunning)
	close(goOn)
}

// eventually polls what tells nobody when it happens.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestStoppedBeforeItWasSeen(t *testing.T) {
	r := newRig(t).start()
	a := r.s.place(r.c.NodeID(), job("a", structs.JobTypeService, fake("main", nil)), 0, func(a *structs.Allocation) {
		a.DesiredStatus = structs.AllocDesiredStop
	})
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.starts != 0 {
		t.Error("it was started")
	}
}

func TestRegistersAgainWhenForgotten(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	r.s.change(func() { delete(r.s.nodes, id) })
	r.s.until("registered again", func() bool { return r.s.nodes[id] != nil })
}

func TestServerComesBack(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	a := r.s.place(id, job("a", structs.JobTypeBatch, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	addr := r.s.addr
	r.s.close()
	r.w.mu.Lock()
	for _, task := range r.w.tasks {
		task.end(driver.ExitResult{})
	}
	r.w.mu.Unlock()
	r.s.change(func() { delete(r.s.sessions, id) })
	r.s.listen(addr)
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
	r.s.until("the node says hello again", func() bool { return r.s.sessions[id] != nil })
}

func TestServedMethods(t *testing.T) {
	r := newRig(t).start()
	id := r.c.NodeID()
	a := r.s.place(id, job("a", structs.JobTypeService, fake("main", nil)), 0, nil)
	r.s.untilStatus(a.ID, structs.AllocClientRunning)
	base := filepath.Join(r.config.AllocDir, a.ID)
	if err := os.WriteFile(filepath.Join(base, "main/local/hello.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	var list structs.FSListReply
	if err := r.s.call(id, wire.MethodClientFSList, &structs.FSRequest{AllocID: a.ID, Path: "/main/local"}, &list); err != nil || len(list.Files) != 1 || list.Files[0].Name != "hello.txt" {
		t.Errorf("list: %v %+v", err, list.Files)
	}
	var stat structs.FSStatReply
	if err := r.s.call(id, wire.MethodClientFSStat, &structs.FSRequest{AllocID: a.ID, Path: "main/local/hello.txt"}, &stat); err != nil || stat.Info.Size != 5 {
		t.Errorf("stat: %v %+v", err, stat.Info)
	}
	var usage structs.ClientStatsReply
	if err := r.s.call(id, wire.MethodClientAllocStats, &structs.ClientAllocRequest{AllocID: a.ID}, &usage); err != nil || usage.Stats.Tasks["main"] == nil {
		t.Errorf("stats: %v", err)
	}
	var write structs.WriteReply
	if err := r.s.call(id, wire.MethodClientAllocSignal, &structs.ClientAllocRequest{AllocID: a.ID, Signal: "SIGHUP"}, &write); err != nil {
		t.Errorf("signal: %v", err)
	}
	if err := r.s.call(id, wire.MethodClientAllocGC, &structs.ClientAllocRequest{AllocID: a.ID}, &write); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("collecting a running allocation: %v", err)
	}
	if err := r.s.call(id, wire.MethodClientAllocRestart, &structs.ClientAllocRequest{AllocID: a.ID}, &write); err != nil {
		t.Errorf("restart: %v", err)
	}
	r.s.until("restarted", func() bool {
		ts := r.s.allocs[a.ID].TaskStates["main"]
		return ts.Restarts == 1 && ts.State == structs.TaskStateRunning
	})
	var host structs.ClientHostStatsReply
	if err := r.s.call(id, wire.MethodClientHostStats, &structs.ClientHostStatsRequest{}, &host); err != nil || host.Stats.Memory.Total == 0 {
		t.Errorf("host stats: %v", err)
	}
	if err := r.s.call(id, wire.MethodClientFSStat, &structs.FSRequest{AllocID: "nope", Path: "/"}, &stat); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("files of an unknown allocation: %v", err)
	}
}

func TestReportsAreRetriedWithTheLatestState(t *testing.T) {
	r := newRig(t).start()
	r.s.change(func() { r.s.refuse = true })
	a := r.s.place(r.c.NodeID(), job("a", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "1ms"})), 0, nil)
	eventually(t, "it ends", func() bool {
		run := r.c.nodes[0].runner(a.ID)
		if run == nil {
			return false
		}
		_, ended := run.EndedAt()
		return ended
	})
	r.s.change(func() { r.s.refuse = false })
	r.s.untilStatus(a.ID, structs.AllocClientComplete)
}

func TestSimulatedNodes(t *testing.T) {
	const nodes, perNode = nodesPerSession + 50, 3
	s, w := newFakeServer(t), newWorld()
	s.ttl = 5 * time.Second
	c, err := New(Config{
		Servers: []string{s.addr}, Drivers: []driver.Driver{notifying{fakeDriver{MockDriver, w}}},
		Simulate: []sim.Layout{{Name: "dgx", Count: nodes, Cores: 16, MHz: 2000, Memory: 1 << 16, Disk: 1000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	s.until("all are registered and have said hello", func() bool { return len(s.nodes) == nodes && len(s.sessions) == nodes })
	s.change(func() {
		behind := map[*wire.Session]int{}
		for _, session := range s.sessions {
			behind[session]++
		}
		if got := slices.Sorted(maps.Values(behind)); !slices.Equal(got, []int{50, nodesPerSession}) {
			t.Errorf("the sessions are of %v nodes", got)
		}
	})
	j := job("j", structs.JobTypeBatch, fake("main", map[string]any{"run_for": "20ms"}))
	j.TaskGroups[0].Tasks[0].Driver = MockDriver
	s.change(func() {
		n := 0
		for _, id := range c.NodeIDs() {
			for range perNode {
				s.add(id, j, n, nil)
				n++
			}
		}
	})
	s.untilAll(structs.AllocClientComplete)
	eventually(t, "nothing of them is kept", func() bool { return c.Stats()["client"]["allocations_ended"] == "0" })
}
