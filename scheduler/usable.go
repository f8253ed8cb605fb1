package scheduler

import (
	"iter"

	"github.com/nomadish/nomadish/structs"
)

// UsableNodes yields the ready nodes that a group of a job could use by what they are, whatever is free there.
func UsableNodes(w *World, job *structs.Job, group *structs.TaskGroup) iter.Seq[*structs.Node] {
	return func(yield func(*structs.Node) bool) {
		f := newFeasibility(job, group, newMatcher())
		for n := range w.Nodes() {
			if n.Ready() && f.verdict(n).ok() && !yield(n) {
				return
			}
		}
	}
}
