package world

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// What each namespace uses opportunistically of each node pool is kept as a sum, and so is what the nodes of a pool have: they are
// moved on with each usage and node, never counted anew.

// shareKey is a namespace in a node pool.
type shareKey struct{ pool, namespace string }

func compareShareKeys(a, b shareKey) int {
	return cmp.Or(strings.Compare(a.pool, b.pool), strings.Compare(a.namespace, b.namespace))
}

// poolSum is the sum of what usages use, or of what nodes have.
type poolSum struct {
	owner *Token
	Vector
	devices int64 // thousandths
	of      int   // counts them
}

// percent is the largest part that is used of anything that there is.
func (s *poolSum) percent(used *poolSum) (most int64) {
	for _, d := range [...][2]int64{
		{used.CPU, s.CPU}, {used.MemoryMB, s.MemoryMB}, {used.DiskMB, s.DiskMB}, {used.devices, s.devices},
	} {
		if d[1] > 0 {
			most = max(most, 100*d[0]/d[1])
		}
	}
	return most
}

func (s *poolSum) add(v Vector, devices, sign int64) {
	s.Vector = s.Plus(Vector{sign * v.CPU, sign * v.MemoryMB, sign * v.DiskMB})
	s.devices += sign * devices
	s.of += int(sign)
}

// Share returns the dominant share that a namespace has of a node pool by what it runs opportunistically: the largest part of CPU,
// memory, disk or devices of the pool's known nodes, in whole percent, rounded down (semantics part 7).
func (w *World) Share(pool, namespace string) int {
	if pool != structs.NodePoolAll {
		has, some := w.pools.Get(pool)
		used, any := w.shares.Get(shareKey{pool, namespace})
		if !some || !any {
			return 0
		}
		return int(has.percent(used))
	}
	var has, used poolSum
	for name, of := range w.pools.All {
		has.add(of.Vector, of.devices, 1)
		if u, any := w.shares.Get(shareKey{name, namespace}); any {
			used.add(u.Vector, u.devices, 1)
		}
	}
	return int(has.percent(&used))
}

// poolOf returns the pool that the usages of a node count in; "" while it is not known.
func poolOf(n *structs.Node) string {
	if n == nil {
		return ""
	}
	return cmp.Or(n.NodePool, structs.DefaultNodePool)
}

// countShare adds a usage to its namespace's share of a node's pool, or (-1) takes it out. What is guaranteed does not count.
func (e *Edit) countShare(n *structs.Node, u *Usage, sign int64) {
	if u.claimed() {
		return
	}
	devices := int64(0)
	for _, d := range u.Devices {
		devices += int64(d.Share)
	}
	key := shareKey{poolOf(n), u.Owner.Namespace}
	s := sumToChange(e, &e.w.shares, key)
	if s.add(u.Amount, devices, sign); s.of == 0 {
		e.w.shares.Delete(e.tok, key)
	}
}

// countPool moves the sums on where a node that was known in one form, or not, is now known in another, or not.
func (e *Edit) countPool(s *NodeState, now *structs.Node, has *Capacity) {
	if s.Node != nil {
		e.addPool(poolOf(s.Node), s.Capacity, -1)
	}
	if now != nil {
		e.addPool(poolOf(now), has, 1)
	}
	if poolOf(s.Node) == poolOf(now) {
		return
	}
	for _, u := range s.Usages {
		e.countShare(s.Node, u, -1)
		e.countShare(now, u, 1)
	}
}

func (e *Edit) addPool(name string, has *Capacity, sign int64) {
	devices := 0
	for _, t := range has.Trees {
		devices += len(t.IDs)
	}
	s := sumToChange(e, &e.w.pools, name)
	if s.add(has.Amount, int64(devices)*WholeDevice, sign); s.of == 0 {
		e.w.pools.Delete(e.tok, name)
	}
}

// sumToChange returns a sum to change, made if need be.
func sumToChange[K any](e *Edit, sums *Tree[K, *poolSum], key K) *poolSum {
	s, found := sums.Get(key)
	switch {
	case !found:
		s = &poolSum{owner: e.tok}
	case s.owner == e.tok:
		return s
	default:
		c := *s
		s = &c
		s.owner = e.tok
	}
	sums.Put(e.tok, key, s)
	return s
}

func diffSum(a, b *poolSum) string {
	x, y := *a, *b
	if x.owner, y.owner = nil, nil; x == y {
		return ""
	}
	return fmt.Sprintf("sum %+v, not %+v", x, y)
}
