package slots

// Volume is an amount of what slots and instances have: thousandths of a core, MiB and whole devices.
type Volume struct {
	MilliCores int64
	MemoryMB   int64
	GPUs       int64
}

// Cost returns how many slots of their project instances of a volume use: as many as their cores and devices need, at least one.
func Cost(of, slot Volume) int {
	return int(max(1, ratio(of.MilliCores, slot.MilliCores), ratio(of.GPUs, slot.GPUs)))
}

// Guards returns how many slots beyond its cost an instance keeps free of others on its node, as it requests more memory than belongs to its slots.
func Guards(of, slot Volume, cost int) int {
	return int(max(0, ratio(of.MemoryMB, slot.MemoryMB)-int64(cost)))
}

// ratio is n ÷ by, rounded up; 0 if there is nothing to divide by.
func ratio(n, by int64) int64 {
	if by <= 0 || n <= 0 {
		return 0
	}
	return (n + by - 1) / by
}

// IsLight reports whether an instance requests at most a part of each of a slot's amounts: it may run in a guard.
func IsLight(of, slot Volume, part float64) bool {
	atMost := func(n, whole int64) bool { return float64(n) <= part*float64(whole) }
	return atMost(of.MilliCores, slot.MilliCores) && atMost(of.MemoryMB, slot.MemoryMB) && atMost(of.GPUs, slot.GPUs)
}

// NodeUse is what instances use of a node's slots of one type.
type NodeUse struct {
	Slots  int // what those cost that are not light
	Guards int // that they keep free of others
	Lights int // light instances: each is in a guard, or uses a slot
}

// Add returns the use with one instance more.
func (u NodeUse) Add(cost, guards int, light bool) NodeUse { return u.add(1, cost, guards, light) }

// Remove returns the use with one instance less.
func (u NodeUse) Remove(cost, guards int, light bool) NodeUse { return u.add(-1, cost, guards, light) }

func (u NodeUse) add(sign, cost, guards int, light bool) NodeUse {
	if light {
		u.Lights += sign
		return u
	}
	u.Slots += sign * cost
	u.Guards += sign * guards
	return u
}

// Taken returns how many of the node's slots are not left for others: light instances use slots as far as there are more of them than guards.
func (u NodeUse) Taken() int { return u.Slots + u.Guards + max(0, u.Lights-u.Guards) }
