package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/claim"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/metric"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// roomsNamed bounds the domains that an explanation names: those with most room.
const roomsNamed = 3

// explain counts that the gang found no room, and records why: of each group what its
// nodes lack, and of the gang how much of it would have found room, or why it must not run opportunistically.
func (x *GangPlacer) explain(without claim.Without) {
	reasons := without.Withheld // else found out once, and only where it is not known already
	for i, work := range x.gw.Works {
		name := work.Group.Name
		world.PutInto(&x.s.queued, name, len(work.Place))
		if len(work.Place) == 0 {
			continue
		}
		find := x.s.newSearch(work.Group, x.base, x.s.Fit(work.Group)) // reservations go by it, too
		if t := x.gw.Spec.Topology; x.failed != nil && (t == nil || !t.Required) {
			find = x.failed.runs[i].search // what is left when the others have their places
		}
		m := x.s.stored(name)
		if m == nil {
			if reasons == nil {
				reasons = append(x.reasons(), without.Reasons...)
			}
			m = metric.Explain(find, reasons...)
		}
		m.CoalescedFailures = len(work.Place) - 1
		world.PutInto(&x.s.failed, name, m)
	}
}

// reasons are why the gang as a whole finds no room.
func (x *GangPlacer) reasons() []string {
	reasons := []string{x.reason()}
	if short := x.ShortOfAll(); short != "" {
		reasons = append(reasons, short)
	}
	return reasons
}

// GangReason is why a gang found no room.
type GangReason struct {
	Text string
	// Rooms are the cells of the level that is required, those with most room first; nil
	// if none is.
	Rooms []*Room
}

// reason returns one sentence on how much of the gang would have found room.
func (x *GangPlacer) reason() string { return x.Why().Text }

// Why returns why the gang found no place when it was tried last.
func (x *GangPlacer) Why() GangReason {
	want := x.gw.Spec.Topology
	if want == nil || !want.Required {
		found := int64(0)
		for i := range x.gw.Works {
			found += x.failed.found(i)
		}
		text := fmt.Sprintf("gang: there is room for %d of %s, and all must start together", found, Instances(x.gw.First()))
		if x.gw.First() < x.gw.Wanted() {
			text = fmt.Sprintf("gang: there is room for %d of %s that must start together", found, Instances(x.gw.First()))
		}
		return GangReason{Text: text}
	}
	level, _, site := domain.SiteLevel(&x.s.Input.Config, want.Level)
	rooms, name := x.looked, want.Level
	for _, r := range rooms {
		short := slices.Clone(r.fits) // what a trial found, if there was one
		x.recount(r)
		for i := range short {
			r.fits[i] = min(r.fits[i], short[i])
		}
	}
	switch {
	case site && len(rooms) == 0:
		return GangReason{Text: fmt.Sprintf("gang: no %s is known: no node that fits states meta.%s", want.Level, level.Meta)}
	case site:
	case domain.NodeLevel(x.s.World, want.Level):
		if domain.KeptInCells(x.gw, want.Level) {
			rooms = x.cellRoomsOf(want.Level)
		} else {
			rooms, name = x.nodeRooms(), structs.LevelNode
		}
	default:
		return GangReason{Text: fmt.Sprintf("gang: level %q is not known: no node reports it, nor does the scheduler configuration name it", want.Level)}
	}
	if len(rooms) == 0 {
		return GangReason{Text: fmt.Sprintf("gang: no %s fits %s", name, x.wants())}
	}
	rooms = slices.Clone(rooms)
	slices.SortStableFunc(rooms, func(a, b *Room) int { return cmp.Compare(b.Count(x), a.Count(x)) })
	return GangReason{fmt.Sprintf("no %s fits %s: %s", name, x.wants(), x.best(rooms)), rooms}
}

// best names the first domains of a sorted list.
func (x *GangPlacer) best(sorted []*Room) string {
	var parts []string
	verb := " has room"
	for _, r := range sorted[:min(len(sorted), roomsNamed)] {
		parts = append(parts, fmt.Sprintf("%s%s for %d", r.Domain, verb, r.Count(x)))
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
func (x *GangPlacer) wants() string {
	var parts []string
	for i, work := range x.gw.Works {
		if work.First == 0 {
			continue
		}
		part := Instances(work.First)
		if len(x.gw.Works) > 1 {
			part += fmt.Sprintf(" of group %q", work.Group.Name)
		}
		switch n := x.requests[i].Devices; {
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
func (x *GangPlacer) deviceNoun(group int) string {
	noun := ""
	for _, t := range x.gw.Works[group].Group.Tasks {
		for _, d := range feasible.DeviceRequests(t) {
			if noun != "" && noun != d.Kind {
				return "device"
			}
			noun = d.Kind
		}
	}
	if noun == "gpu" {
		return "GPU"
	}
	return cmp.Or(noun, "device")
}

// Instances is a count of instances in words.
func Instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// ShortOfAll returns what a gang wants more of than all nodes that fit have, whatever is free: it
// waits for other nodes.
func (x *GangPlacer) ShortOfAll() string {
	var total, want amount.Amount
	for i, work := range x.gw.Works {
		want = want.Add(x.requests[i].Times(work.First))
	}
	for _, set := range x.sets() {
		for n := range set.All {
			total = total.Add(amount.Amount{Devices: n.Capacity.WellDevices(), Vector: n.Capacity.Amount})
			if total.Fits(want) >= 1 {
				return ""
			}
		}
	}
	for _, d := range []struct {
		want, has int64
		noun      string
	}{
		{want.Devices, total.Devices, "devices"}, {want.CPU, total.CPU, "MHz"}, {want.MemoryMB, total.MemoryMB, "MiB of memory"},
		{want.DiskMB, total.DiskMB, "MiB of disk"},
	} {
		if d.want > d.has {
			return fmt.Sprintf("gang: larger than the cluster: wants %d %s, all nodes that fit have %d", d.want, d.noun, d.has)
		}
	}
	return ""
}
