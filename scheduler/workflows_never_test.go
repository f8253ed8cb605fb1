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

// TestNoNodeMayRunStage: where no node may run a job of a stage, its workflow states which job, and why, as an explanation of the job would: how much the
// stages need is not what is missing.
func TestNoNodeMayRunStage(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	w.changeNode("n1", func(n *structs.Node) {
		n.Drivers = map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}, "raw_exec": {Detected: true, HealthDescription: "switched off"}}
		n.ComputeClass()
	})
	w.slotNode("n2", 8)
	kernel := &structs.Constraint{LTarget: "${attr.kernel.name}", RTarget: "windows", Operand: "="}
	for _, c := range []struct {
		name   string
		change func(*structs.Job)
		why    string
	}{
		{"constraint", func(j *structs.Job) { j.Constraints = append(j.Constraints, kernel) }, `no ready node may run job "wf/1/b": 2 nodes: constraint not met: ` + "${attr.kernel.name} = windows"},
		{
			"driver", func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Driver = "raw_exec" },
			`no ready node may run job "wf/1/b": 2 nodes: driver "raw_exec" is missing or not healthy; 1 of them report: switched off`,
		},
		{"datacenter", func(j *structs.Job) { j.Datacenters = []string{"moon"} }, `no ready node may run job "wf/1/b": 2 nodes: in datacenter "dc1", which the job does not name`},
	} {
		got := w.choose(scheduler.WorkflowStage{manyOf("a", 1, 1)}, scheduler.WorkflowStage{manyOf("b", 1, 1, c.change)})
		if got.Posted || !got.Never || !strings.HasPrefix(got.Missing, c.why) {
			t.Errorf("%s: %q", c.name, got.Missing)
		}
	}
}

// TestSlotsLeaveStageTooLittle: where a stage would have room but for the slots of projects, its workflow names these, and what is missing in the unit that
// its jobs state.
func TestSlotsLeaveStageTooLittle(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	for _, id := range []string{"n1", "n2"} {
		n := slotNodeOf(id, 8)
		for c := range uint16(8) {
			n.NodeResources.Cpu.ReservableCpuCores = append(n.NodeResources.Cpu.ReservableCpuCores, c)
		}
		w.setNode(n)
	}
	w.gives("chip", 12)
	wide := func(cores int) scheduler.WorkflowChoice {
		job := manyOf("a", 1, 0)
		schedtest.Task(job).Resources = &structs.Resources{Cores: cores, MemoryMB: 10}
		return w.choose(scheduler.WorkflowStage{job})
	}
	const slots = `beside the slots that projects are given this week (project "chip": 12 of type "batch") the nodes that are ready could not hold it if they were empty: `
	if got := wide(7); !got.Never || !got.Slots || got.Missing != slots+"3 cores are missing" {
		t.Errorf("beside slots: %q", got.Missing)
	}
	if got := wide(9); !got.Never || got.Slots || !strings.HasPrefix(got.Missing, "the nodes that are ready could not hold it") {
		t.Errorf("more than a node has: %q", got.Missing)
	}
	if got := wide(4); !got.Posted {
		t.Errorf("what is not given: %q", got.Missing)
	}
}

// TestExplainGuaranteedByWorkflow: what uses its workflow's reservation is not preempted, whatever the priority of who waits: both say so.
func TestExplainGuaranteedByWorkflow(t *testing.T) {
	w := newWorkflows(t, 4, 0)
	w.config.PreemptionConfig.BatchSchedulerEnabled = true
	w.configure()
	w.stage("a", 4)
	w.submit("", "top", 1, requests(90, 1000, 1000))
	const want = `nothing can be preempted: all that is in a lower priority band than its own (71 to 100) on the nodes that it may use is guaranteed: 1 of job "wf/1/a0"`
	if waits := w.explain().Group("g").Waits; !slices.ContainsFunc(waits, func(p structs.Wait) bool { return p.Text == want }) {
		t.Errorf("who waits: %+v", waits)
	}
	for _, a := range w.allocs {
		out := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: w.config, World: w.w})
		if text := strings.Join(out.Text, "\n"); len(out.MayLoseTo) > 0 || !strings.Contains(text, "it cannot be preempted: it uses what its workflow has reserved") {
			t.Errorf("it may lose to %+v:\n%s", out.MayLoseTo, text)
		}
	}
}

