package workflow

import (
	"cmp"
	"maps"
	"slices"
)

// Gang is instances of a stage that have to be in one domain of a level, as in one rack or on one node.
type Gang struct {
	Stage   int   // its index
	Members []int // indexes of the stage's instances
	Level   int   // index of [Gangs.Levels]
	Name    string
}

// Gangs is the gangs of the stages of a workflow that require a level of topology, and the instances that have to be in distinct domains of one.
type Gangs struct {
	// Levels is, of each level, the domain of each node, by the node's index in what is packed into; -1: the node is in none. Domains are numbered
	// from 0.
	Levels   [][]int
	List     []Gang
	Distinct []Distinct
}

// None reports whether there are no gangs, and no instances that have to be in distinct domains.
func (g Gangs) None() bool { return len(g.List) == 0 && len(g.Distinct) == 0 }

// on returns the gangs on parts that are on nodes.
func (g Gangs) on(nodes []int) Gangs {
	out := Gangs{List: g.List, Distinct: g.Distinct}
	for _, domains := range g.Levels {
		on := make([]int, len(nodes))
		for part, node := range nodes {
			on[part] = domains[node]
		}
		out.Levels = append(out.Levels, on)
	}
	return out
}

// Alone returns the stages without gangs, and after them each gang as a stage of its own, and those that have to be in distinct domains: what these pack into
// holds each stage by its instances, and each gang in one domain, and the others in distinct ones, by themselves.
func (g Gangs) Alone(stages [][]Instance) ([][]Instance, Gangs) {
	alone := Gangs{Levels: g.Levels}
	list := slices.Clone(stages)
	for _, gang := range g.List {
		own := Gang{Stage: len(list), Level: gang.Level, Name: gang.Name}
		var members []Instance
		for _, m := range gang.Members {
			own.Members, members = append(own.Members, len(members)), append(members, stages[gang.Stage][m])
		}
		alone.Distinct = append(alone.Distinct, g.among(gang.Stage, gang.Members, len(list))...)
		list, alone.List = append(list, members), append(alone.List, own)
	}
	for _, d := range g.Distinct {
		var members []Instance
		for _, m := range d.Members {
			members = append(members, stages[d.Stage][m])
		}
		alone.Distinct = append(alone.Distinct, g.among(d.Stage, d.Members, len(list))...)
		list = append(list, members)
	}
	return list, alone
}

// Impossible returns the first of the gangs that has no room in any domain of its level, by itself, on nodes that have this free, so that no order of packing
// helps: all of it is more than the domain has, or one member more than any node of it, or as many members as it has do not fit if all need as little as
// the least of them does, also where no more of them may be on one node, or the like. nil: none is known to.
func (g Gangs) Impossible(nodes []Amounts, stages [][]Instance) *Gang {
	areas := g.areas()
	for i := range g.List {
		gang := &g.List[i]
		distinct, needs := g.distinctIn(gang, stages), sumOf(stages[gang.Stage], gang.Members)
		if !slices.ContainsFunc(areas[gang.Level].nodes, func(domain []int) bool {
			return mayHold(nodes, domain, stages[gang.Stage], gang.Members, &needs) && !crowds(distinct, nodes, domain, stages[gang.Stage], areas)
		}) {
			return gang
		}
	}
	return nil
}

// distinctIn returns the members of a gang that have to be in distinct domains, in the place of all that have to be.
func (g Gangs) distinctIn(gang *Gang, stages [][]Instance) (list []Distinct) {
	for _, d := range g.Distinct {
		if d.Stage != gang.Stage {
			continue
		}
		if d.Members = d.of(gang.Members); len(d.Members) > 0 {
			d.needs = leastOf(stages[gang.Stage], d.Members)
			list = append(list, d)
		}
	}
	return list
}

// crowds reports whether members of a gang that have to be in distinct domains find too few on the nodes of a domain.
func crowds(distinct []Distinct, nodes []Amounts, domain []int, stage []Instance, areas []areas) bool {
	return slices.ContainsFunc(distinct, func(d Distinct) bool {
		within := map[int][]int{}
		for _, n := range domain {
			if a := areas[d.Level].of[n]; a >= 0 {
				within[a] = append(within[a], n)
			}
		}
		room := d.room(nodes, slices.Collect(maps.Values(within)), stage, d.Members, d.needs) // order does not matter: a sum
		return room < int64(len(d.Members))
	})
}

// sum is what some instances need: all of them, and the least of each resource.
type sum struct{ all, least Amounts }

func sumOf(stage []Instance, members []int) (s sum) {
	s.least = leastOf(stage, members)
	for _, m := range members {
		s.all = s.all.Plus(stage[m].Needs)
	}
	return s
}

