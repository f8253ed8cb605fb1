package client

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// claims delays a new allocation until what the servers assigned to it is really free. The
// servers count an allocation that they stop or suspend as gone at once; the node
// cannot. Ports, cores and devices are reserved by one allocation at a time (parts of a device by
// several, up to all of it). Of processor, memory and disk no more is reserved than the node has.
//
// The oldest claim comes first. A younger one may pass an older one that still waits,
// but only if both fit once the allocations that the older ones wait for have released theirs: so none
// waits longer than for the end of what was ending when it came. A claim reserves nothing while it waits,
// so no two wait for each other. No claim waits for room unless an allocation is about to release
// some: otherwise the servers, which know what fits, are right.
type claims struct {
	has func() room

	mu           sync.Mutex
	reservations map[string]*reservation // by allocation
	names        map[string]string       // ports and cores → allocation
	devices      map[string]int          // → thousandths that are reserved
	sum          room                    // of all reservations
	leavers      int                     // how many of reservations are leaving
	waiting      []*claim                // oldest first
}

// reservation is what one allocation has reserved.
type reservation struct {
	*need
	leaving   bool // the servers count it as free, all or but for what a suspended one keeps
	stopped   bool // for good
	suspended bool
}

// claim is an allocation that waits.
type claim struct {
	id string
	*need
	grant func()
	// behind are those that were to release theirs when it came.
	behind []string
}

func newClaims(has func() room) *claims {
	return &claims{has: has, reservations: map[string]*reservation{}, names: map[string]string{}, devices: map[string]int{}}
}

// claim reserves what an allocation needs. ok: it has it. Else grant is called, on the
// goroutine of a release, once it has it; the answer names those that it waits for, when
// it begins to wait. An allocation that runs already takes what it needs by force; one
// that was suspended adds to what it kept.
func (c *claims) claim(id string, n *need, force bool, grant func()) (ok bool, waitsFor []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.reservations[id]; h != nil && !h.suspended {
		return true, nil
	}
	if c.waits(id) {
		return false, nil
	}
	w := &claim{id: id, need: n, grant: grant}
	if force || c.fits(w, c.waiting) {
		c.reserve(id, n)
		return true, nil
	}
	waitsFor = c.blockers(w)
	for other, h := range c.reservations { // a set: the order cannot show
		if h.leaving {
			w.behind = append(w.behind, other)
		}
	}
	c.waiting = append(c.waiting, w)
	return false, waitsFor
}

// keep notes what an allocation kept that was found suspended.
func (c *claims) keep(id string, n *need) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserve(id, n.whileSuspended())
	c.reservations[id].suspended = true
}

// isWaiting reports whether an allocation waits.
func (c *claims) isWaiting(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits(id)
}

func (c *claims) waits(id string) bool {
	return slices.ContainsFunc(c.waiting, func(w *claim) bool { return w.id == id })
}

// fits reports whether an allocation can have what it needs now, without being in the way
// of older ones that wait.
func (c *claims) fits(w *claim, older []*claim) bool {
	for _, name := range w.names {
		if c.names[name] != "" {
			return false
		}
	}
	for id, share := range w.devices { // all must be free: the order cannot show
		if c.devices[id]+share > wholeDevice {
			return false
		}
	}
	return !slices.ContainsFunc(w.after, c.isLeaving) && c.hasRoom(w, older)
}

// isLeaving reports whether an allocation is to release its reservation and has not yet. One that was
// suspended, and goes on by now, does so beside those that it made room for.
func (c *claims) isLeaving(id string) bool {
	h := c.reservations[id]
	return h != nil && h.leaving
}

// hasRoom checks what can be added up.
func (c *claims) hasRoom(w *claim, older []*claim) bool {
	if c.leavers == 0 {
		return true
	}
	has := c.has()
	sum := c.with(c.sum, w)
	if !sum.within(has) {
		return false
	}
	gone := map[string]bool{}
	for _, o := range older {
		sum = c.with(sum, o)
		for _, id := range o.behind {
			if h := c.reservations[id]; h != nil && h.leaving && !gone[id] {
				gone[id] = true
				sum = sum.minus(h.room)
			}
		}
		if !sum.within(has) {
			return false // o could not begin when those have gone
		}
	}
	return true
}

