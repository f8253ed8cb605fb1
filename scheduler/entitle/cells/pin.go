package cells

import (
	"fmt"
	"slices"
)

// Pin binds a cell to an owner whether it uses it or not. One that its owner has bound already keeps its uses. It returns
// ErrUnknown, ErrBound, ErrQuota or ErrUnsafe if the cell must not be bound; one whose nodes are not ready is bound when
// they are, and nowhere else meanwhile.
func (e *Edit) Pin(cell Cell, k Kind, name string) error {
	b, away := e.binding(cell, k)
	switch {
	case b != nil && b.Owner == name && b.Pinned:
		return nil
	case b != nil && b.Owner == name:
		if away && e.unheld(name, k) < 1 {
			return fmt.Errorf("%s: %w", name, ErrQuota)
		}
		b.Pinned = true
		if away {
			e.account(name, k).Away++
			e.line(k).quota--
		}
	case b != nil: // on a node that is not ready, too: it is bound again when the node is
		return ErrBound
	case e.c.Ready(cell, k):
		if err := e.Safe(cell, k, name); err != nil {
			return err
		}
		return e.Bind(cell, k, name, true)
	default:
		if e.unheld(name, k) < 1 {
			return fmt.Errorf("%s: %w", name, ErrQuota)
		}
		if e.c.pinnedOf(cell, k) {
			return ErrBound
		}
		return e.Restore(Binding{Cell: cell, Kind: k, Owner: name, Pinned: true})
	}
	e.finish()
	return nil
}

// pinnedOf reports whether a part of a cell that is not ready is pinned, or within its node what it is a part of: what is used of it
// ends, but a pin stays, so that only one of the two could be bound when the cell is ready.
func (c *Chain) pinnedOf(cell Cell, k Kind) bool {
	onNode := func(id string, devices uint64) bool {
		n, ok := c.nodes.get(id)
		return ok && slices.ContainsFunc(slices.Concat(n.bound, n.away), func(b Binding) bool {
			return b.Pinned && c.mask(b.Kind.Level, b.Cell.Index)&devices != 0
		})
	}
	if cell.Site == "" {
		return c.within(k) && onNode(cell.Node, c.mask(k.Level, cell.Index))
	}
	var inSite func(key string) bool
	inSite = func(key string) bool {
		s, ok := c.groups.get(key)
		return ok && (slices.ContainsFunc(s.nodes, func(id string) bool { return onNode(id, ^uint64(0)) }) || slices.ContainsFunc(s.sites, func(key string) bool {
			in, _ := c.groups.get(key)
			return in.bound != nil && in.bound.Pinned || slices.ContainsFunc(in.away, func(b Binding) bool { return b.Pinned }) || inSite(key)
		}))
	}
	return inSite(cell.Site)
}

// unheld returns how many quota cells of an owner are neither bound nor pinned.
func (e *Edit) unheld(name string, k Kind) int {
	a := e.c.Account(name, k)
	return a.Given - a.Bound - a.Away
}

// CellName returns the name of a cell as users write it, the node's given: "n1/socket-0/pcie-1", "rack:r1". Cells are
// counted from 0 within their node.
func (c *Chain) CellName(cell Cell, k Kind, node string) string {
	if cell.Site != "" {
		if s, ok := c.groups.get(cell.Site); ok {
			return s.name
		}
		return cell.Site
	}
	if !c.within(k) || k.Level < 0 {
		return node
	}
	name := node
	for level := len(c.levels) - 2; level >= k.Level; level-- {
		name += fmt.Sprintf("/%s-%d", c.levels[level].Name, cell.Index*c.levels[k.Level].Devices/c.levels[level].Devices)
	}
	return name
}
