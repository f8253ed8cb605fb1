package alloctable

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// rowRef numbers the rows of allocations. It is nobody's business but this
// package's: a restored replica numbers them otherwise. Numbers of rows that are
// gone are used again, so that 32 bits are enough.
type rowRef uint32

func (o rowRef) Compare(other rowRef) int { return cmp.Compare(o, other) }

// Table is the allocations at one index. They are not a table of memdb, where
// each would cost several kilobytes and tens of microseconds:
//
//   - rows are small and stand by rowRef; what a batch shares stands once
//     ([Batch]), what few have stands apart ([extra]),
//   - uuids, a tree of 16-byte keys, has an ID's rowRef and the order of IDs; nonUUIDs
//     does it for IDs that are no UUIDs,
//   - each node, job and evaluation has a [group]: the row references of its rows.
//
// All is persistent: the value of the struct is a snapshot, and an [Edit] copies
// what it changes first. That a group is another object in another table shows that
// some row of it has changed between the two; so it does for rows.
type Table struct {
	rows     persist.Vector[Row]
	uuids    persist.Tree[indexkey.UUID, rowRef]
	nonUUIDs persist.Tree[indexkey.Text, rowRef]
	groups   [GroupKinds]persist.Tree[indexkey.Hashed, *group]
	free     persist.Tree[rowRef, struct{}] // row references below next without a row
	next     rowRef
}

// GroupKind is what the rows of a group have in common.
type GroupKind uint8

// The kinds of groups, with the keys that they go by; GroupKinds is how many there are.
const (
	ByNode GroupKind = iota // indexkey.Hash of the node's ID
	ByJob                   // indexkey.HashJob
	ByEval                  // indexkey.Hash of the evaluation's ID
	GroupKinds
)

// group is the rows of one node, job or evaluation. It has at least one.
type group struct {
	owner *persist.Token
	node  *nodeRef // of a node's, as its newest allocation names it
	rows  persist.Tree[rowRef, struct{}]
}

// label is what a row's group of a kind is called.
func (r *Row) label(kind GroupKind) indexkey.Hashed {
	switch kind {
	case ByNode:
		return r.node.id
	case ByJob:
		return r.batch.job
	default:
		return r.batch.eval
	}
}

func (t *Table) rowRef(id string) (rowRef, bool) {
	if u, ok := indexkey.ParseUUID(id); ok {
		return t.uuids.Get(u)
	}
	return t.nonUUIDs.Get(indexkey.Text(id))
}

// Get returns the row of an ID; nil if there is none.
func (t *Table) Get(id string) *Row {
	if n, found := t.rowRef(id); found {
		return t.rows.Get(uint32(n))
	}
	return nil
}

// Each walks the rows of a group, in an order that must not show.
func (t *Table) Each(kind GroupKind, key indexkey.Hashed, yield func(*Row) bool) {
	if g, found := t.groups[kind].Get(key); found {
		g.rows.Ascend(nil, func(n rowRef, _ struct{}) bool { return yield(t.rows.Get(uint32(n))) })
	}
}

// Sorted returns the rows of a group by ID.
func (t *Table) Sorted(kind GroupKind, key indexkey.Hashed) []*Row {
	g, found := t.groups[kind].Get(key)
	if !found {
		return nil
	}
	out := make([]*Row, 0, g.rows.Len())
	odd := false
	t.Each(kind, key, func(r *Row) bool {
		out, odd = append(out, r), odd || r.nonUUID()
		return true
	})
	if odd {
		slices.SortFunc(out, func(a, b *Row) int { return strings.Compare(a.ID(), b.ID()) })
	} else {
		slices.SortFunc(out, func(a, b *Row) int { return a.id.Compare(b.id) })
	}
	return out
}

// Walk returns the rows whose ID begins with prefix, by ID, or backwards.
func (t *Table) Walk(prefix string, reverse bool, yield func(*Row) bool) {
	odd := t.nonUUIDRows(prefix, reverse)
	before := func(r *Row) bool { // the odd ones that come before it
		for len(odd) > 0 && (odd[0].ID() < r.ID()) != reverse {
			if !yield(odd[0]) {
				return false
			}
			odd = odd[1:]
		}
		return true
	}
	low, ok := indexkey.FillUUID(prefix, '0')
	high, _ := indexkey.FillUUID(prefix, 'f')
	done := false
	visit := func(u indexkey.UUID, n rowRef) bool {
		if u.Compare(low) < 0 || u.Compare(high) > 0 {
			return false
		}
		r := t.rows.Get(uint32(n))
		done = !before(r) || !yield(r)
		return !done
	}
	switch {
	case !ok:
	case reverse:
		t.uuids.Descend(&high, visit)
	default:
		t.uuids.Ascend(&low, visit)
	}
	for _, r := range odd {
		if done || !yield(r) {
			return
		}
	}
}

// nonUUIDRows are the rows whose IDs are no UUIDs that begin with prefix, in order.
func (t *Table) nonUUIDRows(prefix string, reverse bool) []*Row {
	var out []*Row
	from := indexkey.Text(prefix)
	t.nonUUIDs.Ascend(&from, func(id indexkey.Text, n rowRef) bool {
		if !strings.HasPrefix(string(id), prefix) {
			return false
		}
		out = append(out, t.rows.Get(uint32(n)))
		return true
	})
	if reverse {
		slices.Reverse(out)
	}
	return out
}

// All walks all rows by ID.
func (t *Table) All(yield func(*Row) bool) { t.Walk("", false, yield) }

// Allocs returns a group's allocations by ID, without their jobs.
func (t *Table) Allocs(kind GroupKind, key indexkey.Hashed) []*structs.Allocation {
	var out []*structs.Allocation
	for _, r := range t.Sorted(kind, key) {
		out = append(out, r.Whole())
	}
	return out
}

// SameGroup reports whether a group, by its name, is the same in another table: that no
// row of it has changed between the two.
func (t *Table) SameGroup(other *Table, kind GroupKind, name string) bool {
	key := indexkey.Hash(name)
	was, _ := t.groups[kind].Get(key)
	is, _ := other.groups[kind].Get(key)
	return was == is
}
