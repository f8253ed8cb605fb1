package workflow

import "slices"

// Distinct is instances of a stage of which at most some may be in one domain, as one on each node.
type Distinct struct {
	Stage   int   // its index
	Members []int // indexes of the stage's instances
	Level   int   // index of [Gangs.Levels]; no member may be on a node that is in no domain
	Most    int   // how many of the members a domain takes, from 1
	// Name says whose instances they are. Property is that of which no more than so many may share a value; "": one node is one domain.
	Name, Property string
	needs          Amounts // the least of those that are looked at
}

// Crowded is instances for which there are too few domains, and how many of them these take at most.
type Crowded struct {
	*Distinct
	Room int
}

// Crowded returns the first of the instances that have to be in distinct domains for which these are too few on nodes that have this free, so that no order
// of packing helps; nil: none is known to be.
func (g Gangs) Crowded(nodes []Amounts, stages [][]Instance) *Crowded {
	areas := g.areas()
	for i := range g.Distinct {
		d := &g.Distinct[i]
		if len(d.Members) == 0 {
			continue
		}
		if room := d.room(nodes, areas[d.Level].nodes, stages[d.Stage], d.Members, leastOf(stages[d.Stage], d.Members)); room < int64(len(d.Members)) {
			return &Crowded{d, int(room)}
		}
	}
	return nil
}

// room returns how many of some of its members domains take at most if all of them need as little as the least does.
func (d *Distinct) room(nodes []Amounts, domains [][]int, stage []Instance, members []int, least Amounts) (sum int64) {
	for _, domain := range domains {
		count := int64(0)
		for _, n := range domain {
			if slices.ContainsFunc(members, func(m int) bool { return stage[m].Needs.Fits(nodes[n]) && stage[m].mayUse(n) }) {
				count += least.times(&nodes[n], int64(d.Most))
			}
		}
		sum += min(count, int64(d.Most))
	}
	return sum
}

// of returns those of some instances that are members.
func (d *Distinct) of(instances []int) (members []int) {
	is := d.set()
	for _, m := range instances {
		if is[m] {
			members = append(members, m)
		}
	}
	return members
}

// set returns the members, to be looked up.
func (d *Distinct) set() map[int]bool {
	is := make(map[int]bool, len(d.Members))
	for _, m := range d.Members {
		is[m] = true
	}
	return is
}

// among returns the distinct instances of a stage that are among some of its instances, as those of a stage which consists of these.
func (g Gangs) among(stage int, instances []int, as int) (list []Distinct) {
	for _, d := range g.Distinct {
		if d.Stage != stage {
			continue
		}
		own, is := d, d.set()
		own.Stage, own.Members = as, nil
		for k, m := range instances {
			if is[m] {
				own.Members = append(own.Members, k)
			}
		}
		if len(own.Members) > 0 {
			list = append(list, own)
		}
	}
	return list
}

// tally counts the members of a [Distinct] in each domain, in the stage that is being packed.
type tally struct {
	domains []int // of each node, or -1
	most    int
	count   map[int]int // by domain; looked up only
}

// counted returns stages whose instances are counted where they have to be in distinct domains.
func (g Gangs) counted(stages [][]Instance) [][]Instance {
	if len(g.Distinct) == 0 {
		return stages
	}
	stages = slices.Clone(stages)
	for s := range stages {
		stages[s] = slices.Clone(stages[s])
		for i := range stages[s] {
			stages[s][i].tallies = nil
		}
	}
	for _, d := range g.Distinct {
		t := &tally{g.Levels[d.Level], d.Most, map[int]int{}}
		for _, m := range d.Members {
			i := &stages[d.Stage][m]
			i.tallies = append(i.tallies, t)
		}
	}
	return stages
}

// empty forgets where instances of a stage were packed.
func empty(stage []Instance) {
	for i := range stage {
		for _, t := range stage[i].tallies {
			clear(t.count)
		}
	}
}

// mayTake reports whether the instance may use a node beside those that are packed.
func (i *Instance) mayTake(node int) bool {
	for _, t := range i.tallies {
		if d := t.domains[node]; d < 0 || t.count[d] >= t.most {
			return false
		}
	}
	return i.MayUse == nil || i.MayUse(node)
}

// move counts that the instance is packed on a node (1), or is not any more (-1).
func (i *Instance) move(node, by int) {
	for _, t := range i.tallies {
		t.count[t.domains[node]] += by
	}
}

// usable returns how many nodes may be used, at least 1, by those of some instances that have to be in distinct domains, by which of them the fewest are; 0:
// none has to be.
func usable(stage []Instance, members []int) (fewest int) {
	for _, m := range members {
		i := &stage[m]
		if len(i.tallies) == 0 {
			continue
		}
		n := 0
		for node := range i.tallies[0].domains {
			if i.mayUse(node) {
				n++
			}
		}
		if n = max(1, n); fewest == 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}

// onParts returns a stage whose instances' nodes are given as parts, of which each is on one of the nodes. None of them is packed.
func onParts(stage []Instance, nodes []int) []Instance {
	out := make([]Instance, len(stage))
	var tallies map[*tally]*tally // looked up only
	for i, instance := range stage {
		out[i].Needs, out[i].Placed = instance.Needs, instance.Placed
		if instance.MayUse != nil {
			out[i].MayUse = func(part int) bool { return instance.MayUse(nodes[part]) }
		}
		for _, t := range instance.tallies {
			own := tallies[t]
			if own == nil {
				own = &tally{domains: make([]int, len(nodes)), most: t.most, count: map[int]int{}}
				for part, node := range nodes {
					own.domains[part] = t.domains[node]
				}
				if tallies == nil {
					tallies = map[*tally]*tally{}
				}
				tallies[t] = own
			}
			out[i].tallies = append(out[i].tallies, own)
		}
	}
	return out
}
