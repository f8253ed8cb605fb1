package workflow

import (
	"cmp"
	"slices"
)

// Borrower is an allocation of others that runs in a part.
type Borrower struct {
	ID    string
	Lend  int     // the index of the lend by which it borrows; one that is not among the shares is taken back first
	Uses  Amounts // what it uses of the part
	Since int64   // since when, in any unit: of those of one lend that use as much the latest is taken back first
}

// PartState is what there is of a part when a stage starts.
type PartState struct {
	Idle      Amounts // at hand: neither instances of the workflow nor borrowers use it
	Borrowers []Borrower
	// Most is how much of the part instances may use at most, where Idle and what borrowers use is more than that: they use what is free beside the part,
	// too. nil: all of it.
	Most *Amounts
}

// most returns how much of the part instances may use: all of it if borrowers used none.
func (p *PartState) most() Amounts {
	all := p.Idle
	for i := range p.Borrowers {
		all = all.Plus(p.Borrowers[i].Uses)
	}
	if p.Most != nil {
		return p.Most.Min(all)
	}
	return all
}

// Reclaim is how a stage is placed, and who has to leave for it.
type Reclaim struct {
	Assigned []int    // the part of each instance; -1 if it fits into none even without any borrowers
	Victims  []string // the borrowers that have to leave, in the order in which they were chosen
	Complete bool     // all instances are assigned
}

// TakeBack places the instances of a stage into the parts, and takes back just enough of what was lent. Shares are those of the
// lends, in their order; all 0 if none is stated. MayUse is called with indexes of parts, which are in the order that Pack returned.
//
// If the stage fits into what is at hand, nobody leaves. Otherwise the largest instance is placed first, each into the part where
// the fewest borrowers leave; among equal ones where they leave most fairly, then where what they use is least above the need.
// What is fair: of what was lent, that stays which [Due] would lend of what is not needed, so that lends above their share lose
// first, and then all in proportion; where no share is stated, the first named loses first. If the stage does not fit that way
// although it packs (see [Packs]), it is placed as it packs. Last, who could stay beside all that stay, stays.
//
// Amounts are compared in the one resource of which most is missing in the whole reservation. A license is taken back as one
// part with one resource.
func TakeBack(parts []PartState, stage []Instance, shares []int64) Reclaim {
	return TakeBackGangs(parts, stage, Gangs{}, shares)
}

// TakeBackGangs is [TakeBack] for a stage with gangs, whose members are assigned to parts in one domain: to that where least is lacking at hand, of those
// that have room. If a gang has room in none, none of its members is assigned.
func TakeBackGangs(parts []PartState, stage []Instance, gangs Gangs, shares []int64) Reclaim {
	idle, whole := make([]Amounts, len(parts)), make([]Amounts, len(parts))
	var sum, atHand Amounts
	for p := range parts {
		whole[p] = parts[p].most()
		idle[p] = parts[p].Idle.Min(whole[p])
		sum, atHand = sum.Plus(whole[p]), atHand.Plus(idle[p])
	}
	if assigned, ok := fitGangs(idle, stage, gangs); ok {
		return Reclaim{Assigned: assigned, Complete: true}
	}
	needs := Total(stage)
	stage = gangs.counted([][]Instance{stage})[0]
	t := taking{parts: parts, stage: stage, sum: sum, scale: scaleOf(sum), levels: gangs.areas()}
	t.start(needs.Lacking(atHand), needs, shares)
	units := unitsOf(stage, gangs.List, byLargest)
	if complete := t.place(units, nil); complete {
		return t.result(true)
	}
	if packed, ok := fitGangs(whole, stage, gangs); ok {
		t.start(needs.Lacking(atHand), needs, shares)
		return t.result(t.place(units, packed))
	}
	return t.result(false)
}

// choice is a borrower that is taken back.
type choice struct{ part, borrower int }

// taking is the work of taking back.
type taking struct {
	parts    []PartState
	stage    []Instance
	levels   []areas   // of which gangs are kept in one domain
	sum      Amounts   // of all parts
	scale    scale     // of that
	left     []Amounts // at hand in each part beside the instances that are placed
	most     []Amounts // what more of each part instances may use
	lent     []Amounts // what borrowers use that were not taken back yet, of each part
	taken    [][]bool  // which borrowers of each part are
	victims  []choice  // in their order
	assigned []int
	quota    quota
	trial    []choice // of the part that is tried
	best     []choice
}

