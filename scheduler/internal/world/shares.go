package world

import (
	"cmp"

	"github.com/nomadish/nomadish/scheduler/internal/shares"
	"github.com/nomadish/nomadish/structs"
)

// shareSums is an edit as what moves the namespaces' and users' shares of pools on.
type shareSums struct{ e *Edit }

// Share returns the dominant share that a namespace has of a node pool by what it runs opportunistically: the largest part of CPU,
// memory, disk or devices of the pool's known nodes, in whole percent, rounded down (semantics part 7).
func (w *World) Share(pool, namespace string) int {
	if pool == structs.NodePoolAll {
		return w.shares.ShareOfAll(namespace)
	}
	return w.shares.Share(pool, namespace)
}

// UserShare returns the same of a user, of all namespaces together. What nobody in particular submitted is a user's like any other, "".
func (w *World) UserShare(pool, user string) int {
	if pool == structs.NodePoolAll {
		return w.shares.UserShareOfAll(user)
	}
	return w.shares.UserShare(pool, user)
}

// poolOf returns the pool that the usages of a node count in; "" while it is not known.
func poolOf(n *structs.Node) string {
	if n == nil {
		return ""
	}
	return cmp.Or(n.NodePool, structs.DefaultNodePool)
}

func amountOf(v Vector, devices int64) shares.Amount {
	return shares.Amount{CPU: v.CPU, MemoryMB: v.MemoryMB, DiskMB: v.DiskMB, Devices: devices}
}

// use adds a usage to its namespace's and its user's share of a node's pool, or (-1) takes it out. What is guaranteed does not count, nor what system
// and sysbatch instances are known to use.
func (s shareSums) use(n *structs.Node, u *Usage, sign int64) {
	if u.Guaranteed() || u.PerNode() {
		return
	}
	devices := int64(0)
	for _, d := range u.Devices {
		devices += int64(d.Share)
	}
	by := shares.By{Namespace: u.Owner.Namespace, User: u.Owner.Terms.User}
	s.e.w.shares.Use(s.e.pages, poolOf(n), by, amountOf(u.Amount, devices), sign)
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
	s.e.w.shares.Node(s.e.pages, name, amountOf(has.Amount, int64(devices)*WholeDevice), sign)
}
