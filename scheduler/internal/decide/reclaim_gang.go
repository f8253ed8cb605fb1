package decide

import (
	"maps"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/amount"
	"github.com/nomadish/nomadish/scheduler/internal/domain"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/reconcile"
	"github.com/nomadish/nomadish/scheduler/internal/room"
	"github.com/nomadish/nomadish/scheduler/internal/search"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
	"github.com/nomadish/nomadish/structs"
)

// A gang that finds no free room takes what it lacks from lower bands, all of it or
// nothing. The lowest priority is looked for with which it finds room if all that is held
// by that priority and below may go; of the domains that have room then, the one that
// loses the fewest instances is taken, of the first few.

// reclaimDomains bounds the domains that are compared. Each costs a trial of the gang.
const reclaimDomains = 8

// reclaim places the gang's first members where others make room; nil: they cannot.
func (x *GangPlacer) reclaim() *Trial {
	if !x.s.mayReclaim() {
		return nil
	}
	looked, failed := x.looked, x.failed
	defer func() { x.taking, x.compares, x.looked, x.failed = false, false, looked, failed }()
	world.Flush(x.base)
	x.taking = true
	levels := room.PrioritiesBelow(world.Base(x.base), &x.s.Input.Config, x.s.Input.Job.Priority)
	works := func(at int) bool {
		x.most = levels[at]
		t := x.Place()
		if t != nil {
			x.Undo(t)
		}
		return t != nil
	}
	high := len(levels) - 1
	if high >= 0 && x.s.countsOnly() && x.gw.First() == x.gw.Wanted() { // whoever it takes from
		x.most = levels[high]
		return x.Place()
	}
	if high < 0 || !works(high) {
		return nil
	}
	for low := 0; low < high; {
		if mid := (low + high) / 2; works(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	x.most, x.compares = levels[high], true
	return x.Place()
}

// inDomains tries the domains of a level that may hold the gang. When others make room,
// the one that loses least is taken.
func (x *GangPlacer) inDomains(level structs.TopologyLevel) *Trial {
	least := leastLoss{x: x}
	for _, r := range x.candidates(level) {
		if least.tried == reclaimDomains {
			break
		}
		if x.recount(r); !x.claiming && !x.leaving && !r.enough(x) {
			continue
		}
		t := x.try(r.Domain)
		if t == nil && !x.claiming && x.onSlots == nil {
			r.fits[x.failed.short] = x.failed.found(x.failed.short) // less than it seemed
		}
		if t == nil {
			continue
		}
		if least.enough(t, r.Domain) {
			return t
		}
	}
	return least.again()
}

// leastLoss compares domains by what a trial there takes from others.
type leastLoss struct {
	x     *GangPlacer
	best  *feasible.Domain
	loss  preempt.Loss
	tried int
}

// enough reports whether a trial is the one to keep. Else it is undone and remembered.
func (l *leastLoss) enough(t *Trial, d *feasible.Domain) bool {
	least := 1 // that others give room for; cells may cost nobody anything
	if l.x.claiming {
		least = 0
	}
	if !l.x.compares && !l.x.claiming && !l.x.leaving && !l.x.borrows || t.loss.Instances <= least {
		return true
	}
	l.x.Undo(t)
	if l.best == nil || t.loss.Compare(l.loss) < 0 {
		l.best, l.loss = d, t.loss
	}
	l.tried++
	return false
}

// again repeats the trial that lost least.
func (l *leastLoss) again() *Trial {
	if l.best == nil {
		return nil
	}
	return l.x.try(l.best)
}

// makeRoomOnOne places all first members on one node, under one cell of a level there,
// where others make room for all of them together.
func (x *GangPlacer) makeRoomOnOne(level string) *Trial {
	s := x.s
	joint := domain.Joint(x.gw, level)
	run := &groupRun{
		s: s, work: &reconcile.GroupWork{Group: joint},
		search: search.New(x.base, search.NewRequest(s.Input, joint), feasible.NewFeasibility(s.Input.Job, joint, s.fits.Matcher), &s.Random, s.Input.Policy()),
	}
	r := s.reclaimer(x.base)
	r.most = x.most
	find := r.finder(run)
	var tried []string
	for range MaxNodesTried {
		instance := find.next(tried)
		if instance == nil || slices.Contains(tried, instance.id) {
			return nil
		}
		tried = append(tried, instance.id)
		without := x.without(instance.node)
		g, what := run.search.Request.Grant(without, s.fits.Matcher, &s.Random)
		if what != "" {
			continue
		}
		for _, d := range x.domainsOn(&search.Found{Node: without, Grant: g}, level) {
			if t := x.try(d); t != nil {
				return t
			}
		}
	}
	return nil
}

// without is a node as it would be without those who may go.
func (x *GangPlacer) without(n *world.NodeState) *world.NodeState {
	c := n.Own(&world.Token{})
	for _, u := range n.Usages {
		if x.mayGo(u) {
			c.Give(u)
		}
	}
	return c
}

// mayGo reports whether a usage is of a band and priority that may be taken from.
func (x *GangPlacer) mayGo(u *world.Usage) bool {
	s := x.s
	own := u.Owner.Namespace == s.eval.Namespace && u.Owner.Job == s.eval.JobID
	return !own && !u.Guaranteed() && !u.Immune(&s.Input.Config) && u.Owner.Terms.Priority <= x.most && s.band(u) < s.Input.Config.Band(s.Input.Job.Priority)
}

// amountOf is what of a node is to be had beside what is free, at most.
func (x *GangPlacer) amountOf(n *world.NodeState, free amount.Amount) amount.Amount {
	out := free
	if !x.taking {
		return out
	}
	var stay map[string]bool // devices of which somebody stays
	for _, u := range n.Usages {
		if x.mayGo(u) {
			out.Vector = out.Plus(u.Amount)
			continue
		}
		for _, d := range u.Devices {
			if stay == nil {
				stay = map[string]bool{}
			}
			stay[d.ID] = true
		}
	}
	last := ""
	for _, d := range n.Devices { // sorted
		if d.ID != last && !stay[d.ID] {
			out.Devices++
		}
		last = d.ID
	}
	return out
}

// gangReclaim is the part of a trial that others make room for.
type gangReclaim struct {
	*reclaimer
	finds map[*groupRun]*reclaimSearch
	mark  mark
}

// makeRoom finds a node that others can leave for a member that found no free room.
func (t *Trial) makeRoom(x *GangPlacer, run *groupRun, p reconcile.Placement) bool {
	if !x.taking {
		return false
	}
	if t.reclaim == nil {
		t.reclaim = &gangReclaim{reclaimer: x.s.reclaimer(t.edit), finds: map[*groupRun]*reclaimSearch{}, mark: x.s.mark()}
		t.reclaim.most = x.most
	}
	if t.reclaim.finds[run] == nil {
		t.reclaim.finds[run] = t.reclaim.finder(run)
	}
	return t.reclaim.assign(t.reclaim.finds[run], p)
}

// madeRoom frees what was to be reclaimed, and reports whether all found room. What a trial that
// failed did is undone.
func (t *Trial) madeRoom(x *GangPlacer, whole bool) bool {
	if t.reclaim == nil {
		return whole
	}
	if whole {
		whole = len(t.reclaim.settle()) == 0
	}
	t.reclaim.drop()
	if whole {
		t.loss = x.s.lossSince(t.reclaim.mark)
	}
	return whole
}

// drop forgets the newcomers that have a node, and no room yet.
func (r *reclaimer) drop() {
	for _, t := range r.order {
		for i := range t.come {
			r.s.Census.Move(t.come[i].run.work.Group.Name, t.id, -1)
		}
	}
	r.on, r.order = map[string]*touched{}, nil
}

// mark is how far reclaiming has come, to go back to.
type mark struct {
	reclaimed []*reclaimed
	stops     []*structs.AllocStop
	settled   map[string]bool
	lowered   []loweredUse
}

func (s *Scheduler) mark() mark {
	return mark{s.reclaimed, slices.Clone(s.plan.Stop), maps.Clone(s.settled), slices.Clip(s.lowered)}
}

// backTo undoes all reclaiming since a mark.
func (s *Scheduler) backTo(m mark) {
	for _, d := range s.reclaimed {
		if !slices.Contains(m.reclaimed, d) {
			d.run.work.Counts.Preemptions--
		}
	}
	for _, d := range m.reclaimed {
		if !slices.Contains(s.reclaimed, d) {
			d.run.work.Counts.Preemptions++
		}
	}
	s.reclaimed, s.plan.Stop, s.settled, s.lowered = slices.Clip(m.reclaimed), m.stops, m.settled, m.lowered
}

// lossSince sums up what was taken since a mark.
func (s *Scheduler) lossSince(m mark) (l preempt.Loss) {
	for _, d := range s.reclaimed {
		if slices.Contains(m.reclaimed, d) {
			continue
		}
		l.Instances++
		if p := d.use.Owner.Terms.Priority; l.Instances == 1 || p > l.Priority {
			l.Band, l.Priority = s.band(d.use), p
		}
	}
	return l
}
