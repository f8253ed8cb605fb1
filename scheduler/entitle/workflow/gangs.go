package workflow

import "slices"

// maxChoices bounds how many domains are tried for a gang, and how many choices of domains for all gangs together: the first nearly always does.
const maxChoices = 16

// maxBeside bounds how many instances are packed to see whether a gang fits into a domain beside others. Where there are more, their amounts decide, and
// in the end whether all stages pack.
const maxBeside = 256

// Gang is instances of a stage that have to be in one domain of a level, as in one rack or on one node.
type Gang struct {
	Stage   int   // its index
	Members []int // indexes of the stage's instances
	Level   int   // index of [Gangs.Levels]
}

// Gangs is the gangs of the stages of a workflow that require a level of topology.
type Gangs struct {
	// Levels is, of each level, the domain of each node, by the node's index in what is packed into; -1: the node is in none. Domains are numbered
	// from 0.
	Levels [][]int
	List   []Gang
}

// of returns the gangs of one stage, as if it were the only one, on parts that are on nodes.
func (g Gangs) of(stage int, nodes []int) (out Gangs) {
	for _, gang := range g.List {
		if gang.Stage == stage {
			gang.Stage = 0
			out.List = append(out.List, gang)
		}
	}
	if len(out.List) == 0 {
		return out
	}
	for _, domains := range g.Levels {
		on := make([]int, len(nodes))
		for part, node := range nodes {
			on[part] = domains[node]
		}
		out.Levels = append(out.Levels, on)
	}
	return out
}

// PackGangs is [Pack] for stages with gangs: each stage packs into the parts with all members of each gang in one domain, as [TakeBackGangs] finds it.
//
// Where a gang goes is chosen before the instances are packed: the gang with the largest needs first, into the domain that has room for all of it beside
// those of its stage that were chosen before, and of which least is added to what gangs of other stages need there; of equal ones into the one that
// covers most of what is wanted, then the smallest. If something is missing so, or the reservation is enlarged, a few other choices are tried, and the
// best is taken.
func PackGangs(nodes []Amounts, stages [][]Instance, gangs Gangs, want Amounts) Packing {
	anywhere := Pack(nodes, stages, want)
	for i := range stages {
		want = want.Max(Total(stages[i]))
	}
	if len(gangs.List) == 0 || !want.Fits(total(nodes)) {
		return anywhere
	}
	c := newChooser(nodes, stages, gangs, want)
	try := func(at []int) Packing {
		p := Pack(nodes, c.kept(at), want)
		if p.Missing.IsZero() {
			p.Missing = doNotPack(p.Parts, stages, gangs)
		}
		p.Apart = !p.Missing.IsZero()
		return p
	}
	better := func(a, b *Packing) bool {
		if a.Apart || b.Apart {
			return !a.Apart && b.Apart
		}
		return a.Enlarged.size(&c.scale) < b.Enlarged.size(&c.scale)
	}
	best := search(c, try, better, func(p *Packing) bool { return !p.Apart && p.Enlarged.Fits(anywhere.Enlarged) })
	if best.Apart && !anywhere.Missing.IsZero() {
		return anywhere // it is missing wherever gangs are
	}
	return best
}

// doNotPack returns what the largest stages need that do not pack into parts with their gangs kept together.
func doNotPack(parts []Part, stages [][]Instance, gangs Gangs) (missing Amounts) {
	amounts, nodes := make([]Amounts, len(parts)), make([]int, len(parts))
	for i, part := range parts {
		amounts[i], nodes[i] = part.Amounts, part.Node
	}
	for s, stage := range stages {
		of := gangs.of(s, nodes)
		if len(of.List) == 0 {
			continue // it packs, as Pack has found
		}
		if _, ok := fitGangs(amounts, onParts(stage, nodes), of); !ok {
			missing = missing.Max(Total(stage))
		}
	}
	return missing
}

// fitGangs returns the domain of each gang of a stage by which the stage fits into parts; false: none is found.
func fitGangs(parts []Amounts, stage []Instance, gangs Gangs) (at []int, ok bool) {
	type result struct {
		at   []int
		fits bool
	}
	c := newChooser(parts, [][]Instance{stage}, gangs, Total(stage))
	r := search(c, func(at []int) result {
		_, fits := fit(parts, c.kept(at)[0])
		return result{at, fits}
	}, func(a, b *result) bool { return a.fits && !b.fits }, func(r *result) bool { return r.fits })
	return r.at, r.fits
}

