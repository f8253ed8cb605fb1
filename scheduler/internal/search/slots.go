package search

import (
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// OfProject makes a request of a job that names a project one of that project, with what an instance costs of its slots. Nothing of it is
// noted while there are no projects: servers of older versions do not know it.
func (a *Request) OfProject(in *Input, e *world.Edit) {
	if world.Base(e).Slots() == nil || in.Job.Project == "" {
		return
	}
	of, volume := standing.Instance(world.Base(e), in.Job, a.Group)
	a.Volume = volume
	a.By.Recognised = world.PendingWorkflows(world.Base(e)).Len() > 0 && standing.Of(world.Base(e), in.Job) == structs.StandingRecognised
	a.Resources.Shared.Terms.Slots = &structs.SlotTerms{
		Project: of.Project, Step: of.Step, User: of.User, Groups: strings.Join(of.Groups, ","), Type: of.Type, Cost: of.Cost,
	}
	a.common.Owner = world.NewOwner(a.By.RequestName, a.Resources)
}

// OnSlot returns the request as one that uses slots of its project, with guards on its node or as a light one; level is that of the cells that its
// devices are in, "" without devices.
func (a *Request) OnSlot(guards int, light bool, level string) *Request {
	c := a.copy()
	terms, own, resources := *a.Resources.Shared.Terms, *a.Resources.Shared.Terms.Slots, *a.Resources
	own.Guards, own.Light = guards, light
	terms.Claim, terms.CellLevel, terms.Slots = structs.ClaimSlots, level, &own
	resources.Shared.Terms = &terms
	c.Resources, c.By.Entitled = &resources, true
	c.common.Owner = world.NewOwner(a.By.RequestName, &resources)
	if level != "" && len(c.Devices) > 1 {
		c.together = feasible.Together(c.Devices)
	}
	return c
}
