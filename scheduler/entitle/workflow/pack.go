package workflow

import "slices"

// maxRepairs bounds how often Pack enlarges the parts because a stage that was packed does not pack any more into larger ones.
const maxRepairs = 32

// Part is what a reservation has of one node.
type Part struct {
	Node    int // its index in the nodes that Pack was given
	Amounts Amounts
}

// Packing is how a reservation lies on nodes.
type Packing struct {
	// Parts are at most one for each node. If something is missing, they are what could be kept of it meanwhile.
	Parts []Part
	// Enlarged is by how much the parts are above what was to be reserved, because the stages do not pack into that.
	Enlarged Amounts
	// Missing is what the nodes would need to have free beside what they have, where it is needed: zero if all is packed.
	Missing Amounts
	// Apart: it is missing only because gangs have to be in one domain, or others in distinct ones, see [PackGangs].
	Apart bool
}

// Pack chooses what a reservation takes of nodes that have this free, so that each stage packs into it by itself. It reserves
// at least want (see [Reserve.Amounts]), and at least the largest stage, per resource.
//
// The largest stage is packed first, and in a stage the largest instance, by dominant shares; of equal ones the first named. An
// instance goes into a part that has room beside the others of its stage; else it enlarges the part that grows least by it; else
// it opens a part, on the node that has most of what is not reserved yet, of equal ones the smallest, so that the nodes are few.
// Then the parts grow where their nodes have room until all that is wanted is reserved, and further parts are opened for
// the rest, on nodes that an instance may use.
func Pack(nodes []Amounts, stages [][]Instance, want Amounts) Packing {
	return packBeside(nodes, nil, stages, want, 0)
}

// packBeside is Pack beside parts that are there, see [PackBeside].
func packBeside(nodes []Amounts, has []Part, stages [][]Instance, want Amounts, perCore int64) Packing {
	p := newPacker(nodes, has, stages, want, perCore)
	for _, s := range p.order() {
		p.pack(stages[s])
	}
	p.grow()
	p.repair()
	return p.result()
}

func newPacker(nodes []Amounts, has []Part, stages [][]Instance, want Amounts, perCore int64) packer {
	p := packer{free: nodes, stages: stages, perCore: perCore, partOf: make([]int, len(nodes)), sizes: make([]float64, len(nodes)), all: make([]int, 0, len(nodes))}
	var most, all Amounts
	for n, free := range nodes {
		p.partOf[n], p.all = -1, append(p.all, n)
		most, all = most.Max(free), all.Plus(free)
	}
	p.most, p.total = scaleOf(most), scaleOf(all)
	for n, free := range nodes {
		p.sizes[n] = free.size(&p.most)
	}
	p.want = want.Max(Amounts{})
	for s := range stages {
		p.want = p.want.Max(Total(stages[s]))
	}
	for i := range has {
		p.add(p.part(has[i].Node), has[i].Amounts)
	}
	return p
}

// order returns the stages' indexes, the largest first.
func (p *packer) order() []int {
	totals := make([]Amounts, len(p.stages))
	for s := range p.stages {
		totals[s] = Total(p.stages[s])
	}
	return descending(len(totals), func(s int) float64 { return totals[s].dominant(&p.total) })
}

// packer is the work of packing stages. Parts may be larger than what is free of their nodes: that is missing.
type packer struct {
	free        []Amounts
	all         []int // the nodes
	stages      [][]Instance
	sizes       []float64 // of the nodes, in fractions of the largest
	most, total scale     // of what is free: on one node, on all
	want        Amounts
	perCore     int64 // MHz of a core; 0: not known
	parts       []Part
	reserved    Amounts   // the parts' sum
	left        []Amounts // of each part, in the stage that is being packed
	partOf      []int     // of each node, or -1
	homeless    Amounts   // what instances need for which there is no node
}

// pack packs a stage into the parts, which it enlarges, and opens, as need be.
func (p *packer) pack(stage []Instance) {
	p.left = p.left[:0]
	for i := range p.parts {
		p.left = append(p.left, p.parts[i].Amounts)
	}
	for _, i := range largestFirst(stage) {
		p.place(&stage[i])
	}
}

