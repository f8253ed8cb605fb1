package state

import (
	"cmp"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// historyTable is the history's records at one index, by ID and by end. As an
// alloctable.Table it is a snapshot of itself. Records share the texts of the allocations
// that they are of.
type historyTable struct {
	ids  persist.Tree[indexkey.UUID, *structs.HistoryRecord]
	odd  persist.Tree[indexkey.Text, *structs.HistoryRecord] // of IDs that are no UUIDs
	ages persist.Tree[age, struct{}]
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

func (t *historyTable) len() int { return t.ages.Len() }

// get is the record of an allocation; nil if there is none.
func (t *historyTable) get(id string) *structs.HistoryRecord {
	var h *structs.HistoryRecord
	if u, ok := indexkey.ParseUUID(id); ok {
		h, _ = t.ids.Get(u)
	} else {
		h, _ = t.odd.Get(indexkey.Text(id))
	}
	return h
}

// oldest is the record that ended first; nil if there is none.
func (t *historyTable) oldest() *structs.HistoryRecord {
	var first *structs.HistoryRecord
	t.ages.Ascend(nil, func(a age, _ struct{}) bool {
		first = a.record
		return false
	})
	return first
}

// latestFirst walks the records by their end, backwards.
func (t *historyTable) latestFirst(yield func(*structs.HistoryRecord) bool) {
	t.ages.Descend(nil, func(a age, _ struct{}) bool { return yield(a.record) })
}

// all walks the records by ID.
func (t *historyTable) all(yield func(*structs.HistoryRecord) bool) {
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

// historyEdit is a private form of a historyTable that can be changed.
type historyEdit struct {
	historyTable
	tok *persist.Token
}

func (t *historyTable) edit() *historyEdit { return &historyEdit{*t, persist.NewToken()} }

// table is what the edit has made. The edit must not be used afterwards.
func (e *historyEdit) table() *historyTable {
	t := e.historyTable
	return &t
}

// put stores a record, in place of one of the same allocation.
func (e *historyEdit) put(h *structs.HistoryRecord) {
	if was := e.get(h.AllocID); was != nil {
		e.ages.Delete(e.tok, ageOf(was))
	}
	if u, ok := indexkey.ParseUUID(h.AllocID); ok {
		e.ids.Put(e.tok, u, h)
	} else {
		e.odd.Put(e.tok, indexkey.Text(h.AllocID), h)
	}
	e.ages.Put(e.tok, ageOf(h), struct{}{})
}

// remove forgets a record that is there.
func (e *historyEdit) remove(h *structs.HistoryRecord) {
	e.ages.Delete(e.tok, ageOf(h))
	if u, ok := indexkey.ParseUUID(h.AllocID); ok {
		e.ids.Delete(e.tok, u)
	} else {
		e.odd.Delete(e.tok, indexkey.Text(h.AllocID))
	}
}
