package jobs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestOfficialClientJobs: register, plan, list, read, wait, scale and stop.
func TestOfficialClientJobs(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	jobs := a.Nomad.Jobs()
	job := harness.OfficialJob("web", "while true; do echo tick; sleep 0.2; done")
	plan, _, err := jobs.Plan(job, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if u := plan.Annotations.DesiredTGUpdates["g"]; u == nil || u.Place != 1 || plan.Diff.Type != "Added" {
		t.Fatalf("plan of a new job: %+v, diff %+v", plan.Annotations, plan.Diff)
	}
	reg, wm, err := jobs.Register(job, nil)
	if err != nil || reg.EvalID == "" || wm.LastIndex == 0 {
		t.Fatalf("register: %+v, %+v, %v", reg, wm, err)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "web", 1)
	list, qm, err := jobs.List(&nomad.QueryOptions{Prefix: "we"})
	if err != nil || len(list) != 1 || list[0].ID != "web" || list[0].JobSummary.Summary["g"].Running != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if !qm.KnownLeader || qm.LastIndex == 0 {
		t.Fatalf("the list's meta: %+v", qm)
	}
	got, _, err := jobs.Info("web", nil)
	if err != nil || *got.Type != "service" || *got.TaskGroups[0].Count != 1 || got.TaskGroups[0].Tasks[0].Config["command"] != "/bin/sh" {
		t.Fatalf("read: %+v, %v", got, err)
	}

	woken := make(chan error, 1)
	_, before, err := jobs.Summary("web", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, after, err := jobs.Summary("web", &nomad.QueryOptions{WaitIndex: before.LastIndex, WaitTime: 20 * time.Second})
		if err == nil && after.LastIndex <= before.LastIndex {
			err = fmt.Errorf("woken at index %d, from %d", after.LastIndex, before.LastIndex)
		}
		woken <- err
	}()
	if _, _, err := jobs.Scale("web", "g", harness.Ptr(2), "more", false, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "web", 2)
	versions, _, _, err := jobs.Versions("web", true, nil)
	if err != nil || len(versions) != 2 {
		t.Fatalf("versions: %d, %v", len(versions), err)
	}
	evals, _, err := jobs.Evaluations("web", nil)
	if err != nil || len(evals) < 2 {
		t.Fatalf("evaluations: %d, %v", len(evals), err)
	}
	if _, _, err := jobs.Info("nothing", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Fatalf("read of a job that does not exist: %v", err)
	}
	if _, _, err := jobs.Deregister("web", false, nil); err != nil {
		t.Fatal(err)
	}
	harness.WaitOfficialRunning(t, a.Nomad, "web", 0)
	if _, _, err := jobs.Register(job, nil); err != nil {
		t.Fatal(err)
	}
	last := harness.WaitOfficialRunning(t, a.Nomad, "web", 1)[0].ID
	if _, _, err := jobs.Deregister("web", true, nil); err != nil { // while it runs
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "the purged job's allocation ends", func(context.Context) error {
		alloc, _, err := a.Nomad.Allocations().Info(last, nil)
		if err != nil {
			return err
		}
		if alloc.ClientStatus != "complete" {
			return fmt.Errorf("it is %s", alloc.ClientStatus)
		}
		return nil
	})
	if left, _, err := jobs.List(nil); err != nil || len(left) != 0 {
		t.Fatalf("after the purge: %+v, %v", left, err)
	}
}

// TestOfficialClientLogsAndFiles: logs followed live, files listed and read.
func TestOfficialClientLogsAndFiles(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("talk", "i=0; while true; do i=$((i+1)); echo line $i; sleep 0.1; done"), nil); err != nil {
		t.Fatal(err)
	}
	stub := harness.WaitOfficialRunning(t, a.Nomad, "talk", 1)[0]
	alloc, _, err := a.Nomad.Allocations().Info(stub.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	fs := a.Nomad.AllocFS()
	cancel := make(chan struct{})
	frames, errs := fs.Logs(alloc, true, "t", "stdout", "start", 0, cancel, nil)
	var text strings.Builder
	deadline := time.After(harness.Scaled(time.Minute))
	for !strings.Contains(text.String(), "line 10\n") {
		select {
		case f := <-frames:
			text.Write(f.Data)
		case err := <-errs:
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("followed: %q", text.String())
		}
	}
	close(cancel)
	if !strings.HasPrefix(text.String(), "line 1\nline 2\nline 3\n") {
		t.Fatalf("followed from the start: %q", text.String())
	}
	files, _, err := fs.List(alloc, "alloc/logs", nil)
	if err != nil || len(files) == 0 {
		t.Fatalf("list: %+v, %v", files, err)
	}
	info, _, err := fs.Stat(alloc, "alloc/logs/t.stdout.0", nil)
	if err != nil || info.IsDir || info.Size == 0 {
		t.Fatalf("stat: %+v, %v", info, err)
	}
	cat, err := fs.Cat(alloc, "alloc/logs/t.stdout.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(cat)
	_ = cat.Close()
	if err != nil || !strings.HasPrefix(string(raw), "line 1\n") {
		t.Fatalf("cat: %q, %v", raw, err)
	}
	part, err := fs.ReadAt(alloc, "alloc/logs/t.stdout.0", 5, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ = io.ReadAll(part)
	_ = part.Close()
	if string(raw) != "1" {
		t.Fatalf("read at 5: %q", raw)
	}
	if _, _, err := fs.List(alloc, "../../..", nil); err == nil {
		t.Fatal("a path out of the allocation's directory was listed")
	}
	stats, err := a.Nomad.Allocations().Stats(alloc, nil)
	if err != nil || stats.ResourceUsage == nil {
		t.Fatalf("stats: %+v, %v", stats, err)
	}
	if err := a.Nomad.Allocations().Restart(alloc, "t", nil); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "a restart", func(context.Context) error {
		now, _, err := a.Nomad.Allocations().Info(stub.ID, nil)
		if err != nil {
			return err
		}
		if now.TaskStates["t"].Restarts != 1 || now.ClientStatus != "running" {
			return fmt.Errorf("%d restarts, %s", now.TaskStates["t"].Restarts, now.ClientStatus)
		}
		return nil
	})
	if _, err := a.Nomad.Allocations().Stop(alloc, nil); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 20*time.Second, "another allocation in its place", func(context.Context) error {
		for _, s := range harness.WaitOfficialRunning(t, a.Nomad, "talk", 1) {
			if s.ID == stub.ID {
				return fmt.Errorf("it is still %s", s.ID)
			}
		}
		return nil
	})
}

// TestOfficialClientDrain: a drained node's work moves to the other.
func TestOfficialClientDrain(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, true, harness.Simulate(t, strings.Replace(layouts, "100", "2", 1)))
	a.Start()
	a.WaitReady(2)
	job := harness.OfficialJob("web", "")
	job.TaskGroups[0].Count = harness.Ptr(4)
	job.TaskGroups[0].Tasks[0].Driver = "mock_driver"
	job.TaskGroups[0].Tasks[0].Config = map[string]any{"run_for": "1h"}
	if _, _, err := a.Nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	node := harness.WaitOfficialRunning(t, a.Nomad, "web", 4)[0].NodeID
	if _, err := a.Nomad.Nodes().UpdateDrain(node, &nomad.DrainSpec{Deadline: time.Minute}, false, nil); err != nil {
		t.Fatal(err)
	}
	harness.Within(t, 60*time.Second, "the drain's end", func(context.Context) error {
		n, _, err := a.Nomad.Nodes().Info(node, nil)
		if err != nil {
			return err
		}
		if n.DrainStrategy != nil || n.LastDrain == nil || n.LastDrain.Status != nomad.DrainStatusComplete {
			return fmt.Errorf("strategy %+v, last drain %+v", n.DrainStrategy, n.LastDrain)
		}
		return nil
	})
	for _, s := range harness.WaitOfficialRunning(t, a.Nomad, "web", 4) {
		if s.NodeID == node {
			t.Errorf("allocation %s is still on the drained node", s.ID)
		}
	}
	if _, err := a.Nomad.Nodes().ToggleEligibility(node, true, nil); err != nil {
		t.Fatal(err)
	}
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 2 {
		t.Fatalf("nodes: %d, %v", len(nodes), err)
	}
	for _, n := range nodes {
		if n.SchedulingEligibility != "eligible" {
			t.Errorf("node %s is %s", n.Name, n.SchedulingEligibility)
		}
	}
}

