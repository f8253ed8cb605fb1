package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/cell"
	"github.com/nomadish/nomadish/scheduler/frag"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/idle"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// PolicyLeastFrag takes the node whose ability to take the typical requests shrinks least.
const PolicyLeastFrag = structs.PolicyLeastFragmentation

// How a decision of the policy is bounded, whatever the cluster is. The figures are
// of the OpenB trace (docs/guides/policies.md).
const (
	// weighAll: a set with so many nodes has all of them weighed.
	weighAll = 8
	// weighMost is how many places of the order of the emptiest nodes of a larger set are
	// weighed, and weighLeast how many of the orders of the fullest. With one of the emptiest
	// two of the lists of the trace fall by 2 and 4 points; two of the fullest are worth 0.03.
	weighMost  = 2
	weighLeast = 1
	// weighScarce is how many times as many they are while something is scarce. Where requests name
	// models, more depends on which nodes of a model a request gets: without it, the lists in which
	// 25 and 33 % of the tasks name one fall by 0.15 and 0.35 points.
	weighScarce = 2
	// weighTries is how many nodes of an order are checked in vain.
	weighTries = 16
	// lossStep, in thousandths of a device: what differs by less is a tie, and the fuller
	// node is taken.
	lossStep = 50
)

// leastFrag weighs nodes for one request.
type leastFrag struct {
	t       *measures
	request *Request
	m       *feasible.Matcher
	// requestKey is under which number Typical remembers what was weighed for the like of the
	// request; 0: it does not.
	requestKey uint32
}

// weighed is a node with what its ability would lose.
type weighed struct {
	node *world.NodeState
	loss int64 // in lossSteps
	// apart: its devices are of no one free cell.
	apart bool
}

// weighing is the nodes of a set that were weighed, the best first.
type weighing struct {
	list []weighed
	done bool
	// remember: neither the set nor its nodes were changed by this evaluation, so that what
	// is found of them holds for others too.
	remember bool
	// kinds is the typical requests for the set's nodes; nil: not looked up yet.
	kinds *kinds
	// plain: no request is for their devices, or they have none, so that all lose alike.
	plain bool
}

// leastFragmented finds the node that loses least. Sets are weighed once; after that
// only the one that was taken from.
func (s *Search) leastFragmented(avoid []string) (Found, bool) {
	world.Flush(s.Edit)
	for {
		var from *SetCursor
		for _, c := range s.Sets {
			s.weigh(c, avoid)
			if len(c.weighed.list) > 0 && (from == nil || s.compareWeighed(&c.weighed.list[0], &from.weighed.list[0]) < 0) {
				from = c
			}
		}
		if from == nil {
			return s.inPhases(avoid) // those few need not show it
		}
		if f, ok := s.acceptWeighed(from, avoid); ok {
			return f, true
		}
	}
}

// leastInSet finds the node of one set that loses least.
func (s *Search) leastInSet(c *SetCursor, avoid []string) (Found, bool) {
	world.Flush(s.Edit)
	s.weigh(c, avoid)
	for len(c.weighed.list) > 0 {
		if f, ok := s.acceptWeighed(c, avoid); ok {
			return f, true
		}
	}
	return Found{}, false
}

// acceptWeighed tries the best node of a set, which is dropped if it does not fit.
func (s *Search) acceptWeighed(c *SetCursor, avoid []string) (Found, bool) {
	w := &c.weighed.list[0]
	f, ok := s.accept(world.Current(s.Edit, w.node), len(s.phases)-1, avoid)
	if !ok {
		c.weighed.list = c.weighed.list[1:]
		return Found{}, false
	}
	f.entry, f.set, f.phase = bucket.Entry[*world.NodeState]{ID: w.node.ID, At: w.node.Indexed.At, Value: w.node}, c, len(s.phases)-1
	return f, true
}

func (s *Search) compareWeighed(a, b *weighed) int {
	if a.apart != b.apart {
		if b.apart {
			return -1
		}
		return 1
	}
	if a.loss != b.loss {
		return cmp.Compare(a.loss, b.loss)
	}
	return s.sort.compareAt(&a.node.Indexed.At, &b.node.Indexed.At, a.node.ID, b.node.ID)
}

