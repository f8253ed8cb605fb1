// Package resources is amounts of what nodes have, and of what is withheld or taken of it, as they are added up and compared.
package resources

// What is lacking of a node, of what is counted.
const (
	LacksCPU     = "cpu"
	LacksMemory  = "memory"
	LacksDisk    = "disk"
	LacksCores   = "cores"
	LacksDevices = "devices"
)

// Vector is an amount of what can be added up: processor in MHz, memory and disk
// in MiB. What has names (ports, cores, devices) is apart.
type Vector struct {
	CPU      int64
	MemoryMB int64
	DiskMB   int64
}

// Plus returns the sum.
func (v Vector) Plus(o Vector) Vector {
	return Vector{v.CPU + o.CPU, v.MemoryMB + o.MemoryMB, v.DiskMB + o.DiskMB}
}

// Minus returns the difference, which may be below zero.
func (v Vector) Minus(o Vector) Vector {
	return Vector{v.CPU - o.CPU, v.MemoryMB - o.MemoryMB, v.DiskMB - o.DiskMB}
}

// Resources is what is withheld on a node, or taken of it.
type Resources struct {
	Amount  Vector // CPU with the MHz of the whole cores
	Cores   int
	Devices int
}

// Plus returns the sum.
func (h Resources) Plus(o Resources) Resources {
	return Resources{h.Amount.Plus(o.Amount), h.Cores + o.Cores, h.Devices + o.Devices}
}

// each combines two amounts resource by resource.
func (h Resources) each(o Resources, f func(a, b int64) int64) Resources {
	return Resources{
		Vector{f(h.Amount.CPU, o.Amount.CPU), f(h.Amount.MemoryMB, o.Amount.MemoryMB), f(h.Amount.DiskMB, o.Amount.DiskMB)},
		int(f(int64(h.Cores), int64(o.Cores))), int(f(int64(h.Devices), int64(o.Devices))),
	}
}

// Less returns the difference, of each resource at least 0.
func (h Resources) Less(o Resources) Resources {
	return h.each(o, func(a, b int64) int64 { return max(0, a-b) })
}

// Within returns what both have of each resource.
func (h Resources) Within(o Resources) Resources {
	return h.each(o, func(a, b int64) int64 { return min(a, b) })
}

// Lacks reports of which resource there is less than is requested; "": of none.
func (h Resources) Lacks(request Resources) string {
	switch {
	case request.Amount.CPU > h.Amount.CPU:
		return LacksCPU
	case request.Amount.MemoryMB > h.Amount.MemoryMB:
		return LacksMemory
	case request.Amount.DiskMB > h.Amount.DiskMB:
		return LacksDisk
	case request.Cores > h.Cores:
		return LacksCores
	case request.Devices > h.Devices:
		return LacksDevices
	}
	return ""
}

// Holds returns how many of a request there is room for, at most so many.
func (h Resources) Holds(request Resources, most int) int {
	n := int64(most)
	for _, of := range [][2]int64{
		{h.Amount.CPU, request.Amount.CPU}, {h.Amount.MemoryMB, request.Amount.MemoryMB}, {h.Amount.DiskMB, request.Amount.DiskMB},
		{int64(h.Cores), int64(request.Cores)}, {int64(h.Devices), int64(request.Devices)},
	} {
		if of[1] > 0 {
			n = min(n, max(0, of[0])/of[1])
		}
	}
	return int(n)
}

// Times returns so much so many times.
func (h Resources) Times(n int) Resources {
	return h.each(Resources{}, func(a, _ int64) int64 { return a * int64(n) })
}

// Group is instances of which as many as Least start together, and that need so much Each.
type Group struct {
	Each  Resources
	Least int
}

// MayHold reports whether rooms may have room for as many of some groups as start together, as far as sums say, and how many instances of each group they hold.
func MayHold(rooms []Resources, groups []Group) bool {
	var sum, need Resources
	for _, room := range rooms {
		sum = sum.Plus(room)
	}
	for _, g := range groups {
		left := g.Least
		for _, room := range rooms {
			n := room.Holds(g.Each, left)
			left, need = left-n, need.Plus(g.Each.Times(n))
		}
		if left > 0 {
			return false
		}
	}
	return sum.Lacks(need) == ""
}