// start makes everything as it is before the first instance is placed, of a stage that needs a total and lacks some of it.
func (t *taking) start(lacks, total Amounts, shares []int64) {
	t.left, t.lent, t.taken = make([]Amounts, len(t.parts)), make([]Amounts, len(t.parts)), make([][]bool, len(t.parts))
	t.assigned, t.victims, t.most = make([]int, len(t.stage)), nil, make([]Amounts, len(t.parts))
	scarce := scarcest(lacks, total, t.sum)
	t.quota = newQuota(scarce, shares)
	for p := range t.parts {
		borrowers := t.parts[p].Borrowers
		t.left[p], t.taken[p], t.most[p] = t.parts[p].Idle, make([]bool, len(borrowers)), t.parts[p].most()
		for i := range borrowers {
			t.lent[p] = t.lent[p].Plus(borrowers[i].Uses)
			t.quota.lend(&borrowers[i])
		}
	}
	t.quota.plan(lacks.of(scarce))
	empty(t.stage)
}

// scarcest returns the resource of which the largest fraction of the reservation is lacking; if nothing is, since only the rooms
// are too small, the one of which the stage needs the largest fraction.
func scarcest(lacks, total, sum Amounts) int {
	if lacks.IsZero() {
		lacks = total
	}
	scarce, most := 0, 0.0
	for r := range resources {
		if part := float64(lacks.of(r)) / float64(max(sum.of(r), 1)); part > most {
			scarce, most = r, part
		}
	}
	return scarce
}

// place places the units in an order, into the parts of packed, or wherever the fewest borrowers leave. It reports whether all are placed.
func (t *taking) place(units []unit, packed []int) bool {
	complete := true
	for u := range units {
		area := -1
		if units[u].level >= 0 && packed == nil {
			if area = t.area(&units[u]); area < 0 {
				for _, m := range units[u].members {
					t.assigned[m] = -1
				}
				complete = false
				continue
			}
		}
		for _, i := range units[u].members {
			instance := t.stage[i]
			if area >= 0 {
				of := t.levels[units[u].level].of
				instance.MayUse = func(p int) bool { return of[p] == area && t.stage[i].mayUse(p) }
			}
			var part int
			if packed == nil {
				part = t.choose(&instance)
			} else {
				part = packed[i]
				t.try(part, instance.Needs, len(t.parts[part].Borrowers))
				t.best, t.trial = t.trial, t.best
				t.rollBack(t.best)
			}
			t.put(i, part)
			complete = complete && part >= 0
		}
	}
	return complete
}

// put assigns an instance to a part that those of t.best leave; -1: to none.
func (t *taking) put(i, part int) {
	if t.assigned[i] = part; part < 0 {
		return
	}
	t.stage[i].move(part, 1)
	needs := t.stage[i].Needs
	t.quota.need(t.lacking(part, needs))
	for _, c := range t.best {
		t.take(c)
		t.victims = append(t.victims, c)
	}
	t.left[part], t.most[part] = t.left[part].Minus(needs), t.most[part].Minus(needs)
}

// area returns the area in which a gang lacks least of what is at hand, of those that have room for it if all borrowers leave; -1: none has.
func (t *taking) area(u *unit) int {
	of := &t.levels[u.level]
	short := make([]float64, len(of.nodes))
	var list []int
	for a, parts := range of.nodes {
		var left, most Amounts
		for _, p := range parts {
			left, most = left.Plus(t.left[p].Min(t.most[p])), most.Plus(t.left[p].Plus(t.lent[p]).Min(t.most[p]))
		}
		if u.needs.Fits(most) {
			lacks := u.needs.Lacking(left)
			list, short[a] = append(list, a), lacks.size(&t.scale)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(short[a], short[b]) })
	at := slices.IndexFunc(list, func(a int) bool { return t.holds(u, of.nodes[a]) })
	if at < 0 {
		return -1
	}
	return list[at]
}

// holds reports whether a gang fits into some parts if all borrowers leave.
func (t *taking) holds(u *unit, parts []int) bool {
	room := make([]Amounts, len(parts))
	for k, p := range parts {
		room[k] = t.left[p].Plus(t.lent[p]).Min(t.most[p])
	}
	members := make([]Instance, len(u.members))
	for k, m := range u.members {
		members[k] = t.stage[m] // counted anew
		members[k].MayUse = t.stage[m].mayTake
	}
	return Packs(room, onParts(members, parts))
}

