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
func Due(w *world.World, owner string, allowed func(job structs.NamespacedID, allocID string) bool) []Allocs {
	if !MayRaise(w, owner) {
		return nil
	}
	if name, project := strings.CutPrefix(owner, structs.ProjectOwnerPrefix); project {
		return dueOfProject(w, name, allowed)
	}
	list, looks := dueList{edit: w.Edit(), use: Use, allowed: allowed}, 0
	world.Raisable(w, owner, func(u *world.Usage) bool {
		looks++
		list.look(u)
		return looks < maxRaiseLooks
	})
	return list.due
}

// dueList gathers what may be raised.
type dueList struct {
	edit    *world.Edit
	use     func(*world.Edit, *world.Usage) *world.Usage // as it is raised; nil: it is not
	allowed func(job structs.NamespacedID, allocID string) bool
	due     []Allocs
	at      map[structs.NamespacedID]int
	gangs   map[world.GangName]bool // looked at
}

// look adds a usage, or its gang, if it may be raised.
func (l *dueList) look(u *world.Usage) {
	job := structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}
	if g, gang := u.Owner.Gang(); gang {
		if !l.gangs[g] && l.allowed(job, u.ID) {
			for _, id := range l.raiseGang(g) {
				l.add(job, id)
			}
		}
		world.PutInto(&l.gangs, g, true)
		return
	}
	if raised := l.use(l.edit, u); raised != nil && l.allowed(job, u.ID) {
		world.Take(l.edit, raised)
		l.add(job, u.ID)
	}
}

func (l *dueList) add(job structs.NamespacedID, id string) {
	i, known := l.at[job]
	if !known {
		i = len(l.due)
		world.PutInto(&l.at, job, i)
		l.due = append(l.due, Allocs{Job: job})
	}
	l.due[i].IDs = append(l.due[i].IDs, id)
}

// raiseGang raises the members of a gang that can be, if as many use a claim then as must run together, and returns the IDs of all members;
// else the edit is as it was.
func (l *dueList) raiseGang(g world.GangName) (all []string) {
	var ids []string
	was := world.GangMembers(l.edit, g)
	for _, u := range was {
		all = append(all, u.ID)
		if u.Guaranteed() {
			continue
		}
		if raised := l.use(l.edit, u); raised != nil {
			world.Take(l.edit, raised)
			ids = append(ids, u.ID)
		}
	}
	if len(ids) > 0 && world.GangClaim(world.GangMembers(l.edit, g)) != "" {
		return all
	}
	for _, u := range was {
		if slices.Contains(ids, u.ID) {
			world.Take(l.edit, u)
		}
	}
	return nil
}
