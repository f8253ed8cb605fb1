package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// rights returns by what right the running instances of a job are where they are, as their explanations state it: each text with how many it is said of.
func (x *gpuWorkflows) rights(id string) string {
	x.t.Helper()
	n := map[string]int{}
	for _, a := range x.sorted() {
		if a.JobID != id || a.Terminal() {
			continue
		}
		e := scheduler.ExplainAlloc(scheduler.AllocInput{Alloc: a, Config: x.config, World: x.w})
		var says []string
		for _, text := range e.Text {
			switch {
			case strings.HasPrefix(text, "it uses no slot"): // why it has no claim of this kind
			case strings.HasPrefix(text, "it uses "), strings.HasPrefix(text, "it borrows "), strings.HasPrefix(text, "it is opportunistic: "):
				text, _, _ = strings.Cut(text, ": ")
				says = append(says, text)
			}
		}
		right := strings.Join(says, ", and ")
		if n[right]++; (e.Class == structs.ClassGuaranteed) != strings.HasPrefix(right, "it uses ") {
			x.t.Fatalf("%s is %s, and its explanation states %q: %q", a.Name, e.Class, says, e.Text)
		}
	}
	var out []string
	for text, count := range n {
		out = append(out, fmt.Sprintf("%d: %s", count, text))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// TestOneInstanceOneClaim: a workflow inside the cells of its namespace, slots of a project, and work without a claim on one cluster. Each instance uses the
// first claim that holds it, in the order workflow, cells, slots, and its explanation states which (part 0, rule 5).
func TestOneInstanceOneClaim(t *testing.T) {
	x := &gpuWorkflows{&workflows{projects: gpuProjects(t, 4)}, world.ChainKey{}}
	x.workflows.workflows = map[string]*structs.WorkflowClaim{}
	x.owns("a", "node", 1)
	for key := range x.w.Chains {
		x.chain = key
	}
	x.givesGPUs("chip", "gpu", 3)
	x.owns("a", "node", 1) // eight GPUs
	if c, why := x.reserve("a", []*structs.WorkflowLend{{To: "namespace:b"}}, gpuStage("a", 4), gpuStage("a", 4, 2)); why != "" || c.Parts[0].CellLevel == "" {
		t.Fatalf("no cells are reserved: %+v %s", c, why)
	}
	const (
		none     = "it is opportunistic"
		slot     = `it uses a slot of type gpu of project "chip", with cells of level gpu`
		cells    = `it uses a cell of level node that namespace "a" owns`
		reserved = "it uses the reservation of workflow a/wf"
		borrows  = "it borrows from the reservation of workflow a/wf, which lends to namespace:b, and leaves when a stage needs that, and " + none
	)
	of := func(namespace string, gpus int) []func(*structs.Job) {
		return []func(*structs.Job){withGPUs("gpu", gpus), inNamespace(namespace)}
	}
	opportunistic := func(j *structs.Job) { j.Class = structs.ClassOpportunistic }
	inStage := func(j *structs.Job) { j.Workflow = &structs.JobWorkflow{ID: "wf", Run: 1, Stage: "s"} }
	noGPUs := func(j *structs.Job) {
		j.Slot = ""
		j.TaskGroups[0].Tasks[0].Resources.Devices = nil
	}
	rows := []struct {
		project, id string
		count       int
		changes     []func(*structs.Job)
		want        string
	}{
		{"chip", "wf/1/stage", 1, append(of("a", 4), inStage), "1: " + reserved},              // not cells, and not slots
		{"chip", "states", 1, append(of("a", 1), opportunistic), "1: " + none},                // though all claims have room
		{"chip", "both", 1, of("a", 1), "1: " + cells},                                        // not a slot
		{"", "computes", 1, append(of("a", 0), noGPUs), "1: " + none},                         // cells are for those that request GPUs
		{"", "own", 2, of("a", 1), "1: " + none + "; 1: " + cells},                            // the workflow has reserved the other six
		{"chip", "slots", 1, of("a", 1), "1: " + slot},                                        // the cells are in use
		{"chip", "project", 3, of("default", 1), "1: " + none + "; 2: " + slot},               // two of three slots are left
		{"", "anybody", 1, of("default", 1), "1: " + none},                                    //
		{"chip", "wf/1/more", 1, append(of("a", 2), inStage), "1: " + reserved},               // what the stage before does not need
		{"chip", "wf/1/beyond", 1, append(of("a", 1), inStage), "1: " + none},                 // neither the reservation, nor cells, nor slots hold it
		{"", "borrows", 30, of("b", 1), fmt.Sprintf("%d: %s", 32-8-1-1-1-3-1-1, none)},        // nothing is lent while the stage uses all
		{"chip", "late", 1, append(of("a", 1), func(j *structs.Job) { j.Priority = 90 }), ""}, // priority is no claim
	}
	check := func() {
		t.Helper()
		for _, r := range rows {
			if got := x.rights(r.id); got != r.want {
				t.Errorf("%s: %q, want %q", r.id, got, r.want)
			}
		}
		x.checkWorld()
		x.keptFree()
		if err := x.w.CheckClaims(); err != nil {
			t.Error(err)
		}
	}
	for i, r := range rows {
		if x.submit(r.project, r.id, r.count, r.changes...); i > 0 {
			x.decide("states") // whatever claim has taken its place
		}
	}
	check()

	// What idles of the reservation is lent, to nobody but its borrowers, and the next stage's instances use it again.
	x.ends("wf/1/more", 1)
	x.decide("late")
	x.decide("borrows")
	lent := rows[10].want
	rows[8].want, rows[10].want = "", lent+"; 2: "+borrows
	check()
	rows = append(rows, rows[8])
	rows[12].id, rows[12].want, rows[10].want = "wf/1/again", "1: "+reserved, lent
	x.submit("chip", "wf/1/again", 1, append(of("a", 2), inStage)...)
	check()
}
