package cells

import (
	"slices"
)

// Node is what a chain must know of one of its nodes.
type Node struct {
	ID    string
	Sites []string // the names of its site cells by level, the lowest first; "": none of that level
	Ready bool     // it may be used: up, eligible, not draining
	Bad   uint64   // devices that must not be used, or that no claim may have, by number
}

// User is what uses devices without a right to them, so that it can be reclaimed.
type User struct {
	Devices  uint64
	Priority int // 0 to 65534
}

// node is a node of a chain. What is below the line follows from the rest.
type node struct {
	owner *Token
	Node
	bound []Binding // cells within it that are bound
	away  []Binding // those that were bound before the node ceased to be ready
	users []User    // shared, never changed

	parent  string // key of the lowest site cell that it lies in; "": none
	under   bool   // a site cell that it lies in is bound
	free    bool   // all of it is available, and counted so
	avail   uint64 // devices that are healthy and in nothing bound, as counted
	entries []indexed
}

// available returns the devices that are healthy, of a ready node, and in no bound cell.
func (n *node) available(c *Chain) uint64 {
	if !n.Ready || n.under {
		return 0
	}
	avail := c.mask(len(c.levels)-1, 0) &^ n.Bad
	for i := range n.bound {
		avail &^= c.mask(n.bound[i].Kind.Level, n.bound[i].Cell.Index)
	}
	return avail
}

// count adds what a node has to the accounts.
func (e *Edit) count(n *node) {
	e.moved[n.ID] = true
	n.avail = n.available(&e.c)
	n.free = n.avail == e.c.mask(len(e.c.levels)-1, 0)
	e.c.maximal(n.avail, func(level, _ int) { e.c.lines[level].free++ })
	if n.free && n.parent != "" {
		s := e.ownSite(n.parent)
		s.freeParts++
		e.join(s)
	}
}

// uncount takes what a node has from the accounts.
func (e *Edit) uncount(n *node) {
	e.moved[n.ID] = true
	if n.free && n.parent != "" {
		s := e.ownSite(n.parent)
		e.split(s)
		s.freeParts--
	}
	e.c.maximal(n.avail, func(level, _ int) { e.c.lines[level].free-- })
	n.free, n.avail = false, 0
}

// PutNode stores a node. Cells of one that is not ready are unbound, and bound again when it is: those for which their
// owner has no room by then are returned, and are not bound any more. A site cell whose number of nodes changes is
// another kind: what was bound of it is unbound until it has as many nodes again.
func (e *Edit) PutNode(n Node) (lost []Binding) {
	defer e.finish()
	n.Sites = trimSites(n.Sites, len(e.c.sites))
	old := e.ownNode(n.ID)
	switch {
	case old == nil:
		old = &node{owner: e.tok, Node: n}
		e.c.nodes.put(e.tok, n.ID, old)
		e.attach(old)
		e.count(old)
	case !slices.Equal(old.Sites, n.Sites):
		left := old.Sites
		e.vacate(old)
		e.detach(old)
		old.Node = n
		e.attach(old)
		e.count(old)
		defer func() { lost = append(lost, e.rebindSites(left)...) }()
	default:
		if !n.Ready {
			e.vacate(old)
		}
		e.uncount(old)
		old.Node = n
		e.count(old)
	}
	if n.Ready {
		lost = e.rebind(old)
	}
	return lost
}

// DeleteNode forgets a node and what is bound of it. Site cells that have as many nodes again as when they were bound are bound
// again; those for which their owner has no room by then are returned.
func (e *Edit) DeleteNode(id string) (lost []Binding) {
	n := e.ownNode(id)
	if n == nil {
		return nil
	}
	defer e.finish()
	e.vacate(n)
	for _, b := range n.away {
		if b.Pinned {
			e.account(b.Owner, b.Kind).Away--
			e.line(b.Kind).quota++
		}
	}
	e.detach(n)
	for _, old := range n.entries {
		e.unindex(old.way, id)
	}
	e.c.nodes.remove(e.tok, id)
	delete(e.moved, id)
	return e.rebindSites(n.Sites)
}

// SetBad states which devices of a node must not be used, or may be had by no claim. What is bound of it stays so.
func (e *Edit) SetBad(id string, devices uint64) {
	if n, ok := e.c.nodes.get(id); !ok || n.Bad == devices {
		return
	}
	n := e.ownNode(id)
	e.uncount(n)
	n.Bad = devices
	e.count(n)
	e.finish()
}

// SetUsers states what uses devices of a node without a right to them. The list must not be changed afterwards.
func (e *Edit) SetUsers(id string, users []User) {
	n := e.ownNode(id)
	if n == nil {
		return
	}
	n.users = users
	e.reindex(id)
}

// trimSites returns at most so many names, without empty ones at the end.
func trimSites(names []string, most int) []string {
	names = names[:min(len(names), most)]
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	return slices.Clone(names)
}
