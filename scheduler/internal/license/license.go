// Package license counts the licenses of a region, who uses them, and what workflows have reserved of them (docs/design/semantics.md, part 5). A license is a
// counter that belongs to no node: how many there are is stated, how many are used follows from the allocations that count. It knows neither nodes nor
// what else allocations use.
package license

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/tree"
	"github.com/nomadish/nomadish/structs"
)

// Counter is how many there are of a license, and how many are used: more than there are, where their count was lowered since.
type Counter struct {
	Exists bool // else allocations use it that were placed before it was deleted
	Count  int64
	Used   int64
}

// Free returns how many are left.
func (c Counter) Free() int64 { return max(0, c.Count-c.Used) }

// user is an allocation that uses a license.
type user struct{ license, alloc string }

func compareUsers(a, b user) int {
	return cmp.Or(strings.Compare(a.license, b.license), strings.Compare(a.alloc, b.alloc))
}

// Book is the licenses of a World. A nil Book has none, and nobody uses any. Books share what they have in common: a change makes a new one
// unless the token owns it already.
type Book struct {
	owner    *tree.Token
	counters tree.Tree[string, Counter]
	users    tree.Tree[user, int64] // how many of the license an allocation uses
	shares   tree.Tree[shareKey, share]
	claims   tree.Tree[string, *structs.WorkflowClaim] // of the workflows that have reserved licenses
}

// own returns a book that the token may change.
func (b *Book) own(tok *tree.Token) *Book {
	switch {
	case b == nil:
		return &Book{owner: tok, counters: tree.New[string, Counter](strings.Compare), users: tree.New[user, int64](compareUsers),
			shares: tree.New[shareKey, share](compareShares), claims: tree.New[string, *structs.WorkflowClaim](strings.Compare)}
	case b.owner == tok:
		return b
	}
	c := *b
	c.owner = tok
	return &c
}

// Of returns the counter of a license.
func (b *Book) Of(name string) Counter {
	if b == nil {
		return Counter{}
	}
	c, _ := b.counters.Get(name)
	return c
}

// Set states how many there are of a license, and returns the book with it.
func (b *Book) Set(tok *tree.Token, name string, count int64) *Book {
	b = b.own(tok)
	c := b.Of(name)
	c.Exists, c.Count = true, count
	tree.Put(tok, &b.counters, name, c)
	return b
}

// Drop forgets a license, and returns the book without it. What uses it stays counted.
func (b *Book) Drop(tok *tree.Token, name string) *Book {
	b = b.own(tok)
	c := b.Of(name)
	c.Exists, c.Count = false, 0
	b.put(tok, name, c)
	return b
}

// put stores a counter, unless there is nothing to know of it.
func (b *Book) put(tok *tree.Token, name string, c Counter) {
	if c == (Counter{}) {
		tree.Delete(tok, &b.counters, name)
		return
	}
	tree.Put(tok, &b.counters, name, c)
}

// Use counts what an allocation of a job uses, or (-1) counts it no more, and returns the book with that. An allocation without an ID is one that an
// evaluation places: it is in the sums alone.
func (b *Book) Use(tok *tree.Token, alloc, job string, terms *structs.AllocTerms, sign int64) *Book {
	b = b.own(tok)
	for _, r := range terms.Licenses.List() {
		b.share(tok, r.Name, job, terms, sign*r.Count)
		c := b.Of(r.Name)
		c.Used += sign * r.Count
		b.put(tok, r.Name, c)
		switch {
		case alloc == "":
		case sign > 0:
			tree.Put(tok, &b.users, user{r.Name, alloc}, r.Count)
		default:
			tree.Delete(tok, &b.users, user{r.Name, alloc})
		}
	}
	return b
}

// Lacks returns why so many instances cannot have what each of them requests; "": they can.
func (b *Book) Lacks(of *structs.LicenseTerms, instances int64, by *Taker) string {
	for _, r := range of.List() {
		c := b.Of(r.Name)
		if !c.Exists {
			return noSuch(r.Name)
		}
		free, why := b.freeFor(r.Name, c, by)
		if need := times(r.Count, instances); need > free {
			return fmt.Sprintf("license %q: %d needed, %d of %d free%s", r.Name, need, free, c.Count, why)
		}
	}
	return ""
}

func noSuch(name string) string { return fmt.Sprintf("license %q: there is no such license", name) }

// Over returns the first of some licenses of which more is used than there is, beside what idles of reservations; "": none.
func (b *Book) Over(of *structs.LicenseTerms) string {
	for _, r := range of.List() {
		c := b.Of(r.Name)
		for _, s := range b.Shares(r.Name) {
			if !s.Pending {
				c.Used += s.Idle
			}
		}
		if c.Used > c.Count {
			return r.Name
		}
	}
	return ""
}

// Users yields the allocations that use a license, by ID, with how many.
func (b *Book) Users(name string) func(yield func(alloc string, count int64) bool) {
	return func(yield func(string, int64) bool) {
		if b == nil {
			return
		}
		b.users.Ascend(user{license: name}, func(u user, n int64) bool { return u.license == name && yield(u.alloc, n) })
	}
}

// All yields the licenses that there are, or that something uses, by name.
func (b *Book) All(yield func(name string, c Counter) bool) {
	if b != nil {
		b.counters.All(yield)
	}
}

// Diff names what differs between two.
func (b *Book) Diff(o *Book) (out []string) {
	tok := &tree.Token{}
	b, o = b.own(tok), o.own(tok)
	tree.Changes(&b.counters, &o.counters, func(x, y Counter) bool { return x == y }, func(c tree.Change[string, Counter]) {
		out = append(out, fmt.Sprintf("license %s: %+v, not %+v", c.Key, c.Is, c.Was))
	})
	tree.Changes(&b.users, &o.users, func(x, y int64) bool { return x == y }, func(c tree.Change[user, int64]) {
		out = append(out, fmt.Sprintf("license %s of allocation %s: %d, not %d", c.Key.license, c.Key.alloc, c.Is, c.Was))
	})
	tree.Changes(&b.shares, &o.shares, func(x, y share) bool { return x == y }, func(c tree.Change[shareKey, share]) {
		out = append(out, fmt.Sprintf("license %s of workflow %s, job %q: %+v, not %+v", c.Key.license, c.Key.workflow, c.Key.job, c.Is, c.Was))
	})
	return out
}

// times returns a product that does not overflow.
func times(n, by int64) int64 {
	if by > 0 && n > math.MaxInt64/by {
		return math.MaxInt64
	}
	return n * by
}
