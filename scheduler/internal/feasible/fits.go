package feasible

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// MaxRemembered is how many groups a FitMemory remembers before it begins anew, and for how
// many classes of nodes each of them.
const MaxRemembered = 4096

// Fits are the feasibilities of the groups of one job, each computed on first use.
type Fits struct {
	job     *structs.Job
	Matcher *Matcher
	known   *FitMemory     // of other evaluations; nil: nothing is remembered
	alike   string         // as of FitMemory.Of
	list    []*Feasibility // those found so far, one of them mostly
	first   [1]*Feasibility
}

// Begin begins the feasibilities of a job in memory that the caller has. alike is as of [FitMemory.Of].
func (f *Fits) Begin(job *structs.Job, known *FitMemory, alike string) {
	*f = Fits{job: job, known: known, alike: alike, Matcher: known.matcher()}
	f.list = f.first[:0]
}

// Of returns what nodes a group may use, decided so far.
func (f *Fits) Of(g *structs.TaskGroup) *Feasibility {
	if fit := f.Named(g.Name); fit != nil {
		return fit
	}
	var fit *Feasibility
	if r := f.known.Of(f.job, g, f.alike); r != nil {
		fit = r.feasibility(f.job, g)
	} else {
		fit = NewFeasibility(f.job, g, f.Matcher)
	}
	f.list = append(f.list, fit)
	return fit
}

// Named returns what was computed of the named group, or nil.
func (f *Fits) Named(group string) *Feasibility {
	for _, fit := range f.list {
		if fit.Group.Name == group {
			return fit
		}
	}
	return nil
}

// FitMemory remembers from one evaluation to the next which nodes groups may use. It is for one
// goroutine at a time; jobs and groups that it has seen must not be changed.
type FitMemory struct {
	m      *Matcher
	groups map[*structs.TaskGroup]*RememberedFit
	alike  map[string]*RememberedFit // by what their jobs and groups have in common
}

// NewFitMemory returns one that remembers nothing.
func NewFitMemory() FitMemory {
	return FitMemory{m: NewMatcher(), groups: map[*structs.TaskGroup]*RememberedFit{}, alike: map[string]*RememberedFit{}}
}

// RememberedFit is what is remembered of one group.
type RememberedFit struct {
	job  *structs.Job
	fit  *Feasibility
	sets setsFound
}

// setsFound are the sets of nodes that a group may use, of a World with certain members.
type setsFound struct {
	of      *bucket.Token // who changed the members last; nil: nothing was found
	byClass bool
	all     []SetFound // in order
}

// SetFound is one set of nodes, and what it is for a group.
type SetFound struct {
	Name    string
	Node    *structs.Node // one of them
	Nodes   int
	Verdict Verdict
}

// matcher returns the one to decide constraints with.
func (f *FitMemory) matcher() *Matcher {
	if f == nil {
		return NewMatcher()
	}
	return f.m
}

// Of returns what is remembered of a job's group, which is found if need be; nil: nothing is
// remembered. alike is equal for jobs of one group each that request the same and may use the same nodes; empty: that is not known of the job.
func (f *FitMemory) Of(job *structs.Job, group *structs.TaskGroup, alike string) *RememberedFit {
	if f == nil {
		return nil
	}
	if alike != "" && len(job.TaskGroups) == 1 {
		return f.ofAlike(job, group, alike)
	}
	g := f.groups[group]
	if g != nil && alikeForNodes(g.job, job) && len(g.fit.byClass) <= MaxRemembered {
		return g
	}
	if len(f.groups) >= MaxRemembered {
		*f = NewFitMemory()
	}
	g = &RememberedFit{job: job, fit: NewFeasibility(job, group, f.m)}
	f.groups[group] = g
	return g
}

// ofAlike returns what is remembered of those that are alike.
func (f *FitMemory) ofAlike(job *structs.Job, group *structs.TaskGroup, alike string) *RememberedFit {
	if g := f.alike[alike]; g != nil && len(g.fit.byClass) <= MaxRemembered {
		return g
	}
	if len(f.alike) >= MaxRemembered {
		*f = NewFitMemory()
	}
	g := &RememberedFit{job: job, fit: NewFeasibility(job, group, f.m)}
	f.alike[alike] = g
	return g
}

// Group is the group that is remembered, of all that are alike.
func (g *RememberedFit) Group() *structs.TaskGroup { return g.fit.Group }

// alikeForNodes reports whether groups of two jobs may use the same nodes, as far as their jobs
// determine it. It may return false where they may.
func alikeForNodes(a, b *structs.Job) bool {
	return a == b || a.NodePool == b.NodePool && slices.Equal(a.Datacenters, b.Datacenters) &&
		len(a.Constraints)+len(b.Constraints)+len(a.Affinities)+len(b.Affinities)+len(a.Spreads)+len(b.Spreads) == 0
}

// feasibility returns a copy for a job and its group, which shares what is decided.
func (g *RememberedFit) feasibility(job *structs.Job, group *structs.TaskGroup) *Feasibility {
	f := *g.fit
	f.Job, f.Group, f.found = job, group, &g.sets
	return &f
}

// SetsOf returns all sets of nodes with what they are for a group: as they were found before, if no
// node came, went or moved since.
func (f *Feasibility) SetsOf(e *world.Edit, byClass bool) []SetFound {
	known := f.found
	if f.Within != nil || world.MovedMembers(e) { // this edit may go on changing them
		known = nil
	}
	if known != nil && known.of == world.MembersToken(world.Base(e)) && known.of != nil && known.byClass == byClass {
		return known.all
	}
	sets := world.Families(world.Base(e))
	if byClass {
		sets = world.Classes(world.Base(e))
	}
	all := make([]SetFound, 0, sets.Len())
	for name, c := range sets.All {
		n := c.Any().Node
		all = append(all, SetFound{name, n, c.Nodes.Len(), f.Class(n)})
	}
	if known != nil {
		*known = setsFound{world.MembersToken(world.Base(e)), byClass, all}
	}
	return all
}
