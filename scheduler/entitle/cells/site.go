package cells

import (
	"slices"
	"strconv"
)

// site is a site cell: a rack, a pod.
type site struct {
	token  *Token
	key    string   // the names of the site cells that it lies in, and its own
	name   string   // "rack:r1"
	level  int      // index in the levels of the chain
	parent string   // key of the site cell around it; ""
	nodes  []string // that lie in no smaller one, in order
	sites  []string // keys of the next smaller ones, in order
	bound  *Binding
	away   []Binding // those that were bound while it was complete

	kind      Kind   // as of its present nodes
	parts     []part // what it dissolves into
	freeParts int    // how many of its nodes and sites are free
	free      bool   // all of it is free, and counted so
}

// keysOf returns the keys of the site cells of a node, the lowest first, with their levels and names.
func (c *Chain) keysOf(sites []string) (keys []site) {
	key := ""
	for i := len(sites) - 1; i >= 0; i-- {
		if sites[i] == "" {
			continue
		}
		parent := key
		key += "/" + strconv.Itoa(i) + ":" + strconv.Quote(sites[i])
		keys = append(keys, site{key: key, name: c.sites[i] + ":" + sites[i], level: len(c.levels) + i, parent: parent})
	}
	slices.Reverse(keys)
	return keys
}

// addFree counts a site cell as free n times more: as itself, or as its parts if those of its kind differ.
func (e *Edit) addFree(s *site, n int) {
	if l := e.line(s.kind); !l.mixed {
		l.free += n
		return
	}
	e.addParts(s, n)
}

func (e *Edit) addParts(s *site, n int) {
	for _, p := range s.parts {
		e.line(p.kind).free += n * p.count
	}
}

// join counts a site cell as one if all of it is free by now.
func (e *Edit) join(s *site) {
	if s.free || s.freeParts < len(s.nodes)+len(s.sites) {
		return
	}
	e.sites[s.key] = true
	e.addParts(s, -1)
	e.addFree(s, 1)
	s.free = true
	if s.parent != "" {
		p := e.ownSite(s.parent)
		p.freeParts++
		e.join(p)
	}
}

// split counts a site cell as its parts, if it is free as a whole: one of them ceases to be.
func (e *Edit) split(s *site) {
	if !s.free {
		return
	}
	e.sites[s.key] = true
	if s.parent != "" {
		p := e.ownSite(s.parent)
		e.split(p)
		p.freeParts--
	}
	e.addFree(s, -1)
	e.addParts(s, 1)
	s.free = false
}

// attach adds a node to its site cells. It is not counted.
func (e *Edit) attach(n *node) {
	keys := e.c.keysOf(n.Sites)
	n.parent, n.under = "", false
	if len(keys) == 0 {
		return
	}
	n.parent = keys[0].key
	for i := range keys {
		e.vacateSite(e.ownSite(keys[i].key)) // before any is split: it may join what lies in it
	}
	for i := range keys {
		s := e.ownSite(keys[i].key)
		if s == nil {
			made := keys[i]
			s = &made
			s.token = e.tok
			e.c.groups.put(e.tok, s.key, s)
		} else {
			e.split(s)
		}
		if i == 0 {
			s.nodes = inserted(s.nodes, n.ID)
		} else {
			s.sites = inserted(s.sites, keys[i-1].key)
		}
	}
	e.resize(keys)
}

// detach takes a node, of which nothing is bound any more, out of the accounts and of its site cells.
func (e *Edit) detach(n *node) {
	e.uncount(n)
	keys := e.c.keysOf(n.Sites)
	n.parent, n.under = "", false
	gone := n.ID
	kept := keys[:0:0]
	for i := range keys {
		s := e.ownSite(keys[i].key)
		if gone != "" && i == 0 {
			s.nodes = without(s.nodes, gone)
		} else if gone != "" {
			s.sites = without(s.sites, gone)
		}
		gone = ""
		if len(s.nodes)+len(s.sites) == 0 {
			gone = s.key
			e.forgetSite(s)
			continue
		}
		kept = append(kept, keys[i])
	}
	e.resize(kept)
	if len(kept) > 0 {
		e.join(e.ownSite(kept[0].key))
	}
}