// place packs one instance.
func (p *packer) place(i *Instance) {
	if at := p.find(i); at >= 0 {
		p.add(at, i.Needs.Lacking(p.left[at]))
		p.left[at] = p.left[at].Minus(i.Needs)
	}
}

// find returns the part for one instance, opened if need be; -1: it may use no node.
func (p *packer) find(i *Instance) int {
	for at := range p.left {
		if i.Needs.Fits(p.left[at]) && i.mayTake(p.parts[at].Node) {
			return at
		}
	}
	node := p.enlarge(i)
	if node < 0 {
		node = p.open(i.Needs, i.mayTake)
	}
	if node < 0 {
		node = p.nearest(i)
	}
	if node < 0 {
		p.misses(i.Needs)
		return -1
	}
	return p.part(node)
}

// misses notes that there is no node for what needs some amounts.
func (p *packer) misses(needs Amounts) { p.homeless = p.homeless.Plus(atLeastSome(needs)) }

// atLeastSome returns what is missing where there is no node for what needs some amounts: if that is nothing, 1 MHz, since all is packed where nothing is
// missing.
func atLeastSome(needs Amounts) Amounts {
	if needs.IsZero() {
		needs.CPU = 1
	}
	return needs
}

// part returns the index of a node's part, which it opens if there is none.
func (p *packer) part(node int) int {
	if p.partOf[node] < 0 {
		p.partOf[node] = len(p.parts)
		p.parts, p.left = append(p.parts, Part{Node: node}), append(p.left, Amounts{})
	}
	return p.partOf[node]
}

// add enlarges a part.
func (p *packer) add(at int, more Amounts) {
	p.parts[at].Amounts = p.parts[at].Amounts.Plus(more)
	p.left[at] = p.left[at].Plus(more)
	p.reserved = p.reserved.Plus(more)
}

// enlarge returns the node whose part grows least if it gets an instance, as far as the node has room, or -1.
func (p *packer) enlarge(i *Instance) int {
	node, least := -1, 0.0
	for at := range p.parts {
		more := i.Needs.Lacking(p.left[at])
		if !more.Plus(p.parts[at].Amounts).Fits(p.free[p.parts[at].Node]) {
			continue
		}
		if size := more.size(&p.most); (node < 0 || size < least) && i.mayTake(p.parts[at].Node) {
			node, least = p.parts[at].Node, size
		}
	}
	return node
}

// open returns the node for a new part that has room for some amounts and covers most of what is not reserved yet; of equal ones the
// smallest. It returns -1 if there is none.
func (p *packer) open(needs Amounts, mayUse func(node int) bool) int {
	return p.openOf(needs, p.all, mayUse)
}

// openOf does so among some nodes.
func (p *packer) openOf(needs Amounts, of []int, mayUse func(node int) bool) int {
	rest := p.want.Lacking(p.reserved).Max(needs)
	scale := scaleOf(rest)
	best, covers, least := -1, 0.0, 0.0
	for _, n := range of {
		if p.partOf[n] >= 0 || !needs.Fits(p.free[n]) {
			continue
		}
		covered := p.free[n].covers(&rest, &scale)
		if best >= 0 && covered < covers {
			continue
		}
		size := p.sizes[n]
		if (best < 0 || covered > covers || size < least) && mayUse(n) {
			best, covers, least = n, covered, size
		}
	}
	return best
}

// nearest returns the node that would need least beside what it has free to take an instance, or -1 if it may use none.
func (p *packer) nearest(i *Instance) int { return p.nearestOf(i, p.all) }

// nearestOf does so among some nodes.
func (p *packer) nearestOf(i *Instance, of []int) int {
	node, least := -1, 0.0
	for _, n := range of {
		if !i.mayTake(n) {
			continue
		}
		short := i.Needs.Minus(p.free[n]) // negative where there is more
		if at := p.partOf[n]; at >= 0 {
			short = i.Needs.Minus(p.left[at]).Minus(p.free[n].Lacking(p.parts[at].Amounts))
		}
		if most := max(0, short.dominant(&p.total)); node < 0 || most < least {
			node, least = n, most
		}
	}
	return node
}

