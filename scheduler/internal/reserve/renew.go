package reserve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/entitle/workflow"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// left is what is left of a reservation of which parts were lost.
type left struct {
	claims []structs.WorkflowPart
	parts  []workflow.Part    // the same, on the nodes by their places in the list
	most   []workflow.Amounts // of each, with what its node has free beside it
}

// add adds a part on a node that has so much free with it. One without devices may grow: it names none.
func (l *left) add(p structs.WorkflowPart, node int, free workflow.Amounts) {
	has := workflow.Amounts{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Cores: int64(p.Cores), Devices: int64(p.Devices)}
	most := has
	if p.Devices == 0 {
		free.Devices = 0
		most = has.Max(free)
	}
	l.claims, l.parts, l.most = append(l.claims, p), append(l.parts, workflow.Part{Node: node, Amounts: has}), append(l.most, most)
}

// room returns what may be reserved of each node, of those that have a part what this may be at most.
func (l *left) room(nodes []workflow.Amounts) []workflow.Amounts {
	if len(l.parts) == 0 {
		return nodes
	}
	nodes = slices.Clone(nodes)
	for k := range l.parts {
		nodes[l.parts[k].Node] = l.most[k]
	}
	return nodes
}

// grow has the parts that are left grow as far as what may be had of their nodes, with them.
func (l *left) grow(nodes []workflow.Amounts) {
	l.most = nil
	for _, p := range l.parts {
		most := p.Amounts
		if p.Amounts.Devices == 0 {
			on := nodes[p.Node]
			on.Devices = 0
			most = most.Max(on)
		}
		l.most = append(l.most, most)
	}
}

// growth returns by how much parts that are left have grown in a packing.
func (l *left) growth(packed []workflow.Part) (list []workflow.Part) {
	for k, was := range l.parts {
		if more := packed[k].Amounts.Minus(was.Amounts); !more.IsZero() {
			list = append(list, workflow.Part{Node: was.Node, Amounts: more})
		}
	}
	return list
}

// split returns the parts of a packing that are left of the reservation, as they have become, and the others.
func (l *left) split(packed []workflow.Part) (kept []structs.WorkflowPart, more []workflow.Part) {
	kept = slices.Clone(l.claims)
	for k := range kept {
		a := &packed[k].Amounts
		kept[k].CPU, kept[k].MemoryMB, kept[k].DiskMB, kept[k].Cores = a.CPU, a.MemoryMB, a.DiskMB, int(a.Cores)
	}
	return kept, packed[len(kept):]
}

// Renewal is how what was lost of a reservation is reserved anew.
type Renewal struct {
	// Kept: another workflow keeps what comes free in place of what it has lost: this one takes nothing of that.
	Kept bool
	// Simple: instances that run without a claim stay so, and nothing is kept.
	Simple bool
}

// Renew returns the reservation of a workflow of which parts were lost, as nodes are not ready any more, with what its stages, those that are not over, need
// beside what is left of it, on nodes where that is free, or is where some of the bands leave (part 5, "A lost node's part is reserved anew"); else as it is,
// with what is missing, and where what comes free is kept for that. What runs without a claim in what has not been lost uses it from then on all the same.
func Renew(w *world.World, c *structs.WorkflowClaim, stages []Stage, rule workflow.Reserve, how Renewal, bands Bands) Choice {
	on := &chooser{w: w, e: w.Edit(), key: c.Key(), pool: c.NodePool, bands: bands, taken: map[int]bool{}, kept: how.Kept, renews: true}
	x, is, out := badOf(c, on, stages).renewed(stages, rule, how.Kept || how.Simple)
	if out.Missing != "" {
		out.Parts = c.Parts
	}
	if how.Simple {
		return out
	}
	if out.Missing == "" && structs.PartsEqual(out.Parts, c.Parts) { // nothing was lost
		out.Claims = raisable(x, is, stages)
		return out
	}
	if around, ok := renewAround(x, is, stages, rule, &out); ok {
		return around
	}
	if out.Missing != "" {
		out.Claims = raisable(x, is, stages)
	}
	return out
}

