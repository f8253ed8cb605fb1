package workflow

import (
	"cmp"
	"slices"
)

// Packs reports whether all instances of a stage fit into parts side by side, as far as decreasing fits find. MayUse is called with
// indexes of parts. The stages that Pack was given pack into its parts in the order in which it returned them; in another one they
// may not.
func Packs(parts []Amounts, stage []Instance) bool {
	_, ok := fit(parts, stage)
	return ok
}

// fit assigns the instances of a stage to parts, by several orders: largest first, or first those that may use the fewest parts; each
// into the first part that has room, or into the one that has the least beside it. It returns the part of each instance, and
// false if no order finds one for all. The first that it tries is what [Pack] does.
func fit(parts []Amounts, stage []Instance) ([]int, bool) {
	f := fitting{parts: parts, stage: stage, left: make([]Amounts, len(parts)), assigned: make([]int, len(stage))}
	var most Amounts
	for p := range parts {
		most = most.Max(parts[p])
	}
	f.most = scaleOf(most)
	if !Total(stage).Fits(total(parts)) {
		return nil, false
	}
	order := largestFirst(stage)
	if f.firstFit(order) || f.bestFit(order) {
		return f.assigned, true
	}
	if slices.ContainsFunc(stage, func(i Instance) bool { return i.MayUse != nil }) {
		order = f.fewestFirst(order)
		if f.firstFit(order) || f.bestFit(order) {
			return f.assigned, true
		}
	}
	return nil, false
}

// fitting is the work of assigning a stage to parts.
type fitting struct {
	parts    []Amounts
	stage    []Instance
	most     scale // of the largest part of each resource
	left     []Amounts
	assigned []int
}

// firstFit assigns each instance to the first part that has room.
func (f *fitting) firstFit(order []int) bool {
	f.start()
	for _, i := range order {
		needs, part := f.stage[i].Needs, 0
		for part < len(f.left) && (!needs.Fits(f.left[part]) || !f.stage[i].mayTake(part)) {
			part++
		}
		if part == len(f.left) {
			return false
		}
		f.assign(i, part)
	}
	return true
}

// bestFit assigns each instance to the part that has the least beside it.
func (f *fitting) bestFit(order []int) bool {
	f.start()
	for _, i := range order {
		best, least := -1, 0.0
		for b := range f.left {
			if !f.stage[i].Needs.Fits(f.left[b]) || !f.stage[i].mayTake(b) {
				continue
			}
			rest := f.left[b].Minus(f.stage[i].Needs)
			if size := rest.size(&f.most); best < 0 || size < least {
				best, least = b, size
			}
		}
		if best < 0 {
			return false
		}
		f.assign(i, best)
	}
	return true
}

// start makes everything as it is before the first instance is assigned.
func (f *fitting) start() {
	copy(f.left, f.parts)
	empty(f.stage)
}

func (f *fitting) assign(instance, part int) {
	f.stage[instance].move(part, 1)
	f.assigned[instance] = part
	f.left[part] = f.left[part].Minus(f.stage[instance].Needs)
}

// fewestFirst orders instances by how many parts they may use and would fit into if those were empty.
func (f *fitting) fewestFirst(order []int) []int {
	usable := make([]int, len(f.stage))
	for i := range f.stage {
		for b := range f.parts {
			if f.stage[i].Needs.Fits(f.parts[b]) && f.stage[i].mayUse(b) {
				usable[i]++
			}
		}
	}
	order = slices.Clone(order)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(usable[a], usable[b]) })
	return order
}

// largestFirst returns the indexes of a stage's instances, those first that are placed, by their dominant shares of what the stage needs, the largest first, of
// equal ones the first named.
func largestFirst(stage []Instance) []int {
	sum := scaleOf(Total(stage))
	return descending(len(stage), func(i int) float64 {
		share := stage[i].Needs.dominant(&sum)
		if stage[i].Placed {
			share += 2 // no share is above 1
		}
		return share
	})
}

// descending returns the indexes 0 to n-1 by a key, the largest first, of equal ones the lowest.
func descending(n int, key func(i int) float64) []int {
	order, keys := make([]int, n), make([]float64, n)
	for i := range order {
		order[i], keys[i] = i, key(i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
	return order
}

// Assign returns the node of each instance of one of the stages, by itself in parts as it is placed in them later; false: it does not pack into them.
func Assign(parts []Part, stages [][]Instance, s int, gangs Gangs) (on []int, ok bool) {
	p := packer{parts: parts}
	amounts, nodes := p.lists()
	of := gangs.on(nodes)
	of.List, of.Distinct = nil, nil
	for _, g := range gangs.List {
		if g.Stage == s {
			g.Stage = 0
			of.List = append(of.List, g)
		}
	}
	for _, d := range gangs.Distinct {
		if d.Stage == s {
			d.Stage = 0
			of.Distinct = append(of.Distinct, d)
		}
	}
	assigned, ok := fitGangs(amounts, onParts(stages[s], nodes), of)
	for _, part := range assigned {
		on = append(on, nodes[part])
	}
	return on, ok
}
