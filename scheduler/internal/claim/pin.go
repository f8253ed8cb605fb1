package claim

import (
	"fmt"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/cells"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// A device's topology may name a cell that is pinned to the job's namespace. Then that cell alone is used by a claim. A topology that is
// required keeps an instance from running elsewhere, too.

// pinOf returns the cell that a request for devices is pinned to; nil: its owner has none of that name. pinned reports that one is named.
func pinOf(w *world.World, owner string, want *feasible.DeviceRequest) (pin *world.Pin, pinned bool) {
	name := want.Pin()
	if name == "" {
		return nil, false
	}
	if p, known := w.OwnPin(owner, name); known {
		return &p, true
	}
	return nil, true
}

// rooms calls yield for the free cells of at least a level within what the owner has bound and may be used, the smallest first.
func (f *Finder) rooms(e *world.Edit, level int, yield func(world.Room) bool) {
	world.Rooms(e, f.key, f.owner, level, func(r world.Room) bool {
		return f.pin != nil && !f.pin.Has(f.Chain(), &r) || f.slot > 0 && r.Bound != f.kind || yield(r)
	})
}

// accounts returns what the owner has of the chain and may bind: pinned cells are bound already.
func (f *Finder) accounts() []cells.Account {
	if f.pinned {
		return nil
	}
	list := f.Chain().Accounts(f.owner)
	if f.slot > 0 {
		list = slices.DeleteFunc(list, func(a cells.Account) bool { return a.Kind != f.kind })
	}
	return list
}

// PinReasons returns in words why instances of some requests of a job do not use the pinned cells that they name, and whether they must not
// run elsewhere.
func PinReasons(e *world.Edit, job *structs.Job, requests []*search.Request) (texts []string, required bool) {
	w := world.Base(e)
	for _, a := range requests {
		want := Devices(job, a)
		if want == nil {
			continue
		}
		pin, pinned := pinOf(w, job.Namespace, want)
		if !pinned {
			continue
		}
		required = required || want.PinRequired()
		text := ""
		switch {
		case pin == nil:
			text = fmt.Sprintf("pin: no cell %q is pinned to namespace %q", want.Pin(), job.Namespace)
		case w.Away(pin):
			text = fmt.Sprintf("pin: the pinned cell %s is away: its nodes take no work", want.Pin())
		default:
			chain, _ := w.Chain(pin.Chain)
			level, fits := chain.LevelFor(want.Count)
			if !fits || level > pin.Kind.Level || w.FreeInPin(pin, job.Namespace, level, 1) == 0 {
				text = fmt.Sprintf("pin: the pinned cell %s is taken: it has no free cell for %s", want.Pin(), devices(want.Count))
			}
		}
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts, required
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

// MayRaise reports whether the pins of a group, if it has any, let an instance use these cells of a kind of a chain.
func MayRaise(w *world.World, job *structs.Job, group string, key world.ChainKey, k cells.Kind, on []cells.Cell) bool {
	g := job.LookupTaskGroup(group)
	if g == nil {
		return true
	}
	for _, t := range g.Tasks {
		requests := feasible.DeviceRequests(t)
		for i := range requests {
			if pin, pinned := pinOf(w, job.Namespace, &requests[i]); pinned &&
				(pin == nil || pin.Chain != key || pin.Kind != k || len(on) != 1 || on[0] != pin.Cell) {
				return false
			}
		}
	}
	return true
}
