// Package shares is what each namespace uses opportunistically of each node pool, and what the nodes of a pool have, as sums that are moved on
// with each usage and node, never counted anew (docs/semantics.md, part 7). Copies of Sums share what they have in common.
package shares

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
)

// Amount is what a usage uses, or a node has: MHz, MiB of memory and of disk, and thousandths of devices.
type Amount struct{ CPU, MemoryMB, DiskMB, Devices int64 }

// key is a namespace in a node pool.
type key struct{ pool, namespace string }

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.pool, b.pool), strings.Compare(a.namespace, b.namespace))
}

// sum is the sum of what usages use, or of what nodes have.
type sum struct {
	Amount
	of int // counts them
}

func (s *sum) add(a Amount, sign int64) {
	s.CPU += sign * a.CPU
	s.MemoryMB += sign * a.MemoryMB
	s.DiskMB += sign * a.DiskMB
	s.Devices += sign * a.Devices
	s.of += int(sign)
}

// percent is the largest part that is used of anything that there is.
func (s *sum) percent(used *sum) (most int64) {
	for _, d := range [...][2]int64{{used.CPU, s.CPU}, {used.MemoryMB, s.MemoryMB}, {used.DiskMB, s.DiskMB}, {used.Devices, s.Devices}} {
		if d[1] > 0 {
			most = max(most, 100*d[0]/d[1])
		}
	}
	return most
}

// Sums is what is used, by namespace and pool, and what there is, by pool.
type Sums struct {
	used  tree.Tree[key, sum]
	pools tree.Tree[string, sum]
}

// New returns sums of nothing.
func New() Sums {
	return Sums{used: tree.New[key, sum](compareKeys), pools: tree.New[string, sum](strings.Compare)}
}

// Share returns the largest part of CPU, memory, disk or devices of a pool's nodes that a namespace uses, in whole percent, rounded down.
func (s *Sums) Share(pool, namespace string) int {
	has, some := s.pools.Get(pool)
	used, any := s.used.Get(key{pool, namespace})
	if !some || !any {
		return 0
	}
	return int(has.percent(&used))
}

// ShareOfAll returns the same of all pools together.
func (s *Sums) ShareOfAll(namespace string) int {
	var has, used sum
	for name, of := range s.pools.All {
		has.add(of.Amount, 1)
		if u, any := s.used.Get(key{name, namespace}); any {
			used.add(u.Amount, 1)
		}
	}
	return int(has.percent(&used))
}

// Use adds a usage of a namespace on a node of a pool, or (-1) takes it out.
func (s *Sums) Use(tok *tree.Token, pool, namespace string, a Amount, sign int64) {
	put(tok, &s.used, key{pool, namespace}, a, sign)
}

// Node adds what a node of a pool has, or (-1) takes it out.
func (s *Sums) Node(tok *tree.Token, pool string, a Amount, sign int64) {
	put(tok, &s.pools, pool, a, sign)
}

// put moves a sum on, made if need be, and dropped if nothing is left in it.
func put[K any](tok *tree.Token, sums *tree.Tree[K, sum], k K, a Amount, sign int64) {
	s, _ := sums.Get(k)
	if s.add(a, sign); s.of == 0 {
		sums.Delete(tok, k)
		return
	}
	sums.Put(tok, k, s)
}

// Diff names what differs between two.
func (s *Sums) Diff(o *Sums) (out []string) {
	differ(&out, &s.used, &o.used)
	differ(&out, &s.pools, &o.pools)
	return out
}

func differ[K any](out *[]string, a, b *tree.Tree[K, sum]) {
	same := func(x, y sum) bool { return x == y }
	a.Changes(b, same, func(c tree.Change[K, sum]) {
		*out = append(*out, fmt.Sprintf("share %v: sum %+v, not %+v", c.Key, c.Is, c.Was))
	})
}