// renewed is [Renew] on the World as it is.
func (x *chooser) renewed(c *structs.WorkflowClaim, stages []Stage, rule workflow.Reserve, kept bool) Choice {
	out := Choice{Posted: true, Parts: c.Parts, Licenses: c.Licenses}
	x.list()
	at := map[string]int{}
	for i, n := range x.nodes {
		at[n.ID] = i
	}
	var has left
	var names []string
	var lostAt []int // ready nodes that have a part which is lost, with its cells
	for _, p := range c.Parts {
		i, ready := at[p.NodeID]
		if !ready || p.Lost {
			if x.bad[p.NodeID] == "" {
				names = append(names, nodeName(x.w, p.NodeID))
			}
			if ready {
				lostAt = append(lostAt, i)
			}
			continue
		}
		has.add(p, i, x.free[i])
		x.taken[i] = true // one part of a node is enough
	}
	if len(names)+len(x.bad) == 0 {
		return out
	}
	r, err := x.request(stages, rule)
	if err != nil { // it was enough when it was reserved
		r.want = workflow.Amounts{}
	}
	r.left, r.licenses.of = has, c.Licenses
	got, why := renewApart(x, &r)
	in, some := whereTheyRun(x, &r, stages, rule)
	if some && (why != "" || !in.packsInto(len(x.nodes), at, got.Parts)) { // else all is beside what runs, and a stage that is retried has it
		if by, short := renewApart(x, &in); short == "" || why != "" {
			got, why = by, short
		}
	}
	if why != "" {
		out.Missing = x.bad.lost(names) + ", and " + why
		if kept || limited(x, &r) { // what comes free beside cells is of no use
			return out
		}
		if some {
			out.Keeps = x.keep(&in, lostAt)
		}
		if len(out.Keeps) == 0 {
			out.Keeps = x.keep(&r, lostAt)
		}
		return out
	}
	if less, ok := withoutUnused(x, &r, got.Parts); ok {
		got = less
	}
	got.Licenses = c.Licenses
	return got
}

// withoutUnused returns what is reserved beside only those of the parts that are left which the run uses. false: it uses all of them, no more is reserved than
// has to be, or it is no less so. A gang may need a rack, or another cell, where nothing is left: what was left for it elsewhere would stay reserved beside that.
func withoutUnused(x *chooser, r *request, with []structs.WorkflowPart) (out Choice, ok bool) {
	if sumOf(with).Fits(r.want) {
		return out, false
	}
	used := *r
	used.left = left{}
	for k := range r.left.claims {
		i := r.left.parts[k].Node
		if p, _ := x.nodes[i].Part(x.key); p.Used == (world.Resources{}) && !x.inPlace && x.nodes[i].Node.Ready() {
			delete(x.taken, i)
			continue
		}
		used.left.add(r.left.claims[k], i, x.free[i])
	}
	if len(used.left.claims) == len(r.left.claims) {
		return out, false
	}
	out, why, _ := x.renew(&used)
	return out, why == "" && sumOf(out.Parts).Fits(sumOf(with)) && sumOf(out.Parts) != sumOf(with)
}

// lostNamed is of how many nodes it is stated that the parts on them are lost.
const lostNamed = 4

// lostText states the parts on which nodes are lost.
func lostText(nodes []string) string {
	last := len(nodes) - 1
	switch {
	case last == 0:
		return "the part on node " + nodes[0] + " is lost"
	case len(nodes) > lostNamed:
		return fmt.Sprintf("the parts on nodes %s and %d more are lost", strings.Join(nodes[:lostNamed], ", "), len(nodes)-lostNamed)
	}
	return "the parts on nodes " + strings.Join(nodes[:last], ", ") + " and " + nodes[last] + " are lost"
}

// renewApart is renew of each gang by itself if there is no room for them together, as for a whole reservation, see Choose.
func renewApart(x *chooser, r *request) (got Choice, why string) {
	got, why, apart := x.renew(r)
	if !apart {
		return got, why
	}
	alone := *r
	alone.stages, alone.gangs = r.gangs.Alone(r.stages)
	alone.within = nil
	if by, short, _ := x.renew(&alone); short == "" {
		return by, ""
	}
	return got, why
}

