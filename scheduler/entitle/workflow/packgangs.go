package workflow

import (
	"cmp"
	"slices"
)

// PackGangs is [Pack] for stages with gangs, or with instances that have to be in distinct domains: each stage packs into the parts with all members of each
// gang in one domain, and no more of the others in one than [Distinct.Most], as [TakeBackGangs] finds it.
//
// A gang is packed as a whole: into the first domain of which the parts have room beside the others of its stage; else where the parts grow least by it; else
// into a domain without parts, the one that covers most of what is not reserved yet, of equal ones the smallest. Within a domain its members are packed as
// instances are. If something is missing so, or the reservation is enlarged by much, other orders are tried, and the best result is taken. They are no
// proof: what is missing only because of the gangs and of distinct domains ([Packing.Apart]) may be there, unless [Gangs.Impossible] or [Gangs.Crowded] says
// that it cannot be.
func PackGangs(nodes []Amounts, stages [][]Instance, gangs Gangs, want Amounts) Packing {
	return PackBeside(nodes, nil, stages, gangs, want, 0)
}

// PackBeside is [PackGangs] beside parts that are there already, at most one for each node: they come first, in their order, and none becomes smaller. They
// grow where their nodes have room; what a node has free includes its part. Whole cores have so many MHz each (0: it is not known), and are reserved with them.
func PackBeside(nodes []Amounts, has []Part, stages [][]Instance, gangs Gangs, want Amounts, perCore int64) Packing {
	want = want.Max(Amounts{})
	for i := range stages {
		want = want.Max(Total(stages[i]))
	}
	if gangs.None() || !want.Fits(total(nodes)) {
		return packBeside(nodes, has, stages, want, perCore)
	}
	scale := scaleOf(total(nodes))
	enlarged := func(p *Packing) float64 { return p.Enlarged.dominant(&scale) }
	var best Packing
	list, enough := trials(stages, gangs)
	counted := gangs.counted(stages)
	for trial, by := range list {
		got := packGangs(nodes, has, counted, gangs, want, perCore, by)
		if trial == 0 || best.Apart && !got.Apart || best.Apart == got.Apart && enlarged(&got) < enlarged(&best) {
			best = got
		}
		if !got.Apart && enlarged(&got) <= enough*want.dominant(&scale) {
			return best
		}
	}
	if best.Apart {
		if anywhere := packBeside(nodes, has, stages, want, perCore); !anywhere.Missing.IsZero() {
			return anywhere // it is missing wherever gangs are, and in however few domains the others
		}
	}
	return best
}

// manyInstances is of how many instances the stages are packed in fewer orders, since each takes long: then the reservation may be enlarged by the fraction
// fewEnlarged of its share of the nodes before a second one is tried.
const (
	manyInstances = 1000
	fewEnlarged   = 1. / 16
)

// trial is an order in which gangs are packed. Of the domains that cover as much the largest is opened, or the smallest.
type trial struct {
	by      ranking
	largest bool
}

// trials returns the orders that are tried, one after the other, until the reservation is enlarged by enough of its share of the nodes at most.
func trials(stages [][]Instance, gangs Gangs) (list []trial, enough float64) {
	count := 0
	for _, stage := range stages {
		count += len(stage)
	}
	list = []trial{{by: byLargest}}
	if len(gangs.Distinct) > 0 {
		list = append(list, trial{by: distinctFirst})
	}
	if len(gangs.List) > 0 {
		list = append(list, trial{by: gangsByTotal})
	}
	switch {
	case count > manyInstances:
		return list, fewEnlarged
	case len(gangs.List) == 0:
		return list, 0
	}
	return append(list, trial{byLargest, true}, trial{gangsByTotal, true}, trial{byTotal, false}, trial{byTotal, true}), 0
}

// packGangs packs stages with gangs, in one order.
func packGangs(nodes []Amounts, has []Part, stages [][]Instance, gangs Gangs, want Amounts, perCore int64, by trial) Packing {
	p := gangPacker{
		packer: newPacker(nodes, has, stages, want, perCore), gangs: gangs, trial: by, units: make([][]unit, len(stages)), ofStage: make([][]Gang, len(stages)),
	}
	for _, g := range gangs.List {
		p.ofStage[g.Stage] = append(p.ofStage[g.Stage], g)
	}
	for s := range stages {
		p.units[s] = unitsOf(stages[s], p.ofStage[s], by.by)
	}
	clamped := make([]Amounts, len(nodes))
	for n := range nodes {
		clamped[n] = nodes[n].Max(Amounts{})
	}
	for _, areas := range gangs.areas() {
		l := gangLevel{areas: areas}
		l.parts, l.free = make([][]int, len(l.nodes)), sumsOf(l.nodes, clamped)
		p.levels = append(p.levels, l)
	}
	for _, s := range p.order() {
		p.pack(s)
	}
	p.grow()
	p.repairBy(p.packs, p.pack)
	out := p.result()
	out.Apart = !out.Missing.IsZero()
	return out
}

