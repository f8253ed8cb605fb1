package plan

import (
	"github.com/nomadish/nomadish/structs"
)

// A plan that is too large for one log entry is cut between its units. A unit is accepted as a
// whole or not at all, at every index that anybody can see:
//
//   - what is taken back for a newcomer, and the newcomer: there is no moment in which neither
//     or both have the resources (semantics part 3). All that comes to a node on which
//     something is taken back shares what is freed there;
//   - all that is taken back from one job: it may be a gang, of which nothing is to be left in
//     part; the job was requeued once, however much of it one plan took; and its evaluation
//     stands for all of it;
//   - a reservation that ends, and what comes to its node;
//   - the members of a gang;
//   - all that is to use cells of the job's namespace, if some of it takes those of another job of that namespace: any of them may get what comes free.

// instanceRef is an instance of a plan.
type instanceRef struct{ batch, instance int }

// unit is what must not be parted.
type unit struct {
	stops     []*structs.AllocStop
	unreserve []string
	instances []instanceRef
	evals     []*structs.Evaluation // of the jobs that it takes from
}

// others is what belongs to no unit.
type others struct {
	stops     []*structs.AllocStop
	unreserve []string
	evals     []*structs.Evaluation // delayed: stops name them, so they come first
	last      []*structs.Evaluation // come when all the rest has
}

// unitsOf finds the units of a plan, in the order in which it places.
func unitsOf(p *structs.JudgedPlan, known facts) (rest others, units []*unit) {
	g := grouping{plan: p, above: map[string]string{}, node: newcomers(p)}
	victims := g.tieReclaims(known)
	g.tieNodes()
	g.tieCells(victims)

	at := map[string]*unit{}
	of := func(key string) *unit {
		key = g.root(key)
		u := at[key]
		if u == nil {
			u = &unit{}
			at[key], units = u, append(units, u)
		}
		return u
	}
	for b, batch := range p.Place {
		for i := range batch.Instances {
			key := onNode(batch.Nodes[batch.Instances[i].Node].ID)
			if batch.Gang != nil {
				key = ofGang
			}
			if !g.has(key) {
				units = append(units, &unit{instances: []instanceRef{{b, i}}})
				continue
			}
			u := of(key)
			u.instances = append(u.instances, instanceRef{b, i})
		}
	}
	for _, s := range p.Stop {
		if node, is := g.reclaim(s); is {
			u := of(onNode(node))
			u.stops = append(u.stops, s)
		} else {
			rest.stops = append(rest.stops, s)
		}
	}
	for _, id := range p.Unreserve {
		if g.has(onNode(id)) {
			u := of(onNode(id))
			u.unreserve = append(u.unreserve, id)
		} else {
			rest.unreserve = append(rest.unreserve, id)
		}
	}
	for _, e := range p.Evals {
		switch {
		case e.TriggeredBy == structs.EvalTriggerPreemption && victims[e.Job()]:
			u := of(ofVictim(e.Job()))
			u.evals = append(u.evals, e)
		case e.Status == structs.EvalStatusPending && !e.WaitUntil.IsZero():
			rest.evals = append(rest.evals, e)
		default:
			rest.last = append(rest.last, e)
		}
	}
	return rest, units
}

// grouping joins what belongs together, by keys.
type grouping struct {
	plan  *structs.JudgedPlan
	above map[string]string // a key is in the set of the one above; the first is above itself
	node  map[string]string // of the newcomers that something is taken back for
}

const (
	ofGang  = "gang"
	ofCells = "cells"
)

func onNode(id string) string { return "node\x00" + id }

func ofVictim(job structs.NamespacedID) string { return "job\x00" + job.Namespace + "\x00" + job.ID }

func (g *grouping) has(key string) bool {
	_, known := g.above[key]
	return known
}

func (g *grouping) add(key string) {
	if !g.has(key) {
		g.above[key] = key
	}
}

func (g *grouping) join(a, b string) {
	g.add(a)
	g.add(b)
	g.above[g.root(b)] = g.root(a)
}

// root is the first of a key's set.
func (g *grouping) root(key string) string {
	for g.above[key] != key {
		above := g.above[key]
		g.above[key] = g.above[above]
		key = above
	}
	return key
}

// newcomers are the nodes of the instances that something is taken back for.
func newcomers(p *structs.JudgedPlan) map[string]string {
	wanted := map[string]bool{}
	for _, s := range p.Stop {
		if s.PreemptedBy != "" && !s.KeepRunning {
			wanted[s.PreemptedBy] = true
		}
	}
	nodes := map[string]string{}
	if len(wanted) == 0 {
		return nodes
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			if id := structs.DeriveID(b.Seed, uint64(b.Instances[i].Ordinal)); wanted[id] {
				nodes[id] = b.Nodes[b.Instances[i].Node].ID
			}
		}
	}
	return nodes
}

// reclaim reports whether a stop makes room for something that the plan places, and where
// that comes to.
func (g *grouping) reclaim(s *structs.AllocStop) (node string, is bool) {
	if s.KeepRunning || s.PreemptedBy == "" {
		return "", false
	}
	node, is = g.node[s.PreemptedBy]
	return node, is
}

// tieReclaims joins newcomers' nodes with the jobs that something is taken from for them and
// with the nodes where that is: one of a gang may be elsewhere, and somebody may come into
// its room. It returns those jobs.
func (g *grouping) tieReclaims(known facts) (victims map[structs.NamespacedID]bool) {
	victims = map[structs.NamespacedID]bool{}
	for _, s := range g.plan.Stop {
		node, is := g.reclaim(s)
		if !is {
			continue
		}
		g.add(onNode(node))
		if job, from, found := known.Of(s.AllocID); found {
			victims[job] = true
			g.join(onNode(node), ofVictim(job))
			g.join(onNode(node), onNode(from))
		}
	}
	return victims
}

// tieNodes ties what comes to where a reservation ends, and a gang to its nodes that are tied.
func (g *grouping) tieNodes() {
	ended := map[string]bool{}
	for _, id := range g.plan.Unreserve {
		ended[id] = true
	}
	each := func(do func(b *structs.PlacementBatch, node string)) {
		for _, b := range g.plan.Place {
			for i := range b.Instances {
				do(b, b.Nodes[b.Instances[i].Node].ID)
			}
		}
	}
	each(func(_ *structs.PlacementBatch, node string) {
		if ended[node] {
			g.add(onNode(node))
		}
	})
	each(func(b *structs.PlacementBatch, node string) {
		if b.Gang == nil {
			return
		}
		if g.add(ofGang); g.has(onNode(node)) {
			g.join(ofGang, onNode(node))
		}
	})
}

// tieCells ties what is to use cells of a namespace to its nodes, if some of it takes them from a job of that namespace: whoever came first could use a cell that is
// not free before the last part.
func (g *grouping) tieCells(victims map[structs.NamespacedID]bool) {
	own := false
	for job := range victims {
		own = own || len(g.plan.Place) > 0 && job.Namespace == g.plan.Place[0].Namespace
	}
	if !own {
		return
	}
	for _, b := range g.plan.Place {
		if b.Resources == nil || b.Resources.Shared.Terms == nil || b.Resources.Shared.Terms.Claim != structs.ClaimCells {
			continue
		}
		for i := range b.Instances {
			g.join(ofCells, onNode(b.Nodes[b.Instances[i].Node].ID))
		}
	}
}
