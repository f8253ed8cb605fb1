// Package historytable keeps the history: the records of allocations that have ended, by ID and by end.
//
// A [Table] is the records at one index: an immutable value, of which a copy is a snapshot. An [Edit] is a private form of it
// that can be changed; what [Edit.Commit] returns shares all that was not changed.
//
// The package stands apart because it needs nothing of the other tables, and so that nomadish/state reaches no tree of it by
// itself: the trees must always hold the same records. It decides nothing: nomadish/state says what is recorded and forgotten.
// It must never read a clock or chance, or change a record.
package historytable

import (
	"cmp"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// Table is the history's records at one index, by ID and by end. As an
// alloctable.Table it is a snapshot of itself. Records share the texts of the allocations
// that they are of.
type Table struct {
	ids  persist.Tree[indexkey.UUID, *structs.HistoryRecord]
	odd  persist.Tree[indexkey.Text, *structs.HistoryRecord] // of IDs that are no UUIDs
	ages persist.Tree[age, struct{}]
	runs persist.Tree[run, struct{}] // of those that state who submitted them and have completed
}

// age orders records by their end, then by ID.
type age struct {
	ended  int64 // Unix nanoseconds; what has no end, or one before 1970, has 0
	record *structs.HistoryRecord
}

func ageOf(h *structs.HistoryRecord) age { return age{max(0, h.Ended), h} }

func (a age) Compare(other age) int {
	if a.ended != other.ended {
		return cmp.Compare(a.ended, other.ended)
	}
	return strings.Compare(a.record.AllocID, other.record.AllocID)
}

// run orders records by who submitted them, then by their end.
type run struct {
	submitter string
	age
}

func (r run) Compare(other run) int {
	if by := strings.Compare(r.submitter, other.submitter); by != 0 {
		return by
	}
	return r.age.Compare(other.age)
}

// runOf returns the key of a record among the runs; false: it is not among them.
func runOf(h *structs.HistoryRecord) (run, bool) {
	return run{h.Submitter, ageOf(h)}, h.Submitter != "" && h.Finished()
}

// LatestRuns returns how long the latest completed runs of a user took, the last one first, most of them at most.
func (t *Table) LatestRuns(user string, most int) (out []time.Duration) {
	if user == "" || most <= 0 {
		return nil
	}
	from := run{user + "\x00", age{record: &structs.HistoryRecord{}}} // after all of the user's
	t.runs.Descend(&from, func(r run, _ struct{}) bool {
		if r.submitter == user {
			out = append(out, time.Duration(max(0, r.record.Ended-r.record.Started)))
		}
		return r.submitter >= user && len(out) < most
	})
	return out
}

// Len is the number of records.
func (t *Table) Len() int { return t.ages.Len() }

// Get is the record of an allocation; nil if there is none.
func (t *Table) Get(id string) *structs.HistoryRecord {
	var h *structs.HistoryRecord
	if u, ok := indexkey.ParseUUID(id); ok {
		h, _ = t.ids.Get(u)
	} else {
		h, _ = t.odd.Get(indexkey.Text(id))
	}
	return h
}

// Oldest is the record that ended first; nil if there is none.
func (t *Table) Oldest() *structs.HistoryRecord {
	var first *structs.HistoryRecord
	t.ages.Ascend(nil, func(a age, _ struct{}) bool {
		first = a.record
		return false
	})
	return first
}

// LatestFirst walks the records by their end, backwards.
func (t *Table) LatestFirst(yield func(*structs.HistoryRecord) bool) {
	t.ages.Descend(nil, func(a age, _ struct{}) bool { return yield(a.record) })
}

// All walks the records by ID.
func (t *Table) All(yield func(*structs.HistoryRecord) bool) {
	var odd []*structs.HistoryRecord
	t.odd.Ascend(nil, func(_ indexkey.Text, h *structs.HistoryRecord) bool {
		odd = append(odd, h)
		return true
	})
	done := false
	t.ids.Ascend(nil, func(_ indexkey.UUID, h *structs.HistoryRecord) bool {
		for ; len(odd) > 0 && odd[0].AllocID < h.AllocID && !done; odd = odd[1:] {
			done = !yield(odd[0])
		}
		done = done || !yield(h)
		return !done
	})
	for _, h := range odd {
		if done || !yield(h) {
			return
		}
	}
}

// Edit is a private form of a Table that can be changed.
type Edit struct {
	Table
	tok *persist.Token
}

// Edit returns a private form of the table.
func (t *Table) Edit() *Edit { return t.EditInPlace(persist.NewToken()) }

// EditInPlace is Edit, but what earlier edits with the token have made is changed in place: tables before this one must not be read any more.
func (t *Table) EditInPlace(tok *persist.Token) *Edit { return &Edit{*t, tok} }

// Commit returns what the edit has made. The edit must not be used afterwards.
func (e *Edit) Commit() *Table {
	t := e.Table
	return &t
}

// Put stores a record, in place of one of the same allocation.
func (e *Edit) Put(h *structs.HistoryRecord) {
	if was := e.Get(h.AllocID); was != nil {
		e.forget(was)
	}
	if u, ok := indexkey.ParseUUID(h.AllocID); ok {
		persist.Put(e.tok, &e.ids, u, h)
	} else {
		persist.Put(e.tok, &e.odd, indexkey.Text(h.AllocID), h)
	}
	persist.Put(e.tok, &e.ages, ageOf(h), struct{}{})
	if r, ok := runOf(h); ok {
		persist.Put(e.tok, &e.runs, r, struct{}{})
	}
}

// forget takes a record out of the orders.
func (e *Edit) forget(h *structs.HistoryRecord) {
	persist.Delete(e.tok, &e.ages, ageOf(h))
	if r, ok := runOf(h); ok {
		persist.Delete(e.tok, &e.runs, r)
	}
}

// Remove forgets a record that is there.
func (e *Edit) Remove(h *structs.HistoryRecord) {
	e.forget(h)
	if u, ok := indexkey.ParseUUID(h.AllocID); ok {
		persist.Delete(e.tok, &e.ids, u)
	} else {
		persist.Delete(e.tok, &e.odd, indexkey.Text(h.AllocID))
	}
}
