package cells

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// trial moves a chain and a model of it on by the same steps.
type trial struct {
	m      model
	e      *Edit
	order  uint64          // of the last admission
	below  func(n int) int // a number from 0 to n-1
	failed func(format string, args ...any)
}

var owners = []string{"A", "B", "C"}

func newTrial(below func(n int) int, failed func(format string, args ...any)) *trial {
	levels := [][]Level{
		{{"gpu", 1}, {"node", 2}},
		{{"gpu", 1}, {"pcie", 2}, {"node", 4}},
		{{"gpu", 1}, {"socket", 1}, {"node", 2}},
		{{"mig", 1}, {"gpu", 2}, {"node", 2}},
		{{"gpu", 1}, {"pcie", 2}, {"socket", 4}, {"node", 4}},
		{{"node", 1}},
	}[below(6)]
	sites := [][]string{nil, {"rack"}, {"rack", "pod"}}[below(3)]
	c, err := NewChain(levels, sites)
	if err != nil {
		failed("new chain: %v", err)
	}
	return &trial{
		m: model{levels: levels, sites: sites, nodes: map[string]Node{}, users: map[string][]User{}},
		e: c.Edit(), below: below, failed: failed,
	}
}

// step makes one random change.
func (x *trial) step() string {
	switch x.below(10) {
	case 9:
		return x.spare()
	case 0, 1:
		return x.putNode()
	case 2:
		if x.below(3) > 0 {
			return x.putNode()
		}
		id := x.node()
		delete(x.m.nodes, id)
		x.m.bound = slices.DeleteFunc(x.m.bound, func(b Binding) bool { return b.Cell.Node == id })
		lost := x.e.DeleteNode(id)
		x.drop(lost)
		return fmt.Sprintf("delete %s, lost %v", id, lost)
	case 3:
		return x.give()
	case 4:
		return x.withdraw()
	case 5, 6, 7:
		return x.bind()
	default:
		return x.release()
	}
}

func (x *trial) node() string { return fmt.Sprintf("n%d", x.below(5)) }

func (x *trial) putNode() string {
	n := Node{ID: x.node(), Ready: x.below(5) > 0}
	if old, ok := x.m.nodes[n.ID]; ok && x.below(4) > 0 {
		n.Sites = old.Sites
	} else {
		for range x.m.sites {
			n.Sites = append(n.Sites, []string{"a", "b", ""}[x.below(3)])
		}
		n.Sites = trimSites(n.Sites, len(n.Sites))
	}
	if x.below(3) == 0 {
		n.Bad = 1 << x.below(x.m.levels[len(x.m.levels)-1].Devices)
	}
	x.m.nodes[n.ID] = n
	lost := x.e.PutNode(n)
	x.drop(lost)
	return fmt.Sprintf("put %+v, lost %v", n, lost)
}

// drop forgets bindings that are lost with a change of a node, and those of site cells that are not there any more. What is lost is decided by the
// chain; that it had to be is seen by the invariants after the step.
func (x *trial) drop(lost []Binding) {
	for _, b := range lost {
		x.m.bound = slices.DeleteFunc(x.m.bound, func(o Binding) bool { return o.Cell == b.Cell && o.Kind == b.Kind })
	}
	there := map[string]bool{}
	for _, p := range x.m.all() {
		there[p.cell.Site] = true
	}
	x.m.bound = slices.DeleteFunc(x.m.bound, func(b Binding) bool { return b.Cell.Site != "" && !there[b.Cell.Site] })
}

func (x *trial) kind() Kind {
	lines := x.e.c.lines
	return lines[x.below(len(lines))].kind
}

func (x *trial) give() string {
	k, name, n := x.kind(), owners[x.below(3)], 1+x.below(2)
	total := 0
	for _, l := range x.m.lots {
		total += l.count
	}
	if x.e.c.Ownable(k) != nil || total+n > 7 {
		return "nothing"
	}
	_, counted := x.m.doomed()
	counted[k] += n
	fits := x.m.embeds(counted, x.m.blocked(x.m.bound))
	short, by := x.e.Chain().Short(Change{k, n})
	if fits != (by == 0) {
		x.failed("%d cells of %v more: short by %d of %v, but that they fit is %v", n, k, by, short, fits)
	}
	if !fits {
		return "refused"
	}
	x.order++
	x.m.lots = append(x.m.lots, lot{name, k, n, x.order})
	x.e.Give(name, k, n, x.order)
	return fmt.Sprintf("give %s %d of %v", name, n, k)
}

