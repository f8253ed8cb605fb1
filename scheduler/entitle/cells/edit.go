package cells

import (
	"slices"
)

// Edit is a private, mutable form of a Chain. It is for one goroutine; abandoning it costs nothing.
type Edit struct {
	c     Chain
	tok   *Token
	moved map[string]bool // nodes whose entries in the index may have changed
	sites map[string]bool // site cells that began or ceased to be free
	stale bool            // everything has to be counted anew
}

// Edit returns an edit of the chain, which itself stays as it is.
func (c *Chain) Edit() *Edit {
	e := &Edit{c: *c, tok: &Token{}, moved: map[string]bool{}, sites: map[string]bool{}}
	e.c.lines = slices.Clone(c.lines)
	return e
}

// Chain returns the chain as edited so far. The edit may go on: what it changes then, later chains alone have.
func (e *Edit) Chain() *Chain {
	c := e.c
	c.lines = slices.Clone(c.lines)
	e.tok = &Token{}
	return &c
}

// line returns the account of a kind, made if need be.
func (e *Edit) line(k Kind) *line {
	at, found := e.c.lines.search(k)
	if !found {
		e.c.lines = slices.Insert(e.c.lines, at, line{kind: k})
	}
	return &e.c.lines[at]
}

// drop forgets the account of a kind of site cells that nothing is left of.
func (e *Edit) drop(k Kind) {
	if at, found := e.c.lines.search(k); found && !e.c.within(k) {
		if l := &e.c.lines[at]; l.cells == 0 && l.quota == 0 && l.free == 0 {
			e.c.lines = slices.Delete(e.c.lines, at, at+1)
		}
	}
}

// finish moves on what follows from a change: the index, and which cells are doomed.
func (e *Edit) finish() {
	if e.stale {
		e.recount()
	}
	for key := range e.sites {
		e.touchNodesOf(key)
	}
	for id := range e.moved {
		e.reindex(id)
	}
	clear(e.moved)
	clear(e.sites)
	e.doom()
}

func (e *Edit) ownNode(id string) *node {
	n, ok := e.c.nodes.get(id)
	if !ok {
		return nil
	}
	if n.owner != e.tok {
		own := *n
		own.owner = e.tok
		n = &own
		e.c.nodes.put(e.tok, id, n)
	}
	return n
}

func (e *Edit) ownSite(key string) *site {
	s, ok := e.c.groups.get(key)
	if !ok {
		return nil
	}
	if s.token != e.tok {
		own := *s
		own.token = e.tok
		s = &own
		e.c.groups.put(e.tok, key, s)
	}
	return s
}
