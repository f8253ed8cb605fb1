package workflow

import "slices"

// Amounts is an amount of each resource that a workflow reserves. Licenses are counted apart, see [License].
type Amounts struct {
	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
	Cores    int64 // whole cores
	Devices  int64 // whole devices
}

// resources is how many resources there are.
const resources = 5

// names are the resources' names as users write them.
var names = [resources]string{"cpu", "memory", "disk", "cores", "gpus"}

// of returns the amount of the r-th resource.
func (a *Amounts) of(r int) int64 {
	switch r {
	case 0:
		return a.CPU
	case 1:
		return a.MemoryMB
	case 2:
		return a.DiskMB
	case 3:
		return a.Cores
	default:
		return a.Devices
	}
}

// Plus returns the sum of two amounts.
func (a Amounts) Plus(b Amounts) Amounts {
	return Amounts{a.CPU + b.CPU, a.MemoryMB + b.MemoryMB, a.DiskMB + b.DiskMB, a.Cores + b.Cores, a.Devices + b.Devices}
}

// Minus returns the difference of two amounts, which may be negative.
func (a Amounts) Minus(b Amounts) Amounts {
	return Amounts{a.CPU - b.CPU, a.MemoryMB - b.MemoryMB, a.DiskMB - b.DiskMB, a.Cores - b.Cores, a.Devices - b.Devices}
}

// Lacking returns what a has more than b of each resource: what is missing of a where b is.
func (a Amounts) Lacking(b Amounts) Amounts { return a.Minus(b).Max(Amounts{}) }

// Max returns the larger amount of each resource.
func (a Amounts) Max(b Amounts) Amounts {
	return Amounts{max(a.CPU, b.CPU), max(a.MemoryMB, b.MemoryMB), max(a.DiskMB, b.DiskMB), max(a.Cores, b.Cores), max(a.Devices, b.Devices)}
}

// Min returns the smaller amount of each resource.
func (a Amounts) Min(b Amounts) Amounts {
	return Amounts{min(a.CPU, b.CPU), min(a.MemoryMB, b.MemoryMB), min(a.DiskMB, b.DiskMB), min(a.Cores, b.Cores), min(a.Devices, b.Devices)}
}

// Fits reports whether a is at most b in each resource.
func (a Amounts) Fits(b Amounts) bool {
	return a.CPU <= b.CPU && a.MemoryMB <= b.MemoryMB && a.DiskMB <= b.DiskMB && a.Cores <= b.Cores && a.Devices <= b.Devices
}

// IsZero reports whether nothing is in it.
func (a Amounts) IsZero() bool { return a == Amounts{} }

// scale is one divided by an amount of each resource, or 0 where there is none, so that fractions of the amount cost no division.
// Products are converted explicitly, which keeps them from being fused with sums: results are the same on all machines.
type scale [resources]float64

// scaleOf returns the scale by which an amount is 1 in each resource that it has.
func scaleOf(a Amounts) (s scale) {
	for r := range resources {
		if x := a.of(r); x > 0 {
			s[r] = 1 / float64(x)
		}
	}
	return s
}

// dominant returns the largest fraction in any resource.
func (a *Amounts) dominant(s *scale) float64 {
	return max(float64(a.CPU)*s[0], float64(a.MemoryMB)*s[1], float64(a.DiskMB)*s[2], float64(a.Cores)*s[3], float64(a.Devices)*s[4])
}

// size returns the sum of the fractions.
func (a *Amounts) size(s *scale) float64 {
	return float64(float64(a.CPU)*s[0]) + float64(float64(a.MemoryMB)*s[1]) + float64(float64(a.DiskMB)*s[2]) +
		float64(float64(a.Cores)*s[3]) + float64(float64(a.Devices)*s[4])
}

// covers returns how much there is in a of what is needed: the sum of the fractions, of which each is 1 at most. The scale is that
// of what is needed.
func (a *Amounts) covers(needs *Amounts, s *scale) float64 {
	return covered(a.CPU, needs.CPU, s[0]) + covered(a.MemoryMB, needs.MemoryMB, s[1]) + covered(a.DiskMB, needs.DiskMB, s[2]) +
		covered(a.Cores, needs.Cores, s[3]) + covered(a.Devices, needs.Devices, s[4])
}

// covered returns which fraction of what is needed there is. All of it is 1, not what the product would be rounded to.
func covered(has, needs int64, scale float64) float64 {
	switch {
	case needs <= 0 || has <= 0:
		return 0
	case has >= needs:
		return 1
	default:
		return float64(float64(has) * scale)
	}
}

// Instance is one allocation that a stage needs.
type Instance struct {
	Needs Amounts
	// MayUse reports whether a node may be used, by its index in what is packed into: nodes of Pack, parts of Packs and
	// TakeBack. It is called several times for a node; nil is every node.
	MayUse func(node int) bool
	// Placed: it is where it is, on the one node that it may use. It is packed before those that are not.
	Placed bool
	// tallies count it with the others that have to be in distinct domains.
	tallies []*tally
}

// mayUse reports whether the instance may use a node, whatever else is packed.
func (i *Instance) mayUse(node int) bool {
	return (i.MayUse == nil || i.MayUse(node)) && !slices.ContainsFunc(i.tallies, func(t *tally) bool { return t.domains[node] < 0 })
}

// Total returns what all instances of a stage need.
func Total(stage []Instance) (sum Amounts) {
	for i := range stage {
		sum = sum.Plus(stage[i].Needs)
	}
	return sum
}

// total returns the sum of some amounts.
func total(amounts []Amounts) (sum Amounts) {
	for i := range amounts {
		sum = sum.Plus(amounts[i])
	}
	return sum
}
