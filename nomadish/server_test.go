package nomadish

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// ofLibraries are goroutines that outlive a server, for a time, and that it cannot end: memberlist's probe of a
// member that has gone waits for its answer through the shutdown, up to its interval.
var ofLibraries = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/hashicorp/go-metrics.(*InmemSink).Run"),
	goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"),
	goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).Ping"),
}

func TestMain(m *testing.M) { leaks.Main(m, ofLibraries...) }

// start runs a server; dataDir "" keeps it in memory.
func start(t *testing.T, dataDir string) *Server {
	t.Helper()
	return startWith(t, dataDir, func(*Config) {})
}

// startWith is start of a server that is configured otherwise.
func startWith(t *testing.T, dataDir string, change func(*Config)) *Server {
	t.Helper()
	allowed := append([]goleak.Option{goleak.IgnoreCurrent()}, ofLibraries...)
	t.Cleanup(func() { leaks.None(t, allowed...) }) // runs after the server's shutdown
	return startBeside(t, dataDir, change)
}

// startBeside is startWith for tests that run beside others, whose goroutines are not its leaks: TestMain looks for those.
func startBeside(t *testing.T, dataDir string, change func(*Config)) *Server {
	t.Helper()
	cfg := quickTestConfig()
	cfg.Name = "s1"
	cfg.Port.Addr = "127.0.0.1:0"
	cfg.DataDir = dataDir
	if os.Getenv("NOMADISH_TEST_LOG") != "" {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug})
	}
	change(cfg)
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	within(t, 10*time.Second, "a leader", func(ctx context.Context) error {
		return s.Call(ctx, wire.MethodSchedulerGet, &structs.EmptyRequest{}, &structs.SchedulerConfigReply{})
	})
	return s
}

// within tries f until it succeeds. The limit is that of a machine which does little else.
func within(t *testing.T, limit time.Duration, what string, f func(ctx context.Context) error) {
	t.Helper()
	limit = max(limit, 2*time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
	}
}

func batchJob(id string, count int) *structs.Job {
	job := &structs.Job{
		ID: id, Type: structs.JobTypeBatch, Priority: 50,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: count, Tasks: []*structs.Task{{
			Name: "t", Driver: "mock_driver", Config: map[string]any{"run_for": "1s"},
			Resources: &structs.Resources{CPU: 100, MemoryMB: 64},
		}}}},
	}
	job.Canonicalize()
	return job
}

func register(ctx context.Context, s *Server, job *structs.Job) (*structs.JobRegisterReply, error) {
	reply := &structs.JobRegisterReply{}
	return reply, s.Call(ctx, wire.MethodJobRegister, &structs.JobRegisterRequest{Job: job}, reply)
}

func node(i int) *structs.Node {
	return &structs.Node{
		ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), SecretID: "s", Name: fmt.Sprintf("n%d", i), Datacenter: "dc1",
		Status: structs.NodeStatusReady, NodePool: structs.NodePoolDefault,
		Attributes: map[string]string{"kernel.name": "linux", "driver.mock_driver": "1"},
		Drivers:    map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory: structs.NodeMemoryResources{MemoryMB: 8192}, Disk: structs.NodeDiskResources{DiskMB: 100000},
			MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
}

// evalDone waits until an evaluation is decided and gives it.
func evalDone(t *testing.T, s *Server, id string) *structs.Evaluation {
	t.Helper()
	var out *structs.Evaluation
	within(t, 10*time.Second, "evaluation "+id, func(ctx context.Context) error {
		reply := &structs.EvalReply{}
		if err := s.Call(ctx, wire.MethodEvalGet, &structs.EvalGetRequest{ID: id}, reply); err != nil {
			return err
		}
		if reply.Eval == nil || reply.Eval.Status == structs.EvalStatusPending {
			return fmt.Errorf("it is not decided: %+v", reply.Eval)
		}
		out = reply.Eval
		return nil
	})
	return out
}

func TestRegisterPlacesOnANode(t *testing.T) {
	s := start(t, "")
	up := &structs.NodeUpdateReply{}
	if err := s.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(1)}, up); err != nil {
		t.Fatal(err)
	}
	if up.HeartbeatTTL <= 0 {
		t.Fatalf("heartbeat due within %s", up.HeartbeatTTL)
	}
	reply, err := register(t.Context(), s, batchJob("b", 3))
	if err != nil {
		t.Fatal(err)
	}
	if ev := evalDone(t, s, reply.EvalID); ev.Status != structs.EvalStatusComplete || len(ev.FailedTGAllocs) > 0 {
		t.Fatalf("the evaluation: %+v", ev)
	}
	allocs := &structs.AllocListReply{}
	if err := s.Call(t.Context(), wire.MethodJobAllocs, &structs.JobAllocsRequest{ID: "b"}, allocs); err != nil {
		t.Fatal(err)
	}
	if len(allocs.Allocations) != 3 {
		t.Fatalf("%d allocations, not 3", len(allocs.Allocations))
	}
}

func TestBlockedUntilANodeJoins(t *testing.T) {
	s := start(t, "")
	reply, err := register(t.Context(), s, batchJob("b", 2))
	if err != nil {
		t.Fatal(err)
	}
	ev := evalDone(t, s, reply.EvalID)
	if ev.BlockedEval == "" || len(ev.FailedTGAllocs) != 1 {
		t.Fatalf("without nodes: %+v", ev)
	}
	if err := s.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(1)}, &structs.NodeUpdateReply{}); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "placement after the node joined", func(ctx context.Context) error {
		allocs := &structs.AllocListReply{}
		if err := s.Call(ctx, wire.MethodJobAllocs, &structs.JobAllocsRequest{ID: "b"}, allocs); err != nil {
			return err
		}
		if len(allocs.Allocations) != 2 {
			return fmt.Errorf("%d allocations", len(allocs.Allocations))
		}
		return nil
	})
}

