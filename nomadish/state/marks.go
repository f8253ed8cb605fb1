package state

import (
	"fmt"
	"slices"
)

// mark records when a table was changed last, and notifies waiters when it changes again. Marks are no table of memdb: nearly every entry
// changes several, and each would cost it as much as a row that somebody reads.
type mark struct {
	index   uint64
	changed chan struct{} // closed when a view with a newer mark is published
}

// marks are those of all tables, in the order of tableNames.
type marks [28]mark

// tableNames are the tables that have marks, in the order in which a snapshot has them.
var tableNames = func() []string {
	names := Tables()
	slices.Sort(names)
	if len(names) != len(marks{}) { // both are constants: this is a mistake in one of them
		panic(fmt.Sprintf("state: %d tables, and marks for %d", len(names), len(marks{})))
	}
	return names
}()

// tableSet is the tables that an entry has changed.
type tableSet [len(marks{})]bool

func (s *tableSet) add(table string) { s[tableNumber(table)] = true }

func (s *tableSet) has(table string) bool { return s[tableNumber(table)] }

// tableNumber is the place of a table's mark.
func tableNumber(table string) int {
	at, found := slices.BinarySearch(tableNames, table)
	if !found { // our own constants are looked up, nothing from outside
		panic("state: no table is called " + table)
	}
	return at
}

func newMarks() (m marks) {
	for i := range m {
		m[i].changed = make(chan struct{})
	}
	return m
}

// set notes that an entry has changed tables. What was published last are the marks was.
func (m *marks) set(tables *tableSet, index uint64, was *marks) {
	for i, changed := range tables {
		if !changed {
			continue
		}
		m[i].index = index
		if m[i].changed == was[i].changed {
			m[i].changed = make(chan struct{})
		}
	}
}

// wake notifies waiters of the tables whose mark has changed.
func (m *marks) wake(now *marks) {
	for i := range m {
		if m[i].changed != now[i].changed {
			close(m[i].changed)
		}
	}
}

// put restores a mark from a snapshot.
func (m *marks) put(r *indexRow) error {
	at, found := slices.BinarySearch(tableNames, r.Table)
	if !found {
		return fmt.Errorf("import the index of table %q: there is no such table; the snapshot was written by a newer version", r.Table)
	}
	m[at].index = r.Index
	return nil
}

// all returns the marks as rows, by table.
func (m *marks) all(yield func(*indexRow) bool) {
	for i, name := range tableNames {
		if m[i].index > 0 && !yield(&indexRow{Table: name, Index: m[i].index}) {
			return
		}
	}
}
