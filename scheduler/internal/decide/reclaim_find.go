package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/scheduler/preempt"
)

// Bounds of the search for the node that loses least.
const (
	// ReclaimLook is how many nodes are planned whose highest victim is of the lowest
	// priority that will do, before the one that loses the fewest instances is taken. One
	// plan costs about what a placement does; one instance is the least there is, so that
	// the search ends at the first node that loses no more.
	ReclaimLook = 64
	// reclaimTries is how many nodes of a priority are planned without success, as coordinates
	// admit more than ports, cells or gangs allow. It is counted anew for each priority,
	// and a node is planned once for all instances of a group, and once more for each that
	// comes there: a group costs at most as many failed plans as there are priorities times
	// this, and ReclaimLook and two more for each instance.
	reclaimTries = 256
)

// reclaimSearch finds nodes for the instances of one group, those first that lose least.
type reclaimSearch struct {
	r   *reclaimer
	run *groupRun
	// levels are the priorities that are left, lowest first, with their sets of nodes.
	levels    [][]*reservedCursor
	tried     int // nodes of the level that would not do
	seen      map[string]bool
	instances []*reclaimInstance
}

// reclaimInstance is a node that can be freed for one more instance.
type reclaimInstance struct {
	id    string
	node  *world.NodeState
	total preempt.Loss // of all that were given the node, with one more
	more  preempt.Loss // of the one alone
	gangs bool
}

// reservedCursor is where the search is in one set.
type reservedCursor struct {
	key    world.UsageKey
	cursor bucket.Cursor[*world.NodeState]
	begun  bool
	list   []*world.NodeState // in place of a set: those left of a domain
	head   *world.NodeState   // the next; nil: not looked for yet
}

func (r *reclaimer) finder(g *groupRun) *reclaimSearch {
	f := &reclaimSearch{r: r, run: g, seen: map[string]bool{}}
	switch d := g.search.Fit.Within; {
	case r.s.Input.Job.PerNode(): // its nodes are named
	case d != nil && d.NodeID == "":
		f.levelsInDomain()
	case world.KeepsUsage(world.Base(r.e)):
		f.levelsOfAll()
	default:
		f.levelsByWalk()
	}
	for _, id := range slices.Concat(g.search.Candidates, r.reserved(g)) {
		f.consider(id)
	}
	if g.search.Candidates != nil {
		f.levels = nil
	}
	return f
}

// mayTake reports whether what a priority uses may be taken.
func (r *reclaimer) mayTake(priority int) bool {
	return priority <= r.most && r.s.Input.Config.Band(priority) < r.below
}

// levelsOfAll goes over the sets that the World keeps.
func (f *reclaimSearch) levelsOfAll() {
	r, g, last := f.r, f.run, -1
	for key, set := range world.UsageSets(world.Base(r.e)).All {
		if !r.mayTake(key.Priority) {
			break
		}
		if !g.search.ByClass && !g.search.Fit.Class(set.Any().Node).OK() {
			continue
		}
		if key.Priority != last {
			f.levels, last = append(f.levels, nil), key.Priority
		}
		at := len(f.levels) - 1
		f.levels[at] = append(f.levels[at], &reservedCursor{key: key})
	}
}

// reserved are the nodes that the request has reserved: the sets show what is left of them for
// others.
func (r *reclaimer) reserved(g *groupRun) (ids []string) {
	for id, h := range world.Reservations(world.Base(r.e)).All {
		if h.Free(&g.search.Request.By) {
			ids = append(ids, id)
		}
	}
	return ids
}

// on returns one named node, if it can be freed.
func (f *reclaimSearch) on(id string) *reclaimInstance {
	return f.plan(id)
}

// plan returns what a node would lose by one more; nil: it cannot take it.
func (f *reclaimSearch) plan(id string) *reclaimInstance {
	n, known := world.StateOf(f.r.e, id)
	if !known || !f.usable(n) {
		return nil
	}
	total, gangs, ok := f.r.loss(n, f.run.search.Request)
	if !ok || total.Instances > 0 && total.Priority > f.r.most {
		return nil
	}
	instance := &reclaimInstance{id: id, node: n, total: total, more: total, gangs: gangs}
	if t := f.r.on[id]; t != nil {
		instance.more.Instances = max(0, total.Instances-t.loss.Instances)
		if instance.more.Instances == 0 && total.Priority > t.loss.Priority {
			instance.more.Instances = 1 // other, more important ones
		}
	}
	return instance
}

func (f *reclaimSearch) usable(n *world.NodeState) bool {
	s := f.run.search
	return n.Node != nil && n.Capacity != nil && n.Node.Ready() && s.Fit.Class(n.Node).OK() && s.Fit.Alone(n.Node) == "" && s.Refused(n.Node) == ""
}