// with adds what a waiting claim would reserve beyond what its allocation has reserved.
func (c *claims) with(sum room, w *claim) room {
	sum = sum.plus(w.room)
	if h := c.reservations[w.id]; h != nil {
		sum = sum.minus(h.room)
	}
	return sum
}

// blockers lists the allocations that have to release theirs before an allocation can have what it needs.
func (c *claims) blockers(w *claim) []string {
	found := map[string]bool{}
	for id, h := range c.reservations {
		shared := slices.ContainsFunc(h.names, func(n string) bool { return slices.Contains(w.names, n) })
		for d := range h.devices {
			shared = shared || w.devices[d] > 0 && c.devices[d]+w.devices[d] > wholeDevice
		}
		if shared || h.leaving && slices.Contains(w.after, id) {
			found[id] = true
		}
	}
	if len(found) == 0 { // it is room that it waits for
		for id, h := range c.reservations {
			if h.leaving {
				found[id] = true
			}
		}
	}
	delete(found, w.id)
	return slices.Sorted(maps.Keys(found))
}

func (c *claims) reserve(id string, n *need) {
	c.free(id)
	c.reservations[id] = &reservation{need: n}
	c.sum = c.sum.plus(n.room)
	for _, name := range n.names {
		c.names[name] = id
	}
	for d, share := range n.devices {
		c.devices[d] += share
	}
}

// free drops the reservation of an allocation.
func (c *claims) free(id string) {
	h := c.reservations[id]
	if h == nil {
		return
	}
	c.setLeaving(h, false)
	delete(c.reservations, id)
	c.sum = c.sum.minus(h.room)
	for _, name := range h.names {
		if c.names[name] == id { // else somebody took it by force
			delete(c.names, name)
		}
	}
	for d, share := range h.devices {
		if c.devices[d] -= share; c.devices[d] <= 0 {
			delete(c.devices, d)
		}
	}
}

// leave notes what the servers want of an allocation: that it stops, or is suspended.
// What it is to release counts as free with them already. stays: it was to release it, and
// is not any more; grantWaiting must follow, as others may wait for it.
func (c *claims) leave(id string, stops, suspended bool) (stays bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.reservations[id]
	if h == nil {
		return false
	}
	was := h.leaving
	h.stopped = stops
	c.setLeaving(h, stops || suspended && !h.suspended)
	return was && !h.leaving
}

func (c *claims) setLeaving(h *reservation, leaving bool) {
	switch {
	case leaving && !h.leaving:
		c.leavers++
	case !leaving && h.leaving:
		c.leavers--
	}
	h.leaving = leaving
}

// grantWaiting grants what can be granted. It must not be called with an allocation's lock held.
func (c *claims) grantWaiting() { c.change(func() {}, "") }

// release drops the reservation of an allocation, or withdraws its claim, and grants what
// can be granted then. It must not be called with an allocation's lock held.
func (c *claims) release(id string) { c.change(func() { c.free(id) }, id) }

// suspend releases what a suspended allocation does not keep, as release does.
func (c *claims) suspend(id string) {
	c.change(func() {
		if h := c.reservations[id]; h != nil && !h.suspended {
			stopped := h.stopped
			c.reserve(id, h.whileSuspended())
			h = c.reservations[id]
			h.suspended, h.stopped = true, stopped
			c.setLeaving(h, stopped)
		}
	}, id)
}

// change frees something and grants what can be granted then; what withdraws waits no more.
func (c *claims) change(fn func(), withdraws string) {
	c.mu.Lock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w *claim) bool { return w.id == withdraws })
	fn()
	var still []*claim
	var grants []func()
	for _, w := range c.waiting {
		if c.fits(w, still) {
			c.reserve(w.id, w.need)
			grants = append(grants, w.grant)
		} else {
			still = append(still, w)
		}
	}
	c.waiting = still
	c.mu.Unlock()
	for _, grant := range grants {
		grant()
	}
}

// waitText returns a message that names what an allocation waits for.
func waitText(ids []string) string {
	if len(ids) == 0 {
		return "Waiting for resources on the node"
	}
	text := "Waiting for allocation " + structs.ShortID(ids[0])
	switch n := len(ids) - 1; n {
	case 0:
		return text + " to release its resources"
	case 1:
		text += " and another"
	default:
		text += fmt.Sprintf(" and %d others", n)
	}
	return text + " to release their resources"
}
