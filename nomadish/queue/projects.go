package queue

import (
	"cmp"
	"maps"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// changedProjects are the projects of which changes that came at once made something else, by edit or as the week is over. A week may turn for all
// projects in one entry, so the jobs are looked at once for all of them.
type changedProjects struct {
	names map[string]bool
	all   bool
}

// note adds the projects that a change concerns.
func (p *changedProjects) note(c *state.Change) {
	if c.Kind != state.KindProject {
		return
	}
	names, all := state.ChangedProjects(c)
	p.all = p.all || all
	for _, name := range names {
		if p.names == nil {
			p.names = map[string]bool{}
		}
		p.names[name] = true
	}
}

// projectsChanged takes in that projects, their slots or flows are others: the requests of their jobs may have another standing.
func (b *Broker) projectsChanged(snap *state.Snapshot, p *changedProjects) {
	if !p.all && len(p.names) == 0 {
		return
	}
	concerns := func(id structs.NamespacedID) bool {
		job := snap.Job(nil, id.Namespace, id.ID)
		return job != nil && job.Project != "" && (p.all || p.names[job.Project])
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
		if before.Shared.Terms.Claim == structs.ClaimSlots {
			r.slotNodes[was.NodeID()] = true
		}
	}
}

// mayRaise returns the projects of which something may be raised: their slots came free, or those of a node on which they run beside theirs.
func (r *releases) mayRaise() map[string]bool {
	w := r.snap.World()
	names := map[string]bool{}
	if r.allProjects || len(r.slotNodes) > maxPositions {
		for _, name := range w.Slots().Projects() {
			names[name] = true
		}
		return names
	}
	maps.Copy(names, r.projects)
	for id := range r.slotNodes { // order does not matter: a set
		for _, name := range scheduler.ProjectsBeside(w, id) {
			names[name] = true
		}
	}
	return names
}

// dueBehind has that of the requests like one that found no room decided, too, that waits for the longest time, if it does so for longer: others may have
// to leave for that already, and not yet for the first.
func (b *blocked) dueBehind(w *entry) {
	if !w.entitled || w.kind != structs.ClaimRankSlots {
		return
	}
	oldest := w
	for of := range w.group.users { // the oldest counts, by ID if several are
		for _, o := range of.list {
			if cmp.Or(cmp.Compare(o.eval.CreateTime, oldest.eval.CreateTime), strings.Compare(o.eval.ID, oldest.eval.ID)) < 0 {
				oldest = o
			}
		}
	}
	if oldest != w {
		b.due.put(oldest)
		b.gates.poke()
	}
}