// gangPacker is the work of packing stages with gangs.
type gangPacker struct {
	packer
	trial
	gangs   Gangs
	ofStage [][]Gang // the gangs of each
	units   [][]unit // of each stage
	levels  []gangLevel
	seen    int // how many of the parts are in the levels
	// fitted is the work of fitting stages into the parts as they were when so much was reserved, on the nodes.
	fitted   *gangFitting
	fittedTo Amounts
	nodes    []int
	changes  []change // of the gang that is tried
}

// gangLevel is the domains of a level.
type gangLevel struct {
	areas
	parts  [][]int   // of each area, in their order
	opened []int     // the areas that have parts, in the order of these
	free   []Amounts // of each area
	// Of each area in the stage that is being packed: left in the parts, and room beside all that is placed.
	left, room []Amounts
}

// change is an instance that was placed in a part, and by how much that grew.
type change struct {
	at          int // the part's index
	more, needs Amounts
	instance    *Instance
}

// pack packs a stage into the parts, which it enlarges, and opens, as need be.
func (p *gangPacker) pack(s int) {
	p.left = p.left[:0]
	for i := range p.parts {
		p.left = append(p.left, p.parts[i].Amounts)
	}
	p.register()
	empty(p.stages[s])
	for l := range p.levels {
		of := &p.levels[l]
		of.left, of.room = sumsOf(of.parts, p.left), slices.Clone(of.free)
	}
	for i := range p.units[s] {
		u := &p.units[s][i]
		if u.level >= 0 {
			p.gang(p.stages[s], u)
			continue
		}
		instance := &p.stages[s][u.members[0]]
		if at := p.find(instance); at >= 0 {
			p.assign(at, instance)
		}
	}
}

// packs reports whether a stage packs into the parts in the order in which it was packed.
func (p *gangPacker) packs(s int) bool {
	if p.fitted == nil || p.fittedTo != p.reserved {
		amounts, nodes := p.lists()
		p.fitted, p.fittedTo, p.nodes = newGangFitting(amounts, p.gangs.on(nodes)), p.reserved, nodes
	}
	p.fitted.stage, p.fitted.assigned = onParts(p.stages[s], p.nodes), make([]int, len(p.stages[s]))
	units := p.units[s]
	if p.by == distinctFirst { // whose order depends on how many of the parts may be used
		units = unitsOf(p.fitted.stage, p.ofStage[s], p.by)
	}
	return p.fitted.fit(units, false)
}

// register has the levels know parts that were opened.
func (p *gangPacker) register() {
	for ; p.seen < len(p.parts); p.seen++ {
		for l := range p.levels {
			of := &p.levels[l]
			if a := of.of[p.parts[p.seen].Node]; a >= 0 {
				if of.parts[a] = append(of.parts[a], p.seen); len(of.parts[a]) == 1 {
					of.opened = append(of.opened, a)
				}
			}
		}
	}
}

// assign places an instance in a part, which grows as need be.
func (p *gangPacker) assign(at int, i *Instance) {
	p.register()
	c := change{at, i.Needs.Lacking(p.left[at]), i.Needs, i}
	i.move(p.parts[at].Node, 1)
	p.add(at, c.more)
	p.left[at] = p.left[at].Minus(c.needs)
	p.count(at, c.more.Minus(c.needs), c.needs)
	p.changes = append(p.changes, c)
}

// count notes in the levels that so much more is left of a part, and so much used of its node.
func (p *gangPacker) count(at int, left, used Amounts) {
	for l := range p.levels {
		of := &p.levels[l]
		if a := of.of[p.parts[at].Node]; a >= 0 {
			of.left[a], of.room[a] = of.left[a].Plus(left), of.room[a].Minus(used)
		}
	}
}

// undo undoes what was placed since the last gang, and closes parts that were opened for it.
func (p *gangPacker) undo(parts int) {
	for _, c := range slices.Backward(p.changes) {
		c.instance.move(p.parts[c.at].Node, -1)
		p.left[c.at] = p.left[c.at].Plus(c.needs)
		p.add(c.at, Amounts{}.Minus(c.more))
		p.count(c.at, c.needs.Minus(c.more), Amounts{}.Minus(c.needs))
	}
	p.changes = p.changes[:0]
	for ; len(p.parts) > parts; p.seen-- {
		last := len(p.parts) - 1
		node := p.parts[last].Node
		for l := range p.levels {
			of := &p.levels[l]
			if a := of.of[node]; a >= 0 {
				if of.parts[a] = of.parts[a][:len(of.parts[a])-1]; len(of.parts[a]) == 0 {
					of.opened = of.opened[:len(of.opened)-1]
				}
			}
		}
		p.partOf[node], p.parts, p.left = -1, p.parts[:last], p.left[:last]
	}
}

