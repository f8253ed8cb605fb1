package check

import (
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// job is what is known of one job, which may be gone.
type job struct {
	id       structs.NamespacedID
	spec     *structs.Job // nil: there is no such job
	summary  *structs.JobSummary
	open     []*structs.Evaluation // pending or blocked, in the order of their IDs
	requests []*structs.PendingRequest

	counted map[string]structs.TaskGroupSummary // its allocations, those of the job as registered, by group and client status
	groups  map[string]*group                   // the job's, and those that only allocations name
	live    int                                 // allocations that are not terminal
}

// group is what a job's group has.
type group struct {
	live      int    // not terminal, nor lost from sight
	done      int    // completed by themselves, be they to be stopped or not
	unknown   int    // live, on nodes that are disconnected
	instances []bool // by number: live ones
	// ever are the numbers of all members of a gang that are still known; oldest is the
	// index at which the first live one was placed.
	ever     map[int]bool
	oldest   uint64
	outdated bool // a live one is of another version of the job
	gang     bool
}

func (j *job) setSpec(spec *structs.Job) {
	j.spec = spec
	gangs := gangsOf(spec)
	for _, g := range spec.TaskGroups {
		j.groups[g.Name] = &group{gang: gangs[g.Name] != nil}
	}
}

func (j *job) group(name string) *group {
	g := j.groups[name]
	if g == nil {
		g = &group{}
		j.groups[name] = g
	}
	return g
}

// waits reports whether an evaluation will look at the job: what is wrong until then is
// wrong by design.
func (j *job) waits() bool { return len(j.open) > 0 }

// count counts an allocation, whatever has become of it: in the summary only if it is of the job as registered, not of an earlier one of its ID.
func (j *job) count(a *structs.Allocation) {
	if j.spec == nil || a.CreateIndex >= j.spec.CreateIndex {
		j.counted[a.TaskGroup] = addTo(j.counted[a.TaskGroup], a)
	}
	g := j.group(a.TaskGroup)
	if a.ClientStatus == structs.AllocClientComplete && (!a.ServerTerminal() || endedWell(a)) {
		g.done++
	}
	if g.gang && j.spec != nil && a.CreateIndex >= j.spec.CreateIndex {
		if g.ever == nil {
			g.ever = map[int]bool{}
		}
		g.ever[a.Index()] = true
	}
}

// addTo counts an allocation in a line of a summary.
func addTo(line structs.TaskGroupSummary, a *structs.Allocation) structs.TaskGroupSummary {
	switch a.ClientStatus {
	case structs.AllocClientPending, structs.AllocClientSuspended:
		line.Starting++
	case structs.AllocClientRunning:
		line.Running++
	case structs.AllocClientComplete:
		line.Complete++
	case structs.AllocClientFailed:
		line.Failed++
	case structs.AllocClientLost:
		line.Lost++
	case structs.AllocClientUnknown:
		line.Unknown++
	}
	return line
}

// endedWell reports whether every task ended without failing, and by itself: its work is done, though it was to be stopped.
func endedWell(a *structs.Allocation) bool {
	return a.NextAllocation == "" && structs.EndedByThemselves(a.TaskStates)
}

// reserved records a live allocation: where it is, and whether its place is taken twice.
func (c *checker) reserved(j *job, n *node, a *structs.Allocation) {
	j.live++
	g := j.group(a.TaskGroup)
	if g.oldest == 0 || a.CreateIndex < g.oldest {
		g.oldest = a.CreateIndex
	}
	g.outdated = g.outdated || j.spec != nil && a.JobVersion != j.spec.Version
	if n.spec == nil {
		c.fault(structs.CheckOrphans, "allocation", a.ID, "it is to run on node %s, which is gone", a.NodeID)
	}
	if a.ClientStatus == structs.AllocClientUnknown {
		g.unknown++
		return // somebody else may stand for it
	}
	if n.spec != nil && n.spec.Terminal() && !j.waits() {
		c.fault(structs.CheckOrphans, "allocation", a.ID, "it is to run on node %s, which is down, and no evaluation of job %s is open", a.NodeID, j.id)
	}
	g.live++
	if j.spec == nil || j.waits() {
		return
	}
	spec := j.spec.LookupTaskGroup(a.TaskGroup)
	if spec == nil {
		c.fault(structs.CheckSurplus, "allocation", a.ID, "job %s has no group %q any more, and no evaluation of it is open", j.id, a.TaskGroup)
		return
	}
	if j.spec.PerNode() {
		if n.instances == nil {
			n.instances = map[string]string{}
		}
		place := j.id.String() + " " + a.Name
		if other := n.instances[place]; other != "" {
			c.fault(structs.CheckSurplus, "allocation", a.ID, "it is %s on node %s, as is allocation %s", a.Name, a.NodeID, other)
		}
		n.instances[place] = a.ID
		return
	}
	i := a.Index()
	if i < 0 || i >= spec.Count {
		return // if that is one too many, the count shows it
	}
	if g.instances == nil {
		g.instances = make([]bool, spec.Count)
	}
	if g.instances[i] {
		c.fault(structs.CheckSurplus, "allocation", a.ID, "it is %s of job %s, which another allocation is as well", a.Name, j.id)
	}
	g.instances[i] = true
}

// stopped checks an allocation that shall stop and has not, on a node that can report it.
func (c *checker) stopped(n *node, a *structs.Allocation) {
	if n.spec == nil || n.spec.Status != structs.NodeStatusReady {
		return // it reports it when the node is back, or is forgotten with it
	}
	job := c.snap.JobVersion(a.Namespace, a.JobID, a.JobVersion)
	allowed, known := stopTime(job, a.TaskGroup)
	since := max(a.ModifyTime, n.spec.StatusUpdatedAt*int64(time.Second))
	if known && c.late(since, allowed) {
		c.fault(structs.CheckStopped, "allocation", a.ID, "it was to stop %s ago and is %s on node %s, which is ready; its tasks have %s to end",
			c.opts.Now.Sub(time.Unix(0, since)).Round(time.Second), a.ClientStatus, a.NodeID, allowed)
	}
}

// maxKill is the longest kill timeout that a client grants, as its max_kill_timeout states
// if nobody has set another.
const maxKill = 30 * time.Second

// stopTime is how long a group's tasks may take to end. False: as long as they like.
func stopTime(job *structs.Job, name string) (time.Duration, bool) {
	if job == nil {
		return maxKill, true // of a job that was purged no more is known
	}
	g := job.LookupTaskGroup(name)
	if g == nil {
		return maxKill, true
	}
	var kill, delay time.Duration
	for _, t := range g.Tasks {
		if t.Lifecycle != nil && t.Lifecycle.Hook == structs.TaskLifecycleHookPoststop {
			return 0, false // it runs when the others have ended
		}
		kill, delay = max(kill, t.KillTimeout), max(delay, t.ShutdownDelay)
	}
	return g.ShutdownDelay + 2*(kill+delay), true // first a leader, then the others
}

// checkJob checks what could not be decided before all rows were seen.
func (c *checker) checkJob(j *job) {
	c.checkRequests(j)
	if j.spec == nil {
		if j.live > 0 && !j.waits() {
			c.fault(structs.CheckOrphans, "job", j.id.String(), "there is no such job, %d allocations of it are to run, and no evaluation of it is open", j.live)
		}
		if j.summary != nil {
			c.fault(structs.CheckCounters, "job", j.id.String(), "there is no such job, and it has a summary")
		}
		return
	}
	c.checkSummary(j)
	c.checkBlocked(j)
	for _, g := range gangsInOrder(j.spec) {
		c.checkGang(j, g)
	}
	if j.waits() || j.spec.PerNode() || j.spec.IsPeriodic() || j.spec.IsParameterized() {
		return
	}
	if j.spec.Stop {
		if j.live > 0 {
			c.fault(structs.CheckSurplus, "job", j.id.String(), "it is stopped, %d allocations of it are to run, and no evaluation of it is open", j.live)
		}
		return
	}
	for _, spec := range j.spec.TaskGroups {
		if g := j.group(spec.Name); g.live > spec.Count {
			c.fault(structs.CheckSurplus, "job", j.id.String(), "group %q has %d instances that are to run, %d are requested, and no evaluation of it is open",
				spec.Name, g.live, spec.Count)
		}
	}
}

// checkSummary compares a job's summary with the count of its allocations. What is
// queued is what evaluations reported, not a count.
func (c *checker) checkSummary(j *job) {
	if j.summary == nil {
		c.fault(structs.CheckCounters, "job", j.id.String(), "it has no summary")
		return
	}
	names := slices.Collect(maps.Keys(j.counted))
	for name := range j.summary.Summary { // order does not matter: sorted below
		if _, counted := j.counted[name]; !counted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		have, want := j.summary.Summary[name], j.counted[name]
		have.Queued = 0
		if have != want {
			c.fault(structs.CheckCounters, "job", j.id.String(), "the counts of group %q in its summary are %+v, but its allocations are %+v", name, have, want)
		}
	}
}
