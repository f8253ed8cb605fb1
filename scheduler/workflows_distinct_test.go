package scheduler_test

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// distinctHosts is the constraint that instances run on distinct hosts.
func distinctHosts() *structs.Constraint {
	return &structs.Constraint{Operand: structs.ConstraintDistinctHosts, RTarget: "true"}
}

// distinctRacks is the constraint that so many instances at most run in one rack.
func distinctRacks(most string) *structs.Constraint {
	return &structs.Constraint{Operand: structs.ConstraintDistinctProperty, LTarget: "${meta.rack}", RTarget: most}
}

// manyOf returns a job of a stage of the workflow, of so many instances of so many cores.
func manyOf(id string, count, cores int, change ...func(*structs.Job)) *structs.Job {
	change = append(change, requests(50, 1000*cores, 1000*cores), ofStage, func(j *structs.Job) { j.ID = "wf/1/" + id })
	return schedtest.Job(structs.JobTypeBatch, count, change...)
}

// TestReservationDistinct: instances that have to be on distinct hosts, or in distinct racks, are reserved there, whether their job states so or its group; if
// there are too few of these the workflow is never to start, and says why.
func TestReservationDistinct(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(8, 8, 8, 8)
	ofJob := func(c *structs.Constraint) func(*structs.Job) {
		return func(j *structs.Job) { j.Constraints = append(j.Constraints, c) }
	}
	ofGroup := func(c *structs.Constraint) func(*structs.Job) {
		return func(j *structs.Job) { j.TaskGroups[0].Constraints = append(j.TaskGroups[0].Constraints, c) }
	}
	two := func(j *structs.Job) { // of one instance each
		g := *j.TaskGroups[0]
		g.Name = "second"
		j.TaskGroups = append(j.TaskGroups, &g)
	}
	inFirst := ofJob(&structs.Constraint{LTarget: "${meta.rack}", RTarget: "r1", Operand: "="})
	for _, c := range []struct {
		name  string
		job   *structs.Job
		parts int // of as many nodes; 0: it is never to start
		racks int // in as many racks
		why   string
	}{
		{"job on distinct hosts", manyOf("a", 3, 1, ofJob(distinctHosts())), 3, 0, ""},
		{"it is not, as it states", manyOf("a", 3, 1, ofJob(&structs.Constraint{Operand: structs.ConstraintDistinctHosts, RTarget: "false"})), 1, 0, ""},
		{"group on distinct hosts", manyOf("a", 3, 1, ofGroup(distinctHosts())), 3, 0, ""},
		{"groups of a job on distinct hosts", manyOf("a", 1, 1, two, ofJob(distinctHosts())), 2, 0, ""},
		{"each of two groups on distinct hosts", manyOf("a", 2, 1, ofGroup(distinctHosts()), two), 2, 0, ""},
		{"distinct racks", manyOf("a", 2, 1, ofJob(distinctRacks("1"))), 2, 2, ""},
		{"two for each rack", manyOf("a", 3, 1, ofGroup(distinctRacks("2"))), 2, 2, ""},
		{
			"more than hosts", manyOf("a", 5, 1, ofJob(distinctHosts())), 0, 0,
			`if they were empty: 5 instances of job "wf/1/a" on distinct hosts; only 4 nodes may run it`,
		},
		{
			"more than hosts that may run it", manyOf("a", 3, 1, ofGroup(distinctHosts()), inFirst), 0, 0,
			`if they were empty: 3 instances of group "g" of job "wf/1/a" on distinct hosts; only 2 nodes may run it`,
		},
		{
			"more than racks", manyOf("a", 5, 1, ofJob(distinctRacks("2"))), 0, 0,
			`5 instances of job "wf/1/a", at most 2 for each value of ${meta.rack}; the nodes that may run it have room for 4`,
		},
		{"two for each host", manyOf("a", 3, 1, ofJob(&structs.Constraint{Operand: structs.ConstraintDistinctProperty, LTarget: "${node.unique.id}", RTarget: "2"})), 2, 0, ""},
		{
			"a property that no node has", manyOf("a", 1, 1, ofJob(&structs.Constraint{Operand: structs.ConstraintDistinctProperty, LTarget: "${meta.hall}"})), 0, 0,
			`1 instance of job "wf/1/a", at most 1 for each value of ${meta.hall}; the nodes that may run it have room for 0`,
		},
	} {
		got := w.choose(scheduler.WorkflowStage{c.job})
		if c.parts == 0 {
			if got.Posted || !got.Never || !strings.Contains(got.Missing, c.why) {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if !got.Posted || len(got.Parts) != c.parts || c.racks > 0 && len(racksOf(got.Parts)) != c.racks {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestReservationDistinctWaits: where instances have no room on distinct hosts now, but would on empty ones, what comes free there is kept; where all of a
// stage has no room on distinct hosts, but each job by itself has, the workflow starts.
func TestReservationDistinctWaits(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(8, 4)
	job := manyOf("a", 2, 2, func(j *structs.Job) { j.Constraints = append(j.Constraints, distinctHosts()) })
	beside := manyOf("b", 1, 7)
	c := w.choose(scheduler.WorkflowStage{job, beside})
	if got := coresOf(c.Parts); !c.Posted || got["r1-1"] != 7 || got["r1-2"] != 4 {
		t.Errorf("beside another job: %+v", c)
	}
	w.submit("", "fill", 1, requests(50, 4000, 4000), func(j *structs.Job) {
		j.Constraints = append(j.Constraints, &structs.Constraint{LTarget: "${node.unique.id}", RTarget: "r1-2", Operand: "="})
	})
	if c := w.choose(scheduler.WorkflowStage{job}); c.Posted || c.Never || len(c.Parts) != 2 || !strings.Contains(c.Missing, "where the stages' jobs have distinct hosts are missing") {
		t.Errorf("with one node in use: %+v", c)
	}
}

// TestRenewedDistinct: the part of a lost node is reserved anew on another node than what has to be on distinct hosts has.
func TestRenewedDistinct(t *testing.T) {
	w := &workflows{projects: newProjects(t)}
	w.rackNodes(8, 4, 2)
	w.claim = &structs.WorkflowClaim{
		Namespace: "default", ID: "wf", Run: 1, NodePool: "default", Priority: 50, Posted: true,
		Parts: []structs.WorkflowPart{{NodeID: "r1-1", CPU: 2000, MemoryMB: 2000}, {NodeID: "r1-2", CPU: 2000, MemoryMB: 2000}},
	}
	w.set()
	stage := scheduler.WorkflowStage{manyOf("a", 2, 2, func(j *structs.Job) { j.Constraints = append(j.Constraints, distinctHosts()) })}
	w.changeNode("r1-2", down)
	if got := coresOf(w.renewed(stage).Parts); got["r1-1"] != 2 || got["r2-1"] != 2 {
		t.Errorf("renewed: %v", got)
	}
	w.changeNode("r2-1", down)
	if r := w.renewed(stage); r.Missing == "" || coresOf(r.Parts)["r1-1"] != 2 {
		t.Errorf("with no other node: %+v", r)
	}
}