// leastOf returns the least that any of some instances, at least one, needs of each resource.
func leastOf(stage []Instance, members []int) Amounts {
	least := stage[members[0]].Needs
	for _, m := range members {
		least = least.Min(stage[m].Needs)
	}
	return least
}

// mayHold reports whether the nodes of a domain could hold some instances, as far as sums and numbers say.
func mayHold(nodes []Amounts, domain []int, stage []Instance, members []int, needs *sum) bool {
	var most Amounts // if they may use all of it
	for _, n := range domain {
		most = most.Plus(nodes[n].Max(Amounts{}))
	}
	if !needs.all.Fits(most) {
		return false
	}
	var room Amounts
	count, has := int64(0), make([]bool, len(members))
	for _, n := range domain {
		usable := false
		for k, m := range members {
			if stage[m].Needs.Fits(nodes[n]) && stage[m].mayUse(n) {
				has[k], usable = true, true
			}
		}
		if usable {
			room, count = room.Plus(nodes[n]), count+needs.least.times(&nodes[n], int64(len(members)))
		}
	}
	return needs.all.Fits(room) && count >= int64(len(members)) && !slices.Contains(has, false)
}

// times returns how often an amount is in another one, most at most.
func (a *Amounts) times(in *Amounts, most int64) int64 {
	for r := range resources {
		if n := a.of(r); n > 0 {
			most = min(most, in.of(r)/n)
		}
	}
	return max(0, most)
}

// areas is the domains of a level, in the order of their first nodes.
type areas struct {
	of    []int   // the area of each node, or -1
	nodes [][]int // of each area
}

// areas returns the domains of each level.
func (g Gangs) areas() (list []areas) {
	for _, domains := range g.Levels {
		list = append(list, areasOf(domains))
	}
	return list
}

func areasOf(domains []int) (a areas) {
	a.of = make([]int, len(domains))
	number := map[int]int{} // looked up only
	for node, d := range domains {
		if a.of[node] = -1; d < 0 {
			continue
		}
		area, known := number[d]
		if !known {
			area = len(a.nodes)
			number[d], a.nodes = area, append(a.nodes, nil)
		}
		a.of[node], a.nodes[area] = area, append(a.nodes[area], node)
	}
	return a
}

// unit is what is packed as one: an instance, or all members of a gang.
type unit struct {
	members []int // of a gang the largest first
	level   int   // -1: no gang
	usable  int   // of those that have to be in distinct domains, how many nodes may be used, at least 1; 0: of others
	needs   Amounts
	largest float64 // dominant share of the largest member
	size    float64 // of all members
}

// ranking is an order in which units are packed.
type ranking int

const (
	byLargest    ranking = iota // those with the largest member first, then those that need most
	byTotal                     // those that need most first
	gangsByTotal                // gangs first, those that need most first
	// distinctFirst: first those that have to be in distinct domains, of which the fewest nodes may be used first, then as by largest.
	distinctFirst
)

// rankings returns the orders that are tried.
func (g Gangs) rankings() (list []ranking) {
	list = []ranking{byLargest}
	if len(g.Distinct) > 0 {
		list = append(list, distinctFirst)
	}
	if len(g.List) > 0 {
		list = append(list, gangsByTotal, byTotal)
	}
	return list
}

// unitsOf returns a stage with its gangs as units, in an order; equal ones as they are named.
func unitsOf(stage []Instance, gangs []Gang, by ranking) (list []unit) {
	sum := scaleOf(Total(stage))
	in := make([]bool, len(stage))
	for _, g := range gangs {
		u := unit{members: slices.Clone(g.Members), level: g.Level}
		share := func(m int) float64 { return stage[m].Needs.dominant(&sum) }
		slices.SortStableFunc(u.members, func(a, b int) int { return cmp.Compare(share(b), share(a)) })
		for _, m := range u.members {
			in[m], u.needs = true, u.needs.Plus(stage[m].Needs)
		}
		u.largest, u.size = share(u.members[0]), u.needs.dominant(&sum)
		list = append(list, u)
	}
	for i := range stage {
		if !in[i] {
			share := stage[i].Needs.dominant(&sum)
			list = append(list, unit{members: []int{i}, level: -1, needs: stage[i].Needs, largest: share, size: share})
		}
	}
	if by == distinctFirst {
		for u := range list {
			list[u].usable = usable(stage, list[u].members)
		}
	}
	placed := func(u *unit) int {
		if slices.ContainsFunc(u.members, func(m int) bool { return stage[m].Placed }) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b unit) int {
		if first := placed(&b) - placed(&a); first != 0 {
			return first
		}
		first := 0
		switch by {
		case byLargest:
			first = cmp.Compare(b.largest, a.largest)
		case gangsByTotal:
			first = cmp.Compare(min(0, b.level), min(0, a.level))
		case distinctFirst:
			first = cmp.Or(cmp.Compare(min(1, b.usable), min(1, a.usable)), cmp.Compare(a.usable, b.usable), cmp.Compare(b.largest, a.largest))
		case byTotal:
		}
		return cmp.Or(first, cmp.Compare(b.size, a.size), cmp.Compare(a.members[0], b.members[0]))
	})
	return list
}

