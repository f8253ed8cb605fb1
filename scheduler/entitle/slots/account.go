package slots

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// NoRow stands for the row of an instance that none holds.
const NoRow = -1

// Instance is an instance of a project that uses slots, or would.
type Instance struct {
	ID string
	Submission
	Cost int // slots, at least 1
	// Start is when it was placed, in Unix nanoseconds.
	Start int64
}

// holding is an instance that uses slots, and the row that holds it.
type holding struct {
	of  *Instance
	row int
}

// Account is what a project has and uses. The zero value has nothing. It is for one goroutine; see Copy.
type Account struct {
	rows  []Row
	order []int     // rows, the most specific first
	of    *Project  // nil: whoever matches a row may use it
	used  []int     // slots, by row
	list  []holding // in order of their start
	// spilled counts those that a less specific row holds than would if it were alone. While it is 0, nobody moves to another row when somebody
	// ends.
	spilled int
}

// Copy returns an account that may be changed without changing a. What they share is never changed.
func (a *Account) Copy() *Account {
	c := *a
	c.used, c.list = slices.Clone(a.used), slices.Clone(a.list)
	return &c
}

// Rows returns the project's rows, and the slots of each that are used. They must not be changed.
func (a *Account) Rows() (rows []Row, used []int) { return a.rows, a.used }

// SetProject states what the project is now, as SetRows does with its rows; nil: there is none any more. Whoever is no member of it, or names a step that
// it has no more, uses no slots, whatever rows match.
func (a *Account) SetProject(p *Project) (lost []*Instance) {
	if a.of = p; p == nil {
		return a.SetRows(nil)
	}
	return a.SetRows(p.Rows)
}

// SetRows gives the project other rows, and returns those that no row holds any more, in order of their start. They are left out of the account.
func (a *Account) SetRows(rows []Row) (lost []*Instance) {
	a.rows, a.order = slices.Clone(rows), inOrder(rows)
	return a.Loaded()
}

// fill finds the row of each instance anew.
func (a *Account) fill() {
	a.used, a.spilled = make([]int, len(a.rows)), 0
	for i := range a.list {
		a.hold(&a.list[i])
	}
}

// hold gives an instance the most specific row with room.
func (a *Account) hold(h *holding) {
	var first int
	if h.row, first = a.find(h.of, a.used); h.row == NoRow {
		return
	}
	a.used[h.row] += h.of.Cost
	if h.row != first {
		a.spilled++
	}
}

// find returns the most specific row with room for an instance, and the most specific one at all.
func (a *Account) find(of *Instance, used []int) (row, first int) {
	row, first = NoRow, NoRow
	if a.of != nil && !a.of.admits(&of.Submission) {
		return row, first
	}
	for _, r := range a.order {
		if !a.rows[r].matches(&of.Submission) {
			continue
		}
		if first == NoRow {
			first = r
		}
		if used[r]+of.Cost <= a.rows[r].Count {
			return r, first
		}
	}
	return row, first
}

// drop takes those out that no row holds.
func (a *Account) drop() (lost []*Instance) {
	a.list = slices.DeleteFunc(a.list, func(h holding) bool {
		if h.row == NoRow {
			lost = append(lost, h.of)
		}
		return h.row == NoRow
	})
	return lost
}

// Holds reports whether a row has room for one more instance.
func (a *Account) Holds(of *Instance) bool {
	row, _ := a.find(of, a.used)
	return row != NoRow
}

// Room returns how many more instances of a kind the rows hold. It counts to most.
func (a *Account) Room(of *Instance, most int) (n int) {
	used := slices.Clone(a.used)
	for n < most {
		row, _ := a.find(of, used)
		if row == NoRow {
			return n
		}
		fit := min(most-n, (a.rows[row].Count-used[row])/max(1, of.Cost))
		used[row] += fit * of.Cost
		n += fit
	}
	return n
}

// HoldsAll reports whether the rows have room for so many more instances of each of several kinds together.
func (a *Account) HoldsAll(kinds []*Instance, of []int) bool {
	used := slices.Clone(a.used)
	for i, kind := range kinds {
		for left := of[i]; left > 0; {
			row, _ := a.find(kind, used)
			if row == NoRow {
				return false
			}
			fit := min(left, (a.rows[row].Count-used[row])/max(1, kind.Cost))
			used[row] += fit * kind.Cost
			left -= fit
		}
	}
	return true
}

func byStart(a, b *Instance) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.ID, b.ID))
}

// at returns where an instance stands, or would.
func (a *Account) at(of *Instance) (int, bool) {
	return slices.BinarySearchFunc(a.list, of, func(h holding, of *Instance) int { return byStart(h.of, of) })
}

// Add lets an instance use slots. It returns those that no row holds then, which are left out: an earlier one may displace later ones, and the
// instance itself may be among them. What was added must not be changed.
func (a *Account) Add(of *Instance) (lost []*Instance) {
	at, there := a.at(of)
	if there {
		return nil
	}
	a.list = slices.Insert(a.list, at, holding{of, NoRow})
	// Where its best row has room nobody after it is displaced.
	if row, first := a.find(of, a.used); at == len(a.list)-1 || row == first && row != NoRow {
		a.hold(&a.list[at])
	} else {
		a.fill()
	}
	return a.drop()
}

// Remove takes an instance out of the account; it is no fault if it is not there. It returns those that no row holds then, which are left
// out: one that moves to a more specific row may take the room of another there.
func (a *Account) Remove(of *Instance) (lost []*Instance) {
	at, there := a.at(of)
	if !there {
		return nil
	}
	row := a.list[at].row
	a.list = slices.Delete(a.list, at, at+1)
	if a.spilled == 0 {
		a.used[row] -= of.Cost
		return nil
	}
	a.fill()
	return a.drop()
}

// Load lets an instance use slots without looking for its row: see Loaded.
func (a *Account) Load(of *Instance) {
	if at, there := a.at(of); !there {
		a.list = slices.Insert(a.list, at, holding{of, NoRow})
	}
}

// Loaded finds the rows of all after the last call of Load, and returns those that none holds, which are left out.
func (a *Account) Loaded() (lost []*Instance) {
	a.fill()
	return a.drop()
}

// RowOf returns the row that holds an instance; NoRow: it uses none.
func (a *Account) RowOf(of *Instance) int {
	if at, there := a.at(of); there {
		return a.list[at].row
	}
	return NoRow
}

// Given returns the slots of a type that the project has this week, and Used those that its instances use.
func (a *Account) Given(kind string) (n int) {
	for i := range a.rows {
		if a.rows[i].Type == kind {
			n += a.rows[i].Count
		}
	}
	return n
}

// Used returns the slots of a type that instances use.
func (a *Account) Used(kind string) (n int) {
	for i := range a.rows {
		if a.rows[i].Type == kind {
			n += a.used[i]
		}
	}
	return n
}

// Len returns how many instances use slots.
func (a *Account) Len() int { return len(a.list) }

// Equal reports whether two accounts are the same. Those that were made of the same instances and rows, in whatever order, are.
func (a *Account) Equal(b *Account) bool {
	return slices.Equal(a.rows, b.rows) && slices.Equal(a.used, b.used) && slices.EqualFunc(a.list, b.list, func(x, y holding) bool {
		return x.row == y.row && x.of.ID == y.of.ID && x.of.Start == y.of.Start && x.of.Cost == y.of.Cost
	})
}

// Types returns the types of slots that the project has this week, sorted.
func (a *Account) Types() []string {
	types := map[string]bool{}
	for i := range a.rows {
		types[a.rows[i].Type] = true
	}
	return slices.Sorted(maps.Keys(types))
}
