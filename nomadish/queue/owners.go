package queue

import (
	"slices"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// What a namespace owns gives its requests a second position, before all others (semantics part 0, rule 6). A blocked evaluation of which
// anything could be entitled has an entry for each position. That of what is entitled is open only while its namespace has
// cells free that could hold it. An evaluation that is not blocked has one position at a time: the entitled one while such cells are
// free, and is decided again for the rest.

// owners is what is known of the namespaces that own cells.
type owners struct {
	// free are the largest free cells of each, by namespace, as its evaluations were positioned by.
	free map[string][]int
	// owning are those that own anything at present.
	owning map[string]bool
	// raises are those of which something may be raised since an index.
	raises map[string]uint64
	// moved is when cells of a namespace last came free, all when those of any may have.
	moved map[string]uint64
	all   uint64
	// unbound is when cells of anybody last were, or may have been.
	unbound uint64
	// projects is when slots of a project last came free, allProjects when those of any may have.
	projects    map[string]uint64
	allProjects uint64
}

func newOwners() owners {
	return owners{free: map[string][]int{}, owning: map[string]bool{}, raises: map[string]uint64{}, moved: map[string]uint64{}, projects: map[string]uint64{}}
}

// resync takes all owners in.
func (o *owners) resync(snap *state.Snapshot) {
	for _, name := range snap.World().Owners() {
		o.owning[name], o.raises[name] = true, snap.Index()
	}
	for _, name := range snap.World().Slots().Projects() {
		o.raises[scheduler.ProjectOwner(name)] = snap.Index()
	}
}

// note remembers what a commit has freed.
func (o *owners) note(r *releases, index uint64) {
	for name := range r.owners { // order does not matter: each has its own place
		o.moved[name] = index
	}
	if r.allOwners {
		o.all = index
	}
	if r.allOwners || len(r.unbound) > 0 {
		o.unbound = index
	}
	for name := range r.projects { // nor here
		o.projects[name] = index
	}
	if r.allProjects {
		o.allProjects = index
	}
}

// missed reports whether cells of an evaluation's namespace, or slots of a project, came free after the state that it was decided on.
func (o *owners) missed(e *structs.Evaluation, project string) bool {
	at := max(o.all, o.moved[e.Namespace])
	if project != "" {
		at = max(at, o.allProjects, o.projects[project])
	}
	return at > e.SnapshotIndex
}

// positionOfItem finds the position of an evaluation that is not blocked, or that the pass has leased.
func (b *Broker) positionOfItem(snap *state.Snapshot, it *item) position {
	if it.entry != nil {
		return b.blocked.positionOfEntry(snap, it.entry)
	}
	p := b.blocked.positionOf(snap, it.eval)
	switch {
	case p.pool == "":
	case it.token != "":
		if it.rank.IsEntitled() {
			p.rank = p.rank.Entitled(it.rank.Claim)
		}
	default:
		if kind, entitled := b.blocked.entitled(snap, it.eval); entitled {
			p.rank = p.rank.Entitled(kind)
		}
	}
	return p
}

// entitled reports whether cells of its namespace or slots of its project are free that could hold something that an evaluation's job misses, and
// where it ranks then.
func (b *blocked) entitled(snap *state.Snapshot, e *structs.Evaluation) (kind int, entitled bool) {
	w := snap.World()
	job := snap.Job(nil, e.Namespace, e.JobID)
	if w.Owns(e.Namespace) {
		if _, known := b.owners.free[e.Namespace]; !known {
			b.owners.free[e.Namespace] = w.LargestFree(e.Namespace)
		}
	} else if job.Project == "" && job.Workflow == nil {
		return 0, false
	}
	claims := scheduler.EntitlementOf(w, job, incomplete(snap, job))
	return claims.Kind(), claims.Free(w, 1) > 0
}

// incomplete names the groups of which, as far as their allocations show, not all instances run.
func incomplete(snap *state.Snapshot, job *structs.Job) (groups []string) {
	counts := snap.JobSummary(nil, job.Namespace, job.ID)
	for _, g := range job.TaskGroups {
		missing := g.Count
		if counts != nil {
			c := counts.Summary[g.Name]
			missing -= c.Running + c.Starting + c.Unknown
			if job.Type == structs.JobTypeBatch {
				missing -= c.Complete
			}
		}
		if missing > 0 {
			groups = append(groups, g.Name)
		}
	}
	return groups
}

// ownerChanges is what a commit changes of what namespaces own, for the queue.
type ownerChanges struct {
	b *Broker
	r *releases
}

// moved repositions what is ready of the namespaces that have other cells free now.
func (c ownerChanges) moved() {
	b, r := c.b, c.r
	w, moved := r.snap.World(), map[string]bool{}
	for name, was := range b.blocked.owners.free { // order does not matter: each has its own place
		if !r.allOwners && !r.owners[name] {
			continue
		}
		if now := w.LargestFree(name); !slices.Equal(was, now) {
			b.blocked.owners.free[name], moved[name] = now, true
		}
	}
	if len(moved) == 0 {
		return
	}
	for job, l := range b.serial { // order does not matter: ranks decide
		for _, it := range []*item{l.current, l.next} {
			if moved[job.Namespace] && it != nil {
				b.repositionItem(r.snap, it)
			}
		}
	}
}

// owned takes in edits of what namespaces own: all that waits of them is to be tried, and where one owns something now that did not, or
// nothing any more, it has other positions.
func (c ownerChanges) owned() {
	b, r := c.b, c.r
	for name := range r.edited { // order does not matter: ranks decide
		owns := r.snap.World().Owns(name)
		differs := owns != b.blocked.owners.owning[name]
		if delete(b.blocked.owners.owning, name); owns {
			b.blocked.owners.owning[name] = true
		}
		if differs {
			delete(b.blocked.owners.free, name)
		}
		for _, job := range c.jobsOf(name) {
			if differs {
				b.reposition(r.snap, job, true)
			}
			r.jobs[job] = true
		}
	}
}

// jobsOf returns the jobs of a namespace that have evaluations here.
func (c ownerChanges) jobsOf(namespace string) (jobs []structs.NamespacedID) {
	b := c.b
	for job := range b.serial { // order does not matter: ranks decide
		if job.Namespace == namespace {
			jobs = append(jobs, job)
		}
	}
	for job := range b.blocked.ofJob { // nor here
		if job.Namespace == namespace && b.serial[job] == nil {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// noteClaim notes that an allocation came to use a claim, or does not use it any more.
func (r *releases) noteClaim(was, now *state.AllocRow) {
	if besideOwned(was) && !besideOwned(now) {
		r.allOwners = true // the cells around its devices may be complete now
	}
	before, after := claimant(was), claimant(now)
	if before == after {
		return
	}
	for _, name := range []string{before, after} {
		if name != "" {
			r.owners[name] = true
		}
	}
	if before == "" {
		return
	}
	if node := r.snap.Node(nil, was.NodeID()); node != nil {
		r.unbound[node.ComputedClass] = true
	}
}

// besideOwned reports whether an allocation is a system or sysbatch instance that uses devices which nobody may own meanwhile.
func besideOwned(a *state.AllocRow) bool {
	if a == nil || a.Terminal() {
		return false
	}
	res := a.Resources()
	if res == nil || res.Shared.Terms == nil || !res.Shared.Terms.PerNode {
		return false
	}
	for _, t := range res.Tasks { // any: the order does not matter
		if len(t.Devices) > 0 {
			return true
		}
	}
	return false
}

// claimant returns whose cells an allocation uses, a namespace or a project; "": none.
func claimant(a *state.AllocRow) string {
	if a == nil || a.Terminal() {
		return ""
	}
	res := a.Resources()
	if res == nil || res.Shared.Terms == nil {
		return ""
	}
	switch t := res.Shared.Terms; {
	case t.Claim == structs.ClaimCells:
		return a.JobID().Namespace
	case t.Claim == structs.ClaimSlots && t.CellLevel != "":
		return structs.ProjectOwner(t.Slots.Project)
	}
	return ""
}

// cellsDiffer reports whether a node may have other cells than before: which of them are bound and which quotas can be had may
// then have changed for every owner.
func cellsDiffer(was, now *structs.Node) bool {
	return was == nil || now == nil || was.Ready() != now.Ready() || was.NodeResources != now.NodeResources || was.ComputedClass != now.ComputedClass
}

// mayEntitled reports whether what was freed may be what entitled requests wait for, whatever room there is: those of an owner whose own
// cells came free, and others where a cell was unbound.
func (r *releases) mayEntitled(g *group) bool {
	if r.allOwners || r.owners[g.known.Namespace] {
		return true
	}
	for class := range r.unbound { // order does not matter: any will do
		if helps(g.known, class) {
			return true
		}
	}
	return false
}