// weigh lists the nodes of a set that lose least, if that has not been done since it
// was taken from. Which nodes are looked at does not depend on how many there are.
func (s *Search) weigh(c *SetCursor, avoid []string) {
	w := &c.weighed
	if w.done {
		return
	}
	w.done, w.list = true, nil // others may have the old one
	set, known := s.AllSets().Get(c.Name)
	if !known {
		return
	}
	w.remember = s.frag.requestKey != 0 && !world.Owns(s.Edit, set)
	if key := (setRequestKey{c.Name, s.frag.requestKey}); w.remember && len(avoid) == 0 && len(s.Refusals) == 0 {
		if old, known := s.frag.t.weighed[key]; known && old.of == set.Owner {
			w.list = old.list
			return
		}
		defer func() { s.frag.t.remember(key, set.Owner, w.list) }()
	}
	if w.kinds == nil {
		n := set.Any()
		w.kinds = s.frag.t.of(n)
		w.plain = w.kinds.plain(s.frag.t, n)
	}
	if set.Nodes.Len() <= weighAll {
		for e := range set.Nodes.All {
			if e.At.Fits(&s.Request.Need) {
				s.add(c, e, avoid)
			}
		}
	} else {
		s.weighOrders(c, set, avoid)
	}
	if len(w.list) > 1 {
		slices.SortFunc(w.list, func(a, b weighed) int { return s.compareWeighed(&a, &b) })
	}
}

// weighOrders weighs the first nodes of each order in which the best ones may stand first: those
// with the least room, where the request may leave the least behind; and those with the most, where
// it may have the CPU that nobody else wants.
func (s *Search) weighOrders(c *SetCursor, set *world.NodeSet, avoid []string) {
	whole, share := 0, 0
	for i := range s.Request.Devices {
		if d := &s.Request.Devices[i]; d.Whole() > 0 {
			whole += d.Whole()
		} else {
			share = max(share, d.Share)
		}
	}
	q := bucket.Query[*world.NodeState]{Need: s.Request.Need, Policy: bucket.BestFit}
	if share > 0 && whole == 0 {
		q.Need[world.DimShare] = int64(share)
		s.weighOrder(c, set, q, avoid)
		q.Need[world.DimShare], whole = 0, 1
	}
	q.Need[world.DimGPUs] = max(q.Need[world.DimGPUs], int64(whole))
	s.weighOrder(c, set, q, avoid)
	if c.weighed.plain {
		return // the first is the best
	}
	q.Policy = bucket.LeastFit
	s.weighOrder(c, set, q, avoid)
}

func (s *Search) weighOrder(c *SetCursor, set *world.NodeSet, q bucket.Query[*world.NodeState], avoid []string) {
	few := weighLeast
	if q.Policy == bucket.LeastFit {
		few = weighMost
	}
	if s.frag.t.scarce {
		few *= weighScarce
	}
	bucket.Offer(&set.Nodes, q, weighTries, few, func(e bucket.Entry[*world.NodeState]) bool { return s.add(c, e, avoid) })
}

// add weighs a node and lists it; false: it does not fit.
func (s *Search) add(c *SetCursor, e bucket.Entry[*world.NodeState], avoid []string) bool {
	n := e.Value
	if slices.Contains(avoid, n.ID) {
		s.passed = true
		return false
	}
	if s.Refused(n.Node) != "" {
		return false
	}
	kinds := c.weighed.kinds
	if s.frag.t.cores {
		kinds = s.frag.t.of(n) // what a core is differs within the set
	}
	loss, ok := s.frag.lossOf(n, kinds, c.weighed.remember)
	if !ok {
		return false
	}
	for i := range c.weighed.list {
		if c.weighed.list[i].node == n {
			return true
		}
	}
	if c.weighed.list == nil {
		c.weighed.list = s.frag.t.newList()
	}
	c.weighed.list = append(c.weighed.list, weighed{n, loss, s.apart(&e.At)})
	return true
}

// lossOf returns a node's loss in lossSteps, from what was found before if that holds.
func (l *leastFrag) lossOf(n *world.NodeState, k *kinds, remember bool) (int64, bool) {
	var known *lossOfNode
	if remember {
		if known = l.t.lossAt(n, l.requestKey); known.node == n && known.requestKey == l.requestKey {
			return known.steps, known.steps != noRoom
		}
	}
	loss, level, ok := l.loss(n, k)
	steps := int64(noRoom)
	if ok {
		steps = lossSteps(loss)
	}
	if known != nil {
		*known = lossOfNode{n, l.requestKey, level, steps}
	}
	return steps, ok
}

