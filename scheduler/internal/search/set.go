package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// SetCursor is where the search is within one set of nodes.
type SetCursor struct {
	Name  string
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
	cursor  bucket.Cursor[*world.NodeState]
	started bool
	done    bool // no further node fits
	tried   int
	head    Found // the next node that fits; its node is nil: not looked for yet
}

// again offers the node that a set returned last, in the order of binpack, as long as
// it provides cells no larger than the phase that it was found in.
func (s *Search) again(c *SetCursor, avoid []string) (Found, bool) {
	if c == nil || c.taken == "" || s.Policy == PolicySpread {
		return Found{}, false
	}
	if slices.Contains(avoid, c.taken) {
		s.passed = true // another will be the last one taken
		return Found{}, false
	}
	n, known := world.StateOf(s.Edit, c.taken)
	if !known {
		return Found{}, false
	}
	g, ok := s.fits(n)
	phase := c.current()
	if ok && len(s.Request.Devices) > 0 && g.cell > s.phases[phase].most {
		ok = false
		if c.left == nil {
			c.left = &[scattered + 1][]string{}
		}
		c.left[g.cell] = append(c.left[g.cell], c.taken)
	}
	if !ok {
		c.taken = ""
	}
	return Found{Node: n, entry: bucket.Entry[*world.NodeState]{ID: n.ID, At: n.Indexed.At, Value: n}, set: c, phase: phase, Grant: g}, ok
}

// cursor is where one of the phases is.
func (s *Search) cursor(c *SetCursor, phase int) *phaseCursor {
	if c.phase == nil {
		c.phase = make([]*phaseCursor, len(s.phases))
	}
	if c.phase[phase] == nil {
		c.phase[phase] = s.cursors.next()
	}
	return c.phase[phase]
}

// current is the first phase of a set that is not done.
func (c *SetCursor) current() int {
	for i := range c.phase {
		if c.phase[i] == nil || !c.phase[i].done {
			return i
		}
	}
	return max(0, len(c.phase)-1)
}

// head returns the next node of a set that a phase takes; its node is nil if there is none.
func (s *Search) head(c *SetCursor, phase int, avoid []string) Found {
	if f, ok := s.leftover(c, phase, avoid); ok {
		return f
	}
	p := s.cursor(c, phase)
	if p.head.Node != nil {
		n := world.Current(s.Edit, p.head.Node)
		if n == p.head.Node && len(avoid) == 0 && s.Refused(n.Node) == "" {
			return p.head
		}
		if f, ok := s.accept(n, phase, avoid); ok {
			f.entry, f.set, f.phase = p.head.entry, c, phase
			p.head = f
			return f
		}
		p.head = Found{}
	}
	set, known := s.AllSets().Get(c.Name)
	if !known || p.done {
		return Found{}
	}
	if !p.started {
		p.started = true
		p.cursor = bucket.Search(&set.Nodes, s.query(&s.phases[phase]))
	}
	for {
		e, ok := p.cursor.Next(&set.Nodes)
		if !ok {
			break
		}
		if f, fits := s.accept(world.Current(s.Edit, e.Value), phase, avoid); fits {
			f.entry, f.set, f.phase = e, c, phase
			p.head = f
			return f
		}
		p.tried++
		if most := s.phases[phase].tries; most > 0 && p.tried >= most {
			s.passed = true
			break
		}
		if s.refusesSet(e.Value.Node) {
			break
		}
	}
	p.done = true
	return Found{}
}

// leftover finds a node that was taken from before and has cells that a phase cuts. It is
// found again until it is taken: a node of another set may be preferred this time.
func (s *Search) leftover(c *SetCursor, phase int, avoid []string) (Found, bool) {
	most := s.phases[phase].most
	for class := 0; c.left != nil && class <= most; class++ {
		for i := 0; i < len(c.left[class]); {
			n, _ := world.StateOf(s.Edit, c.left[class][i])
			g, fits := s.fits(n)
			if fits && g.cell <= most {
				if slices.Contains(avoid, n.ID) {
					i++
					continue
				}
				return Found{Node: n, entry: bucket.Entry[*world.NodeState]{ID: n.ID, At: n.Indexed.At, Value: n}, set: c, phase: phase, Grant: g}, true
			}
			c.left[class] = slices.Delete(c.left[class], i, i+1)
			if fits { // it was taken from by others meanwhile
				c.left[g.cell] = append(c.left[g.cell], n.ID)
			}
		}
	}
	return Found{}, false
}

// query returns the index query of a phase.
func (s *Search) query(p *phase) bucket.Query[*world.NodeState] {
	q := bucket.Query[*world.NodeState]{Need: s.Request.Need, Policy: bucket.BestFit, Order: s.order}
	if s.Policy == PolicySpread {
		q.Policy = bucket.LeastFit
	}
	if p.min > 0 {
		q.Need[p.dim] = max(q.Need[p.dim], p.min)
	}
	return q
}

// accept tries a node that a phase has come to.
func (s *Search) accept(n *world.NodeState, phase int, avoid []string) (Found, bool) {
	if slices.Contains(avoid, n.ID) {
		s.passed = true
		return Found{}, false
	}
	g, ok := s.fits(n)
	if ok && len(s.Request.Devices) > 0 && g.cell > s.phases[phase].most {
		return Found{}, false // a later phase comes to it
	}
	return Found{Node: n, Grant: g}, ok
}

// inSet finds the first node of a set that fits.
func (s *Search) inSet(c *SetCursor, avoid []string) (Found, bool) {
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
func (s *Search) headOf(c *SetCursor, avoid []string) (Found, bool) {
	for phase := range s.phases {
		if f := s.head(c, phase, avoid); f.Node != nil {
			return f, true
		}
	}
	return Found{}, false
}

// walk goes over the nodes of a set that may fit, in the order of the policy, until
// visit returns false.
func (s *Search) walk(c *SetCursor, visit func(*world.NodeState) bool) {
	world.Flush(s.Edit)
	set, known := s.AllSets().Get(c.Name)
	if !known {
		return
	}
	cursor := bucket.Search(&set.Nodes, s.query(&anywhere[0]))
	for {
		e, ok := cursor.Next(&set.Nodes)
		if !ok || !visit(e.Value) {
			return
		}
	}
}

// MostFirst visits up to limit nodes of a set, those with the most room first.
func (s *Search) MostFirst(c *SetCursor, limit int, visit func(*world.NodeState)) {
	world.Flush(s.Edit)
	set, known := s.AllSets().Get(c.Name)
	if !known {
		return
	}
	cursor := bucket.Search(&set.Nodes, bucket.Query[*world.NodeState]{Policy: bucket.LeastFit})
	for range limit {
		e, ok := cursor.Next(&set.Nodes)
		if !ok {
			return
		}
		visit(e.Value)
	}
}
