package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// maxPrepared is how many groups a Prepared remembers before it begins anew, and for how
// many classes of nodes each of them.
const maxPrepared = 4096

// Prepared remembers what does not change from one evaluation to the next: what groups ask
// for and which nodes they may use at all. A job that waits is decided again and again, and
// the rows of a trace share their groups. It makes deciding faster and changes no answer.
// It is for one goroutine at a time; jobs and groups that it has seen must not be changed.
type Prepared struct {
	m      *matcher
	groups map[*structs.TaskGroup]*prepared
}

// NewPrepared makes one that remembers nothing.
func NewPrepared() *Prepared {
	return &Prepared{m: newMatcher(), groups: map[*structs.TaskGroup]*prepared{}}
}

// prepared is what is remembered of one group.
type prepared struct {
	job  *structs.Job
	fit  *feasibility
	sets setsFound
	ask  *ask // nil: not yet
	// What of the configuration the ask depends on.
	oversubscribed bool
	preferred      []int
}

// setsFound are the sets of nodes that a group may use, of a World with certain members.
type setsFound struct {
	of      *bucket.Token // who changed the members last; nil: nothing was found
	byClass bool
	all     []setFound // in order
}

// setFound is one set of nodes, and what it is for a group.
type setFound struct {
	name    string
	node    *structs.Node // one of them
	nodes   int
	verdict verdict
}

// matcher gives the one to decide constraints with.
func (p *Prepared) matcher() *matcher {
	if p == nil {
		return newMatcher()
	}
	return p.m
}

// of gives what is remembered of a job's group, which is found if need be; nil: nothing is
// remembered.
func (p *Prepared) of(job *structs.Job, group *structs.TaskGroup) *prepared {
	if p == nil {
		return nil
	}
	g := p.groups[group]
	if g != nil && alikeForNodes(g.job, job) && len(g.fit.byClass) <= maxPrepared {
		return g
	}
	if len(p.groups) >= maxPrepared {
		*p = *NewPrepared()
	}
	g = &prepared{job: job, fit: newFeasibility(job, group, p.m)}
	p.groups[group] = g
	return g
}

// alikeForNodes tells whether groups of two jobs may use the same nodes, as far as their
// jobs say so. It may say no where they may.
func alikeForNodes(a, b *structs.Job) bool {
	return a == b || a.NodePool == b.NodePool && slices.Equal(a.Datacenters, b.Datacenters) &&
		len(a.Constraints)+len(b.Constraints)+len(a.Affinities)+len(b.Affinities)+len(a.Spreads)+len(b.Spreads) == 0
}

// feasibility gives a copy for a job, which shares what is decided.
func (g *prepared) feasibility(job *structs.Job) *feasibility {
	f := *g.fit
	f.job, f.found = job, &g.sets
	return &f
}

// askOf gives the ask of an evaluation.
func (g *prepared) askOf(in *Input, group *structs.TaskGroup) *ask {
	c := &in.Config
	if g.ask == nil || g.oversubscribed != c.MemoryOversubscriptionEnabled || !slices.Equal(g.preferred, c.PreferredCells) {
		g.ask, g.oversubscribed, g.preferred = newAskShape(c, group), c.MemoryOversubscriptionEnabled, slices.Clone(c.PreferredCells)
	}
	a := g.ask.copy()
	a.askedBy(in)
	return a
}

// setsOf gives all sets of nodes with what they are for a group: as they were found
// before, if no node came, went or moved since.
func (f *feasibility) setsOf(e *Edit, byClass bool) []setFound {
	known := f.found
	if f.within != nil || e.w.members == e.tok { // this edit may go on changing them
		known = nil
	}
	if known != nil && known.of == e.w.members && known.of != nil && known.byClass == byClass {
		return known.all
	}
	sets := &e.w.families
	if byClass {
		sets = &e.w.classes
	}
	all := make([]setFound, 0, sets.Len())
	for name, c := range sets.All {
		n := c.any().node
		all = append(all, setFound{name, n, c.nodes.Len(), f.class(n)})
	}
	if known != nil {
		*known = setsFound{e.w.members, byClass, all}
	}
	return all
}
