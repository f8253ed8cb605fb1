package search

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// idList is nodes in the order of their IDs, for the policies that do not go by room.
// It is filled as far as it is needed: most searches end at the first nodes.
type idList struct {
	nodes []*world.NodeState // nil: it does not fit any more
	gone  int                // how many are nil
	from  string             // nodes up to this ID have been looked at
	whole bool               // and so have all
	at    int                // where next-fit goes on; where the first that is left may be, of first-fit
}

// Sizes of an idList: how many nodes are added at once, and how many draws find none
// before the policy random gathers all that may fit.
const (
	listStep  = 64
	drawTries = 64
)

// extend adds the next nodes that may fit; false: there are no more.
func (s *Search) extend(l *idList) bool {
	if l.whole {
		return false
	}
	had := len(l.nodes)
	l.whole = true
	world.NodeStates(world.Base(s.Edit)).Ascend(l.from, func(id string, n *world.NodeState) bool {
		if id == l.from {
			return true
		}
		l.from = id
		if s.mayFit(n) {
			l.nodes = append(l.nodes, n)
		}
		l.whole = len(l.nodes) < had+listStep
		return l.whole
	})
	return len(l.nodes) > had
}

// mayFit reports whether a node is one that the group may use, by what the indexes show of it.
func (s *Search) mayFit(n *world.NodeState) bool {
	if n.Node == nil || !n.Node.Ready() {
		return false
	}
	if n.Reservation == nil && len(n.Parts()) == 0 { // whom a reservation does not bind has more than the indexes show
		for d, need := range s.Request.Need {
			if need > 0 && n.Indexed.At[d] < need {
				return false
			}
		}
	}
	return s.Fit.Class(n.Node).OK()
}

// inList is first-fit and next-fit. A node that does not fit is not looked at again.
func (s *Search) inList(avoid []string) (Found, bool) {
	l := s.list
	l.compact()
	start, round := l.at, false
	for i := start; ; i++ {
		if i >= len(l.nodes) && !s.extend(l) {
			if round || s.Policy == PolicyFirstFit {
				return Found{}, false
			}
			i, round = 0, true
		}
		if i >= len(l.nodes) || (round && i >= start) {
			return Found{}, false
		}
		if l.nodes[i] == nil {
			continue
		}
		n := world.Current(s.Edit, l.nodes[i])
		if slices.Contains(avoid, n.ID) {
			continue
		}
		if g, ok := s.fits(n); ok {
			if s.Policy == PolicyNextFit {
				l.at = i + 1
			}
			return Found{Node: n, Grant: g}, true
		}
		l.nodes[i] = nil
		l.gone++
	}
}

// compact leaves out the nodes that do not fit any more, once they are most of all.
func (l *idList) compact() {
	if l.gone <= len(l.nodes)/2 {
		return
	}
	kept, at := l.nodes[:0], 0
	for i, n := range l.nodes {
		if i == l.at {
			at = len(kept)
		}
		if n != nil {
			kept = append(kept, n)
		}
	}
	if l.at >= len(l.nodes) {
		at = len(kept)
	}
	l.nodes, l.gone, l.at = kept, 0, at
}

// drawn is the policy random: any node that fits, each as likely. A few are drawn of
// all; if none of them fits, those that do are few, and are gathered.
func (s *Search) drawn(avoid []string) (Found, bool) {
	l := s.list
	if !l.whole {
		if f, ok := s.draw(avoid); ok {
			return f, true
		}
		s.gather(l)
	}
	left := 0 // nodes at the front that are to be avoided, and may be wanted later
	for left < len(l.nodes) {
		at := left + s.Random.Below(len(l.nodes)-left)
		n := world.Current(s.Edit, l.nodes[at])
		if slices.Contains(avoid, n.ID) {
			l.nodes[at], l.nodes[left] = l.nodes[left], l.nodes[at]
			left++
			continue
		}
		if g, ok := s.fits(n); ok {
			return Found{Node: n, Grant: g}, true
		}
		last := len(l.nodes) - 1
		l.nodes[at] = l.nodes[last]
		l.nodes = l.nodes[:last]
	}
	return Found{}, false
}

// draw tries nodes drawn of all sets, a larger set more often.
func (s *Search) draw(avoid []string) (Found, bool) {
	ends, sum := make([]int, len(s.Sets)), 0
	for i, c := range s.Sets {
		if set, known := s.AllSets().Get(c.Name); known {
			sum += set.Nodes.Len()
		}
		ends[i] = sum
	}
	if sum == 0 {
		return Found{}, false
	}
	for range drawTries {
		at, _ := slices.BinarySearch(ends, s.Random.Below(sum)+1)
		set, _ := s.AllSets().Get(s.Sets[at].Name)
		cursor := bucket.Search(&set.Nodes, bucket.Query[*world.NodeState]{Policy: bucket.Random, Seed: s.Random.Next()})
		e, ok := cursor.Next(&set.Nodes)
		if !ok || slices.Contains(avoid, e.ID) {
			continue
		}
		n := world.Current(s.Edit, e.Value)
		if g, fits := s.fits(n); fits {
			return Found{Node: n, Grant: g}, true
		}
	}
	return Found{}, false
}

// gather lists all nodes that may fit. What is reserved comes first or last, as with
// all policies.
func (s *Search) gather(l *idList) {
	for _, c := range s.Sets {
		s.walk(c, func(n *world.NodeState) bool {
			l.nodes = append(l.nodes, n)
			return true
		})
	}
	slices.SortFunc(l.nodes, func(a, b *world.NodeState) int { return strings.Compare(a.ID, b.ID) })
	l.whole = true
}
