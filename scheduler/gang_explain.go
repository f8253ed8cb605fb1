package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// roomsNamed bounds the domains that an explanation names: those with most room.
const roomsNamed = 3

// explain counts that the gang found no room, and says why: of each group what its
// nodes lack, and of the gang how much of it would have found room.
func (x *gangPlacer) explain() {
	var reasons []string // found out once, and only where it is not known already
	for i, work := range x.gw.works {
		name := work.group.Name
		put(&x.s.queued, name, len(work.place))
		if len(work.place) == 0 {
			continue
		}
		find := x.s.newSearch(work.group, x.base, x.s.fit(work.group)) // reservations go by it, too
		if t := x.gw.spec.topology; t == nil || !t.Required {
			find = x.failed.runs[i].search // what is left when the others have their places
		}
		m := x.s.stored(name)
		if m == nil {
			if reasons == nil {
				reasons = x.reasons()
			}
			m = explainGang(find, reasons)
		}
		m.CoalescedFailures = len(work.place) - 1
		put(&x.s.failed, name, m)
	}
}

// reasons are why the gang as a whole finds no room.
func (x *gangPlacer) reasons() []string {
	reasons := []string{x.reason()}
	if short := x.shortOfAll(); short != "" {
		reasons = append(reasons, short)
	}
	return reasons
}

// explainGang says of every node why it does not do. What would do for one instance
// does not for the gang.
func explainGang(s *search, reasons []string) *structs.AllocMetric {
	x := newExplanation(s.f.job)
	x.classes(s, func(c *nodeSet) {
		x.set(s, c, func(n *nodeState) { x.exhausted(n.node, reasons[0], 1) })
	})
	if x.DimensionExhausted == nil {
		x.DimensionExhausted = map[string]int{}
	}
	for _, reason := range reasons {
		x.DimensionExhausted[reason] = x.NodesExhausted
	}
	return x.AllocMetric
}

// gangReason is why a gang found no room.
type gangReason struct {
	text string
	// rooms are the cells of the level that is required, those with most room first; nil
	// if none is.
	rooms []*room
}

// reason says in one sentence how much of the gang would have found room.
func (x *gangPlacer) reason() string { return x.why().text }

func (x *gangPlacer) why() gangReason {
	want := x.gw.spec.topology
	if want == nil || !want.Required {
		found := int64(0)
		for i := range x.gw.works {
			found += x.failed.found(i)
		}
		text := fmt.Sprintf("gang: there is room for %d of %s, and all must start together", found, instances(x.gw.first()))
		if x.gw.first() < x.gw.wanted() {
			text = fmt.Sprintf("gang: there is room for %d of %s that must start together", found, instances(x.gw.first()))
		}
		return gangReason{text: text}
	}
	level, _, site := x.s.siteLevel(want.Level)
	rooms, name := x.looked, want.Level
	for _, r := range rooms {
		short := slices.Clone(r.holds) // what a trial found, if there was one
		x.recount(r)
		for i := range short {
			r.holds[i] = min(r.holds[i], short[i])
		}
	}
	switch {
	case site && len(rooms) == 0:
		return gangReason{text: fmt.Sprintf("gang: no %s is known: no node that fits states meta.%s", want.Level, level.Meta)}
	case site:
	case x.s.nodeLevel(want.Level):
		if x.gw.inCells(want.Level) {
			rooms = x.cellRoomsOf(want.Level)
		} else {
			rooms, name = x.nodeRooms(), structs.LevelNode
		}
	default:
		return gangReason{text: fmt.Sprintf("gang: level %q is not known: no node reports it, nor does the scheduler configuration name it", want.Level)}
	}
	if len(rooms) == 0 {
		return gangReason{text: fmt.Sprintf("gang: no %s holds %s", name, x.wants())}
	}
	rooms = slices.Clone(rooms)
	slices.SortStableFunc(rooms, func(a, b *room) int { return cmp.Compare(b.count(x), a.count(x)) })
	return gangReason{fmt.Sprintf("no %s holds %s: %s", name, x.wants(), x.best(rooms)), rooms}
}

// best names the first domains of a sorted list.
func (x *gangPlacer) best(sorted []*room) string {
	var parts []string
	verb := " has room"
	for _, r := range sorted[:min(len(sorted), roomsNamed)] {
		parts = append(parts, fmt.Sprintf("%s%s for %d", r.domain, verb, r.count(x)))
		verb = ""
	}
	text := strings.Join(parts, ", ")
	switch more := len(sorted) - roomsNamed; {
	case more == 1:
		text += ", 1 other has room for no more"
	case more > 1:
		text += fmt.Sprintf(", %d others have room for no more", more)
	}
	return text
}

// wants is what must be placed at once, in words.
func (x *gangPlacer) wants() string {
	var parts []string
	for i, work := range x.gw.works {
		if work.first == 0 {
			continue
		}
		part := instances(work.first)
		if len(x.gw.works) > 1 {
			part += fmt.Sprintf(" of group %q", work.group.Name)
		}
		switch n := x.asks[i].devices; {
		case n == 1:
			part += " with 1 " + x.deviceNoun(i)
		case n > 1:
			part += fmt.Sprintf(" of %d %ss", n, x.deviceNoun(i))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " and ")
}

// deviceNoun is what a group's devices are called.
func (x *gangPlacer) deviceNoun(group int) string {
	noun := ""
	for _, t := range x.gw.works[group].group.Tasks {
		for _, d := range deviceAsks(t) {
			if noun != "" && noun != d.kind {
				return "device"
			}
			noun = d.kind
		}
	}
	if noun == "gpu" {
		return "GPU"
	}
	return cmp.Or(noun, "device")
}

func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// shortOfAll says what a gang wants more of than all nodes that fit have, whatever is
// free: it waits for other nodes.
func (x *gangPlacer) shortOfAll() string {
	var total, want amount
	for i, work := range x.gw.works {
		want = want.plus(x.asks[i].times(work.first))
	}
	for _, set := range x.sets() {
		for n := range set.all {
			total = total.plus(amount{n.has.wellDevices(), n.has.amount})
			if total.holds(want) >= 1 {
				return ""
			}
		}
	}
	for _, d := range []struct {
		want, has int64
		noun      string
	}{
		{want.devices, total.devices, "devices"}, {want.CPU, total.CPU, "MHz"}, {want.MemoryMB, total.MemoryMB, "MiB of memory"},
		{want.DiskMB, total.DiskMB, "MiB of disk"},
	} {
		if d.want > d.has {
			return fmt.Sprintf("gang: larger than the cluster: wants %d %s, all nodes that fit have %d", d.want, d.noun, d.has)
		}
	}
	return ""
}
