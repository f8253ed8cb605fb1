// Package clock is the time as the leader's parts see it: the machine's own, or one
// that a simulation moves on.
//
// Whoever takes a Clock must not read it from the package time, or have it do anything
// later: what cannot be driven cannot be simulated.
package clock

import "time"

// Clock returns the time and runs functions later. It is safe for use by many goroutines.
type Clock interface {
	// Now is the time.
	Now() time.Time
	// AfterFunc has f done once d has passed, never before it returns itself.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is something that is to be done later.
type Timer interface {
	// Stop has it not done; false: it was done already, or is being done.
	Stop() bool
}

// Or is c, or the machine's clock where c is nil.
func Or(c Clock) Clock {
	if c == nil {
		return machine{}
	}
	return c
}

// IsMachine reports whether c is the clock of the machine. In any other time nothing is counted or timed for the metrics: no server runs in it.
func IsMachine(c Clock) bool {
	_, is := c.(machine)
	return is
}

type machine struct{}

// Now implements Clock.
func (machine) Now() time.Time { return time.Now() }

// AfterFunc implements Clock.
func (machine) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
