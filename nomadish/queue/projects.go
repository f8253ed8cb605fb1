package queue

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// projectChanged takes in that a project, its slots or a flow is another one, by edit or as the week is over: the requests of its jobs may have another
// standing.
func (b *Broker) projectChanged(snap *state.Snapshot, c *state.Change) {
	names, all := state.ChangedProjects(c)
	concerns := func(id structs.NamespacedID) bool {
		job := snap.Job(nil, id.Namespace, id.ID)
		return job != nil && job.Project != "" && (all || slices.Contains(names, job.Project))
	}
	for id := range b.serial { // order does not matter: ranks decide
		if concerns(id) {
			b.reposition(snap, id, false)
		}
	}
	for id := range b.blocked.ofJob { // nor here
		if b.serial[id] == nil && concerns(id) {
			b.reposition(snap, id, false)
		}
	}
}
