package fields

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestFieldsOfJobs: every field of a job spec comes back as it was sent.
func TestFieldsOfJobs(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	seen := newCoverage()
	for _, requested := range fullJobs(t) {
		if _, _, err := a.Nomad.Jobs().Register(requested, nil); err != nil {
			t.Errorf("register %s: %v", *requested.ID, err)
			continue
		}
		got, _, err := a.Nomad.Jobs().Info(*requested.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range same(requested, got) {
			t.Error(wrong)
		}
		seen.see("Job", got)
	}
	seen.check(t, jobExemptions)
}

// TestFieldsOfAnswers: every field of what the official client decodes is filled in
// some situation, and true, or exempt.
func TestFieldsOfAnswers(t *testing.T) {
	t.Parallel()
	w, seen := newWorld(t), newCoverage()
	defer w.cancel()
	w.seeUsage(seen)
	w.seeFailures(seen)
	w.seeBlocked(seen)
	w.seeGPU(seen)
	w.seeDrain(seen)
	w.seeJobs(seen)
	w.seeLists(seen)
	w.seeAgent(seen)
	w.seeEvents(seen)
	for _, root := range answerTypes {
		if seen.roots[root] == nil {
			t.Errorf("no %s was asked for", root)
		}
	}
	seen.check(t, answerExemptions)
}

// seeUsage: an allocation on this machine, its files and what it uses.
func (w *world) seeUsage(seen *coverage) {
	reg := w.register(webJob())
	seen.see("JobRegisterResponse", reg)
	w.checkRegistered("web", reg)
	stub := w.allocs("web", "runs", allIn("running"))[0]
	harness.Within(w.t, 10*time.Second, "its health", func(context.Context) error {
		if s := w.alloc(stub.ID).DeploymentStatus; s == nil || s.Healthy == nil {
			return fmt.Errorf("not decided")
		}
		return nil
	})
	alloc := w.alloc(stub.ID)
	harness.Within(w.t, 10*time.Second, "its use of a processor", func(context.Context) error {
		usage, err := w.c.Allocations().Stats(alloc, nil)
		w.must(err)
		if c := usage.ResourceUsage.CpuStats; c.UserMode == 0 || c.SystemMode == 0 {
			return fmt.Errorf("it is %+v", c)
		}
		seen.see("AllocResourceUsage", usage)
		w.checkUsage(usage)
		return nil
	})
	host, err := w.c.Nodes().Stats(w.nodes["real"].ID, nil)
	w.must(err)
	seen.see("HostStats", host)
	w.checkHost(host)
	w.checkFiles(seen, alloc)
	w.must(w.c.Allocations().Signal(alloc, nil, "t", "SIGCONT"))
	w.must(w.c.Allocations().Restart(alloc, "t", nil))
	harness.Within(w.t, 10*time.Second, "a restart", func(context.Context) error {
		alloc = w.alloc(stub.ID)
		if s := alloc.TaskStates["t"]; s.Restarts != 1 || s.State != "running" {
			return fmt.Errorf("%d restarts, %s", s.Restarts, s.State)
		}
		return nil
	})
	seen.see("Allocation", alloc)
}

// seeFailures: tasks that fail, are started again and elsewhere.
func (w *world) seeFailures(seen *coverage) {
	w.register(flakyJob())
	w.register(brokenJob())
	w.register(teamJob())
	w.register(sickJob())
	w.allocs("flaky", "fails", allIn("failed"))
	harness.Within(w.t, 10*time.Second, "a delayed evaluation", func(context.Context) error {
		evals, _, err := w.c.Jobs().Evaluations("flaky", nil)
		w.must(err)
		for _, e := range evals {
			seen.see("Evaluation", e)
			if !e.WaitUntil.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("%d evaluations", len(evals))
	})
	for _, s := range w.allocs("flaky", "fails", allIn("failed")) {
		seen.see("Allocation", w.alloc(s.ID))
		seen.see("AllocationListStub", s)
	}
	w.allocs("flaky", "fails again", func(allocs []*nomad.AllocationListStub) bool { return len(allocs) == 2 && allIn("failed")(allocs) })
	broken := w.allocs("broken", "fails", allIn("failed"))[0]
	w.allocs("team", "ends", allIn("complete"))
	_, _, err := w.c.Jobs().EvaluateWithOpts("broken", nomad.EvalOptions{ForceReschedule: true}, nil)
	w.must(err)
	seen.see("Allocation", w.alloc(broken.ID))
	w.allocs("broken", "is placed anew", func(allocs []*nomad.AllocationListStub) bool { return len(allocs) == 2 })
	harness.Within(w.t, 10*time.Second, "unhealthiness", func(context.Context) error {
		scale, _, err := w.c.Jobs().ScaleStatus("sick", nil)
		w.must(err)
		if g := scale.TaskGroups["g"]; g.Desired != 1 || g.Placed != 1 || g.Healthy != 0 || g.Unhealthy != 1 {
			return fmt.Errorf("its scale is %+v", g)
		}
		seen.see("JobScaleStatusResponse", scale)
		return nil
	})
}

// seeBlocked: an evaluation that waits.
func (w *world) seeBlocked(seen *coverage) {
	plan, _, err := w.c.Jobs().Plan(hugeJob(), true, nil)
	w.must(err)
	seen.see("JobPlanResponse", plan)
	reg := w.register(hugeJob())
	harness.Within(w.t, 10*time.Second, "a blocked evaluation", func(context.Context) error {
		e, _, err := w.c.Evaluations().Info(reg.EvalID, &nomad.QueryOptions{Params: map[string]string{"related": "true"}})
		w.must(err)
		if e.BlockedEval == "" {
			return fmt.Errorf("it is %s", e.Status)
		}
		seen.see("Evaluation", e)
		blocked, _, err := w.c.Evaluations().Info(e.BlockedEval, nil)
		w.must(err)
		seen.see("Evaluation", blocked)
		return nil
	})
}

// seeGPU: devices, cores and memory with a higher limit.
func (w *world) seeGPU(seen *coverage) {
	conf, _, err := w.c.Operator().SchedulerGetConfiguration(nil)
	w.must(err)
	conf.SchedulerConfig.MemoryOversubscriptionEnabled = true
	_, _, err = w.c.Operator().SchedulerSetConfiguration(conf.SchedulerConfig, nil)
	w.must(err)
	seen.see("JobRegisterResponse", w.register(gpuJob()))
	for _, s := range w.allocs("gpu", "runs", allIn("running")) {
		seen.see("Allocation", w.alloc(s.ID))
	}
}

// seeDrain: a node while and after it is drained, and an allocation that is stopped.
func (w *world) seeDrain(seen *coverage) {
	w.register(everywhereJob())
	w.register(movingJob())
	w.allocs("everywhere", "runs", func(allocs []*nomad.AllocationListStub) bool { return len(allocs) == 2 && allIn("running")(allocs) })
	stub := w.allocs("moving", "runs", allIn("running"))[0]
	resp, err := w.c.Nodes().UpdateDrainOpts(stub.NodeID, &nomad.DrainOptions{
		DrainSpec: &nomad.DrainSpec{Deadline: time.Minute, IgnoreSystemJobs: true}, Meta: map[string]string{"why": "test"},
	}, nil)
	w.must(err)
	seen.see("NodeDrainUpdateResponse", resp)
	w.seeNodes(seen)
	harness.Within(w.t, 20*time.Second, "the drain's end", func(context.Context) error {
		if node := w.node(stub.NodeID); node.DrainStrategy != nil {
			return fmt.Errorf("it drains")
		}
		return nil
	})
	resp, err = w.c.Nodes().UpdateDrain(stub.NodeID, nil, true, nil) // the system job is to be looked at there
	w.must(err)
	seen.see("NodeDrainUpdateResponse", resp)
	if last := w.node(stub.NodeID).LastDrain; last.Status != nomad.DrainStatusComplete || last.Meta["why"] != "test" {
		w.t.Errorf("the last drain: %+v", last)
	}
	second := w.allocs("moving", "runs elsewhere", func(allocs []*nomad.AllocationListStub) bool {
		return len(allocs) == 2 && slices.ContainsFunc(allocs, func(a *nomad.AllocationListStub) bool { return a.ID != stub.ID && a.ClientStatus == "running" })
	})
	for _, s := range second {
		if s.ID != stub.ID {
			_, err = w.c.Allocations().Stop(&nomad.Allocation{ID: s.ID}, &nomad.QueryOptions{
				Params: map[string]string{"no_shutdown_delay": "true", "reschedule": "true"},
			})
			w.must(err)
			seen.see("Allocation", w.alloc(s.ID))
		}
	}
}

func (w *world) node(id string) *nomad.Node {
	w.t.Helper()
	n, _, err := w.c.Nodes().Info(id, nil)
	w.must(err)
	return n
}

// seeJobs: what is told of jobs.
func (w *world) seeJobs(seen *coverage) {
	jobs := w.c.Jobs()
	w.register(slowJob())
	full := fullJobs(w.t)
	for _, job := range full[1:3] { // neither starts anything by itself
		w.register(job)
	}
	_, _, err := jobs.Scale("web", "g", nil, "too much", true, map[string]any{"by": "e2e"}, nil)
	w.must(err)
	_, _, err = jobs.Scale("web", "g", harness.Ptr(2), "more", false, nil, nil)
	w.must(err)
	w.allocs("web", "runs twice", func(allocs []*nomad.AllocationListStub) bool { return len(allocs) == 2 && allIn("running")(allocs) })
	_, _, err = jobs.Deregister("gpu", false, nil)
	w.must(err)
	for _, id := range []string{"web", "gpu"} {
		scale, _, err := jobs.ScaleStatus(id, nil)
		w.must(err)
		seen.see("JobScaleStatusResponse", scale)
	}
	w.seePlans(seen, full)
	w.allocs("slow", "is placed", func(allocs []*nomad.AllocationListStub) bool { return len(allocs) == 1 })
	for id := range w.requested {
		s, _, err := jobs.Summary(id, nil)
		w.must(err)
		seen.see("JobSummary", s)
		w.checkSummary(s)
	}
}

// seePlans: what registrations would do.
func (w *world) seePlans(seen *coverage, full []*nomad.Job) {
	plan := func(job *nomad.Job) *nomad.JobPlanResponse {
		p, _, err := w.c.Jobs().Plan(job, true, nil)
		w.must(err)
		seen.see("JobPlanResponse", p)
		return p
	}
	plan(full[0])
	web := func(change func(job *nomad.Job)) *nomad.DesiredUpdates {
		next := webJob()
		next.TaskGroups[0].Count = harness.Ptr(2)
		change(next)
		p := plan(next)
		if p.Diff.Type != "Edited" || p.Diff.ID != "web" {
			w.t.Errorf("the diff is %s of %q", p.Diff.Type, p.Diff.ID)
		}
		return p.Annotations.DesiredTGUpdates["g"]
	}
	f := func(want nomad.DesiredUpdates, change func(job *nomad.Job)) {
		w.t.Helper()
		if got := web(change); got == nil || *got != want {
			w.t.Errorf("a plan would do %+v, not %+v", got, want)
		}
	}
	f(nomad.DesiredUpdates{InPlaceUpdate: 2}, func(job *nomad.Job) { job.Priority = harness.Ptr(70) })
	f(nomad.DesiredUpdates{DestructiveUpdate: 1, Ignore: 1}, func(job *nomad.Job) { job.TaskGroups[0].Tasks[0].Env["A"] = "c" })
	f(nomad.DesiredUpdates{Stop: 1, InPlaceUpdate: 1}, func(job *nomad.Job) { job.TaskGroups[0].Count = harness.Ptr(1); job.Priority = harness.Ptr(70) })
	f(nomad.DesiredUpdates{Place: 1, InPlaceUpdate: 2}, func(job *nomad.Job) { job.TaskGroups[0].Count = harness.Ptr(3); job.Priority = harness.Ptr(70) })
}

// seeLists: everything that can be listed.
func (w *world) seeLists(seen *coverage) {
	jobs, _, err := w.c.Jobs().ListOptions(&nomad.JobListOptions{Fields: &nomad.JobListFields{Meta: true}}, nil)
	w.must(err)
	for _, j := range jobs {
		seen.see("JobListStub", j)
		w.checkJob(j)
	}
	allocs, _, err := w.c.Allocations().List(&nomad.QueryOptions{Params: map[string]string{"resources": "true", "task_states": "true"}})
	w.must(err)
	for _, a := range allocs {
		seen.see("AllocationListStub", a)
		full := w.alloc(a.ID)
		seen.see("Allocation", full)
		w.checkAlloc(a, full)
	}
	evals, _, err := w.c.Evaluations().List(nil)
	w.must(err)
	for _, e := range evals {
		full, _, err := w.c.Evaluations().Info(e.ID, nil)
		w.must(err)
		seen.see("Evaluation", full)
		w.checkEval(full)
	}
	w.seeNodes(seen)
	found, _, err := w.c.Search().PrefixSearch("w", "jobs", nil)
	w.must(err)
	seen.see("SearchResponse", found)
	if got := found.Matches["jobs"]; len(got) != 1 || got[0] != "web" {
		w.t.Errorf("jobs that begin with w: %v", got)
	}
}

// seeNodes: the nodes as they are now.
func (w *world) seeNodes(seen *coverage) {
	nodes, _, err := w.c.Nodes().List(&nomad.QueryOptions{Params: map[string]string{"resources": "true", "os": "true"}})
	w.must(err)
	for _, n := range nodes {
		seen.see("NodeListStub", n)
		full := w.node(n.ID)
		seen.see("Node", full)
		w.checkNode(n, full)
	}
}

// seeAgent: the agent and its servers.
func (w *world) seeAgent(seen *coverage) {
	self, err := w.c.Agent().Self()
	w.must(err)
	seen.see("AgentSelf", self)
	w.checkMember(&self.Member)
	members, err := w.c.Agent().Members()
	w.must(err)
	seen.see("ServerMembers", members)
	w.checkMember(members.Members[0])
	health, err := w.c.Agent().Health()
	w.must(err)
	seen.see("AgentHealthResponse", health)
	on := nomad.SchedulerConfiguration{
		SchedulerAlgorithm: "spread", MemoryOversubscriptionEnabled: true, RejectJobRegistration: true, PauseEvalBroker: true,
		PreemptionConfig: nomad.PreemptionConfig{
			SystemSchedulerEnabled: true, SysBatchSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true,
		},
		NodeLimitForFeasibilityChecks: 77,
	}
	_, _, err = w.c.Operator().SchedulerSetConfiguration(&on, nil)
	w.must(err)
	conf, _, err := w.c.Operator().SchedulerGetConfiguration(nil)
	w.must(err)
	for _, wrong := range same(&on, conf.SchedulerConfig) {
		w.t.Error(wrong)
	}
	seen.see("SchedulerConfigurationResponse", conf)
	raft, err := w.c.Operator().RaftGetConfiguration(nil)
	w.must(err)
	seen.see("RaftConfiguration", raft)
	if s := raft.Servers; len(s) != 1 || s[0].Address != w.a.RPC || !s[0].Leader || !s[0].Voter {
		w.t.Errorf("raft: %+v", s)
	}
	harness.Within(w.t, 10*time.Second, "metrics of all kinds", func(context.Context) error {
		metrics, _, err := w.c.Operator().MetricsSummary(nil)
		w.must(err)
		seen.see("MetricsSummary", metrics)
		if len(metrics.Gauges) == 0 || len(metrics.Counters) == 0 || len(metrics.Samples) == 0 {
			return fmt.Errorf("%d gauges, %d counters, %d samples", len(metrics.Gauges), len(metrics.Counters), len(metrics.Samples))
		}
		return nil
	})
}

// seeEvents: what the event stream has told since the beginning.
func (w *world) seeEvents(seen *coverage) {
	for {
		select {
		case batch := <-w.events:
			w.must(batch.Err)
			seen.see("Events", batch)
			w.checkEvents(batch)
			continue
		default:
		}
		return
	}
}