// TestExplainOwnReservation: a job of a stage that does not fit into its workflow's reservation is not one of those that the workflow does not lend to.
func TestExplainOwnReservation(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(8, 4)
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true, Lend: []*structs.WorkflowLend{{To: "user:munge"}},
		Parts: []structs.WorkflowPart{{NodeID: "r1-1", CPU: 8000, MemoryMB: 8000}},
	}
	w.set()
	gang := gangUnder("a", "rack", 2, 5)
	w.submit("", gang.ID, 2, func(j *structs.Job) { *j = *gang })
	var texts []string
	for _, r := range w.explain().Group("g").Reasons {
		texts = append(texts, r.Text)
	}
	text := strings.Join(texts, "\n")
	for _, want := range []string{
		"reserved by workflow default/wf, which is its own: its stage does not fit into what there is of the reservation, as `nomadish workflow status wf` shows",
		"rack r1 has room for 0; what workflows have reserved is not counted",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
}

// TestLostPartMissing: what is missing in place of a lost part is what is short: not all that an instance needs for which there is no node; and where there are
// too few hosts, or racks, the hosts.
func TestLostPartMissing(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(8, 4, 4)
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true,
		Parts: []structs.WorkflowPart{{NodeID: "r1-1", CPU: 2000, MemoryMB: 2000}, {NodeID: "r1-2", CPU: 2000, MemoryMB: 2000}},
	}
	w.set()
	w.changeNode("r1-2", down)
	job := manyOf("a", 3, 2, func(j *structs.Job) { j.Constraints = append(j.Constraints, distinctHosts()) })
	const hosts = `the part on node name-r1-2 is lost, and the nodes that are ready could not hold it if they were empty: 3 instances of job "wf/1/a" on distinct hosts; only 2 nodes may run it`
	if r := w.renewed(scheduler.WorkflowStage{job}); r.Missing != hosts {
		t.Errorf("distinct hosts: %q", r.Missing)
	}
	w.submit("", "fill", 6, requests(50, 1000, 0))
	w.submit("", "more", 4, requests(50, 1000, 0))
	job = gangUnder("a", "rack", 2, 3)
	if r := w.renewed(scheduler.WorkflowStage{job}); !strings.HasPrefix(r.Missing, "the part on node name-r1-2 is lost, and nowhere is so much free: ") ||
		strings.Contains(r.Missing, "memory") || strings.Contains(r.Missing, "disk") {
		t.Errorf("only CPU is short: %q", r.Missing)
	}
}

// TestExplainFullBesideReserved: how much is free on the nodes that are full is stated of these, not of another on which a workflow has reserved what is free.
func TestExplainFullBesideReserved(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.slotNode("n2", 4)
	w.submit("", "fill", 5)
	var texts []string
	for _, r := range w.explain().Group("g").Reasons {
		texts = append(texts, r.Text)
	}
	if text := strings.Join(texts, "\n"); !strings.Contains(text, "cpu: 1000 MHz are requested, at most 0 are free on one of these nodes") {
		t.Errorf("cpu:\n%s", text)
	}
}

// TestSysbatchTooLarge: nothing is reserved for a sysbatch job, but its stage does not end where a node that may run it could not hold it if it was empty.
func TestSysbatchTooLarge(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	w.slotNode("n2", 4)
	for cores, want := range map[int]string{4: "false []", 6: "false [1 of the 2]", 9: "true []"} {
		job := manyOf("b", 1, cores, func(j *structs.Job) { j.Type = structs.JobTypeSysBatch })
		never, some := scheduler.TooSmallForStages(w.w, "default", []scheduler.WorkflowStage{{job}})
		for i, text := range some {
			if _, text, _ = strings.Cut(text, `job "wf/1/b", of type sysbatch, would wait on `); len(text) >= len("1 of the 2") {
				some[i] = text[:len("1 of the 2")]
			}
		}
		if got := fmt.Sprintf("%v %v", strings.Contains(never, "would wait on every node that may run it"), some); got != want || (never == "") == (cores == 9) {
			t.Errorf("%d cores: %s, want %s: %q", cores, got, want, never)
		}
	}
}

