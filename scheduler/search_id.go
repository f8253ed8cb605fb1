package scheduler

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// idList is nodes in the order of their IDs, for the policies that do not go by room.
// It is filled as far as it is needed: most searches end at the first nodes.
type idList struct {
	nodes []*nodeState // nil: it does not fit any more
	gone  int          // how many are nil
	from  string       // nodes up to this ID have been looked at
	whole bool         // and so have all
	at    int          // where next-fit goes on; where the first that is left may be, of first-fit
}

// Sizes of an idList: how many nodes are added at once, and how many draws find none
// before the policy random gathers all that may fit.
const (
	listStep  = 64
	drawTries = 64
)

// extend adds the next nodes that may fit; false: there are no more.
func (s *search) extend(l *idList) bool {
	if l.whole {
		return false
	}
	had := len(l.nodes)
	l.whole = true
	s.e.base().nodesTree().Ascend(l.from, func(id string, n *nodeState) bool {
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

// mayFit tells whether a node is one that the group may use, by what the indexes show
// of it.
func (s *search) mayFit(n *nodeState) bool {
	if n.node == nil || !n.node.Ready() {
		return false
	}
	if n.hold == nil { // whom a reservation does not bind has more than the indexes show
		for d, need := range s.ask.need {
			if need > 0 && n.at.at[d] < need {
				return false
			}
		}
	}
	return s.f.class(n.node).ok()
}

// inList is first-fit and next-fit. A node that does not fit is not looked at again.
func (s *search) inList(avoid []string) (found, bool) {
	l := s.list
	l.compact()
	start, round := l.at, false
	for i := start; ; i++ {
		if i >= len(l.nodes) && !s.extend(l) {
			if round || s.policy == policyFirstFit {
				return found{}, false
			}
			i, round = 0, true
		}
		if i >= len(l.nodes) || (round && i >= start) {
			return found{}, false
		}
		if l.nodes[i] == nil {
			continue
		}
		n := s.e.now(l.nodes[i])
		if slices.Contains(avoid, n.id) {
			continue
		}
		if g, ok := s.fits(n); ok {
			if s.policy == policyNextFit {
				l.at = i + 1
			}
			return found{node: n, grant: g}, true
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
func (s *search) drawn(avoid []string) (found, bool) {
	l := s.list
	if !l.whole {
		if f, ok := s.draw(avoid); ok {
			return f, true
		}
		s.gather(l)
	}
	left := 0 // nodes at the front that are to be avoided, and may be wanted later
	for left < len(l.nodes) {
		at := left + s.rng.below(len(l.nodes)-left)
		n := s.e.now(l.nodes[at])
		if slices.Contains(avoid, n.id) {
			l.nodes[at], l.nodes[left] = l.nodes[left], l.nodes[at]
			left++
			continue
		}
		if g, ok := s.fits(n); ok {
			return found{node: n, grant: g}, true
		}
		last := len(l.nodes) - 1
		l.nodes[at] = l.nodes[last]
		l.nodes = l.nodes[:last]
	}
	return found{}, false
}

// draw tries nodes drawn of all sets, a larger set more often.
func (s *search) draw(avoid []string) (found, bool) {
	ends, sum := make([]int, len(s.sets)), 0
	for i, c := range s.sets {
		if set, known := s.all().Get(c.name); known {
			sum += set.nodes.Len()
		}
		ends[i] = sum
	}
	if sum == 0 {
		return found{}, false
	}
	for range drawTries {
		at, _ := slices.BinarySearch(ends, s.rng.below(sum)+1)
		set, _ := s.all().Get(s.sets[at].name)
		cursor := set.nodes.Search(bucket.Query[*nodeState]{Policy: bucket.Random, Seed: s.rng.next()})
		e, ok := cursor.Next(&set.nodes)
		if !ok || slices.Contains(avoid, e.ID) {
			continue
		}
		n := s.e.now(e.Value)
		if g, fits := s.fits(n); fits {
			return found{node: n, grant: g}, true
		}
	}
	return found{}, false
}

// gather lists all nodes that may fit. What is reserved comes first or last, as with
// all policies.
func (s *search) gather(l *idList) {
	for _, c := range s.sets {
		s.walk(c, func(n *nodeState) bool {
			l.nodes = append(l.nodes, n)
			return true
		})
	}
	slices.SortFunc(l.nodes, func(a, b *nodeState) int { return strings.Compare(a.id, b.id) })
	l.whole = true
}
