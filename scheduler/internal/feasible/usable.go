package feasible

import (
	"iter"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// UsableNodes yields the ready nodes that a group of a job could use by what they are, whatever is free there.
func UsableNodes(w *world.World, job *structs.Job, group *structs.TaskGroup) iter.Seq[*structs.Node] {
	return func(yield func(*structs.Node) bool) {
		f := NewFeasibility(job, group, NewMatcher())
		for n := range w.Nodes() {
			if n.Ready() && f.Verdict(n).OK() && !yield(n) {
				return
			}
		}
	}
}