// gang packs a gang.
func (p *gangPacker) gang(stage []Instance, u *unit) {
	of := &p.levels[u.level]
	p.register()
	p.changes = p.changes[:0]
	for _, a := range of.opened {
		if u.needs.Fits(of.left[a]) {
			if p.within(stage, u, a, false) {
				return
			}
			p.undo(len(p.parts))
		}
	}
	if best := p.growsLeast(stage, u); best >= 0 {
		p.within(stage, u, best, true)
		return
	}
	if p.openArea(stage, u) {
		return
	}
	area, least := -1, 0.0
	for a := range of.nodes {
		short := u.needs.Lacking(of.room[a])
		if size := short.dominant(&p.total); (area < 0 || size < least) && p.mayUse(stage, u, a) {
			area, least = a, size
		}
	}
	if area < 0 {
		p.misses(u.needs)
		return
	}
	for _, m := range u.members {
		if node := p.nearestOf(&stage[m], of.nodes[area]); node >= 0 {
			p.assign(p.part(node), &stage[m])
		} else {
			p.misses(stage[m].Needs)
		}
	}
	if p.missing().IsZero() { // there is room for all of it, but not for each member
		p.misses(stage[u.members[0]].Needs)
	}
}

// mayUse reports whether each member of a gang may use a node of an area.
func (p *gangPacker) mayUse(stage []Instance, u *unit, area int) bool {
	return !slices.ContainsFunc(u.members, func(m int) bool { return !slices.ContainsFunc(p.levels[u.level].nodes[area], stage[m].mayUse) })
}

// growsLeast returns the area with parts that grow least by a gang, or -1 if it fits into none.
func (p *gangPacker) growsLeast(stage []Instance, u *unit) int {
	of := &p.levels[u.level]
	best, least, parts := -1, 0.0, len(p.parts)
	reserved := p.reserved
	for _, a := range slices.Clone(of.opened) {
		bound := u.needs.Lacking(of.left[a])
		if !u.needs.Fits(of.room[a]) || best >= 0 && bound.size(&p.most) >= least {
			continue
		}
		if p.within(stage, u, a, true) {
			grown := p.reserved.Minus(reserved)
			if size := grown.size(&p.most); best < 0 || size < least {
				best, least = a, size
			}
		}
		p.undo(parts)
	}
	return best
}

// openArea packs a gang into an area without parts: of those into which it fits the one that covers most of what is not reserved yet, then the smallest or the
// largest. false: it fits into none.
func (p *gangPacker) openArea(stage []Instance, u *unit) bool {
	of, parts := &p.levels[u.level], len(p.parts)
	rest := p.want.Lacking(p.reserved).Max(u.needs)
	scale := scaleOf(rest)
	var list []int
	for a := range of.nodes {
		if len(of.parts[a]) == 0 && u.needs.Fits(of.free[a]) {
			list = append(list, a)
		}
	}
	covers, sizes := make([]float64, len(of.nodes)), make([]float64, len(of.nodes))
	for _, a := range list {
		covers[a], sizes[a] = of.free[a].covers(&rest, &scale), of.free[a].size(&p.most)
		if p.largest {
			sizes[a] = -sizes[a]
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Or(cmp.Compare(covers[b], covers[a]), cmp.Compare(sizes[a], sizes[b])) })
	for _, a := range list {
		if p.within(stage, u, a, true) {
			return true
		}
		p.undo(parts)
	}
	return false
}

// within packs a gang into an area: into parts that have room, or, if that is allowed, such as grow or are opened. false: not all of it fits.
func (p *gangPacker) within(stage []Instance, u *unit, area int, grow bool) bool {
	for _, m := range u.members {
		at := p.inParts(&stage[m], u.level, area)
		if at < 0 && grow {
			at = p.enlarged(&stage[m], u.level, area)
		}
		if at < 0 {
			return false
		}
		p.assign(at, &stage[m])
	}
	return true
}

// inParts returns the first part in an area that has room for an instance, or -1.
func (p *gangPacker) inParts(i *Instance, level, area int) int {
	for _, at := range p.levels[level].parts[area] {
		if i.Needs.Fits(p.left[at]) && i.mayTake(p.parts[at].Node) {
			return at
		}
	}
	return -1
}

// enlarged returns the part in an area that grows least by an instance, as far as its node has room, else a new one, or -1.
func (p *gangPacker) enlarged(i *Instance, level, area int) int {
	of := &p.levels[level]
	best, least := -1, 0.0
	for _, at := range of.parts[area] {
		more := i.Needs.Lacking(p.left[at])
		if !more.Plus(p.parts[at].Amounts).Fits(p.free[p.parts[at].Node]) {
			continue
		}
		if size := more.size(&p.most); (best < 0 || size < least) && i.mayTake(p.parts[at].Node) {
			best, least = at, size
		}
	}
	if best >= 0 {
		return best
	}
	if node := p.openOf(i.Needs, of.nodes[area], i.mayTake); node >= 0 {
		return p.part(node)
	}
	return -1
}
