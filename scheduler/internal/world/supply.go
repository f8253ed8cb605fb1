package world

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Supply is how many devices the ready nodes of a family have, whoever holds them. It changes when
// nodes come, go, or report other devices, and is then moved on, never counted anew.
type Supply struct {
	owner *Token
	// Node is one of those that are in the family or were, for what all of them have in common.
	Node  *structs.Node
	nodes int // that count
	// Devices counts those that are well, by the groups of the Node's devices, which are the same
	// for all nodes of the family.
	Devices []int64
}

// Supplies returns the supply of each family whose nodes have devices.
func Supplies(w *World) *Tree[string, *Supply] { return &w.supply }

// MovedSupply reports whether this edit has changed the supply, and may go on doing so.
func MovedSupply(e *Edit) bool { return e.w.supplier == e.tok }

// supplyOf counts the devices that are well by the groups of a node's devices.
func supplyOf(r *structs.NodeResources, trees []*DeviceTree) []int64 {
	out := make([]int64, len(r.Devices))
	for _, t := range trees {
		for i, group := range t.Groups {
			if !slices.Contains(t.Sick, i) {
				out[slices.Index(r.Devices, group)]++
			}
		}
	}
	return out
}

// supply moves the supply on to what a node has now, if the indexes have it.
func (e *Edit) supply(s *NodeState) {
	was, is := s.supplied, s.Capacity
	if s.Indexed.Family == "" || is != nil && len(is.supply) == 0 {
		is = nil
	}
	s.supplied = is
	switch {
	case was == is, was != nil && is != nil && was.Family == is.Family && slices.Equal(was.supply, is.supply):
		return
	}
	e.w.supplier = e.tok
	if was != nil {
		c := e.supplyToChange(was.Family, nil)
		c.add(was, -1)
		if c.nodes == 0 {
			tree.Delete(e.tok, &e.w.supply, was.Family)
		}
	}
	if is != nil {
		e.supplyToChange(is.Family, s.Node).add(is, 1)
	}
}

// add counts what a node has, or (-1) has no more.
func (c *Supply) add(has *Capacity, sign int) {
	c.nodes += sign
	for i, n := range has.supply {
		c.Devices[i] += int64(sign) * n
	}
}

// supplyToChange returns the supply of a family to change, made of its first node if need be.
func (e *Edit) supplyToChange(family string, first *structs.Node) *Supply {
	c, found := e.w.supply.Get(family)
	switch {
	case !found:
		c = &Supply{owner: e.tok, Node: first, Devices: make([]int64, len(first.NodeResources.Devices))}
	case c.owner == e.tok:
		return c
	default:
		c = &Supply{owner: e.tok, Node: c.Node, nodes: c.nodes, Devices: slices.Clone(c.Devices)}
	}
	tree.Put(e.tok, &e.w.supply, family, c)
	return c
}

func diffSupply(a, b *Supply) string {
	if a.nodes == b.nodes && slices.Equal(a.Devices, b.Devices) {
		return ""
	}
	return fmt.Sprintf("%d nodes have %v devices, not %d with %v", a.nodes, a.Devices, b.nodes, b.Devices)
}
