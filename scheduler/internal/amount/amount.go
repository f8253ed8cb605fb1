// Package amount is what can be added up of requests and of what nodes have free: bounds, as names (ports, cores, the places of devices) are not looked
// at. It must never decide whether something fits.
package amount

import (
	"cmp"
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// Amount is what can be added up of a request or of what is free, whole devices of any kind among
// it. Shares of a device are left out.
type Amount struct {
	Devices int64
	world.Vector
}

// Add returns the sum.
func (a Amount) Add(o Amount) Amount { return Amount{a.Devices + o.Devices, a.Plus(o.Vector)} }

// Times returns the amount of so many.
func (a Amount) Times(n int) Amount {
	k := int64(n)
	return Amount{a.Devices * k, world.Vector{CPU: a.CPU * k, MemoryMB: a.MemoryMB * k, DiskMB: a.DiskMB * k}}
}

// Fits returns how many requests fit into what is free, at most.
func (a Amount) Fits(request Amount) int64 {
	most := int64(math.MaxInt32)
	for _, d := range [...][2]int64{{a.Devices, request.Devices}, {a.CPU, request.CPU}, {a.MemoryMB, request.MemoryMB}, {a.DiskMB, request.DiskMB}} {
		if d[1] > 0 {
			most = min(most, max(0, d[0])/d[1])
		}
	}
	return most
}

// Compare compares two amounts, devices first.
func Compare(a, b Amount) int {
	return cmp.Or(cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMB, b.MemoryMB))
}

// OfRequest is what of a request can be added up.
func OfRequest(a *search.Request) Amount {
	out := Amount{Vector: a.Amount}
	for i := range a.Devices {
		out.Devices += int64(a.Devices[i].Whole())
	}
	return out
}

// Free is what of a node is free, at most.
func Free(n *world.NodeState) Amount {
	return Amount{Devices: int64(n.FreeDevices()), Vector: n.Free()}
}

// Indexed is Free of a node as an index has it.
func Indexed(n *world.NodeState) Amount {
	if n.Dirty || n.Indexed.Family == "" {
		return Free(n)
	}
	out := Amount{Devices: n.Indexed.At[world.DimGPUs], Vector: n.Free()}
	if n.Reservation != nil {
		out.Devices += int64(n.Reservation.Devices)
	}
	for _, p := range n.Parts() {
		out.Devices += int64(p.Idle.Devices)
	}
	return out
}

// OfVector returns what an index shows.
func OfVector(v bucket.Vector) Amount {
	return Amount{v[world.DimGPUs], world.Vector{CPU: v[world.DimCPU], MemoryMB: v[world.DimMemory], DiskMB: v[world.DimDisk]}}
}

// LargestFirst returns the places of some amounts, those of the largest first.
func LargestFirst(of []Amount) []int {
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return Compare(of[b], of[a]) })
	return order
}

// ReservedByClass adds up what requests have reserved, by the class of its node.
func ReservedByClass(e *world.Edit) map[string]Amount {
	reserved := map[string]Amount{}
	for id, h := range world.Reservations(world.Base(e)).All {
		if n, known := world.StateOf(e, id); known && n.Node != nil {
			class := n.Node.ComputedClass
			reserved[class] = reserved[class].Add(Amount{Devices: int64(h.Devices), Vector: h.Amount})
		}
	}
	return reserved
}
