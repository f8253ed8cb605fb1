package gpu

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// HeatHold is how long a GPU must be over the temperature at which it slows down to
// count as bad, and under it to count as good again.
const HeatHold = 10 * time.Second

// applicationXids are errors of the program that used the GPU, or notes, by NVIDIA's
// list of Xids; the GPU is well after them. Every other one counts against the GPU:
// work lost on a broken GPU costs more than one that idles until somebody looked.
var applicationXids = map[uint64]bool{
	13:  true, // the program's graphics engine exception
	31:  true, // it touched memory that is not its own
	43:  true, // it was stopped
	45:  true, // what it left was cleaned up
	63:  true, // a memory row was marked for replacement
	68:  true, // the program's video exception
	92:  true, // many errors, all corrected
	94:  true, // an uncorrected error that hit its program only; ECC counters show it
	109: true, // a program was switched away too slowly
}

// xidNames are words for errors that are seen most.
var xidNames = map[uint64]string{
	48: "uncorrected ECC error", 62: "its controller halted", 64: "a broken memory row could not be replaced", 74: "NVLink error",
	79: "fell off the bus", 95: "uncorrected ECC error, not contained", 119: "its firmware does not answer", 120: "its firmware failed",
}

// condition is what is remembered of one GPU's health.
type condition struct {
	xid      uint64    // the last one that counts; 0: none
	away     bool      // it was lost, missing or in need of a reset when last looked at
	hot      bool      // counts as too hot
	hotSince time.Time // of the present side of the threshold; zero: not seen yet
	was      bool      // that side
}

// event takes an error that the driver reported.
func (c *condition) event(xid uint64) {
	if !applicationXids[xid] {
		c.xid = xid
	}
}

// look takes what a snapshot reports about the GPU (nil: nothing) and returns why it is bad;
// empty: it is good. The words stay the same while the reason does.
func (c *condition) look(g *nvml.GPU, now time.Time) string {
	c.heat(g, now)
	switch {
	case g == nil:
		c.away = true
		return "the driver does not list this GPU any more"
	case g.Lost:
		c.away = true
		return "the GPU is lost: it fell off the bus"
	case g.NeedsReset:
		c.away = true
		return "the GPU must be reset"
	}
	if c.away { // it was reset, or came back
		c.away, c.xid = false, 0
	}
	switch {
	case c.xid != 0:
		name := xidNames[c.xid]
		if name != "" {
			name = " (" + name + ")"
		}
		return fmt.Sprintf("the driver reported Xid %d%s; reset the GPU and restart the agent", c.xid, name)
	case g.Uncorrected > 0:
		return "uncorrected ECC errors since the last reset"
	case g.RemapFailed:
		return "broken memory rows could not be replaced"
	case c.hot:
		return "hotter than the temperature at which it slows down"
	}
	return ""
}

// heat follows the temperature.
func (c *condition) heat(g *nvml.GPU, now time.Time) {
	if g == nil || g.Lost {
		c.hot, c.was, c.hotSince = false, false, time.Time{}
		return
	}
	over := g.ThermalMargin != nil && *g.ThermalMargin <= 0 || g.SlowdownAt > 0 && g.Temperature >= g.SlowdownAt
	if over != c.was || c.hotSince.IsZero() {
		c.was, c.hotSince = over, now
	}
	if now.Sub(c.hotSince) >= HeatHold {
		c.hot = over
	}
}
