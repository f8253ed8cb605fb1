package trace

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// measuredRequestKeys bounds the request keys that fragmentation is measured with: the commonest.
const measuredRequestKeys = 64

// maxSeen bounds the request keys that are counted, as a server bounds those that it learns.
const maxSeen = 4096

// Typical is a request key that is often requested.
type Typical struct {
	Row Row
	// Share is the part of all requests that it is; those of all typical request keys add up to 1.
	Share float64
}

// census counts the request keys with GPUs that were requested.
type census struct {
	counts map[classKey]*seen
	list   []*seen // in the order of their first arrival
	total  int64
	// typical is what was found when as many as counted had arrived, the commonest first, and
	// measured those of it that fragmentation is measured with.
	typical, measured []Typical
	counted           int64
	version           int
}

type seen struct {
	row Row
	n   int64
}

func newCensus() *census { return &census{counts: map[classKey]*seen{}} }

// add counts a row. A request key that comes first when maxSeen are known is not counted.
func (c *census) add(row *Row) {
	if row.GPUs == 0 {
		return // it uses none, wherever it runs
	}
	k := row.key(0)
	k.count, k.maxRun, k.reclaim = 0, 0, ""
	s := c.counts[k]
	if s == nil {
		if len(c.list) >= maxSeen {
			return
		}
		s = &seen{row: *row}
		c.counts[k] = s
		c.list = append(c.list, s)
	}
	s.n++
	c.total++
}

// requestKeys returns the request keys so far, the commonest first. They are counted again when a quarter
// more has arrived.
func (c *census) requestKeys() []Typical {
	if c.typical != nil && c.total < c.counted+max(c.counted/4, 1) {
		return c.typical
	}
	list := slices.Clone(c.list)
	slices.SortStableFunc(list, func(a, b *seen) int { return int(b.n - a.n) })
	c.typical = parts(list)
	c.measured = parts(list[:min(len(list), measuredRequestKeys)])
	c.counted = c.total
	c.version++
	return c.typical
}

// parts returns request keys with the part of all of them that each is.
func parts(list []*seen) []Typical {
	var sum int64
	for _, s := range list {
		sum += s.n
	}
	out := make([]Typical, 0, len(list))
	for _, s := range list {
		out = append(out, Typical{s.row, float64(s.n) / float64(sum)})
	}
	return out
}

// fragmentation keeps what each machine's fragmentation was when last looked at.
type fragmentation struct {
	by      []float64
	sum     float64
	version int
}

// Fragmentation is how much idle GPU of a machine its typical requests cannot use, in thousandths,
// each weighed with its share: all of it if a request cannot run there at all, else what sits on
// devices too small for it (published as FGD, ATC'23).
func (m *Machine) Fragmentation(typical []Typical) (sum float64) {
	idle := 0
	for _, left := range m.GPUs {
		idle += left
	}
	if idle == 0 {
		return 0
	}
	for i := range typical {
		t := &typical[i]
		sum += t.Share * float64(m.unusable(&t.Row, idle))
	}
	return sum
}

func (m *Machine) unusable(r *Row, idle int) int {
	if !m.fits(r) {
		return idle
	}
	need := structs.DeviceShareWhole
	if r.part() {
		need = r.Share
	}
	small := 0
	for _, left := range m.GPUs {
		if left < need {
			small += left
		}
	}
	return small
}

// measure returns the fragmentation of all machines, in thousandths of GPUs.
func (f *fragmentation) measure(l *Ledger, c *census) float64 {
	c.requestKeys()
	typical := c.measured
	if f.version != c.version || f.by == nil {
		f.by, f.sum, f.version = make([]float64, len(l.Machines)), 0, c.version
		for i := range l.Machines {
			l.touch(i)
		}
	}
	for _, i := range l.touched {
		f.by[i] = l.Machines[i].Fragmentation(typical)
		l.dirty[i] = false
	}
	l.touched = l.touched[:0]
	f.sum = 0 // in the order of machines, so that the sum is the same however it came about
	for _, v := range f.by {
		f.sum += v
	}
	return f.sum
}
