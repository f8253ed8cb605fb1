package memtable

import "github.com/nomadish/nomadish/structs"

// Entry is a log entry that is being applied, as what changes rows.
type Entry struct {
	Rows  Reader
	Index uint64
	Now   int64 // the entry's time, in Unix nanoseconds
	// Put stores a row of a table, Drop removes one.
	Put, Drop func(table string, row any)
}

// OrNil returns a row as an interface. A nil pointer becomes a nil interface.
func OrNil[T any](row *T) any {
	if row == nil {
		return nil
	}
	return row
}

// Missing is the error of a row that does not exist.
func Missing(what, id string) error {
	return structs.Errorf(structs.CodeNotFound, "%s %q: not found", what, id)
}