func (x *trial) withdraw() string {
	if len(x.m.lots) == 0 {
		return "nothing"
	}
	of := x.m.lots[x.below(len(x.m.lots))]
	given := 0
	for _, l := range x.m.lots {
		if l.owner == of.owner && l.kind == of.kind {
			given += l.count
		}
	}
	can := given > x.m.inUse()[right{of.owner, of.kind}]
	err := x.e.Withdraw(of.owner, of.kind, 1)
	if can != (err == nil) || err != nil && !errors.Is(err, ErrQuota) {
		x.failed("withdraw of one of %d: %v", given, err)
	}
	if err != nil {
		return "refused"
	}
	for i := len(x.m.lots) - 1; i >= 0; i-- {
		if l := &x.m.lots[i]; l.owner == of.owner && l.kind == of.kind {
			l.count--
			break
		}
	}
	x.m.lots = slices.DeleteFunc(x.m.lots, func(l lot) bool { return l.count == 0 })
	return fmt.Sprintf("withdraw %s %v", of.owner, of.kind)
}

func (x *trial) bind() string {
	k, name := x.kind(), owners[x.below(3)]
	var offered []Candidate
	for c := range x.e.Candidates(k) {
		offered = append(offered, c)
	}
	if !slices.IsSortedFunc(offered, func(a, b Candidate) int { return int(int64(a.Loss) - int64(b.Loss)) }) {
		x.failed("candidates are not in the order of loss: %v", offered)
	}
	var alone []Cell
	for _, node := range x.m.nodes {
		for _, c := range x.e.CandidatesOn(node.ID, k) {
			alone = append(alone, c.Cell)
		}
	}
	doomed, counted := x.m.doomed()
	given := map[right]int{}
	for _, l := range x.m.lots {
		given[right{l.owner, l.kind}] += l.count
	}
	r := right{name, k}
	room := given[r] - x.m.inUse()[r] - doomed[r]
	var safe []Cell
	for _, p := range x.m.all() {
		if p.kind != k || p.cell.Site != "" && x.m.mixed(k) {
			continue
		}
		blocked := x.m.blocked(x.m.bound)
		ok := room > 0 && !slices.ContainsFunc(p.devices, func(d device) bool { return blocked[d] })
		if ok {
			counted[k]--
			for _, d := range p.devices {
				blocked[d] = true
			}
			ok = x.m.embeds(counted, blocked)
			counted[k]++
		}
		if err := x.e.Safe(p.cell, k, name); ok != (err == nil) {
			x.failed("binding %v to %s: %v, but that it is safe is %v", p.cell, name, err, ok)
		}
		if ok {
			safe = append(safe, p.cell)
		}
	}
	if room > 0 && x.e.c.within(k) && (len(alone) != len(safe) || slices.ContainsFunc(safe, func(c Cell) bool { return !slices.Contains(alone, c) })) {
		x.failed("%v are offered node by node, %v are safe", alone, safe)
	}
	if room > 0 {
		for _, c := range offered {
			if !slices.Contains(safe, c.Cell) {
				x.failed("%v is offered to %s, but not safe", c.Cell, name)
			}
		}
		if len(safe) == 0 || len(offered) == 0 {
			x.failed("%s has room for a cell of %v, but no cell is safe (%d) or offered (%d)", name, k, len(safe), len(offered))
		}
	}
	if len(safe) == 0 {
		return "nothing"
	}
	b := Binding{Cell: safe[x.below(len(safe))], Kind: k, Owner: name, Pinned: x.below(4) == 0}
	if err := x.e.Bind(b.Cell, k, name, b.Pinned); err != nil {
		x.failed("bind %v: %v", b, err)
	}
	for range 1 + x.below(2) {
		b.Uses++
		if err := x.e.Use(b.Cell, k); err != nil {
			x.failed("use %v: %v", b, err)
		}
	}
	x.m.bound = append(x.m.bound, b)
	if x.below(2) == 0 {
		id := x.node()
		x.e.SetUsers(id, []User{{1 << x.below(4), x.below(100)}})
	}
	return fmt.Sprintf("bind %+v", b)
}

