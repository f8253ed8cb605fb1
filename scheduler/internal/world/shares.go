package world

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// What each namespace uses opportunistically of each node pool is kept as a sum, and so is what the nodes of a pool have: they are
// moved on with each usage and node, never counted anew.

// shareSums is an edit as what moves the sums on.
type shareSums struct{ e *Edit }

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

// use adds a usage to its namespace's share of a node's pool, or (-1) takes it out. What is guaranteed does not count, nor what system
// and sysbatch instances are known to use.
func (s shareSums) use(n *structs.Node, u *Usage, sign int64) {
	if u.Claims() || u.PerNode() {
		return
	}
	devices := int64(0)
	for _, d := range u.Devices {
		devices += int64(d.Share)
	}
	key := shareKey{poolOf(n), u.Owner.Namespace}
	sum := sumToChange(s.e.tok, &s.e.w.shares, key)
	if sum.add(u.Amount, devices, sign); sum.of == 0 {
		s.e.w.shares.Delete(s.e.tok, key)
	}
}

// node moves the sums on where a node that was known in one form, or not, is now known in another, or not.
func (s shareSums) node(n *NodeState, now *structs.Node, has *Capacity) {
	if n.Node != nil {
		s.pool(poolOf(n.Node), n.Capacity, -1)
	}
	if now != nil {
		s.pool(poolOf(now), has, 1)
	}
	if poolOf(n.Node) == poolOf(now) {
		return
	}
	for _, u := range n.Usages {
		s.use(n.Node, u, -1)
		s.use(now, u, 1)
	}
}

func (s shareSums) pool(name string, has *Capacity, sign int64) {
	devices := 0
	for _, t := range has.Trees {
		devices += len(t.IDs)
	}
	sum := sumToChange(s.e.tok, &s.e.w.pools, name)
	if sum.add(has.Amount, int64(devices)*WholeDevice, sign); sum.of == 0 {
		s.e.w.pools.Delete(s.e.tok, name)
	}
}

// sumToChange returns a sum to change, made if need be.
func sumToChange[K any](tok *Token, sums *Tree[K, *poolSum], key K) *poolSum {
	s, found := sums.Get(key)
	switch {
	case !found:
		s = &poolSum{owner: tok}
	case s.owner == tok:
		return s
	default:
		c := *s
		s = &c
		s.owner = tok
	}
	sums.Put(tok, key, s)
	return s
}

func diffSum(a, b *poolSum) string {
	x, y := *a, *b
	if x.owner, y.owner = nil, nil; x == y {
		return ""
	}
	return fmt.Sprintf("sum %+v, not %+v", x, y)
}
