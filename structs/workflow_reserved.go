package structs

import (
	"slices"
	"time"
)

// WorkflowPart is what a workflow's reservation holds of one node (docs/design/semantics.md, part 5). CPU counts the MHz of whole cores, too.
type WorkflowPart struct {
	NodeID   string
	CPU      int64 // MHz
	MemoryMB int64
	DiskMB   int64
	Cores    int // whole cores
	Devices  int // whole devices
	// DeviceIDs are the devices, as many as Devices; none: any of the node's.
	DeviceIDs []string `codec:",omitempty"`
	// CellLevel and CellSize are of the cells that the devices are in, which are bound for the workflow's namespace by the reservation
	// (part 2, "Virtual clusters"); "": the devices are beside all that anybody owns.
	CellLevel string `codec:",omitempty"`
	CellSize  int    `codec:",omitempty"`
	// Lost: the cells are not its namespace's any more, so that it holds nothing; it is reserved anew.
	Lost bool `codec:",omitempty"`
}

// WorkflowPartStatus is a part of a reservation as it is shown.
type WorkflowPartStatus struct {
	WorkflowPart
	NodeName string `json:",omitempty" codec:",omitempty"` // "": the node is not known any more
}

// Equal reports whether two parts are the same.
func (p WorkflowPart) Equal(o WorkflowPart) bool {
	return p.NodeID == o.NodeID && p.CPU == o.CPU && p.MemoryMB == o.MemoryMB && p.DiskMB == o.DiskMB && p.Cores == o.Cores && p.Devices == o.Devices &&
		slices.Equal(p.DeviceIDs, o.DeviceIDs) && p.CellLevel == o.CellLevel && p.CellSize == o.CellSize && p.Lost == o.Lost
}

// PartsEqual reports whether two reservations hold the same.
func PartsEqual(a, b []WorkflowPart) bool { return slices.EqualFunc(a, b, WorkflowPart.Equal) }

// WorkflowClaim is a workflow's reservation as the scheduler sees it.
type WorkflowClaim struct {
	Namespace string
	ID        string
	Run       int
	NodePool  string
	Priority  int
	// Posted: all of it is the workflow's. Until then it keeps what comes free on the nodes of its parts, from requests of lower rank.
	Posted bool
	Parts  []WorkflowPart
	// Keeps is where it keeps what comes free though it is posted, in place of what was lost: also beside a part that it has of a node.
	Keeps []WorkflowPart
	// Licenses is what it holds of licenses, in the order of their names, each once. They belong to no node.
	Licenses []RequestedLicense
	// Closed: nothing more is lent, as a stage is about to start.
	Closed bool
	// Lend is to whom what idles of it is lent, in the order stated; LendMax bounds what is lent at once, nil: nothing does.
	Lend    []*WorkflowLend
	LendMax *WorkflowResources
	// Jobs are those of the running stage that have not ended; none: no stage runs.
	Jobs []WorkflowClaimJob
}

// WorkflowClaimJob is a job of a stage.
type WorkflowClaimJob struct {
	JobID string
	// Limit is the longest max_run_duration of its groups, 0 if a group has none.
	Limit time.Duration
	// Started is when it was registered, in Unix nanoseconds.
	Started int64
	// Starting: it has been registered, and nothing of it runs yet.
	Starting bool
	// Needs is what all its instances need, CPU without the MHz of whole cores; no node is named.
	Needs WorkflowPart
	// Licenses is what all its instances need of licenses, in the order of their names.
	Licenses []RequestedLicense
	// Whole is its groups, if none of them starts without the others: they are one gang, or the job takes all or nothing. None of others.
	Whole []WorkflowClaimGroup
	// Each is what an instance of each of its groups needs, as Needs states it, of devices only whole ones.
	Each []WorkflowPart
}

// WorkflowClaimGroup is a group of such a job: Min of its instances start together, of which each needs so much, as [WorkflowClaimJob.Needs] states it,
// and so many licenses, in the order of their names.
type WorkflowClaimGroup struct {
	Needs    WorkflowPart
	Min      int
	Licenses []RequestedLicense `codec:",omitempty"`
}

// WorkflowKey names a workflow among those of all namespaces.
func WorkflowKey(namespace, id string) string { return namespace + "/" + id }

// Key names the workflow among those of all namespaces.
func (c *WorkflowClaim) Key() string { return WorkflowKey(c.Namespace, c.ID) }

// KeepsFree reports whether the workflow keeps what comes free of nodes.
func (c *WorkflowClaim) KeepsFree() bool { return len(c.KeptParts()) > 0 }

// KeptParts is where the workflow keeps what comes free.
func (c *WorkflowClaim) KeptParts() []WorkflowPart {
	if c.Posted {
		return c.Keeps
	}
	return c.Parts
}

// Lends reports whether the workflow lends what idles of its reservation to anybody.
func (c *WorkflowClaim) Lends() bool { return c.Posted && !c.Closed && len(c.Lend) > 0 }

// Shared reports whether a lend block states a share: else those named borrow in their order.
func (c *WorkflowClaim) Shared() bool {
	return slices.ContainsFunc(c.Lend, func(l *WorkflowLend) bool { return l.Share > 0 })
}

