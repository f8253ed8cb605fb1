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
			b.reposition(snap, id, true)
		}
	}
	for id := range b.blocked.ofJob { // nor here
		if b.serial[id] == nil && concerns(id) {
			b.reposition(snap, id, true)
		}
	}
}

// noteProject notes that an allocation of a project ended, was suspended, or uses its slots no more.
func (r *releases) noteProject(was, now *state.AllocRow) {
	if was == nil || was.Terminal() {
		return
	}
	before := was.Resources()
	if before == nil || before.Shared.Terms == nil || before.Shared.Terms.Slots == nil {
		return
	}
	if now == nil || now.Terminal() || now.Suspended() || now.Resources() != before {
		r.projects[before.Shared.Terms.Slots.Project] = true
	}
}
