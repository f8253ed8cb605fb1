package memtable

import (
	"fmt"
	"iter"

	"github.com/hashicorp/go-memdb"
)

// Reader is what reads go through: a transaction, reading only or a writer's own.
type Reader interface {
	FirstWatch(table, index string, args ...any) (<-chan struct{}, any, error)
	Get(table, index string, args ...any) (memdb.ResultIterator, error)
	GetReverse(table, index string, args ...any) (memdb.ResultIterator, error)
}

// mistake is for errors that only a wrong table or index name can cause.
func mistake(table, index string, err error) {
	panic(fmt.Sprintf("state: read %s by %s: %v", table, index, err))
}

// First is the row that a unique index names, or nil, and what is closed when that changes.
func First[T any](r Reader, table, index string, args ...any) (*T, <-chan struct{}) {
	changed, raw, err := r.FirstWatch(table, index, args...)
	if err != nil {
		mistake(table, index, err)
	}
	row, _ := raw.(*T)
	return row, changed
}

// Get is First for a read that is not watched.
func Get[T any](r Reader, table, index string, args ...any) *T {
	row, _ := First[T](r, table, index, args...)
	return row
}

// Named is Get by the parts of a whole key of ByID, all of them texts.
func Named[T any](r Reader, table string, parts ...string) *T {
	if o, is := r.(*Overlay); is {
		row, _ := o.named(table, parts).(*T)
		return row
	}
	return Get[T](r, table, ByID, rawKey(Key(parts...)))
}

// Count returns how many rows a table has. It walks all of them.
func Count(r Reader, table string) (n int) {
	for it := Open(r, false, table, ByID); it.Next() != nil; {
		n++
	}
	return n
}

// Rows walks an index in key order, or backwards.
func Rows[T any](r Reader, reverse bool, table, index string, args ...any) iter.Seq[*T] {
	return func(yield func(*T) bool) { walk(Open(r, reverse, table, index, args...), yield) }
}

// Open returns the rows of an index in key order, or backwards, whatever their type.
func Open(r Reader, reverse bool, table, index string, args ...any) memdb.ResultIterator {
	find := r.Get
	if reverse {
		find = r.GetReverse
	}
	it, err := find(table, index, args...)
	if err != nil {
		mistake(table, index, err)
	}
	return it
}

func walk[T any](it memdb.ResultIterator, yield func(*T) bool) {
	for raw := it.Next(); raw != nil; raw = it.Next() {
		if row, ok := raw.(*T); ok && !yield(row) {
			return
		}
	}
}
