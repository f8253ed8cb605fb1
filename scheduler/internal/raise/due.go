package raise

import (
	"slices"
	"strings"

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
	if !MayRaise(w, owner) {
		return nil
	}
	if name, project := strings.CutPrefix(owner, structs.ProjectOwnerPrefix); project {
		return dueOfProject(w, name, allowed)
	}
	edit, at, looks := w.Edit(), map[structs.NamespacedID]int{}, 0
	gangs := map[world.GangName]bool{} // looked at
	add := func(job structs.NamespacedID, id string) {
		i, known := at[job]
		if !known {
			i = len(list)
			at[job], list = i, append(list, Allocs{Job: job})
		}
		list[i].IDs = append(list[i].IDs, id)
	}
	world.Raisable(w, owner, func(u *world.Usage) bool {
		looks++
		job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
		if g, gang := u.Owner.Gang(); gang {
			if !gangs[g] && allowed(job, u.ID) {
				for _, id := range raiseGang(edit, g) {
					add(job, id)
				}
			}
			gangs[g] = true
			return looks < maxRaiseLooks
		}
		raised := Use(edit, u)
		if raised == nil || !allowed(job, u.ID) {
			return looks < maxRaiseLooks
		}
		world.Take(edit, raised)
		add(job, u.ID)
		return looks < maxRaiseLooks
	})
	return list
}

// raiseGang raises the members of a gang that can be, if as many use a claim then as must run together, and returns the IDs of all members;
// else the edit is as it was.
func raiseGang(e *world.Edit, g world.GangName) (all []string) {
	var ids []string
	was := world.GangMembers(e, g)
	for _, u := range was {
		all = append(all, u.ID)
		if u.Guaranteed() || len(u.Devices) == 0 {
			continue
		}
		if raised := Use(e, u); raised != nil {
			world.Take(e, raised)
			ids = append(ids, u.ID)
		}
	}
	if len(ids) > 0 && world.GangCovered(world.GangMembers(e, g), (*world.Usage).Guaranteed) {
		return all
	}
	for _, u := range was {
		if slices.Contains(ids, u.ID) {
			world.Take(e, u)
		}
	}
	return nil
}
