// Package gangrank numbers the members of a gang: who stands for a member has its rank, and no rank is given twice (docs/design/semantics.md, part 2). It
// knows nothing of how a gang is placed.
package gangrank

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/structs"
)

// Member is a member that gets a rank: one that has a node now, or one that has completed.
type Member struct {
	Group    string
	Index    int
	Host     string
	Rank     int
	Instance *structs.Instance // nil: it has completed
}

// Ranks are the ranks of a gang.
type Ranks struct {
	Hosts []string // by rank; "": nobody has it
	waits map[int]bool
	next  int // all ranks below it are taken, or somebody waits for them
}

// Taken reports whether somebody has a rank.
func (r *Ranks) Taken(rank int) bool {
	return rank < 0 || (rank < len(r.Hosts) && r.Hosts[rank] != "")
}

// Wait keeps a rank for one that finds no room yet.
func (r *Ranks) Wait(rank int) {
	if r.waits == nil {
		r.waits = map[int]bool{}
	}
	r.waits[rank] = true
}

// Free returns the lowest rank that nobody has; where others run already, one that nobody waits for.
func (r *Ranks) Free(joins bool) int {
	for r.Taken(r.next) || (joins && r.waits[r.next]) {
		r.next++
	}
	return r.next
}

// Give gives a rank to whoever is reached at a host.
func (r *Ranks) Give(rank int, host string) {
	for len(r.Hosts) <= rank {
		r.Hosts = append(r.Hosts, "")
	}
	r.Hosts[rank] = host
}

// CloseUp assigns the ranks that nobody has to those of the highest ranks, in a gang that starts with less than all of its members: no peer looks for
// one that is not there. What has completed stays.
func (r *Ranks) CloseUp(placed []Member) {
	slices.SortFunc(placed, func(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) })
	for last := len(placed) - 1; last >= 0; last-- {
		c := &placed[last]
		rank := slices.Index(r.Hosts, "")
		if c.Instance == nil {
			continue
		}
		if rank < 0 || rank > c.Rank {
			return
		}
		r.Hosts[c.Rank], c.Rank = "", rank
		r.Hosts[rank] = c.Host
		for len(r.Hosts) > 0 && r.Hosts[len(r.Hosts)-1] == "" {
			r.Hosts = r.Hosts[:len(r.Hosts)-1]
		}
	}
}

// Same reports whether an allocation was placed in a gang of as many as are wanted now, so that its rank is one of this gang. Its version is not
// enough: what another count left running was moved to the newest version in place.
func Same(gw *reconcile.GangWork, a *structs.Allocation) bool {
	all, rigid := 0, true
	for _, g := range gw.Spec.Groups {
		all, rigid = all+g.Group.Count, rigid && g.Rigid
	}
	if rigid && a.Gang.Size != all {
		return false
	}
	for _, work := range gw.Works {
		var g *structs.TaskGroup
		if a.Job != nil {
			g = a.Job.LookupTaskGroup(work.Group.Name)
		}
		if g == nil || g.Count != work.Group.Count || leastOf(g) != leastOf(work.Group) {
			return false
		}
	}
	return true
}

// leastOf is the min that a group states for its gang; 0: all of it.
func leastOf(g *structs.TaskGroup) int {
	if g.Gang == nil {
		return 0
	}
	return g.Gang.Min
}

// Sort sorts members by the order of the gang's groups and by index.
func Sort(gw *reconcile.GangWork, list []Member) {
	position := func(group string) int {
		return slices.IndexFunc(gw.Works, func(w *reconcile.GroupWork) bool { return w.Group.Name == group })
	}
	slices.SortStableFunc(list, func(a, b Member) int {
		return cmp.Or(cmp.Compare(position(a.Group), position(b.Group)), cmp.Compare(a.Index, b.Index))
	})
}

// Of returns the rank of an allocation.
func Of(a *structs.Allocation) int {
	if a.Gang == nil {
		return 0
	}
	return a.Gang.Rank
}