func TestRestartKeepsWhatWasAcknowledged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir)
	for i := range 20 {
		if _, err := register(t.Context(), s, batchJob(fmt.Sprintf("b%02d", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := register(t.Context(), s, batchJob("after-the-snapshot", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	again := start(t, dir)
	list := &structs.JobListReply{}
	if err := again.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, list); err != nil {
		t.Fatal(err)
	}
	if len(list.Jobs) != 21 {
		t.Fatalf("%d jobs are there, not 21", len(list.Jobs))
	}
}

func TestBlockingQueryWakes(t *testing.T) {
	s := start(t, "")
	list := &structs.JobListReply{}
	if err := s.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, list); err != nil {
		t.Fatal(err)
	}
	if list.Index != 0 {
		t.Fatalf("an untouched table has index %d", list.Index)
	}
	got := make(chan error, 1)
	woken := &structs.JobListReply{}
	go func() {
		// A query that blocks asks from 1 at least; one from 0 is answered at once.
		args := &structs.ListRequest{QueryOptions: structs.QueryOptions{MinQueryIndex: 1, MaxQueryTime: 10 * time.Second}}
		got <- s.Call(t.Context(), wire.MethodJobList, args, woken)
	}()
	if _, err := register(t.Context(), s, batchJob("b", 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if woken.Index <= 1 || len(woken.Jobs) != 1 {
		t.Fatalf("woken at %d with %d jobs", woken.Index, len(woken.Jobs))
	}
}

func TestRefusals(t *testing.T) {
	s := start(t, "")
	for _, c := range []struct {
		what   string
		method string
		args   any
		code   structs.Code
	}{
		{"a job without groups", wire.MethodJobRegister, &structs.JobRegisterRequest{Job: &structs.Job{ID: "x"}}, structs.CodeBadRequest},
		{"no job", wire.MethodJobRegister, &structs.JobRegisterRequest{}, structs.CodeBadRequest},
		{"an unknown namespace", wire.MethodJobRegister, &structs.JobRegisterRequest{Job: func() *structs.Job {
			j := batchJob("b", 1)
			j.Namespace = "nowhere"
			return j
		}()}, structs.CodeBadRequest},
		{"an unknown region", wire.MethodJobList, &structs.ListRequest{QueryOptions: structs.QueryOptions{Region: "mars"}}, structs.CodeNoRegion},
		{"evaluating nothing", wire.MethodJobEvaluate, &structs.JobEvaluateRequest{JobID: "none"}, structs.CodeNotFound},
		{"a wrong filter", wire.MethodJobList, &structs.ListRequest{QueryOptions: structs.QueryOptions{Filter: "=="}}, structs.CodeBadRequest},
		{"a node without resources", wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: &structs.Node{ID: "x"}}, structs.CodeBadRequest},
		{"logs of nothing", wire.MethodClientFSList, &structs.FSRequest{AllocID: "none"}, structs.CodeNotFound},
		{"a check index that is wrong", wire.MethodJobRegister,
			&structs.JobRegisterRequest{Job: batchJob("b", 1), EnforceIndex: true, JobModifyIndex: 7}, structs.CodeConflict},
	} {
		err := s.Call(t.Context(), c.method, c.args, &struct{}{})
		if err == nil || structs.CodeOf(err) != c.code {
			t.Errorf("%s: %v (code %s), not code %s", c.what, err, structs.CodeOf(err), c.code)
		}
	}
}

func TestWrongSecretIsForbidden(t *testing.T) {
	s := start(t, "")
	if err := s.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: node(1)}, &structs.NodeUpdateReply{}); err != nil {
		t.Fatal(err)
	}
	thief := node(1)
	thief.SecretID = "other"
	err := s.Call(t.Context(), wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: thief}, &structs.NodeUpdateReply{})
	if structs.CodeOf(err) != structs.CodeForbidden {
		t.Fatalf("registration with another secret: %v", err)
	}
	reply := &structs.NodeReply{}
	if err := s.Call(t.Context(), wire.MethodNodeGet, &structs.IDRequest{ID: node(1).ID}, reply); err != nil {
		t.Fatal(err)
	}
	if reply.Node.SecretID != "" {
		t.Fatal("the node's secret is shown")
	}
}

// TestShutdownLeavesNothingProposed: callers that gave up leave entries with Raft; a
// shutdown in that moment must not leave their waiting behind (start looks for it).
func TestShutdownLeavesNothingProposed(t *testing.T) {
	s := start(t, "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2000 {
		_, _ = s.raft.Apply(gone, structs.LogReconcile, &structs.ReconcileEntry{}) // who gave up does not ask how it went
	}
}

// TestWithoutLeader: who asks over the network is told that nothing was done, and may ask another server; this server's own
// agent knows no other.
func TestWithoutLeader(t *testing.T) {
	s := prepare(t, 3, func(_ int, c *Config) { c.RPC.Hold = 100 * time.Millisecond }).run(0)
	session, err := wire.Dial(t.Context(), "global", s.RPCAddr(), wire.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // a test
	err = session.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{})
	if structs.CodeOf(err) != structs.CodeNotLeader || !strings.Contains(err.Error(), "No cluster leader") {
		t.Errorf("over the network: %s: %v", structs.CodeOf(err), err)
	}
	if err = s.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{}); structs.CodeOf(err) != structs.CodeNoLeader {
		t.Errorf("from its own agent: %v", err)
	}
}
