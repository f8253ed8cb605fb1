package telemetry

import "sync/atomic"

// Count is a counter that costs next to nothing. It is safe for use by many goroutines.
type Count struct {
	family *Family
	n      atomic.Uint64
}

var counts []*Count

// NewCount returns a new counter of the family of that name. It is for variables of packages: it panics if the table has no
// such counter, and all counters live as long as the process.
func NewCount(name string) *Count {
	c := &Count{family: Named(name)}
	if c.family.Kind != Counter {
		panic("telemetry: " + name + " is no counter")
	}
	counts = append(counts, c)
	return c
}

// Add adds to the counter. It does nothing on nil.
func (c *Count) Add(n int) {
	if c != nil {
		c.n.Add(uint64(max(0, n))) // not negative
	}
}

// If returns the counter, or nil if nothing is to be counted.
func (c *Count) If(wanted bool) *Count {
	if !wanted {
		return nil
	}
	return c
}