// whereTheyRun returns a request with the instances of the running stage that use what is left of the reservation where they are: only the others are packed.
// false: there are none.
func whereTheyRun(x *chooser, r *request, stages []Stage, rule workflow.Reserve) (in request, some bool) {
	if x.inPlace || len(stages) == 0 { // they are already
		return in, false
	}
	x.placed = true
	in, err := x.request(stages, rule)
	if x.placed = false; err != nil {
		in.want = workflow.Amounts{}
	}
	in.left, in.licenses.of = r.left, r.licenses.of
	return in, len(in.stages) > 0 && slices.ContainsFunc(in.stages[0], func(i workflow.Instance) bool { return i.Placed })
}

// packsInto reports whether the stages pack into parts of nodes, which are listed at their places.
func (r *request) packsInto(nodes int, at map[string]int, parts []structs.WorkflowPart) bool {
	free, has := make([]workflow.Amounts, nodes), make([]workflow.Part, len(parts))
	for k := range parts {
		p := &parts[k]
		amounts := workflow.Amounts{CPU: p.CPU, MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, Cores: int64(p.Cores), Devices: int64(p.Devices)}
		has[k], free[at[p.NodeID]] = workflow.Part{Node: at[p.NodeID], Amounts: amounts}, amounts
	}
	return workflow.PackBeside(free, has, r.stages, r.gangs, workflow.Amounts{}, r.rule.PerCore).Missing.IsZero()
}

// nodeName is the name of a node, whether or not it is ready; of one that is not known any more its ID.
func nodeName(w *world.World, id string) string {
	if n, known := w.State(id); known && n.Node != nil {
		return n.Node.Name
	}
	return structs.ShortID(id)
}

// renew returns what is reserved beside what is left, or why that cannot be. apart reports that it is only because of the gangs.
func (x *chooser) renew(r *request) (out Choice, why string, apart bool) {
	if x.within { // as for a whole reservation, see choose
		x.strict = true
		out, why, apart = x.renewBy(r)
		hope := why == ""
		if !hope {
			later, _ := x.packWithin(r, x.empty, x.withoutAll(true))
			hope = later.Missing.IsZero()
		}
		if x.strict = false; hope {
			return out, why, apart
		}
	}
	return x.renewBy(r)
}

// renewBy is renew with what is required within nodes, if that is heeded, or without.
func (x *chooser) renewBy(r *request) (out Choice, why string, apart bool) {
	if out, ok := x.packInCells(r); ok {
		return out, "", false
	}
	if limited(x, r) {
		why, _ = lackOfCells(x, r)
		return Choice{}, why, false
	}
	packed, named := x.packWithin(r, x.free, x.asIs())
	if packed.Missing.IsZero() {
		kept, more := r.left.split(packed.Parts)
		parts := x.parts(more)
		if x.nameParts(more, parts, named) {
			return Choice{Posted: true, Parts: slices.Concat(kept, parts)}, "", false
		}
		why = "nowhere are as many GPUs free beside those that are guaranteed to others"
	} else {
		why = nowhereText(x, r, packed)
	}
	if out, ok := x.fromBands(r); ok {
		return out, "", false
	}
	return Choice{}, why, packed.Apart
}

// keep returns where what comes free is kept in place of what was lost, on nodes that have no part which is lost: as for a whole reservation, what other
// workflows have reserved comes free last. Of a node with a part that is left it is as much as that is to grow by.
func (x *chooser) keep(r *request, lostAt []int) []structs.WorkflowPart {
	is := *r
	defer func() { x.strict = false }()
	for try := range 4 { // first with what is required within nodes
		x.strict = x.within && try < 2
		nodes := slices.Clone([][]workflow.Amounts{x.beside, x.empty}[try%2])
		for _, i := range lostAt {
			nodes[i] = workflow.Amounts{}
		}
		is.left.grow(nodes)
		if packed, _ := x.packWithin(&is, nodes, x.withoutAll(try%2 > 0)); packed.Missing.IsZero() {
			return x.parts(slices.Concat(is.left.growth(packed.Parts), packed.Parts[len(is.left.parts):]))
		}
	}
	return nil
}
