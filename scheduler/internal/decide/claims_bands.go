package decide

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/alike"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// Bands inside one owner (semantics part 0, rule 1, and part 2, "Class before room"): where preemption by bands is enabled, an instance
// of a higher band may take what its namespace's lower bands are guaranteed. These give up their class first, so that their cells may be
// bound elsewhere, and run on; their room is taken only where there is no other.

// loweredUse is an allocation that gives up its class, and for which.
type loweredUse struct {
	use *world.Usage // as it was
	to  string
}

// placeOrLower places one instance in a cell of its namespace, which lower bands give up if need be.
func (c *claimRun) placeOrLower(p reconcile.Placement) bool {
	if c.place(p) {
		return true
	}
	if c == nil || c.find == nil || c.noneLower || p.NodeID != "" || !c.g.s.mayReclaim() {
		return false
	}
	e := c.g.search.Edit
	var given []*world.Usage
	for _, unit := range c.lower() {
		for _, u := range unit {
			world.Take(e, u.Opportunistic())
		}
		given = append(given, unit...)
		if c.none = false; c.place(p) {
			c.g.s.lower(e, given, c.newcomer())
			return true
		}
	}
	for _, u := range slices.Backward(given) {
		world.Take(e, u)
	}
	c.noneLower = true
	return false
}

// lower returns what the namespace uses by its claims and lower bands than the job's may give up, in the order of victims: the lowest
// band and priority first, then what was submitted last, then what began last. A gang gives up its class whole.
func (c *claimRun) lower() (units [][]*world.Usage) {
	s, e := c.g.s, c.g.search.Edit
	var all []*world.Usage
	for key := range s.World.Chains {
		if c.find.Matches(key) && c.find.Begin(e, key) {
			all = c.find.Uses(e, all)
		}
	}
	below := s.Input.Config.Band(s.Input.Job.Priority)
	all = slices.DeleteFunc(all, func(u *world.Usage) bool { return s.band(u) >= below || u.Owner.Job == s.Input.Job.ID })
	slices.SortFunc(all, func(a, b *world.Usage) int {
		x, y := &a.Owner.Terms, &b.Owner.Terms
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Submitted, x.Submitted), alike.TakenFirst(a, b))
	})
	seen := map[world.GangName]bool{}
	for _, u := range all {
		g, gang := u.Owner.Gang()
		if !gang {
			units = append(units, []*world.Usage{u})
		}
		if gang && !seen[g] {
			seen[g] = true
			units = append(units, slices.DeleteFunc(world.GangMembers(e, g), func(m *world.Usage) bool { return !m.Guaranteed() }))
		}
	}
	return units
}

// newcomer returns the ID of the allocation that was placed last.
func (c *claimRun) newcomer() string {
	b := c.last.batch
	return structs.DeriveID(b.Seed, uint64(b.Instances[len(b.Instances)-1].Ordinal))
}

// lower notes which of some allocations have given up their class for a newcomer. Those that may keep it beside the newcomer do, the most
// important first; those of which the room was taken have ended.
func (s *Scheduler) lower(e *world.Edit, given []*world.Usage, newcomer string) {
	for _, u := range slices.Backward(given) {
		if _, runs := world.Usages(world.Base(e)).Get(u.ID); !runs {
			continue
		}
		if _, gang := u.Owner.Gang(); !gang && world.ClaimLacks(e, u) == "" {
			world.Take(e, u)
			continue
		}
		s.lowered = append(s.lowered, loweredUse{u, newcomer})
	}
	for _, d := range s.reclaimed { // room may be freed when more is taken on its node
		if slices.ContainsFunc(given, func(u *world.Usage) bool { return u.ID == d.use.ID }) {
			s.lowered = append(s.lowered, loweredUse{d.use, newcomer})
		}
	}
}

// lowerClasses adds to the plan who gives up its class and runs on.
func (s *Scheduler) lowerClasses() {
	seen := map[string]bool{}
	for _, l := range slices.Backward(s.lowered) {
		u, runs := world.Usages(world.Base(s.Edit)).Get(l.use.ID)
		if runs && !u.Guaranteed() && !seen[u.ID] {
			seen[u.ID] = true
			s.plan.Update = append(s.plan.Update, &structs.AllocInPlace{AllocID: u.ID, EvalID: s.eval.ID, ClassTo: l.to})
		}
	}
}
