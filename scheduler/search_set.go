package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// setCursor is where the search is within one set of nodes.
type setCursor struct {
	name  string
	taken string // the node last taken
	// phase has nil for what was not begun yet: they are large, and few are needed.
	phase []*phaseCursor
	// left are nodes that were taken from and have room left, but only in larger cells
	// than a phase cuts: by the class of the cell that they would cut next.
	left *[scattered + 1][]string
	// weighed are nodes that the policy least-fragmentation has weighed.
	weighed weighing
}

// phaseCursor is where one phase is within one set.
type phaseCursor struct {
	cursor  bucket.Cursor[*nodeState]
	started bool
	done    bool // no further node fits
	tried   int
	head    found // the next node that fits; its node is nil: not looked for yet
}

// again offers the node that a set gave last, in the order of binpack, as long as
// it gives cells no larger than the phase that it was found in.
func (s *search) again(c *setCursor, avoid []string) (found, bool) {
	if c == nil || c.taken == "" || s.policy == policySpread {
		return found{}, false
	}
	if slices.Contains(avoid, c.taken) {
		s.passed = true // another will be the last one taken
		return found{}, false
	}
	n, known := s.e.node(c.taken)
	if !known {
		return found{}, false
	}
	g, ok := s.fits(n)
	phase := c.current()
	if ok && len(s.ask.devices) > 0 && g.cell > s.phases[phase].most {
		ok = false
		if c.left == nil {
			c.left = &[scattered + 1][]string{}
		}
		c.left[g.cell] = append(c.left[g.cell], c.taken)
	}
	if !ok {
		c.taken = ""
	}
	return found{node: n, entry: bucket.Entry[*nodeState]{ID: n.id, At: n.at.at, Value: n}, set: c, phase: phase, grant: g}, ok
}

// cursor is where one of the phases is.
func (c *setCursor) cursor(phase, phases int) *phaseCursor {
	if c.phase == nil {
		c.phase = make([]*phaseCursor, phases)
	}
	if c.phase[phase] == nil {
		c.phase[phase] = &phaseCursor{}
	}
	return c.phase[phase]
}

// current is the first phase of a set that is not done.
func (c *setCursor) current() int {
	for i := range c.phase {
		if c.phase[i] == nil || !c.phase[i].done {
			return i
		}
	}
	return max(0, len(c.phase)-1)
}

// head gives the next node of a set that a phase takes; its node is nil if there is none.
func (s *search) head(c *setCursor, phase int, avoid []string) found {
	if f, ok := s.leftover(c, phase, avoid); ok {
		return f
	}
	p := c.cursor(phase, len(s.phases))
	if p.head.node != nil {
		n := s.e.now(p.head.node)
		if n == p.head.node && len(avoid) == 0 && s.refused(n.node) == "" {
			return p.head
		}
		if f, ok := s.accept(n, phase, avoid); ok {
			f.entry, f.set, f.phase = p.head.entry, c, phase
			p.head = f
			return f
		}
		p.head = found{}
	}
	set, known := s.all().Get(c.name)
	if !known || p.done {
		return found{}
	}
	if !p.started {
		p.started = true
		p.cursor = set.nodes.Search(s.query(&s.phases[phase]))
	}
	for {
		e, ok := p.cursor.Next(&set.nodes)
		if !ok {
			break
		}
		if f, fits := s.accept(s.e.now(e.Value), phase, avoid); fits {
			f.entry, f.set, f.phase = e, c, phase
			p.head = f
			return f
		}
		p.tried++
		if most := s.phases[phase].tries; most > 0 && p.tried >= most {
			s.passed = true
			break
		}
		if s.refusesSet(e.Value.node) {
			break
		}
	}
	p.done = true
	return found{}
}

// leftover finds a node that was taken from before and has cells that a phase cuts. It is
// found again until it is taken: a node of another set may be preferred this time.
func (s *search) leftover(c *setCursor, phase int, avoid []string) (found, bool) {
	most := s.phases[phase].most
	for class := 0; c.left != nil && class <= most; class++ {
		for i := 0; i < len(c.left[class]); {
			n, _ := s.e.node(c.left[class][i])
			g, fits := s.fits(n)
			if fits && g.cell <= most {
				if slices.Contains(avoid, n.id) {
					i++
					continue
				}
				return found{node: n, entry: bucket.Entry[*nodeState]{ID: n.id, At: n.at.at, Value: n}, set: c, phase: phase, grant: g}, true
			}
			c.left[class] = slices.Delete(c.left[class], i, i+1)
			if fits { // it was taken from by others meanwhile
				c.left[g.cell] = append(c.left[g.cell], n.id)
			}
		}
	}
	return found{}, false
}

// query is what a phase asks of an index.
func (s *search) query(p *phase) bucket.Query[*nodeState] {
	q := bucket.Query[*nodeState]{Need: s.ask.need, Policy: bucket.BestFit, Order: s.order}
	if s.policy == policySpread {
		q.Policy = bucket.LeastFit
	}
	if p.min > 0 {
		q.Need[p.dim] = max(q.Need[p.dim], p.min)
	}
	return q
}

// accept tries a node that a phase has come to.
func (s *search) accept(n *nodeState, phase int, avoid []string) (found, bool) {
	if slices.Contains(avoid, n.id) {
		s.passed = true
		return found{}, false
	}
	g, ok := s.fits(n)
	if ok && len(s.ask.devices) > 0 && g.cell > s.phases[phase].most {
		return found{}, false // a later phase comes to it
	}
	return found{node: n, grant: g}, ok
}

// inSet finds the first node of a set that fits.
func (s *search) inSet(c *setCursor, avoid []string) (found, bool) {
	if s.frag != nil {
		if f, ok := s.leastInSet(c, avoid); ok {
			return f, true
		}
		return s.headOf(c, avoid)
	}
	if f, ok := s.again(c, avoid); ok {
		return f, true
	}
	s.keepOrder()
	return s.headOf(c, avoid)
}

// headOf finds the first node of a set that a phase takes, phase after phase.
func (s *search) headOf(c *setCursor, avoid []string) (found, bool) {
	for phase := range s.phases {
		if f := s.head(c, phase, avoid); f.node != nil {
			return f, true
		}
	}
	return found{}, false
}

// walk goes over the nodes of a set that may fit, in the order of the policy, until
// visit returns false.
func (s *search) walk(c *setCursor, visit func(*nodeState) bool) {
	s.e.flush()
	set, known := s.all().Get(c.name)
	if !known {
		return
	}
	cursor := set.nodes.Search(s.query(&anywhere[0]))
	for {
		e, ok := cursor.Next(&set.nodes)
		if !ok || !visit(e.Value) {
			return
		}
	}
}

// mostFirst visits up to limit nodes of a set, those with the most room first.
func (s *search) mostFirst(c *setCursor, limit int, visit func(*nodeState)) {
	s.e.flush()
	set, known := s.all().Get(c.name)
	if !known {
		return
	}
	cursor := set.nodes.Search(bucket.Query[*nodeState]{Policy: bucket.LeastFit})
	for range limit {
		e, ok := cursor.Next(&set.nodes)
		if !ok {
			return
		}
		visit(e.Value)
	}
}
