package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
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