// TakeBackGangs is [TakeBack] for a stage with gangs, whose members are assigned to parts in one domain. If the stage fits into what is at hand so, nobody
// leaves; else, of a few choices of the domains, the one is taken with which the fewest leave.
func TakeBackGangs(parts []PartState, stage []Instance, gangs Gangs, shares []int64) Reclaim {
	if len(gangs.List) == 0 {
		return TakeBack(parts, stage, shares)
	}
	idle, whole := make([]Amounts, len(parts)), make([]Amounts, len(parts))
	for p := range parts {
		whole[p] = parts[p].most()
		idle[p] = parts[p].Idle.Min(whole[p])
	}
	stages := [][]Instance{stage}
	c := newChooser(whole, stages, gangs, Total(stage))
	try := func(at []int) Reclaim { return TakeBack(parts, c.kept(at)[0], shares) }
	if at, ok := fitGangs(idle, stage, gangs); ok {
		return try(at)
	}
	better := func(a, b *Reclaim) bool {
		if a.Complete != b.Complete {
			return a.Complete
		}
		return len(a.Victims) < len(b.Victims)
	}
	best := search(c, try, better, func(r *Reclaim) bool { return r.Complete && len(r.Victims) <= 1 })
	if at, ok := fitGangs(whole, stage, gangs); ok { // by which it was reserved
		if r := try(at); better(&r, &best) {
			return r
		}
	}
	return best
}

// chooser is the work of choosing the domain of each gang.
type chooser struct {
	nodes  []Amounts
	stages [][]Instance
	gangs  Gangs
	want   Amounts
	wanted scale // of want
	scale  scale // of all nodes
	levels []level
	needs  []Amounts // of each gang
	order  []int     // of the gangs, the largest first
	// at is the domain of each gang, as far as it is chosen, or -1.
	at []int
	// filled is how many sixteenths of a domain's room several gangs of a stage fill at most.
	filled int64
}

// level is the domains of a level.
type level struct {
	nodes [][]int   // of each domain
	room  []Amounts // of each domain
	sizes []float64
	// taken is what gangs of each stage take of each domain, most the most of any stage.
	taken [][]Amounts
	most  []Amounts
}

func newChooser(nodes []Amounts, stages [][]Instance, gangs Gangs, want Amounts) *chooser {
	c := &chooser{
		nodes: nodes, stages: stages, gangs: gangs, want: want, wanted: scaleOf(want), scale: scaleOf(total(nodes)),
		levels: make([]level, len(gangs.Levels)), needs: make([]Amounts, len(gangs.List)), at: make([]int, len(gangs.List)), filled: 16,
	}
	for l, domains := range gangs.Levels {
		of := &c.levels[l]
		for node, d := range domains {
			if d < 0 {
				continue
			}
			for len(of.nodes) <= d {
				of.nodes, of.room = append(of.nodes, nil), append(of.room, Amounts{})
			}
			of.nodes[d], of.room[d] = append(of.nodes[d], node), of.room[d].Plus(nodes[node].Max(Amounts{}))
		}
		of.taken, of.most, of.sizes = make([][]Amounts, len(stages)), make([]Amounts, len(of.nodes)), make([]float64, len(of.nodes))
		for s := range of.taken {
			of.taken[s] = make([]Amounts, len(of.nodes))
		}
		for d := range of.sizes {
			of.sizes[d] = of.room[d].size(&c.scale)
		}
	}
	for g, gang := range gangs.List {
		for _, m := range gang.Members {
			c.needs[g] = c.needs[g].Plus(stages[gang.Stage][m].Needs)
		}
	}
	c.order = descending(len(c.needs), func(g int) float64 { return c.needs[g].dominant(&c.scale) })
	return c
}

// search tries choices of domains until one is enough, maxChoices at most, and returns the best: the one that seems best, then with one gang after the
// other in the domain that seems second best for it, and so on.
func search[T any](c *chooser, try func(at []int) T, better func(a, b *T) bool, enough func(*T) bool) T {
	ranks := make([]int, len(c.gangs.List))
	c.choose(ranks)
	best := try(c.at)
	trials, filled := 1, c.filled
	for _, c.filled = range []int64{15, 14, 12, 8} { // what is packed too closely by amounts may not pack by instances
		if c.choose(ranks); enough(&best) {
			return best
		}
		trials++
		if r := try(c.at); better(&r, &best) {
			best, filled = r, c.filled
		}
	}
	c.filled = filled
	for rank, more := 1, true; more; rank++ {
		more = false
		for _, g := range c.order {
			if trials == maxChoices || enough(&best) {
				return best
			}
			before := ranks[g]
			ranks[g] = rank
			if !c.choose(ranks) {
				ranks[g] = before
				continue
			}
			more = true
			trials++
			if r := try(c.at); better(&r, &best) {
				best = r
			} else {
				ranks[g] = before
			}
		}
	}
	return best
}

