package workflow

import (
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var countFamily = telemetry.Named("nomad.workflow.count")

// Metrics adds how many workflows there are in each state to a batch, as a snapshot of the state has them.
func Metrics(b *telemetry.Batch, snap *state.Snapshot) {
	count := map[string]int{}
	for r := range snap.Workflows(nil).List(structs.AllNamespaces, "", false) {
		count[r.State]++
	}
	for _, state := range structs.WorkflowStates() {
		b.Add(countFamily, float64(count[state]), telemetry.Labels("state", state))
	}
}