func (x *trial) release() string {
	if len(x.m.bound) == 0 {
		return "nothing"
	}
	b := &x.m.bound[x.below(len(x.m.bound))]
	was := *b
	if b.Uses > 0 {
		b.Uses--
		if err := x.e.Release(b.Cell, b.Kind); err != nil {
			x.failed("release %+v: %v", was, err)
		}
	} else {
		b.Pinned = false
		if err := x.e.Unpin(b.Cell, b.Kind); err != nil {
			x.failed("unpin %+v: %v", was, err)
		}
	}
	x.m.bound = slices.DeleteFunc(x.m.bound, func(b Binding) bool { return b.Uses == 0 && !b.Pinned })
	return fmt.Sprintf("release %+v", was)
}

// spare takes devices of a node from all claims, if nothing that is bound or owned needs them, and at times in spite of it.
func (x *trial) spare() string {
	id := x.node()
	devices := uint64(x.below(1 << x.m.levels[len(x.m.levels)-1].Devices)) // not negative
	n, known := x.m.nodes[id]
	err := x.e.View().Spare(id, devices)
	if !known || !n.Ready {
		if !errors.Is(err, ErrUnknown) {
			x.failed("spare %b of %s, which is not ready: %v", devices, id, err)
		}
		return "nothing"
	}
	_, counted := x.m.doomed()
	blocked, isBound := x.m.blocked(x.m.bound), false
	for d := range x.m.levels[len(x.m.levels)-1].Devices {
		at := device{id, d}
		if devices&^n.Bad&(1<<d) != 0 {
			isBound = isBound || blocked[at]
			blocked[at] = true
		}
	}
	ok := !isBound && x.m.embeds(counted, blocked)
	if ok != (err == nil) || isBound != errors.Is(err, ErrBound) {
		x.failed("spare %b of %s: %v, but that they are bound is %v, and that they may be taken %v", devices, id, err, isBound, ok)
	}
	if ok || x.below(4) == 0 {
		n.Bad |= devices
		x.m.nodes[id] = n
		x.e.SetBad(id, n.Bad)
	}
	return fmt.Sprintf("spare %b of %s: %v", devices, id, err)
}

// check compares what the chain says with the model.
func (x *trial) check(after string) {
	c := x.e.Chain()
	if err := c.Check(); err != nil {
		x.failed("after %s: %v", after, err)
	}
	for _, as := range []*Edit{c.Whole(func(string) uint64 { return 1 }), c.Idle()} { // as it would be; it stays as it is
		if as != nil && as.Chain().Check() != nil {
			x.failed("after %s, as it would be: %v", after, as.Chain().Check())
		}
	}
	doomed, counted := x.m.doomed()
	for _, l := range x.m.lots {
		if got, want := c.Account(l.owner, l.kind).Doomed, doomed[right{l.owner, l.kind}]; got != want {
			x.failed("after %s: %d cells %v of %s are doomed, want %d", after, got, l.kind, l.owner, want)
		}
	}
	if !x.m.embeds(counted, x.m.blocked(x.m.bound)) {
		x.failed("after %s: what is counted does not embed", after)
	}
}

// TestAgreesWithEmbedding: after every step the counts say what an exact search for an embedding finds.
func TestAgreesWithEmbedding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		below := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		x := newTrial(below, t.Fatalf)
		for range 40 {
			did := x.step()
			t.Log(did)
			x.check(did)
		}
	})
}

// TestManySteps is the same for many more steps, which nothing shrinks.
func TestManySteps(t *testing.T) {
	const worlds, steps = 500, 100
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 1))
		var log []string
		x := newTrial(r.IntN, func(format string, args ...any) {
			t.Helper()
			t.Fatalf("world %d, after %q: %s", seed, log[max(0, len(log)-8):], fmt.Sprintf(format, args...))
		})
		for range steps {
			log = append(log, x.step())
			x.check(log[len(log)-1])
		}
	}
}
