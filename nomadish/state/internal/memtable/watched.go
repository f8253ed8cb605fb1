package memtable

import "iter"

// Watched reads the tables of a snapshot, and watches what is read.
type Watched struct {
	Rows Reader
	// Watch takes what is closed when what was read of a table changes; nil: nothing is watched.
	Watch func(table string, changed <-chan struct{})
}

// One returns the row that a unique index names; nil if there is none.
func One[T any](r Watched, table, index string, key ...any) *T {
	row, changed := First[T](r.Rows, table, index, key...)
	if r.Watch != nil {
		r.Watch(table, changed)
	}
	return row
}

// NamedIn is One by the parts of a whole key of ByID, all of them texts.
func NamedIn[T any](r Watched, table string, parts ...string) *T {
	if r.Watch == nil {
		return Named[T](r.Rows, table, parts...)
	}
	return One[T](r, table, ByID, rawKey(Key(parts...)))
}

// Many walks an index in key order, or backwards. The range is watched as one.
func Many[T any](r Watched, reverse bool, table, index string, key ...any) iter.Seq[*T] {
	if r.Watch != nil {
		r.Watch(table, Open(r.Rows, false, table, index, key...).WatchCh())
	}
	return Rows[T](r.Rows, reverse, table, index, key...)
}
