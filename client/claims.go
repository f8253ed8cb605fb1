package client

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nomadish/nomadish/structs"
)

// claims holds a new allocation back until what it was given is free in truth. The
// servers count what they have asked to stop, or to suspend, as free at once; the node
// cannot. Ports, cores and devices have one holder at a time (parts of a device several,
// up to all of it). Of processor, memory and disk no more is given than the node has.
//
// The oldest claim comes first. A younger one may pass an older one that still waits,
// but only if both fit once those have let go that the older ones wait for: so none
// waits longer than for the end of what was ending when it came. Who waits holds nothing,
// so no two wait for each other. And nobody waits for room if nobody is about to let
// some go: then the servers, who know what fits, are right.
type claims struct {
	has func() room

	mu      sync.Mutex
	held    map[string]*holding // by allocation
	names   map[string]string   // ports and cores → allocation
	devices map[string]int      // → thousandths that are held
	sum     room                // of all that is held
	leavers int                 // how many of held are leaving
	waiting []*claim            // oldest first
}

// holding is what one allocation holds.
type holding struct {
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
	// behind are those that were to let go when it came.
	behind []string
}

func newClaims(has func() room) *claims {
	return &claims{has: has, held: map[string]*holding{}, names: map[string]string{}, devices: map[string]int{}}
}

// claim asks for what an allocation needs. ok: it has it. Else grant is called, on the
// goroutine of a release, once it has it; the answer names those that it waits for, when
// it begins to wait. An allocation that runs already takes what it needs by force; one
// that was suspended adds to what it kept.
func (c *claims) claim(id string, n *need, force bool, grant func()) (ok bool, waitsFor []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.held[id]; h != nil && !h.suspended {
		return true, nil
	}
	if c.waits(id) {
		return false, nil
	}
	w := &claim{id: id, need: n, grant: grant}
	if force || c.fits(w, c.waiting) {
		c.take(id, n)
		return true, nil
	}
	waitsFor = c.blockers(w)
	for other, h := range c.held { // a set: the order cannot show
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
	c.take(id, n.whileSuspended())
	c.held[id].suspended = true
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

// fits tells whether an allocation can have what it needs now, without being in the way
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
	return !slices.ContainsFunc(w.after, c.holdsOn) && c.hasRoom(w, older)
}

// holdsOn tells whether an allocation is to let go and has not yet. One that was
// suspended, and goes on by now, does so beside those that it made room for.
func (c *claims) holdsOn(id string) bool {
	h := c.held[id]
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
			if h := c.held[id]; h != nil && h.leaving && !gone[id] {
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

// with adds what one that waits would hold more than it does.
func (c *claims) with(sum room, w *claim) room {
	sum = sum.plus(w.room)
	if h := c.held[w.id]; h != nil {
		sum = sum.minus(h.room)
	}
	return sum
}

// blockers lists who has to let go before an allocation can have what it needs.
func (c *claims) blockers(w *claim) []string {
	found := map[string]bool{}
	for id, h := range c.held {
		shared := slices.ContainsFunc(h.names, func(n string) bool { return slices.Contains(w.names, n) })
		for d := range h.devices {
			shared = shared || w.devices[d] > 0 && c.devices[d]+w.devices[d] > wholeDevice
		}
		if shared || h.leaving && slices.Contains(w.after, id) {
			found[id] = true
		}
	}
	if len(found) == 0 { // it is room that it waits for
		for id, h := range c.held {
			if h.leaving {
				found[id] = true
			}
		}
	}
	delete(found, w.id)
	return slices.Sorted(maps.Keys(found))
}

func (c *claims) take(id string, n *need) {
	c.give(id)
	c.held[id] = &holding{need: n}
	c.sum = c.sum.plus(n.room)
	for _, name := range n.names {
		c.names[name] = id
	}
	for d, share := range n.devices {
		c.devices[d] += share
	}
}

// give takes back what an allocation holds.
func (c *claims) give(id string) {
	h := c.held[id]
	if h == nil {
		return
	}
	c.setLeaving(h, false)
	delete(c.held, id)
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
// What it is to give back counts as free with them already. stays: it was to let go, and
// is not any more; look must follow, as others may wait for it.
func (c *claims) leave(id string, stops, suspended bool) (stays bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[id]
	if h == nil {
		return false
	}
	was := h.leaving
	h.stopped = stops
	c.setLeaving(h, stops || suspended && !h.suspended)
	return was && !h.leaving
}

func (c *claims) setLeaving(h *holding, leaving bool) {
	switch {
	case leaving && !h.leaving:
		c.leavers++
	case !leaving && h.leaving:
		c.leavers--
	}
	h.leaving = leaving
}

// look grants what can be granted. It must not be called with an allocation's lock held.
func (c *claims) look() { c.change(func() {}, "") }

// release frees what an allocation holds, or withdraws its claim, and grants what
// can be granted then. It must not be called with an allocation's lock held.
func (c *claims) release(id string) { c.change(func() { c.give(id) }, id) }

// suspend releases what a suspended allocation does not keep, as release does.
func (c *claims) suspend(id string) {
	c.change(func() {
		if h := c.held[id]; h != nil && !h.suspended {
			stopped := h.stopped
			c.take(id, h.need.whileSuspended())
			h = c.held[id]
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
			c.take(w.id, w.need)
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

// waitText says for people what an allocation waits for.
func waitText(ids []string) string {
	if len(ids) == 0 {
		return "Waits for room"
	}
	text := "Waits for allocation " + structs.ShortID(ids[0])
	switch n := len(ids) - 1; {
	case n == 1:
		text += " and another"
	case n > 1:
		text += fmt.Sprintf(" and %d others", n)
	}
	return text + " to let go"
}