// fitGangs is fit for a stage with gangs: it assigns all members of each to parts in one domain, by several orders, into the first domain that has room or into
// the one with the least room. The first of each order is what [PackGangs] does.
func fitGangs(parts []Amounts, stage []Instance, gangs Gangs) ([]int, bool) {
	if gangs.None() {
		return fit(parts, stage)
	}
	if !Total(stage).Fits(total(parts)) {
		return nil, false
	}
	f := newGangFitting(parts, gangs)
	f.stage, f.assigned = gangs.counted([][]Instance{stage})[0], make([]int, len(stage))
	for _, tight := range []bool{false, true} {
		for _, by := range gangs.rankings() {
			if f.fit(unitsOf(f.stage, gangs.List, by), tight) {
				return f.assigned, true
			}
		}
	}
	return nil, false
}

func newGangFitting(parts []Amounts, gangs Gangs) *gangFitting {
	f := &gangFitting{parts: parts, all: make([]int, len(parts)), levels: gangs.areas()}
	var most Amounts
	for p := range parts {
		f.all[p], most = p, most.Max(parts[p])
	}
	f.scale = scaleOf(most)
	return f
}

// gangFitting is the work of assigning a stage with gangs to parts.
type gangFitting struct {
	parts    []Amounts
	stage    []Instance
	scale    scale // of the most that any part has
	all      []int // the parts
	levels   []areas
	left     []Amounts   // of each part
	sums     [][]Amounts // of each level, what is left in each area
	assigned []int
}

// fit assigns units in an order. tight has them where the least is left, instead of where there is room first.
func (f *gangFitting) fit(units []unit, tight bool) bool {
	empty(f.stage)
	f.left, f.sums = slices.Clone(f.parts), make([][]Amounts, len(f.levels))
	for l := range f.levels {
		f.sums[l] = sumsOf(f.levels[l].nodes, f.left)
	}
	return !slices.ContainsFunc(units, func(u unit) bool { return !f.place(&u, tight) })
}

// sumsOf returns what all nodes of each area have.
func sumsOf(areas [][]int, of []Amounts) []Amounts {
	sums := make([]Amounts, len(areas))
	for a, nodes := range areas {
		for _, n := range nodes {
			sums[a] = sums[a].Plus(of[n])
		}
	}
	return sums
}

// place assigns a unit; false: it fits nowhere.
func (f *gangFitting) place(u *unit, tight bool) bool {
	if u.level < 0 {
		return f.within(u, f.all, tight)
	}
	l := u.level
	if !tight {
		for a := range f.sums[l] {
			if u.needs.Fits(f.sums[l][a]) && f.within(u, f.levels[l].nodes[a], false) {
				return true
			}
		}
		return false
	}
	var list []int
	for a := range f.sums[l] {
		if u.needs.Fits(f.sums[l][a]) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(f.sums[l][a].size(&f.scale), f.sums[l][b].size(&f.scale)) })
	return slices.ContainsFunc(list, func(a int) bool { return f.within(u, f.levels[l].nodes[a], true) })
}

// within assigns a unit to some of the parts, or to none.
func (f *gangFitting) within(u *unit, parts []int, tight bool) bool {
	for k, m := range u.members {
		p := f.part(&f.stage[m], parts, tight)
		if p < 0 {
			for _, m := range u.members[:k] {
				f.stage[m].move(f.assigned[m], -1)
				f.assign(f.assigned[m], Amounts{}.Minus(f.stage[m].Needs))
			}
			return false
		}
		f.assigned[m] = p
		f.stage[m].move(p, 1)
		f.assign(p, f.stage[m].Needs)
	}
	return true
}

// part returns the part for an instance among some, or -1.
func (f *gangFitting) part(i *Instance, parts []int, tight bool) int {
	best, least := -1, 0.0
	for _, p := range parts {
		if !i.Needs.Fits(f.left[p]) || !i.mayTake(p) {
			continue
		}
		if !tight {
			return p
		}
		rest := f.left[p].Minus(i.Needs)
		if size := rest.size(&f.scale); best < 0 || size < least {
			best, least = p, size
		}
	}
	return best
}

// assign takes some amounts of what is left of a part, and of the areas in which it is.
func (f *gangFitting) assign(part int, needs Amounts) {
	f.left[part] = f.left[part].Minus(needs)
	for l := range f.levels {
		if a := f.levels[l].of[part]; a >= 0 {
			f.sums[l][a] = f.sums[l][a].Minus(needs)
		}
	}
}