// weighOne weighs a node by itself.
func (s *Search) weighOne(f Found) weighed {
	loss, _, _ := s.frag.loss(f.Node, s.frag.t.of(f.Node))
	return weighed{f.Node, lossSteps(loss), s.apart(&f.entry.At)}
}

// liking is 1 for a node that loses nothing, a half for one that loses a device, and so
// on: what affinities and spreads are weighed against.
func (l *leastFrag) liking(n *world.NodeState) float64 {
	loss, _, _ := l.loss(n, l.t.of(n))
	return world.WholeDevice / (world.WholeDevice + max(0, loss))
}

// lossSteps cuts a loss to whole steps.
func lossSteps(loss float64) int64 { return int64(math.Floor(loss / lossStep)) }

// apart reports whether a node has no free cell that holds the request.
func (s *Search) apart(at *bucket.Vector) bool {
	whole := 0
	for i := range s.Request.Devices {
		whole = max(whole, s.Request.Devices[i].Whole())
	}
	if whole < 2 {
		return false
	}
	for class := world.CellClass(whole); class < world.CellSizes; class++ {
		if at[world.DimCells+class] > 0 {
			return false
		}
	}
	return true
}

// forget has the set of a node that was taken from weighed again.
func (s *Search) forget(n *world.NodeState) {
	name := n.Indexed.Family
	if s.ByClass {
		name = n.Indexed.Class
	}
	for _, c := range s.Sets {
		if c.Name == name {
			c.weighed.done = false
		}
	}
}

// loss is how much ability a node would lose to the request, in thousandths of devices, and on
// which devices: those of which so much is idle. false: it does not fit.
func (l *leastFrag) loss(n *world.NodeState, k *kinds) (loss float64, level int32, ok bool) {
	before := l.room(n)
	after := before
	l.use(n, &after)
	switch {
	case after.CPU < 0 || after.Memory < 0:
		return 0, 0, false
	case len(n.Cells) == 0:
		return 0, 0, len(l.request.Devices) == 0
	case len(l.request.Devices) > 1:
		return l.several(n, k, before, after)
	}
	var room [32]int32
	if c := k.only(n); c != nil { // as below, without a look at what is far from the node
		before.Idle = n.Pool.Idle.AppendTo(room[:0])
		after.Idle = before.Idle
		switch {
		case len(l.request.Devices) == 0:
			return l.t.ability(c, &before) - l.t.ability(c, &after), 0, true
		case l.takes(c):
			return l.onPool(c, l.t.ability(c, &before), after)
		}
	}
	best := math.Inf(1)
	for p := range n.Pools { // what it loses where the request takes no devices is CPU and memory
		before.Idle = p.Idle(n.Cells[p.At], room[:0])
		after.Idle = before.Idle
		of := l.t.find(k, n, p.Group)
		was := l.t.ability(of, &before)
		mayTake := len(l.request.Devices) > 0 && l.request.Devices[0].Matches(l.m, p.Group)
		rest := 0.0
		if !mayTake || len(n.Capacity.Trees) > 1 || !n.Capacity.Trees[0].Single { // else it takes devices there, or has no room
			rest = was - l.t.ability(of, &after)
			loss += rest
		}
		if !mayTake {
			continue
		}
		if with, at, fits := l.onPool(of, was, after); fits && with-rest < best {
			best, level = with-rest, at
		}
	}
	if len(l.request.Devices) == 0 {
		return loss, 0, true
	}
	return loss + best, level, level > 0
}

// takes reports whether the request may take devices of a kind, as far as their kind says it all.
func (l *leastFrag) takes(k *kind) bool {
	a := &l.request.Devices[0]
	return len(a.Request.Constraints) == 0 && (a.Vendor == "" || a.Vendor == k.vendor) && a.Kind == k.kind && (a.Name == "" || a.Name == k.name)
}

// room is what a node has left, without its devices.
func (l *leastFrag) room(n *world.NodeState) frag.Room {
	return frag.Room{CPU: n.Capacity.Amount.CPU - n.Used.CPU, Memory: n.Capacity.Amount.MemoryMB - n.Used.MemoryMB}
}

// use takes what the request wants of a room, but devices.
func (l *leastFrag) use(n *world.NodeState, r *frag.Room) {
	r.CPU -= l.request.Amount.CPU
	for _, c := range l.request.Cores {
		r.CPU -= int64(c.n) * n.Capacity.MHzPerCore
	}
	r.Memory -= l.request.Amount.MemoryMB
}

