package scheduler

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/structs"
)

// maxRemembered is how many groups a fitMemory remembers before it begins anew, and for how
// many classes of nodes each of them.
const maxRemembered = 4096

// fits are the feasibilities of the groups of one job, each found when it is first asked for.
type fits struct {
	job   *structs.Job
	m     *matcher
	known *fitMemory // of other evaluations; nil: nothing is remembered
	list  []groupFit // those found so far, one of them mostly
	first [1]groupFit
}

type groupFit struct {
	group string
	fit   *feasibility
}

// begin begins the feasibilities of a job in memory that the caller has.
func (f *fits) begin(job *structs.Job, known *fitMemory) {
	*f = fits{job: job, known: known, m: known.matcher()}
	f.list = f.first[:0]
}

// of gives what nodes a group may use, decided so far.
func (f *fits) of(g *structs.TaskGroup) *feasibility {
	if fit := f.named(g.Name); fit != nil {
		return fit
	}
	var fit *feasibility
	if r := f.known.of(f.job, g); r != nil {
		fit = r.feasibility(f.job)
	} else {
		fit = newFeasibility(f.job, g, f.m)
	}
	f.list = append(f.list, groupFit{g.Name, fit})
	return fit
}

// named gives what was found of a group, by its name; nil: nothing was.
func (f *fits) named(group string) *feasibility {
	for i := range f.list {
		if f.list[i].group == group {
			return f.list[i].fit
		}
	}
	return nil
}

// fitMemory remembers from one evaluation to the next which nodes groups may use. It is for one
// goroutine at a time; jobs and groups that it has seen must not be changed.
type fitMemory struct {
	m      *matcher
	groups map[*structs.TaskGroup]*rememberedFit
}

func newFitMemory() fitMemory {
	return fitMemory{m: newMatcher(), groups: map[*structs.TaskGroup]*rememberedFit{}}
}

// rememberedFit is what is remembered of one group.
type rememberedFit struct {
	job  *structs.Job
	fit  *feasibility
	sets setsFound
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
func (f *fitMemory) matcher() *matcher {
	if f == nil {
		return newMatcher()
	}
	return f.m
}

// of gives what is remembered of a job's group, which is found if need be; nil: nothing is
// remembered.
func (f *fitMemory) of(job *structs.Job, group *structs.TaskGroup) *rememberedFit {
	if f == nil {
		return nil
	}
	g := f.groups[group]
	if g != nil && alikeForNodes(g.job, job) && len(g.fit.byClass) <= maxRemembered {
		return g
	}
	if len(f.groups) >= maxRemembered {
		*f = newFitMemory()
	}
	g = &rememberedFit{job: job, fit: newFeasibility(job, group, f.m)}
	f.groups[group] = g
	return g
}

// alikeForNodes tells whether groups of two jobs may use the same nodes, as far as their
// jobs say so. It may say no where they may.
func alikeForNodes(a, b *structs.Job) bool {
	return a == b || a.NodePool == b.NodePool && slices.Equal(a.Datacenters, b.Datacenters) &&
		len(a.Constraints)+len(b.Constraints)+len(a.Affinities)+len(b.Affinities)+len(a.Spreads)+len(b.Spreads) == 0
}

// feasibility gives a copy for a job, which shares what is decided.
func (g *rememberedFit) feasibility(job *structs.Job) *feasibility {
	f := *g.fit
	f.job, f.found = job, &g.sets
	return &f
}

// setsOf gives all sets of nodes with what they are for a group: as they were found
// before, if no node came, went or moved since.
func (f *feasibility) setsOf(e *Edit, byClass bool) []setFound {
	known := f.found
	if f.within != nil || e.movedMembers() { // this edit may go on changing them
		known = nil
	}
	if known != nil && known.of == e.base().membersTok() && known.of != nil && known.byClass == byClass {
		return known.all
	}
	sets := e.base().familiesTree()
	if byClass {
		sets = e.base().classesTree()
	}
	all := make([]setFound, 0, sets.Len())
	for name, c := range sets.All {
		n := c.any().node
		all = append(all, setFound{name, n, c.nodes.Len(), f.class(n)})
	}
	if known != nil {
		*known = setsFound{e.base().membersTok(), byClass, all}
	}
	return all
}