// WorkflowReservation changes what a workflow has reserved, in a plan. It holds only if the workflow is still at that run, and, if it is posted, if
// all of it is free.
type WorkflowReservation struct {
	_struct sparse `entry:",omitempty"`

	Namespace string
	ID        string
	Run       int
	Parts     []WorkflowPart
	Licenses  []RequestedLicense `codec:",omitempty"`
	Posted    bool
	// Closed: nothing more is lent until the run moves on, as borrowers leave for the stage that starts then.
	Closed bool `codec:",omitempty"`
	// Missing is what keeps it from being reserved; "": nothing does.
	Missing string
	// Keeps is where it keeps what comes free though it is posted, in place of what was lost.
	Keeps []WorkflowPart `codec:",omitempty"`
}

// Renews reports whether a plan changes a reservation in a way that servers do not know which do not know [LogWorkflowRenew]: it keeps what comes free for
// what was lost of it, or has instances use it in place.
func (p *JudgedPlan) Renews() bool {
	return p.Workflow != nil && (len(p.Workflow.Keeps) > 0 || len(p.Update) > 0)
}

// Key names the workflow among those of all namespaces.
func (r *WorkflowReservation) Key() string { return WorkflowKey(r.Namespace, r.ID) }

// Claim returns the reservation of a run as the scheduler sees it; nil: the run has ended.
func (r *WorkflowRun) Claim() *WorkflowClaim {
	if !r.Alive() {
		return nil
	}
	c := &WorkflowClaim{
		Namespace: r.Namespace, ID: r.ID, Run: r.Run, NodePool: r.Workflow.NodePool, Priority: r.Workflow.Priority, Posted: r.Posted, Parts: r.Parts, Closed: r.Closed,
		Lend: r.Workflow.Lend, LendMax: r.Workflow.LendMax, Licenses: r.Licenses, Keeps: r.Keeps,
	}
	stage := r.Active()
	if stage == nil {
		return c
	}
	specs := r.Workflow.Jobs()
	for i := range stage.Jobs {
		if j := &stage.Jobs[i]; j.State == StageStarting || j.State == StageRunning {
			job := specs[j.Name].Job
			c.Jobs = append(c.Jobs, WorkflowClaimJob{
				JobID: j.JobID, Limit: timeLimitOf(job), Started: j.Start, Starting: j.State == StageStarting, Needs: needsOf(job), Licenses: specs[j.Name].Licenses(),
				Whole: wholeOf(job), Each: eachOf(job),
			})
		}
	}
	return c
}

// needsOf returns what all instances of a job need; of a sysbatch job nothing, as nothing is reserved for it.
func needsOf(job *Job) (p WorkflowPart) {
	if job.PerNode() {
		return p
	}
	for _, g := range job.TaskGroups {
		one := needsOfOne(g)
		p.CPU, p.MemoryMB, p.DiskMB = p.CPU+int64(g.Count)*one.CPU, p.MemoryMB+int64(g.Count)*one.MemoryMB, p.DiskMB+int64(g.Count)*one.DiskMB
		p.Cores, p.Devices = p.Cores+g.Count*one.Cores, p.Devices+g.Count*one.Devices
	}
	return p
}

// eachOf returns what an instance of each group of a job needs, of devices only whole ones; of a sysbatch job nothing.
func eachOf(job *Job) (list []WorkflowPart) {
	if job.PerNode() {
		return nil
	}
	for _, g := range job.TaskGroups {
		one := needsOfOne(g)
		for _, t := range g.Tasks {
			if t.Resources == nil {
				continue
			}
			for _, d := range t.Resources.Devices {
				if d.Share > 0 && d.Share < DeviceShareWhole {
					one.Devices -= max(1, d.Count)
				}
			}
		}
		list = append(list, one)
	}
	return list
}

// needsOfOne returns what an instance of a group needs.
func needsOfOne(g *TaskGroup) (p WorkflowPart) {
	if g.EphemeralDisk != nil {
		p.DiskMB = int64(g.EphemeralDisk.SizeMB)
	}
	for _, t := range g.Tasks {
		r := t.Resources
		if r == nil {
			continue
		}
		if p.MemoryMB += int64(r.MemoryMB); r.Cores > 0 {
			p.Cores += r.Cores
		} else {
			p.CPU += int64(r.CPU)
		}
		for _, d := range r.Devices {
			p.Devices += max(1, d.Count)
		}
	}
	return p
}

// wholeOf returns the groups of a job of which none starts without the others; nil: some may.
func wholeOf(job *Job) (list []WorkflowClaimGroup) {
	gang := slices.ContainsFunc(job.TaskGroups, func(g *TaskGroup) bool { return g.Gang != nil })
	whole := job.AllAtOnce || job.Partial == PartialNone && !gang || len(job.TaskGroups) == 1 && job.TaskGroups[0].Topology != nil && job.TaskGroups[0].Topology.Required
	for _, of := range job.TaskGroups { // one that names all others
		whole = whole || of.Gang != nil && !slices.ContainsFunc(job.TaskGroups, func(g *TaskGroup) bool { return g != of && !slices.Contains(of.Gang.Groups, g.Name) })
	}
	if !whole || job.PerNode() {
		return nil
	}
	for _, g := range job.TaskGroups {
		least := g.Count
		if !job.AllAtOnce && g.Gang != nil && g.Gang.Min > 0 {
			least = min(g.Gang.Min, g.Count)
		}
		list = append(list, WorkflowClaimGroup{needsOfOne(g), least, g.Licenses().List()})
	}
	return list
}

// timeLimitOf returns the longest time limit of a job's groups; 0 if one has none.
func timeLimitOf(job *Job) (limit time.Duration) {
	for _, g := range job.TaskGroups {
		if g.MaxRunDuration == 0 {
			return 0
		}
		limit = max(limit, g.MaxRunDuration)
	}
	return limit
}
