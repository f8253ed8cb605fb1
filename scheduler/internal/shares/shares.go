// Package shares is what each namespace and each user uses opportunistically of each node pool, and what the nodes of a pool have, as sums that
// are moved on with each usage and node, never counted anew (docs/design/semantics.md, part 7). Copies of Sums share what they have in common.
package shares

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
)

// Amount is what a usage uses, or a node has: MHz, MiB of memory and of disk, and thousandths of devices.
type Amount struct{ CPU, MemoryMB, DiskMB, Devices int64 }

// key is a namespace or a user in a node pool.
type key struct{ pool, name string }

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.pool, b.pool), strings.Compare(a.name, b.name))
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
func (s *sum) percent(used *sum) int {
	most := int64(0)
	for _, d := range [...][2]int64{{used.CPU, s.CPU}, {used.MemoryMB, s.MemoryMB}, {used.DiskMB, s.DiskMB}, {used.Devices, s.Devices}} {
		if d[1] > 0 {
			most = max(most, 100*d[0]/d[1])
		}
	}
	return int(most)
}

// Sums is what is used, by namespace and pool and by user and pool, and what there is, by pool.
type Sums struct {
	used tree.Tree[key, sum]
	// users has nothing of usages without a user: where no job states one, users cost nothing.
	users tree.Tree[key, sum]
	pools tree.Tree[string, sum]
}

// New returns sums of nothing.
func New() Sums {
	return Sums{used: tree.New[key, sum](compareKeys), users: tree.New[key, sum](compareKeys), pools: tree.New[string, sum](strings.Compare)}
}

// Share returns the largest part of CPU, memory, disk or devices of a pool's nodes that a namespace uses, in whole percent, rounded down.
func (s *Sums) Share(pool, namespace string) int { return s.of(pool, namespace, s.ofNamespace) }

// ShareOfAll returns the same of all pools together.
func (s *Sums) ShareOfAll(namespace string) int { return s.ofAll(namespace, s.ofNamespace) }

// UserShare returns the same of a user, whatever namespaces the usages are of. All without a user are one user, "": what they use is what the
// others leave of the namespaces' sums, which takes O(namespaces + users of the pool).
func (s *Sums) UserShare(pool, user string) int { return s.of(pool, user, s.ofUser) }

// UserShareOfAll returns the same of all pools together.
func (s *Sums) UserShareOfAll(user string) int { return s.ofAll(user, s.ofUser) }

func (s *Sums) of(pool, name string, use func(key) Amount) int {
	has, some := s.pools.Get(pool)
	if !some {
		return 0
	}
	return has.percent(&sum{Amount: use(key{pool, name})})
}

func (s *Sums) ofAll(name string, use func(key) Amount) int {
	var has, used sum
	for pool, of := range s.pools.All {
		has.add(of.Amount, 1)
		used.add(use(key{pool, name}), 1)
	}
	return has.percent(&used)
}

func (s *Sums) ofNamespace(k key) Amount {
	used, _ := s.used.Get(k)
	return used.Amount
}

func (s *Sums) ofUser(k key) Amount {
	if k.name != "" {
		used, _ := s.users.Get(k)
		return used.Amount
	}
	var rest sum
	for _, sums := range []struct {
		*tree.Tree[key, sum]
		sign int64
	}{{&s.used, 1}, {&s.users, -1}} {
		sums.Ascend(key{pool: k.pool}, func(of key, used sum) bool {
			if of.pool != k.pool {
				return false
			}
			rest.add(used.Amount, sums.sign)
			return true
		})
	}
	return rest.Amount
}

// By is whose usage it is; User is "" of nobody in particular.
type By struct{ Namespace, User string }

// Use adds a usage on a node of a pool, or (-1) takes it out.
func (s *Sums) Use(tok *tree.Token, pool string, by By, a Amount, sign int64) {
	put(tok, &s.used, key{pool, by.Namespace}, a, sign)
	if by.User != "" {
		put(tok, &s.users, key{pool, by.User}, a, sign)
	}
}

// Node adds what a node of a pool has, or (-1) takes it out.
func (s *Sums) Node(tok *tree.Token, pool string, a Amount, sign int64) {
	put(tok, &s.pools, pool, a, sign)
}

// put moves a sum on, made if need be, and dropped if nothing is left in it.
func put[K any](tok *tree.Token, sums *tree.Tree[K, sum], k K, a Amount, sign int64) {
	s, _ := sums.Get(k)
	if s.add(a, sign); s.of == 0 {
		tree.Delete(tok, sums, k)
		return
	}
	tree.Put(tok, sums, k, s)
}

// Diff names what differs between two.
func (s *Sums) Diff(o *Sums) (out []string) {
	differ(&out, &s.used, &o.used)
	differ(&out, &s.users, &o.users)
	differ(&out, &s.pools, &o.pools)
	return out
}

func differ[K any](out *[]string, a, b *tree.Tree[K, sum]) {
	same := func(x, y sum) bool { return x == y }
	tree.Changes(a, b, same, func(c tree.Change[K, sum]) {
		*out = append(*out, fmt.Sprintf("share %v: sum %+v, not %+v", c.Key, c.Is, c.Was))
	})
}