// TestOfficialClientEvents: the event stream tells of a job as it comes.
func TestOfficialClientEvents(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), harness.Scaled(time.Minute))
	defer cancel()
	stream, err := a.Nomad.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicJob: {"web"}, nomad.TopicAllocation: {"*"}}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Nomad.Jobs().Register(harness.OfficialJob("web", "sleep 1000"), nil); err != nil {
		t.Fatal(err)
	}
	sawJob, sawRunning := false, false
	for !sawJob || !sawRunning {
		batch, ok := <-stream
		if !ok || batch.Err != nil {
			t.Fatalf("the stream ended: %v", batch.Err)
		}
		for _, ev := range batch.Events {
			switch ev.Topic {
			case nomad.TopicJob:
				job, err := ev.Job()
				if err != nil || *job.ID != "web" {
					t.Fatalf("job event: %+v, %v", job, err)
				}
				sawJob = true
			case nomad.TopicAllocation:
				alloc, err := ev.Allocation()
				if err != nil {
					t.Fatal(err)
				}
				sawRunning = sawRunning || (alloc.JobID == "web" && alloc.ClientStatus == "running")
			default:
				t.Errorf("an event of topic %s was not asked for", ev.Topic)
			}
		}
	}
}

// TestOfficialClientOperator: scheduler configuration, Raft, agent, status, search.
func TestOfficialClientOperator(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	op := a.Nomad.Operator()
	conf, _, err := op.SchedulerGetConfiguration(nil)
	if err != nil || conf.SchedulerConfig.SchedulerAlgorithm != nomad.SchedulerAlgorithmBinpack {
		t.Fatalf("scheduler configuration: %+v, %v", conf, err)
	}
	if p := conf.SchedulerConfig.PreemptionConfig; p != (nomad.PreemptionConfig{SystemSchedulerEnabled: true}) {
		t.Errorf("a new cluster preempts for %+v, not for system jobs alone", p)
	}
	next := *conf.SchedulerConfig
	next.SchedulerAlgorithm = nomad.SchedulerAlgorithmSpread
	set, _, err := op.SchedulerCASConfiguration(&next, nil)
	if err != nil || !set.Updated {
		t.Fatalf("set: %+v, %v", set, err)
	}
	if again, _, err := op.SchedulerCASConfiguration(&next, nil); err != nil || again.Updated {
		t.Fatalf("set with an index that has moved: %+v, %v", again, err)
	}
	raft, err := op.RaftGetConfiguration(nil)
	if err != nil || len(raft.Servers) != 1 || !raft.Servers[0].Leader || !raft.Servers[0].Voter {
		t.Fatalf("raft: %+v, %v", raft, err)
	}
	leader, err := a.Nomad.Status().Leader()
	if err != nil || leader != a.RPC {
		t.Fatalf("leader %q, not %q (%v)", leader, a.RPC, err)
	}
	if peers, err := a.Nomad.Status().Peers(); err != nil || len(peers) != 1 {
		t.Fatalf("peers: %v, %v", peers, err)
	}
	self, err := a.Nomad.Agent().Self()
	if err != nil || self.Member.Name == "" || self.Config == nil || self.Stats == nil {
		t.Fatalf("self: %+v, %v", self, err)
	}
	members, err := a.Nomad.Agent().Members()
	if err != nil || len(members.Members) != 1 || members.Members[0].Status != "alive" {
		t.Fatalf("members: %+v, %v", members, err)
	}
	health, err := a.Nomad.Agent().Health()
	if err != nil || !health.Server.Ok || !health.Client.Ok {
		t.Fatalf("health: %+v, %v", health, err)
	}
	if regions, err := a.Nomad.Regions().List(); err != nil || len(regions) != 1 || regions[0] != "global" {
		t.Fatalf("regions: %v, %v", regions, err)
	}
	if err := a.Nomad.System().GarbageCollect(); err != nil {
		t.Fatal(err)
	}
	if err := a.Nomad.System().ReconcileSummaries(); err != nil {
		t.Fatal(err)
	}
	nodes, _, err := a.Nomad.Nodes().List(nil)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes: %v, %v", nodes, err)
	}
	found, _, err := a.Nomad.Search().PrefixSearch(nodes[0].ID[:8], "nodes", nil)
	if err != nil || len(found.Matches["nodes"]) != 1 || found.Matches["nodes"][0] != nodes[0].ID {
		t.Fatalf("search: %+v, %v", found, err)
	}
	if stats, err := a.Nomad.Nodes().Stats(nodes[0].ID, nil); err != nil || stats.Memory == nil || stats.Memory.Total == 0 {
		t.Fatalf("host stats: %+v, %v", stats, err)
	}
	if metrics, _, err := op.MetricsSummary(nil); err != nil || len(metrics.Gauges) == 0 {
		t.Fatalf("metrics: %+v, %v", metrics, err)
	}
}