// choose chooses the domain of each gang: the best in which it fits, or a later one by its rank. It reports whether there are as many.
func (c *chooser) choose(ranks []int) (enough bool) {
	c.at = make([]int, len(c.at)) // results keep the one before
	for g := range c.at {
		c.at[g] = -1
	}
	for l := range c.levels {
		clear(c.levels[l].most)
		for s := range c.levels[l].taken {
			clear(c.levels[l].taken[s])
		}
	}
	enough = true
	for _, g := range c.order {
		d, found := c.domain(g, ranks[g])
		enough = enough && (found || ranks[g] == 0)
		if c.at[g] = d; d >= 0 {
			c.take(g, d)
		}
	}
	return enough
}

// domain returns the domain of a rank among those in which a gang fits; if there are fewer, false and another one, or -1 if there is none at all.
func (c *chooser) domain(g, rank int) (domain int, found bool) {
	var tried []int
	for domain = -1; len(tried) < maxChoices; {
		d := c.best(g, tried, true)
		if d < 0 {
			break
		}
		tried = append(tried, d)
		if c.fits(g, d) {
			if domain = d; rank == 0 {
				return d, true
			}
			rank--
		}
	}
	if domain < 0 {
		domain = c.best(g, nil, false)
	}
	return domain, false
}

// best returns the domain that seems best for a gang, of those that were not tried: one with room for what it needs, if that is required. -1: there is
// none.
func (c *chooser) best(g int, tried []int, room bool) int {
	gang, best := &c.gangs.List[g], -1
	l := &c.levels[gang.Level]
	var keys [3]float64 // the less the better, the first counts most
	for d := range l.nodes {
		all := l.taken[gang.Stage][d].Plus(c.needs[g])
		most := l.room[d]
		if !l.taken[gang.Stage][d].IsZero() {
			most = sixteenths(most, c.filled)
		}
		short := all.Lacking(most)
		if room && !short.IsZero() || len(l.nodes[d]) == 0 || slices.Contains(tried, d) {
			continue
		}
		more := all.Lacking(l.most[d])
		of := [3]float64{more.size(&c.scale), -l.room[d].covers(&c.want, &c.wanted), l.sizes[d]}
		if !room {
			of[0] = short.size(&c.scale)
		}
		if best < 0 || slices.Compare(of[:], keys[:]) < 0 {
			best, keys = d, of
		}
	}
	return best
}

// fits reports whether a gang fits into a domain beside those of its stage and level that are there.
func (c *chooser) fits(g, domain int) bool {
	gang := &c.gangs.List[g]
	var side []Instance
	add := func(of *Gang) {
		for _, m := range of.Members {
			side = append(side, c.stages[gang.Stage][m])
		}
	}
	for i := range c.gangs.List {
		if of := &c.gangs.List[i]; of.Stage == gang.Stage && of.Level == gang.Level && c.at[i] == domain {
			add(of)
		}
	}
	add(gang)
	if len(side) > maxBeside {
		return true
	}
	nodes := c.levels[gang.Level].nodes[domain]
	room := make([]Amounts, len(nodes))
	for i, node := range nodes {
		room[i] = c.nodes[node]
	}
	return Packs(room, onParts(side, nodes))
}

// take notes that a gang is in a domain, and in those of other levels in which this one is.
func (c *chooser) take(g, domain int) {
	gang := &c.gangs.List[g]
	nodes := c.levels[gang.Level].nodes[domain]
	for l, domains := range c.gangs.Levels {
		in := domains[nodes[0]]
		if in < 0 || slices.ContainsFunc(nodes, func(node int) bool { return domains[node] != in }) {
			continue
		}
		of := &c.levels[l]
		of.taken[gang.Stage][in] = of.taken[gang.Stage][in].Plus(c.needs[g])
		of.most[in] = of.most[in].Max(of.taken[gang.Stage][in])
	}
}

// kept returns the stages with the gangs' members kept in their domains.
func (c *chooser) kept(at []int) [][]Instance {
	out := slices.Clone(c.stages)
	cloned := make([]bool, len(out))
	for g, gang := range c.gangs.List {
		if s := gang.Stage; !cloned[s] {
			out[s], cloned[s] = slices.Clone(out[s]), true
		}
		domains := c.gangs.Levels[gang.Level]
		for _, m := range gang.Members {
			of := c.stages[gang.Stage][m]
			out[gang.Stage][m].MayUse = func(node int) bool { return domains[node] == at[g] && at[g] >= 0 && of.mayUse(node) }
		}
	}
	return out
}

// sixteenths returns so many sixteenths of amounts.
func sixteenths(a Amounts, n int64) Amounts {
	if n == 16 {
		return a
	}
	return Amounts{a.CPU / 16 * n, a.MemoryMB / 16 * n, a.DiskMB / 16 * n, a.Cores * n / 16, a.Devices * n / 16}
}
