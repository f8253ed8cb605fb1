package cell

import (
	"fmt"
	"math/bits"
	"slices"
)

// Whole is the share, in thousandths, that is a whole device.
const Whole = 1000

// inlineDevices is up to how many devices a State needs one allocation.
const inlineDevices = 16

// State describes which devices of one tree are healthy and how much of each is taken. Copy it with
// Clone, not by assignment. It takes no lock: one goroutine changes it, or many read it.
type State struct {
	layout  *Layout
	free    uint64 // healthy devices that nobody holds; only with at most wordDevices
	sick    uint64 // only with at most wordDevices
	partial int    // healthy devices of which a part is taken
	few     [inlineDevices]int32
	many    []int32 // what is taken of each device, when few is too small
	wide    *wide   // with more than wordDevices
}

// wide is what stands for the words of a State with many devices.
type wide struct {
	free []int32 // free devices under each vertex
	sick []bool  // by device
}

// NewState returns a State in which all is healthy and free.
func NewState(s *Layout) *State {
	st := &State{layout: s}
	if s.Devices() > inlineDevices {
		st.many = make([]int32, s.Devices())
	}
	if s.inWord() {
		st.free = s.mask[0]
		return st
	}
	st.wide = &wide{free: make([]int32, len(s.vs)), sick: make([]bool, s.Devices())}
	for i := range s.vs {
		st.wide.free[i] = s.vs[i].hi - s.vs[i].lo
	}
	return st
}

// Clone returns a copy; neither sees the other's changes.
func (st *State) Clone() *State {
	c := *st
	if st.many != nil {
		c.many = slices.Clone(st.many)
	}
	if st.wide != nil {
		c.wide = &wide{slices.Clone(st.wide.free), slices.Clone(st.wide.sick)}
	}
	return &c
}

// Layout returns the tree that this is a State of.
func (st *State) Layout() *Layout { return st.layout }

func (st *State) taken() []int32 {
	if st.many != nil {
		return st.many
	}
	return st.few[:len(st.layout.leaf)]
}

func (st *State) isSick(device int) bool {
	if st.wide != nil {
		return st.wide.sick[device]
	}
	return st.sick>>uint(device)&1 == 1
}

// SetHealthy reports whether a device may be used. What is taken of it stays taken. A device that
// is not there is left alone, here and in all that follows.
func (st *State) SetHealthy(device int, ok bool) {
	if uint(device) >= uint(len(st.layout.leaf)) || st.isSick(device) == !ok {
		return
	}
	reserved := st.taken()[device]
	if ok {
		st.mark(device, false)
		st.count(device, reserved, 1)
		return
	}
	st.count(device, reserved, -1)
	st.mark(device, true)
}

func (st *State) mark(device int, sick bool) {
	switch {
	case st.wide != nil:
		st.wide.sick[device] = sick
	case sick:
		st.sick |= 1 << uint(device)
	default:
		st.sick &^= 1 << uint(device)
	}
}

// Take records that an allocation uses a share of a device, in thousandths; 1000, and
// anything outside of 1 to 999, is the whole device. More may be taken than there
// is: a State records what is, and then the free share is below 0.
func (st *State) Take(device, share int) { st.add(device, part(share)) }

// Give undoes a Take of the same device and share exactly.
func (st *State) Give(device, share int) { st.add(device, -part(share)) }

func part(share int) int32 {
	if share < 1 || share > Whole {
		return Whole
	}
	return int32(share)
}

func (st *State) add(device int, by int32) {
	if uint(device) >= uint(len(st.layout.leaf)) {
		return
	}
	reserved := &st.taken()[device]
	was := *reserved
	*reserved += by
	if !st.isSick(device) {
		st.count(device, was, -1)
		st.count(device, *reserved, 1)
	}
}

// count enters a healthy device, of which so much is held, in the sums (by = 1) or
// leaves it out of them (by = -1).
func (st *State) count(device int, reserved int32, by int) {
	switch {
	case reserved >= Whole:
	case reserved > 0:
		st.partial += by
	case st.wide != nil:
		for v := st.layout.leaf[device]; v >= 0; v = st.layout.vs[v].parent {
			st.wide.free[v] += int32(by)
		}
	case by > 0:
		st.free |= 1 << uint(device)
	default:
		st.free &^= 1 << uint(device)
	}
}

// FreeShare is what of a device is not taken, in thousandths: 1000 is all of it, 0
// or less is none. Of a device that is not healthy it is 0.
func (st *State) FreeShare(device int) int {
	if uint(device) >= uint(len(st.layout.leaf)) || st.isSick(device) {
		return 0
	}
	return Whole - int(st.taken()[device])
}

// Untaken is FreeShare of a device that may be unhealthy, too.
func (st *State) Untaken(device int) int {
	if uint(device) >= uint(len(st.layout.leaf)) {
		return 0
	}
	return Whole - int(st.taken()[device])
}

// Free is how many devices are healthy and wholly free.
func (st *State) Free() int {
	if st.wide != nil {
		return int(st.wide.free[0])
	}
	return bits.OnesCount64(st.free)
}

// MaxPartial is the largest free share, in thousandths, among the healthy devices
// that are taken in part; 0 if there are none.
func (st *State) MaxPartial() int {
	if st.partial == 0 {
		return 0
	}
	most := 0
	for d, reserved := range st.taken() {
		if reserved > 0 && Whole-int(reserved) > most && !st.isSick(d) {
			most = Whole - int(reserved)
		}
	}
	return most
}

// Equal reports whether two States have equal trees and agree about every device.
func (st *State) Equal(o *State) bool {
	if st.layout != o.layout && st.layout.key != o.layout.key || !slices.Equal(st.taken(), o.taken()) {
		return false
	}
	if st.wide != nil {
		return slices.Equal(st.wide.sick, o.wide.sick)
	}
	return st.sick == o.sick
}

// Check proves that the sums agree with the devices, and that the maximal free
// cells are disjoint and hold every free device. It costs as much as the tree is
// large.
func (st *State) Check() error {
	s := st.layout
	free, partial := make([]int, len(s.vs)), 0
	for d, reserved := range st.taken() {
		switch {
		case reserved < 0:
			return fmt.Errorf("device %d: %d more was released than reserved", d, -reserved)
		case st.isSick(d) || reserved >= Whole:
		case reserved > 0:
			partial++
		default:
			for v := s.leaf[d]; v >= 0; v = s.vs[v].parent {
				free[v]++
			}
		}
	}
	if partial != st.partial {
		return fmt.Errorf("%d devices are reserved in part, %d counted", partial, st.partial)
	}
	now := st.view(nil)
	for v := range s.vs {
		if n := now.freeIn(int32(v)); n != free[v] {
			return fmt.Errorf("vertex %d: %d devices are free, %d counted", v, free[v], n)
		}
	}
	covered, next := 0, int32(0)
	for _, c := range now.cells(nil) {
		at := &s.vs[c]
		switch {
		case at.lo < next:
			return fmt.Errorf("cell %d: it overlaps the one before", c)
		case free[c] != at.size():
			return fmt.Errorf("cell %d: only %d of %d devices are free", c, free[c], at.size())
		case at.parent >= 0 && free[at.parent] == s.vs[at.parent].size():
			return fmt.Errorf("cell %d: it is not merged with its neighbours", c)
		}
		covered, next = covered+at.size(), at.hi
	}
	if covered != free[0] {
		return fmt.Errorf("cells have %d devices of %d that are free", covered, free[0])
	}
	return nil
}