// lacking returns how much of the scarce resource a part has too little for an instance.
func (t *taking) lacking(part int, needs Amounts) int64 {
	short := needs.Lacking(t.left[part])
	return short.of(t.quota.resource)
}

// choose returns the part where the fewest borrowers leave for an instance, or -1; t.best are those borrowers.
func (t *taking) choose(i *Instance) int {
	t.best = t.best[:0]
	for p := range t.parts {
		if i.Needs.Fits(t.left[p]) && i.Needs.Fits(t.most[p]) && i.mayTake(p) {
			return p
		}
	}
	best, unfair, beyond := -1, unfairness{}, 0.0
	for p := range t.parts {
		if !i.Needs.Fits(t.left[p].Plus(t.lent[p])) || !i.Needs.Fits(t.most[p]) || !i.mayTake(p) {
			continue
		}
		limit := len(t.parts[p].Borrowers)
		if best >= 0 {
			limit = len(t.best)
		}
		would, enough := t.try(p, i.Needs, limit)
		if enough {
			rest := t.left[p].Minus(i.Needs)
			waste := rest.size(&t.scale)
			if best < 0 || cmp.Or(cmp.Compare(len(t.trial), len(t.best)), would.compare(unfair), cmp.Compare(waste, beyond)) < 0 {
				best, unfair, beyond = p, would, waste
				t.best, t.trial = t.trial, t.best
				t.rollBack(t.best)
				continue
			}
		}
		t.rollBack(t.trial)
	}
	return best
}

// try takes borrowers of a part, at most limit, until an instance fits, and notes them in t.trial. Of those who make enough room
// alone it takes the one that is fairest; if there is none, the one who makes most of it. It returns how
// unfair that is. The caller rolls it back.
func (t *taking) try(part int, needs Amounts, limit int) (would unfairness, enough bool) {
	t.trial = t.trial[:0]
	t.quota.begin(t.lacking(part, needs))
	borrowers := t.parts[part].Borrowers
	for !needs.Fits(t.left[part]) {
		if len(t.trial) == limit {
			return would, false
		}
		short := needs.Lacking(t.left[part])
		scale := scaleOf(short)
		best, alone, most := -1, false, 0.0
		for i := range borrowers {
			b := &borrowers[i]
			if t.taken[part][i] {
				continue
			}
			closes, covered := short.Fits(b.Uses), 0.0
			switch {
			case alone && !closes:
				continue
			case !closes:
				if covered = b.Uses.covers(&short, &scale); covered == 0 || covered < most {
					continue
				}
			}
			if best < 0 || closes && !alone || !closes && covered > most || t.quota.before(b, &borrowers[best]) {
				best, alone, most = i, closes, covered
			}
		}
		if best < 0 {
			return would, false
		}
		would.add(&t.quota, &borrowers[best])
		c := choice{part, best}
		t.take(c)
		t.trial = append(t.trial, c)
	}
	return would, true
}

// take takes a borrower back.
func (t *taking) take(c choice) {
	b := &t.parts[c.part].Borrowers[c.borrower]
	t.taken[c.part][c.borrower] = true
	t.left[c.part], t.lent[c.part] = t.left[c.part].Plus(b.Uses), t.lent[c.part].Minus(b.Uses)
	t.quota.take(b)
}

// leave undoes the taking of a borrower.
func (t *taking) leave(c choice) {
	b := &t.parts[c.part].Borrowers[c.borrower]
	t.taken[c.part][c.borrower] = false
	t.left[c.part], t.lent[c.part] = t.left[c.part].Minus(b.Uses), t.lent[c.part].Plus(b.Uses)
	t.quota.leave(b)
}

// rollBack undoes a trial.
func (t *taking) rollBack(choices []choice) {
	for _, c := range choices {
		t.leave(c)
	}
	t.quota.end()
}

// result returns who has to leave, once all have been left that could stay beside the rest, the last taken first: what one that stays
// uses is at hand for none before it, so that one round is enough.
func (t *taking) result(complete bool) Reclaim {
	for i := len(t.victims) - 1; i >= 0; i-- {
		c := t.victims[i]
		if t.parts[c.part].Borrowers[c.borrower].Uses.Fits(t.left[c.part]) {
			t.leave(c)
			t.victims = slices.Delete(t.victims, i, i+1)
		}
	}
	out := Reclaim{Assigned: t.assigned, Complete: complete, Victims: make([]string, len(t.victims))}
	for i, c := range t.victims {
		out.Victims[i] = t.parts[c.part].Borrowers[c.borrower].ID
	}
	return out
}