// consider looks at a node by its ID.
func (f *reclaimSearch) consider(id string) {
	if f.seen[id] {
		return
	}
	f.seen[id] = true
	if instance := f.plan(id); instance != nil {
		f.instances = append(f.instances, instance)
	}
}

// next returns the node that loses least. Those to avoid are taken only if there is no other.
func (f *reclaimSearch) next(avoid []string) *reclaimInstance {
	if instance := f.pick(avoid); instance != nil || len(avoid) == 0 {
		return instance
	}
	return f.pick(nil)
}

// pick looks at further nodes until no better one may be expected: those of the level
// that the search is at lose something of at least its priority.
func (f *reclaimSearch) pick(avoid []string) *reclaimInstance {
	for {
		best := f.best(avoid)
		switch {
		case len(f.levels) == 0:
			return best
		case best == nil || best.more.Instances > 0 && best.more.Priority > f.level():
		case best.more.Instances <= 1 || best.more.Priority < f.level() || f.looked() >= ReclaimLook:
			return best
		}
		if !f.look() {
			f.levels, f.tried = f.levels[1:], 0
		}
	}
}

// level is the priority that the search is at.
func (f *reclaimSearch) level() int {
	if len(f.levels) == 0 {
		return -1
	}
	return f.levels[0][0].key.Priority
}

// looked counts the nodes that would do and lose nothing above the level. Those that were
// taken meanwhile do not count: as many others are looked at in their stead.
func (f *reclaimSearch) looked() (n int) {
	for _, s := range f.instances {
		if s.more.Priority <= f.level() {
			n++
		}
	}
	return n
}

// best is the spot that loses least so far. What other instances keep it from now is
// forgotten.
func (f *reclaimSearch) best(avoid []string) (best *reclaimInstance) {
	f.instances = slices.DeleteFunc(f.instances, func(s *reclaimInstance) bool { return f.run.search.Refused(s.node.Node) != "" })
	for _, s := range f.instances {
		if slices.Contains(avoid, s.id) {
			continue
		}
		if best == nil || cmp.Or(s.more.Compare(best.more), strings.Compare(s.id, best.id)) < 0 {
			best = s
		}
	}
	return best
}

// look plans the next node of the level, the one with the lowest ID. False: there are no
// more, or enough have been tried without success.
func (f *reclaimSearch) look() bool {
	if f.tried >= reclaimTries {
		return false
	}
	var next *reservedCursor
	for i := 0; i < len(f.levels[0]); {
		c := f.levels[0][i]
		if !f.advance(c) {
			f.levels[0] = slices.Delete(f.levels[0], i, i+1)
			if len(f.levels[0]) == 0 {
				f.levels[0] = []*reservedCursor{c} // its priority is still the level's
				return false
			}
			continue
		}
		if next == nil || c.head.ID < next.head.ID {
			next = c
		}
		i++
	}
	if next == nil {
		return false
	}
	n := next.head
	next.head = nil
	f.seen[n.ID] = true
	if instance := f.plan(n.ID); instance == nil {
		f.tried++
	} else {
		f.instances = append(f.instances, instance)
	}
	return true
}

// advance finds the next node of a set that the group may use.
func (f *reclaimSearch) advance(c *reservedCursor) bool {
	if c.head != nil {
		return true
	}
	for ; len(c.list) > 0; c.list = c.list[1:] {
		if n := world.Current(f.r.e, c.list[0]); !f.seen[n.ID] && f.usable(n) {
			c.head, c.list = n, c.list[1:]
			return true
		}
	}
	set, known := world.UsageSets(world.Base(f.r.e)).Get(c.key)
	if !known {
		return false
	}
	if !c.begun {
		c.begun = true
		c.cursor = bucket.Search(&set.Nodes, bucket.Query[*world.NodeState]{Need: f.run.search.Request.Need, Policy: bucket.FirstFit})
	}
	for {
		e, ok := c.cursor.Next(&set.Nodes)
		if !ok {
			return false
		}
		if n := world.Current(f.r.e, e.Value); !f.seen[n.ID] && f.usable(n) {
			c.head = n
			return true
		}
	}
}

// again plans a node anew that has just been given to an instance.
func (f *reclaimSearch) again(instance *reclaimInstance) {
	f.instances = slices.DeleteFunc(f.instances, func(s *reclaimInstance) bool { return s == instance })
	f.seen[instance.id] = true
	if more := f.plan(instance.id); more != nil {
		f.instances = append(f.instances, more)
	}
}