// TestStatedBesideCores: a number of MHz that is stated is reserved beside the whole cores, which have their own, and shown so; cores that no stage needs have theirs, too.
func TestStatedBesideCores(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	n := slotNodeOf("n1", 16)
	for c := range uint16(16) {
		n.NodeResources.Cpu.ReservableCpuCores = append(n.NodeResources.Cpu.ReservableCpuCores, c)
	}
	w.setNode(n)
	whole, mhz := manyOf("a", 1, 0), manyOf("b", 2, 0)
	schedtest.Task(whole).Resources, schedtest.Task(mhz).Resources = &structs.Resources{Cores: 2, MemoryMB: 10}, &structs.Resources{CPU: 300, MemoryMB: 10}
	for _, c := range []struct {
		stated      structs.WorkflowResources
		cores, cpu  int
		besideCores int64
	}{
		{structs.WorkflowResources{Cores: 4, CPU: 700}, 4, 4700, 700},
		{structs.WorkflowResources{Cores: 4}, 4, 4600, 600},
		{structs.WorkflowResources{CPU: 1000}, 2, 3000, 1000},
		{structs.WorkflowResources{Cores: 8, CPU: 7000}, 8, 15000, 7000},
	} {
		got := scheduler.ChooseReservation(w.w, "default/wf", "default", []scheduler.WorkflowStage{{whole, mhz}}, structs.WorkflowReserve{Amounts: &c.stated}, false)
		if !got.Posted || len(got.Parts) != 1 || got.Parts[0].Cores != c.cores || got.Parts[0].CPU != int64(c.cpu) || got.CPU != int64(c.cpu) || got.PerCore != 1000 {
			t.Errorf("%+v: %+v", c.stated, got)
			continue
		}
		w.claim = &structs.WorkflowClaim{Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Posted: true, Parts: got.Parts}
		w.set()
		if use := scheduler.WorkflowUse(w.w, "default/wf"); use.Reserved.CPU != c.besideCores || use.Reserved.Cores != int64(c.cores) || use.Reserved.DiskMB != got.Parts[0].DiskMB {
			t.Errorf("%+v is shown as %+v", c.stated, use.Reserved)
		}
	}
	got := scheduler.ChooseReservation(w.w, "default/wf", "default", []scheduler.WorkflowStage{{whole}}, structs.WorkflowReserve{Amounts: &structs.WorkflowResources{Cores: 16, CPU: 2000}}, false)
	if !got.Never || !strings.HasSuffix(got.Missing, ": 2000 MHz are missing") {
		t.Errorf("more than there is: %q", got.Missing)
	}
}

// TestTooManyToPack: for stages with more instances together than are packed, as a workflow that was stored before these were bounded may have, nothing is
// reserved, whatever the nodes have; instances of sysbatch jobs do not count.
func TestTooManyToPack(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	const half = structs.MaxWorkflowInstances / 2
	got := w.choose(scheduler.WorkflowStage{manyOf("a", half, 1)}, scheduler.WorkflowStage{manyOf("b", half, 1), manyOf("c", 1, 1)})
	if want := "its stages have 100001 instances together, and nothing is reserved for more than 100000"; !got.Never || !strings.HasPrefix(got.Missing, want) {
		t.Errorf("%v, %q, want %q", got.Never, got.Missing, want)
	}
	each := func(j *structs.Job) { j.Type = structs.JobTypeSysBatch }
	if got := w.choose(scheduler.WorkflowStage{manyOf("a", 2, 1), manyOf("b", 2*half, 1, each)}); !got.Posted {
		t.Errorf("with a sysbatch job: %q", got.Missing)
	}
}

// TestLargerThanAnyNode: where an instance needs more of a resource than any node has, that is stated: what is missing of it alone reads as if one more of it, anywhere,
// would do.
func TestLargerThanAnyNode(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.slotNode("n1", 8)
	w.slotNode("n2", 6)
	got := w.choose(scheduler.WorkflowStage{manyOf("a", 1, 9)})
	if want := "an instance needs 9000 MHz, and no node has more than 8000 MHz to reserve"; !got.Never || !strings.HasSuffix(got.Missing, want) {
		t.Errorf("never %v: %q, want %q", got.Never, got.Missing, want)
	}
	if got = w.choose(scheduler.WorkflowStage{manyOf("a", 3, 6)}); !got.Never || strings.Contains(got.Missing, "an instance needs") {
		t.Errorf("each of its instances fits: never %v: %q", got.Never, got.Missing)
	}
}
