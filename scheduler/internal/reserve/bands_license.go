package reserve

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/licensetake"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// leaver is one that leaves for a reservation, and how.
type leaver struct {
	use  *world.Usage
	stop *structs.AllocStop
}

// takeLicenses adds to those who leave for the parts of a reservation those of lower bands who return licenses that it lacks, wherever they run, the lowest
// priority first; whoever could stay beside the rest then stays. It reports whether they return enough.
func (p *preemption) takeLicenses(of []structs.RequestedLicense, parts []structs.WorkflowPart) bool {
	e, gone, gangs := p.w.Edit(), map[string]bool{}, map[world.GangName]bool{}
	for _, l := range p.leavers {
		returnLicenses(e, l.use)
		gone[l.use.ID] = true
		if g, some := l.use.Owner.Gang(); some {
			gangs[g] = true
		}
	}
	more := licensetake.FromBands(e, of, func() bool { return p.lacks(e, of) }, func(u *world.Usage) bool {
		g, some := u.Owner.Gang()
		_, may := p.rank(u)
		return may && !gone[u.ID] && (!some || !gangs[g])
	})
	for _, u := range more {
		returnLicenses(e, u)
		p.leavers = append(p.leavers, leaver{u, p.stopOf(u, &preempt.Taken{How: preempt.Requeue}, "")})
	}
	if p.lacks(e, of) {
		return false
	}
	if len(more) > 0 {
		p.spareLeavers(of, parts)
	}
	return true
}

// takeLicenses has those of lower bands leave for a reservation in cells who return licenses that it lacks, beside those who leave the cells. It reports whether they
// return enough: else nothing changes.
func (o *Choice) takeLicenses(c *chooser, of []structs.RequestedLicense) bool {
	if c.bands.Config == nil {
		return false
	}
	p := &preemption{chooser: c}
	for _, st := range o.Stops {
		if u, counts := world.Usages(c.w).Get(st.AllocID); counts {
			p.leavers = append(p.leavers, leaver{u, st})
		}
	}
	if !p.takeLicenses(of, o.Parts) {
		return false
	}
	o.Preempts, o.Stops, o.Jobs = len(o.Stops) == 0, nil, nil
	for _, l := range p.leavers {
		o.stop(l.use, l.stop)
	}
	return true
}

// returnLicenses counts what a usage has of licenses as returned.
func returnLicenses(e *world.Edit, u *world.Usage) {
	if !u.IsSuspended {
		world.LicenseEdit{E: e}.Reserve("", u.Owner.Job, &u.Owner.Terms, -1)
	}
}

// lacks reports whether there are too few of some licenses to be reserved.
func (p *preemption) lacks(e *world.Edit, of []structs.RequestedLicense) bool {
	return slices.ContainsFunc(of, func(r structs.RequestedLicense) bool {
		return world.Base(e).Licenses().Reservable(r.Name, p.key) < r.Count
	})
}

// spareLeavers has those stay who could stay beside the rest: who returns licenses may leave a node of the reservation, and who leaves one return licenses.
func (p *preemption) spareLeavers(of []structs.RequestedLicense, parts []structs.WorkflowPart) {
	var all []*world.Usage
	for _, l := range p.leavers {
		all = append(all, l.use)
	}
	for _, unit := range slices.Backward(together.UnitsOf(p.e, all)) {
		rest := slices.DeleteFunc(slices.Clone(p.leavers), func(l leaver) bool {
			return slices.ContainsFunc(unit, func(u *world.Usage) bool { return u.ID == l.use.ID })
		})
		if p.suffice(rest, of, parts) {
			p.leavers = rest
		}
	}
}

// suffice reports whether the parts of a reservation have room, and it has its licenses, if some leave.
func (p *preemption) suffice(leave []leaver, of []structs.RequestedLicense, parts []structs.WorkflowPart) bool {
	e := p.w.Edit()
	for _, l := range leave {
		returnLicenses(e, l.use)
	}
	return !p.lacks(e, of) && !slices.ContainsFunc(parts, func(part structs.WorkflowPart) bool {
		n, _ := p.w.State(part.NodeID)
		n = world.TrialOf(n)
		for _, l := range leave {
			if l.use.NodeID != n.ID {
				continue
			}
			if n.Give(l.use); l.stop.Reclaim == structs.ReclaimSuspend {
				n.Take(l.use.Suspended())
			}
		}
		return !p.holds(n, &part)
	})
}