// grow enlarges parts, and opens further ones, until all that is wanted is reserved or no node has more: whole cores with their MHz on the same node as far as may
// be, without which nobody could use them, and MHz beside those where the parts are.
func (p *packer) grow() {
	if p.perCore > 0 {
		p.growBy(func(rest, has, free Amounts) Amounts {
			more := rest.Min(free)
			more.Cores = max(0, min(more.Cores, (has.CPU+more.CPU)/p.perCore-has.Cores))
			theirs, others := (has.Cores+more.Cores)*p.perCore-has.CPU, (rest.Cores-more.Cores)*p.perCore
			more.CPU = min(more.CPU, max(0, theirs, rest.CPU-others))
			return more
		})
	}
	p.growBy(func(rest, _, free Amounts) Amounts { return rest.Min(free) })
}

// growBy is grow with what of the rest is taken for a part of what is free of its node.
func (p *packer) growBy(take func(rest, has, free Amounts) Amounts) {
	for at := 0; ; at++ {
		rest := p.want.Lacking(p.reserved)
		if rest.IsZero() {
			return
		}
		if at == len(p.parts) {
			node := p.open(Amounts{}, p.usable)
			if node < 0 || take(rest, Amounts{}, p.free[node]).Max(Amounts{}).IsZero() {
				return
			}
			p.part(node)
		}
		has := p.parts[at].Amounts
		p.add(at, take(rest, has, p.free[p.parts[at].Node].Lacking(has)))
	}
}

// usable reports whether any instance may use a node.
func (p *packer) usable(node int) bool {
	for _, stage := range p.stages {
		for i := range stage {
			if stage[i].mayUse(node) {
				return true
			}
		}
	}
	return false
}

// repair packs stages once more that do not pack into the parts as they have become: a decreasing fit may fail in larger parts
// although it succeeded in smaller ones. [Packs] is what decides, since it is what placing the stage later relies on.
func (p *packer) repair() {
	p.repairBy(func(s int) bool { return p.packs(p.stages[s]) }, func(s int) { p.pack(p.stages[s]) })
}

// repairBy does so by what reports whether a stage packs, and what packs it.
func (p *packer) repairBy(packs func(s int) bool, pack func(s int)) {
	for range maxRepairs {
		if !p.missing().IsZero() {
			return
		}
		failed := false
		for s := range p.stages {
			if !packs(s) {
				pack(s)
				failed = true
			}
		}
		if !failed {
			return
		}
	}
	for s, stage := range p.stages {
		if !packs(s) {
			p.homeless = p.homeless.Max(atLeastSome(Total(stage)))
		}
	}
}

// packs reports whether a stage packs into the parts.
func (p *packer) packs(stage []Instance) bool {
	amounts, nodes := p.lists()
	return Packs(amounts, onParts(stage, nodes))
}

// lists returns what each part has, and the node on which it is.
func (p *packer) lists() (amounts []Amounts, nodes []int) {
	amounts, nodes = make([]Amounts, len(p.parts)), make([]int, len(p.parts))
	for i, part := range p.parts {
		amounts[i], nodes[i] = part.Amounts, part.Node
	}
	return amounts, nodes
}

// missing returns what the nodes would need to have free beside what they have.
func (p *packer) missing() Amounts {
	sum := p.homeless.Plus(p.want.Lacking(p.reserved.Plus(p.homeless)))
	for _, part := range p.parts {
		sum = sum.Plus(part.Amounts.Lacking(p.free[part.Node]))
	}
	return sum
}

// result returns the packing; what is missing is in no part.
func (p *packer) result() Packing {
	out := Packing{Parts: p.parts, Missing: p.missing(), Enlarged: p.reserved.Lacking(p.want)}
	for i := range out.Parts {
		part := &out.Parts[i]
		part.Amounts = part.Amounts.Min(p.free[part.Node].Max(Amounts{}))
	}
	if !out.Missing.IsZero() {
		out.Parts = slices.DeleteFunc(out.Parts, func(part Part) bool { return part.Amounts.IsZero() })
	}
	return out
}