// onPool is what a pool loses if the request takes of its devices, in the best way. Room is without
// the request's CPU and memory.
func (l *leastFrag) onPool(k *kind, was float64, room frag.Room) (loss float64, level int32, ok bool) {
	want := &l.request.Devices[0]
	var copied [32]int32
	list := append(copied[:0], room.Idle...)
	room.Idle = list
	if n := want.Whole(); n > 0 {
		if n > len(list) || list[n-1] < world.WholeDevice {
			return 0, 0, false
		}
		clear(list[:n])
		idle.SortDescending(list)
		return was - l.t.ability(k, &room), world.WholeDevice, true
	}
	var taken [32]int32
	share := int32(want.Share) // at most 1000
	for i, d := range list {
		if d < share {
			break
		}
		if i > 0 && d == list[i-1] {
			continue
		}
		room.Idle = append(taken[:0], list...)
		room.Idle[i] -= share
		idle.SortDescending(room.Idle)
		with := was - l.t.ability(k, &room)
		if !ok || lossSteps(with) <= lossSteps(loss) { // of equal ones the fullest
			loss, level, ok = with, d, true
		}
	}
	return loss, level, ok
}

// several weighs requests for devices of several kinds by what they would get.
func (l *leastFrag) several(n *world.NodeState, k *kinds, before, after frag.Room) (loss float64, level int32, ok bool) {
	cells := n.Cells
	for i := range l.request.Devices {
		c := l.request.Choose(n, &l.request.Devices[i], cells, l.m)
		if c.Tree == nil {
			return 0, 0, false
		}
		cells = c.Taken(cells, l.request.Devices[i].Share)
	}
	var room [32]int32
	for p := range n.Pools {
		of := l.t.find(k, n, p.Group)
		before.Idle = p.Idle(n.Cells[p.At], room[:0])
		loss += l.t.ability(of, &before)
		after.Idle = p.Idle(cells[p.At], room[:0])
		loss -= l.t.ability(of, &after)
	}
	return loss, 0, true
}

// narrow returns on which devices of a pool a share goes: those of which so much is idle that the
// node loses least. allowed says which may be taken at all; nil: all.
func (l *leastFrag) narrow(n *world.NodeState, cells *cell.State, p world.Pool, allowed func(int) bool) func(int) bool {
	if len(l.request.Devices) != 1 {
		return allowed
	}
	level, ok := l.levelOn(n, cells, p)
	if !ok {
		return allowed
	}
	some := false
	only := func(device int) bool {
		return cells.FreeShare(device) == int(level) && (allowed == nil || allowed(device))
	}
	for d := range p.Tree.IDs {
		some = some || only(d)
	}
	if !some {
		return allowed // all such are where the request may not go
	}
	return only
}

// levelOn is how much is idle of the devices of a pool that the request is best given.
func (l *leastFrag) levelOn(n *world.NodeState, cells *cell.State, p world.Pool) (int32, bool) {
	if l.requestKey != 0 && n.Pool.Idle.Count > 0 && !n.Dirty { // it has one pool, and was mostly weighed before
		if known := l.t.lossAt(n, l.requestKey); known.node == n && known.requestKey == l.requestKey && known.steps != noRoom {
			return known.level, true
		}
	}
	k := l.t.find(l.t.of(n), n, p.Group)
	var buf [32]int32
	room := l.room(n)
	room.Idle = p.Idle(cells, buf[:0])
	was := l.t.ability(k, &room)
	l.use(n, &room)
	_, level, ok := l.onPool(k, was, room)
	return level, ok
}

// weighBy has the search go by what the cluster is typically asked for, if that is its
// policy. What has no devices, and finds none where it may go, is packed.
func (s *Search) weighBy(t *Typical) {
	if s.Policy != PolicyLeastFrag {
		return
	}
	if len(s.Request.Devices) == 0 && !s.meetsDevices() {
		s.Policy = PolicyBinpack // which has the same phases for it
		return
	}
	m := t.measuresFor(s.Edit)
	s.frag = &leastFrag{t: m, request: s.Request, m: s.Fit.Matcher, requestKey: m.requestKeyOf(s)}
	s.Request.frag = s.frag
}

// meetsDevices reports whether there are devices where the group may go.
func (s *Search) meetsDevices() bool {
	for _, c := range s.Sets {
		if set, known := s.AllSets().Get(c.Name); known && len(set.Any().Cells) > 0 {
			return true
		}
	}
	return false
}
