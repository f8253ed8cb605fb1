package cells

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// lot is quota cells that an owner was given at one time.
type lot struct {
	owner string
	kind  Kind
	count int
	order uint64 // of admission: lowest first
}

// compare orders lots by their admission, and what was admitted at once by its owner and kind, so that it does not matter in which order
// lots are given.
func (l *lot) compare(o *lot) int {
	return cmp.Or(cmp.Compare(l.order, o.order), strings.Compare(l.owner, o.owner), l.kind.Compare(o.kind))
}

// Change is a number of quota cells more, or less.
type Change struct {
	Kind  Kind
	Count int
}

// Ownable returns an error for kinds of which no quota can be given: those the chain does not have, and site cells of which
// some differ in their parts.
func (c *Chain) Ownable(k Kind) error {
	at, found := c.lines.search(k)
	switch {
	case !found || !c.within(k) && c.lines[at].cells == 0:
		return fmt.Errorf("no cell of level %q has %d nodes", c.LevelName(k), k.Size)
	case c.lines[at].mixed:
		return fmt.Errorf("cells of level %q with %d nodes differ in what they consist of, so they cannot be owned: own their parts", c.LevelName(k), k.Size)
	}
	return nil
}

// Short returns what would be short if quotas changed so: the highest kind of which less than nothing would be left, and by
// how many cells; 0 if all that is owned could still be had. Cells that are doomed at present do not count.
func (c *Chain) Short(changes ...Change) (kind Kind, short int) {
	after := slices.Clone(c.lines)
	for _, ch := range changes {
		at, found := after.search(ch.Kind)
		if !found {
			after = slices.Insert(after, at, line{kind: ch.Kind})
		}
		after[at].quota += ch.Count
	}
	return after.lacking(after.left(counted))
}

// Give adds quota cells to an owner, at their place in the order of admission. Whether there are enough is for [Chain.Short] to say.
func (e *Edit) Give(name string, k Kind, count int, order uint64) {
	if count < 1 {
		return
	}
	l := lot{name, k, count, order}
	at, _ := slices.BinarySearchFunc(e.c.lots, &l, func(o lot, l *lot) int { return cmp.Or(o.compare(l), -1) }) // after its equals
	e.c.lots = slices.Insert(slices.Clone(e.c.lots), at, l)
	e.account(name, k).Given += count
	e.line(k).quota += count
	e.finish()
}

// Withdraw takes quota cells from an owner, those admitted last first. It returns ErrQuota if fewer are neither bound nor
// pinned.
func (e *Edit) Withdraw(name string, k Kind, count int) error {
	a := e.account(name, k)
	if count < 0 || count > a.Given-a.Bound-a.Away {
		return fmt.Errorf("%s: %w", name, ErrQuota)
	}
	a.Given -= count
	e.line(k).quota -= count
	e.c.lots = slices.Clone(e.c.lots)
	for i := len(e.c.lots) - 1; i >= 0 && count > 0; i-- {
		if l := &e.c.lots[i]; l.owner == name && l.kind == k {
			n := min(count, l.count)
			l.count -= n
			count -= n
		}
	}
	e.c.lots = slices.DeleteFunc(e.c.lots, func(l lot) bool { return l.count == 0 })
	e.finish()
	e.drop(k)
	return nil
}

// Lot is quota cells that were admitted at one time.
type Lot struct {
	Count int
	Order uint64
}

// Admitted states in which order the quota cells of a kind that an owner has were admitted. Lots that are not as many as its cells change nothing.
func (e *Edit) Admitted(name string, k Kind, of []Lot) {
	var was, now []lot
	rest := slices.Clone(e.c.lots)
	rest = slices.DeleteFunc(rest, func(l lot) bool {
		same := l.owner == name && l.kind == k
		if same {
			was = append(was, l)
		}
		return same
	})
	total := 0
	for _, l := range of {
		total += l.Count
		now = append(now, lot{name, k, l.Count, l.Order})
	}
	slices.SortStableFunc(now, func(a, b lot) int { return a.compare(&b) })
	if slices.Equal(was, now) || total != e.c.Account(name, k).Given {
		return
	}
	e.c.lots = append(rest, now...)
	slices.SortStableFunc(e.c.lots, func(a, b lot) int { return a.compare(&b) })
	e.finish()
}

// doom finds the quota cells that the hardware cannot hold: from nothing that is remembered, cells are added in the order of
// their admission while Invariant S holds. Those of an owner that are bound count as the first that it was given.
func (e *Edit) doom() {
	doomed := false
	for i := range e.c.lines {
		doomed = doomed || e.c.lines[i].doomed > 0
	}
	all := e.c.lines.left(func(l *line) int { return l.quota })
	if _, short := e.c.lines.lacking(all); short == 0 && !doomed {
		return
	}
	e.undoom()
	type right struct {
		owner string
		kind  Kind
	}
	bound := map[right]int{}
	left := e.c.lines.left(func(*line) int { return 0 })
	for _, l := range e.c.lots {
		r := right{l.owner, l.kind}
		if _, seen := bound[r]; !seen {
			a := e.c.Account(l.owner, l.kind)
			bound[r] = a.Bound + a.Away
		}
		count := l.count - min(l.count, bound[r])
		bound[r] -= l.count - count
		at, found := e.c.lines.search(l.kind)
		if !found {
			continue // no cell has the kind any more, and all quota cells are pinned: there is no account of it
		}
		fit := min(count, e.c.lines.room(left, at))
		e.c.lines.take(left, at, fit)
		if fit < count {
			e.account(l.owner, l.kind).Doomed += count - fit
			e.c.lines[at].doomed += count - fit
		}
	}
}

// undoom forgets which cells are doomed.
func (e *Edit) undoom() {
	for i := range e.c.lines {
		e.c.lines[i].doomed = 0
	}
	for name, o := range e.c.owners.all {
		for _, a := range o.accounts {
			if a.Doomed > 0 {
				e.account(name, a.Kind).Doomed = 0
			}
		}
	}
}
