package raise

import (
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// maxRaiseLooks bounds the allocations of an owner that are looked at at once, the oldest first.
const maxRaiseLooks = 4096

// Allocs is allocations of a job that may be raised.
type Allocs struct {
	Job structs.NamespacedID
	IDs []string
}

// Due returns what of an owner may be raised now, the oldest first, and allowed (semantics part 2, "Raise"). It costs nothing while
// the owner has no cell free.
func Due(w *world.World, owner string, allowed func(job structs.NamespacedID, allocID string) bool) (list []Allocs) {
	if !w.MayRaise(owner) {
		return nil
	}
	edit, at, looks := w.Edit(), map[structs.NamespacedID]int{}, 0
	world.Raisable(w, owner, func(u *world.Usage) bool {
		looks++
		if _, gang := u.Owner.Gang(); gang {
			return looks < maxRaiseLooks
		}
		raised := Use(edit, u)
		job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
		if raised == nil || !allowed(job, u.ID) {
			return looks < maxRaiseLooks
		}
		world.Take(edit, raised)
		i, known := at[job]
		if !known {
			i = len(list)
			at[job], list = i, append(list, Allocs{Job: job})
		}
		list[i].IDs = append(list[i].IDs, u.ID)
		return looks < maxRaiseLooks
	})
	return list
}
