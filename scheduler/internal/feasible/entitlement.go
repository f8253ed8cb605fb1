package feasible

import (
	"cmp"
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/entitle/slots"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Of a request whose namespace owns cells, as many instances are entitled as the free ones hold (semantics part 0, rule 6). They have a
// position in the queue of their own, at which nothing else is placed.

// Entitlement is what the groups of a job may claim of what their namespace owns. The zero value claims nothing.
type Entitlement struct {
	owner, pool string
	wants       []DeviceRequest // of each group that claims any cells
	slots       []slotWant      // of each group that uses slots of its project
	// workflow names the one whose reservation the groups use, "": none; reserved is what an instance of each takes of it.
	workflow string
	reserved []world.Resources
}

// slotWant is what a group may use of its project's slots.
type slotWant struct {
	of   *slots.Instance
	want *DeviceRequest // nil: it needs no devices
	gpus int            // of a slot
	// first: of a gang of which nothing runs it uses slots only if there are enough for the first members of all its groups, so many of each.
	gang  world.GangName
	first []*slots.Instance
	count []int
}

// EntitlementOf returns what groups of a job may claim, whether or not their namespace or their project has any of it free.
func EntitlementOf(w *world.World, job *structs.Job, groups []string) (c Entitlement) {
	if job.Class == structs.ClassOpportunistic || job.PerNode() || job.Stopped() {
		return c
	}
	c.ofWorkflow(w, job, groups)
	if job.Project != "" && standing.Check(w, job) == structs.SubmissionRecognised {
		c.ofProject(w, job, groups)
	}
	if !w.Owns(job.Namespace) {
		return c
	}
	gangs := GangsOf(job)
	for _, name := range groups {
		g := job.LookupTaskGroup(name)
		if g == nil || gangs[name] != nil && !gangs[name].claims() {
			continue
		}
		if want, ok := claimedDevices(g); ok {
			c.owner, c.pool = job.Namespace, cmp.Or(job.NodePool, structs.DefaultNodePool)
			c.wants = append(c.wants, want)
		}
	}
	return c
}

// ofProject adds what groups may use of their project's slots.
func (c *Entitlement) ofProject(w *world.World, job *structs.Job, groups []string) {
	gangs := GangsOf(job)
	for _, name := range groups {
		g := job.LookupTaskGroup(name)
		if g == nil {
			continue
		}
		of, volume := standing.Instance(w, job, g)
		of.Start = math.MaxInt64
		want := slotWant{of: of}
		if volume.GPUs > 0 {
			if want.gpus = w.SlotSettings().TypeOf(of.Type).GPUs; want.gpus == 0 {
				continue
			}
			devices, ok := claimedDevices(g)
			if !ok {
				continue
			}
			want.want, c.pool = &devices, cmp.Or(job.NodePool, structs.DefaultNodePool)
		}
		if gang := gangs[name]; gang != nil {
			own := world.Owner{RequestName: world.RequestName{Namespace: job.Namespace, Job: job.ID, Group: name}, Terms: *Terms(job, g)}
			want.gang, _ = own.Gang()
			for _, m := range gang.Groups {
				want.first, want.count = append(want.first, slotInstance(w, job, m.Group)), append(want.count, m.Min)
			}
		}
		c.slots = append(c.slots, want)
	}
}

// slotInstance returns an instance of a group as its project counts the next.
func slotInstance(w *world.World, job *structs.Job, g *structs.TaskGroup) *slots.Instance {
	of, _ := standing.Instance(w, job, g)
	of.Start = math.MaxInt64
	return of
}

// slotsFree returns how many instances of a group the free slots of the project hold, up to most.
func (c *Entitlement) slotsFree(w *world.World, s *slotWant, most int) int {
	account := w.Slots().Account(s.of.Project)
	if account == nil || most <= 0 {
		return 0
	}
	if s.first != nil && !w.GangRuns(s.gang) && !account.HoldsAll(s.first, s.count) {
		return 0
	}
	room := account.Room(s.of, most)
	if s.want != nil {
		room = c.cellsFor(w, s, room)
	}
	return room
}

// claims reports whether all first members of a gang may use claims: else none of it does.
func (g *Gang) claims() bool {
	return !slices.ContainsFunc(g.Groups, func(of GangGroup) bool {
		_, ok := claimedDevices(of.Group)
		return of.Min > 0 && !ok
	})
}

// claimedDevices returns the whole devices that an instance of a group would have cells of; false if it uses no claim.
func claimedDevices(g *structs.TaskGroup) (want DeviceRequest, ok bool) {
	if together := Together(groupRequests(g)); together != nil {
		return *together, true
	}
	return want, false
}

// Any reports whether the groups may claim anything at all.
func (c *Entitlement) Any() bool { return len(c.wants)+len(c.slots)+len(c.reserved) > 0 }

// Kind is where the groups rank that claim anything, one of the ClaimRank constants.
func (c *Entitlement) Kind() int {
	switch {
	case len(c.wants) > 0:
		return structs.ClaimRankCells
	case len(c.reserved) > 0:
		return structs.ClaimRankWorkflow
	}
	return structs.ClaimRankSlots
}

// Project names the project whose slots the groups may use; "": none.
func (c *Entitlement) Project() string {
	if len(c.slots) > 0 {
		return c.slots[0].of.Project
	}
	return ""
}

// Free returns how many instances are entitled at most: as many as the free cells of their namespace and the free slots of their project hold. It
// counts to most for each group.
func (c *Entitlement) Free(w *world.World, most int) (n int) {
	for i := range c.reserved {
		n += reservedFor(w, c.workflow, c.reserved[i], most-n)
	}
	for i := range c.wants {
		n += c.freeFor(w, &c.wants[i], most)
	}
	for i := range c.slots {
		n += c.slotsFree(w, &c.slots[i], most-n)
	}
	return n
}

// cellsFor returns how many instances the free cells hold that a project has as slots, most at most.
func (c *Entitlement) cellsFor(w *world.World, of *slotWant, most int) (n int) {
	each := (of.want.Count + of.gpus - 1) / of.gpus // cells
	for key, chain := range w.Chains {
		if level, fits := chain.LevelFor(min(of.want.Count, of.gpus)); fits && chainMatches(key, c.pool, of.want) {
			n += w.FreeFor(key, structs.ProjectOwner(of.of.Project), level, (most-n)*each) / each
		}
	}
	return n
}

func (c *Entitlement) freeFor(w *world.World, want *DeviceRequest, most int) (n int) {
	for key, chain := range w.Chains {
		if n >= most || !chainMatches(key, c.pool, want) {
			continue
		}
		level, fits := want.LevelIn(chain)
		if !fits {
			continue
		}
		if name := want.Pin(); name == "" {
			n += w.FreeFor(key, c.owner, level, most-n)
		} else if pin, known := w.OwnPin(c.owner, name); known && pin.Chain == key {
			n += w.FreeInPin(&pin, c.owner, level, most-n)
		}
	}
	return n
}

// chainMatches reports whether a chain is of a pool and of the requested devices.
func chainMatches(key world.ChainKey, pool string, want *DeviceRequest) bool {
	return (pool == key.Pool || pool == structs.AllNodePool) && (want.Vendor == "" || want.Vendor == key.Vendor) && want.Kind == key.Type &&
		(want.Name == "" || want.Name == key.Model)
}

// Entitled returns how many of the missing instances of a group could be entitled at most. Of a gang of which nothing runs it is as many
// as start together, or none.
func Entitled(w *world.World, job *structs.Job, group string, missing int) int {
	c := EntitlementOf(w, job, []string{group})
	if !c.Any() {
		return 0
	}
	n := c.Free(w, missing)
	if gang := GangsOf(job)[group]; gang != nil {
		for _, g := range gang.Groups {
			if g.Group.Name == group && n < g.Min && missing > g.Group.Count-g.Min {
				return 0
			}
		}
	}
	return n
}
