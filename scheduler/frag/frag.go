package frag

import (
	"cmp"
	"math"
	"slices"
)

// Whole is a whole device, in thousandths.
const Whole = 1000

// Request is what one typical instance wants of a node.
type Request struct {
	// CPU and Memory are in the caller's units; 0 or less is none.
	CPU, Memory int64
	// Count is how many devices, at least 1; Share what of each, in thousandths. A share
	// of 0, and one of Whole and above, is the whole device.
	Count, Share int
	// Weight is how often this is requested. 0 or less counts as never.
	Weight int64
	// Scarcity is all devices divided by those that the request may use, anywhere: what the
	// request's part is multiplied by. Less than 1 counts as 1.
	Scarcity float64
}

// share is the share as it counts.
func (a *Request) share() int64 {
	if a.Share <= 0 || a.Share > Whole {
		return Whole
	}
	return int64(a.Share)
}

// Room is what a node has left.
type Room struct {
	CPU, Memory int64
	// Idle is what is left of each device, in thousandths; less than 0 counts as 0.
	Idle []int32
}

// Measure is the typical requests for one kind of devices. It is never changed: many
// may use it at once. The zero value measures nothing: every ability is 0.
type Measure struct{ groups []group }

// group is the requests that want as much of devices.
type group struct {
	count    int
	share    int32
	requests []typical
}

// typical is a request made ready.
type typical struct {
	cpu, memory       int64
	perCPU, perMemory float64 // 1 ÷ what it wants; 0 if it wants none
	weight            float64 // with its scarcity, times the square root of the devices' part of one instance
}

// New returns a new Measure. Total is the weight of all typical requests, including those for
// other kinds of devices; if it is less than the sum of the weights of the requests, that sum
// is used.
func New(requests []Request, total int64) *Measure {
	m := &Measure{}
	sum := int64(0)
	for i := range requests {
		sum += max(0, requests[i].Weight)
	}
	total = max(total, sum)
	sorted := slices.Clone(requests)
	slices.SortFunc(sorted, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(a.Count, b.Count), cmp.Compare(a.CPU, b.CPU),
			cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Scarcity, b.Scarcity))
	})
	for i := range sorted {
		a := &sorted[i]
		if a.Weight <= 0 || a.Count < 1 {
			continue
		}
		share := int32(a.share()) // at most Whole
		last := len(m.groups) - 1
		if last < 0 || m.groups[last].count != a.Count || m.groups[last].share != share {
			m.groups = append(m.groups, group{count: a.Count, share: share})
			last++
		}
		t := typical{cpu: max(0, a.CPU), memory: max(0, a.Memory)}
		t.perCPU, t.perMemory = inverse(t.cpu), inverse(t.memory)
		part := float64(a.Weight) / float64(total) * max(1, a.Scarcity)
		t.weight = part * math.Sqrt(float64(a.Count)*float64(share))
		m.groups[last].requests = append(m.groups[last].requests, t)
	}
	return m
}

func inverse(n int64) float64 {
	if n <= 0 {
		return 0
	}
	return 1 / float64(n)
}

// Empty reports whether there is no typical request.
func (m *Measure) Empty() bool { return len(m.groups) == 0 }

// Sum is what of all devices together is idle, in thousandths.
func (r *Room) Sum() (sum int64) {
	for _, d := range r.Idle {
		sum += int64(max(0, d))
	}
	return sum
}

// Ability is what the room is worth to the typical requests, in thousandths of devices, more than are
// idle if they are scarce.
func (m *Measure) Ability(r *Room) float64 {
	idle := r.Sum()
	if idle == 0 {
		return 0
	}
	cpu, memory := float64(r.CPU), float64(r.Memory)
	sum := 0.0
	for i := range m.groups {
		g := &m.groups[i]
		most := g.instances(r.Idle)
		if most == 0 {
			continue
		}
		for k := range g.requests {
			t := &g.requests[k]
			if t.cpu > r.CPU {
				break // the requests of a group ascend
			}
			if t.memory > r.Memory {
				continue
			}
			n := most
			if t.perCPU > 0 {
				n = min(n, cpu*t.perCPU)
			}
			if t.perMemory > 0 {
				n = min(n, memory*t.perMemory)
			}
			sum += float64(t.weight * math.Sqrt(n)) // rounded: not fused with the sum
		}
	}
	return sum * math.Sqrt(float64(idle))
}

// instances returns how many instances the devices have room for if CPU and memory suffice.
func (g *group) instances(idle []int32) float64 {
	n := 0
	if g.share == Whole {
		for _, d := range idle {
			if d >= Whole {
				n++
			}
		}
		return float64(n / g.count)
	}
	for _, d := range idle {
		if d >= g.share {
			n += int(d / g.share)
		}
	}
	return float64(n)
}

// Fragmentation is what of the devices is idle and of no use to the typical requests, in
// thousandths of devices; less than 0 where what is idle is scarce.
func (m *Measure) Fragmentation(r *Room) float64 {
	return float64(r.Sum()) - m.Ability(r)
}