// forgetSite removes a site cell that has no nodes any more.
func (e *Edit) forgetSite(s *site) {
	for _, b := range s.away {
		if b.Pinned {
			e.account(b.Owner, b.Kind).Away--
			e.line(b.Kind).quota++
		}
	}
	e.line(s.kind).cells--
	e.drop(s.kind)
	e.c.groups.remove(e.tok, s.key)
	delete(e.sites, s.key)
}

// resize moves site cells, the lowest first, to the kinds that their nodes make them. None of them is counted as free.
func (e *Edit) resize(keys []site) {
	e.stale = e.stale || len(e.c.sites) > 1 // which kinds are mixed may have changed
	for i := range keys {
		s := e.ownSite(keys[i].key)
		was := s.kind
		e.measure(s)
		if was == s.kind {
			continue
		}
		if was != (Kind{}) {
			e.line(was).cells--
			e.drop(was)
		}
		l := e.line(s.kind)
		l.cells++
		if l.parts == nil {
			l.parts = s.parts
		}
	}
}

// measure finds the kind of a site cell and what it dissolves into, of the site cells in it.
func (e *Edit) measure(s *site) {
	s.parts = nil
	size := len(s.nodes)
	if size > 0 {
		s.parts = addPart(s.parts, e.c.nodeKind(), size)
	}
	for _, key := range s.sites {
		in, _ := e.c.groups.get(key)
		size += in.kind.Size
		if e.line(in.kind).mixed {
			for _, p := range in.parts {
				s.parts = addPart(s.parts, p.kind, p.count)
			}
		} else {
			s.parts = addPart(s.parts, in.kind, 1)
		}
	}
	s.kind = Kind{Level: s.level, Size: size}
}

// recount counts everything anew, level by level.
func (e *Edit) recount() {
	e.stale = false
	for i := range e.c.lines {
		l := &e.c.lines[i]
		l.free, l.cells = 0, 0
		if !e.c.within(l.kind) {
			l.parts, l.mixed = nil, false
		}
	}
	var byLevel [MaxSiteLevels][]*site
	for key := range e.c.groups.all {
		s := e.ownSite(key)
		s.free, s.freeParts = false, 0
		byLevel[s.level-len(e.c.levels)] = append(byLevel[s.level-len(e.c.levels)], s)
	}
	for _, sites := range byLevel {
		for _, s := range sites {
			e.measure(s)
			l := e.line(s.kind)
			if l.cells++; l.cells == 1 {
				l.parts = s.parts
			} else if !slices.Equal(l.parts, s.parts) {
				l.mixed = true
			}
		}
	}
	for id := range e.c.nodes.all {
		n := e.ownNode(id)
		e.count(n)
	}
	for i := len(e.c.lines) - 1; i >= 0; i-- {
		e.drop(e.c.lines[i].kind)
	}
}

// touchNodesOf notes that the entries of all nodes in a site cell may have changed.
func (e *Edit) touchNodesOf(key string) {
	s, ok := e.c.groups.get(key)
	if !ok {
		return
	}
	for _, id := range s.nodes {
		e.moved[id] = true
	}
	for _, in := range s.sites {
		e.touchNodesOf(in)
	}
}

// nodesIn calls yield for every node of a site cell, until it returns false.
func (c *Chain) nodesIn(s *site, yield func(id string) bool) bool {
	for _, id := range s.nodes {
		if !yield(id) {
			return false
		}
	}
	for _, key := range s.sites {
		in, _ := c.groups.get(key)
		if in != nil && !c.nodesIn(in, yield) {
			return false
		}
	}
	return true
}

func inserted(list []string, s string) []string {
	at, found := slices.BinarySearch(list, s)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), at, s)
}

func without(list []string, s string) []string {
	at, found := slices.BinarySearch(list, s)
	if !found {
		return list
	}
	return slices.Delete(slices.Clone(list), at, at+1)
}
