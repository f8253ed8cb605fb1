package whatif

import (
	"math"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// deviceGPU is the type of devices that count as GPUs.
const deviceGPU = "gpu"

// stretches is how many stretches of time the use of a future is shown in.
const stretches = 120

// amounts are of a node, or of what is used of it.
type amounts struct{ gpu, cpu, memory int64 } // thousandths of GPUs, MHz, MiB

func (a *amounts) add(b amounts, times int64) {
	a.gpu += times * b.gpu
	a.cpu += times * b.cpu
	a.memory += times * b.memory
}

// nodeUse is a node with what is used of it.
type nodeUse struct {
	ready bool
	has   amounts
	used  amounts
}

// fragmented is how much GPU of it is idle beside such that is used.
func (n *nodeUse) fragmented() int64 {
	if !n.ready || n.used.gpu == 0 {
		return 0
	}
	return max(0, n.has.gpu-n.used.gpu)
}

// use is what an allocation uses.
type use struct {
	node string
	amounts
}

// level is how things stand from a time on.
type level struct {
	at         time.Time
	has, used  amounts
	waiting    int
	fragmented int64
}

// usage follows what is used of the nodes.
type usage struct {
	nodes      map[string]*nodeUse
	allocs     map[string]use
	has, used  amounts // of ready nodes
	fragmented int64
	levels     []level // each lasts until the next
}

func newUsage() *usage {
	return &usage{nodes: map[string]*nodeUse{}, allocs: map[string]use{}}
}

// change changes a node, with all sums.
func (u *usage) change(id string, f func(n *nodeUse)) {
	n := u.nodes[id]
	if n == nil {
		n = &nodeUse{}
		u.nodes[id] = n
	}
	count := func(times int64) {
		if n.ready {
			u.has.add(n.has, times)
			u.used.add(n.used, times)
			u.fragmented += times * n.fragmented()
		}
	}
	count(-1)
	f(n)
	count(1)
}

// node takes in a node as it is now.
func (u *usage) node(n *structs.Node) {
	u.change(n.ID, func(use *nodeUse) {
		use.ready, use.has = n.Status == structs.NodeStatusReady, amounts{}
		r := n.NodeResources
		if r == nil {
			return
		}
		use.has.cpu, use.has.memory = r.Cpu.CpuShares, r.Memory.MemoryMB
		if kept := n.ReservedResources; kept != nil {
			use.has.cpu, use.has.memory = use.has.cpu-int64(kept.Cpu.CpuShares), use.has.memory-kept.Memory.MemoryMB // a node has less than 2^63 MHz
		}
		for _, d := range r.Devices {
			if d != nil && d.Type == deviceGPU {
				use.has.gpu += 1000 * int64(len(d.Instances))
			}
		}
	})
}

// drop takes in that a node is gone.
func (u *usage) drop(id string) {
	u.change(id, func(n *nodeUse) { n.ready, n.has = false, amounts{} })
}

// alloc takes in an allocation as it is now; nil: it is gone.
func (u *usage) alloc(id string, row *state.AllocRow) {
	now := use{}
	if row != nil && !row.Terminal() { // what is being stopped others may have by now
		now = useOf(row)
	}
	was := u.allocs[id]
	if was == now {
		return
	}
	if was.node != "" {
		u.change(was.node, func(n *nodeUse) { n.used.add(was.amounts, -1) })
	}
	delete(u.allocs, id)
	if now.node != "" {
		u.change(now.node, func(n *nodeUse) { n.used.add(now.amounts, 1) })
		u.allocs[id] = now
	}
}

func useOf(row *state.AllocRow) use {
	u := use{node: row.NodeID()}
	res := row.Resources()
	if res == nil {
		return u
	}
	for _, t := range res.Tasks { // sums: the order cannot show
		if t == nil {
			continue
		}
		u.memory += t.Memory.MemoryMB
		if row.Suspended() { // its memory stays
			continue
		}
		u.cpu += t.Cpu.CpuShares
		for _, d := range t.Devices {
			if d.Type == deviceGPU {
				share := int64(1000)
				if d.Share > 0 {
					share = int64(d.Share)
				}
				u.gpu += share * int64(len(d.DeviceIDs))
			}
		}
	}
	return u
}

// settled notes how things stand when nothing is left to be done at a time.
func (u *usage) settled(now time.Time, waiting int) {
	l := level{at: now, has: u.has, used: u.used, waiting: waiting, fragmented: u.fragmented}
	if n := len(u.levels); n > 0 && u.levels[n-1].at.Equal(now) {
		u.levels[n-1] = l
		return
	}
	u.levels = append(u.levels, l)
}

// mean returns the mean of what was used between two times; of an instant, what is used then.
func (u *usage) mean(from, to time.Time) structs.WhatIfUsage {
	out := structs.WhatIfUsage{From: from.UnixNano()}
	total := to.Sub(from).Seconds()
	if total <= 0 {
		for i := len(u.levels) - 1; i >= 0; i-- {
			if l := &u.levels[i]; !l.at.After(to) {
				l.addTo(&out, 1)
				break
			}
		}
	}
	for i := range u.levels {
		l := &u.levels[i]
		if !l.at.Before(to) || total <= 0 {
			break
		}
		end := to
		if i+1 < len(u.levels) && u.levels[i+1].at.Before(to) {
			end = u.levels[i+1].at
		}
		begin := l.at
		if begin.Before(from) {
			begin = from
		}
		if part := end.Sub(begin).Seconds() / total; part > 0 {
			l.addTo(&out, part)
		}
	}
	for _, v := range []*float64{&out.GPU, &out.CPU, &out.Memory, &out.Waiting, &out.Fragmented} {
		*v = math.Round(*v*1e6) / 1e6
	}
	return out
}

// addTo adds how things stand to a mean, of whose time this is a part.
func (l *level) addTo(mean *structs.WhatIfUsage, part float64) {
	mean.GPU += part * share(l.used.gpu, l.has.gpu)
	mean.CPU += part * share(l.used.cpu, l.has.cpu)
	mean.Memory += part * share(l.used.memory, l.has.memory)
	mean.Waiting += part * float64(l.waiting)
	mean.Fragmented += part * share(l.fragmented, l.has.gpu)
}

func share(part, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// series returns the means over equal stretches between two times.
func (u *usage) series(from, to time.Time) []structs.WhatIfUsage {
	length := to.Sub(from)
	if length <= 0 {
		return []structs.WhatIfUsage{}
	}
	out := make([]structs.WhatIfUsage, stretches)
	first := 0
	for i := range out {
		a, b := from.Add(length*time.Duration(i)/stretches), from.Add(length*time.Duration(i+1)/stretches)
		for first+1 < len(u.levels) && !u.levels[first+1].at.After(a) {
			first++
		}
		out[i] = (&usage{levels: u.levels[first:]}).mean(a, b)
	}
	return out
}
