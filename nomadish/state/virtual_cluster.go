package state

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nomadish/nomadish/nomadish/state/internal/claimcheck"
	"github.com/nomadish/nomadish/nomadish/state/internal/claimtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecttable"
	"github.com/nomadish/nomadish/structs"
)

// VirtualClusters reads what the namespaces of a snapshot own.
type VirtualClusters = claimtable.Reads

// VirtualClusters returns the reads of virtual clusters, watched by ws.
func (s *Snapshot) VirtualClusters(ws *WatchSet) VirtualClusters {
	return VirtualClusters{Watched: s.v.watched(ws), World: s.v.world}
}

// ClaimsIndex returns the index that last changed anything that virtual clusters show: what is owned, what runs, which nodes
// there are, what is offered, and the time by which windows are looked up. A watch set that is given watches all of it.
func (s *Snapshot) ClaimsIndex(ws *WatchSet) uint64 {
	index := uint64(0)
	for _, table := range []string{TableVirtualClusters, TableNodes, TableAllocs, TableConfig, TableExchanges, TableClaimsTime, TableProjectWeeks} {
		if ws != nil {
			ws.store = s.v.store
			ws.addTable(s.v, table)
		}
		index = max(index, s.TableIndex(table))
	}
	return index
}

// applyClaims moves the state on by one entry about what namespaces own.
func (w *Writer) applyClaims(index uint64, t structs.LogType, payload any) error {
	at, event, seed := claimtable.Event(payload)
	if event == "" {
		return w.applyProjects(index, t, payload)
	}
	return w.commit(index, at, event, seed, func(x *txn) error { return claims{x}.edit().Apply(payload) })
}

// claims is a txn as what namespaces own sees it.
type claims struct{ x *txn }

// edit returns the entry as what changes what is owned.
func (c claims) edit() claimtable.Edit {
	x := c.x
	config := configOf(x.rows)
	return claimtable.Edit{
		Entry: tableEdit{x}.entry(), World: x.edit, Sites: config.SiteLevels(), Note: c.note,
		Weeks:        rows[structs.ProjectWeek](x.rows, false, projecttable.Weeks, byID),
		HasNamespace: func(name string) bool { return get[structs.Namespace](x.rows, TableNamespaces, byID, name) != nil },
		Evaluate:     c.evaluate, EvaluatePerNode: c.evaluatePerNode,
	}
}

// configOf returns the scheduler's configuration, an empty one if none is stored yet.
func configOf(r reader) *structs.SchedulerConfiguration {
	if config := get[structs.SchedulerConfiguration](r, TableConfig, byID); config != nil {
		return config
	}
	return &structs.SchedulerConfiguration{}
}

func (c claims) note(table, key string, was, now any) {
	kind := KindVirtualCluster
	if table == TableExchanges {
		kind = KindExchange
	}
	tableEdit(c).notes(kind)(key, was, now)
}

// evaluatePerNode makes evaluations of the system and sysbatch jobs of which something runs, or is being decided, so that no claim takes from it (semantics
// part 0, rule 7): what was placed while nobody owned anything does not state what it is.
func (c claims) evaluatePerNode() {
	var jobs []*structs.Job
	for j := range rows[structs.Job](c.x.rows, false, TableJobs, byPerNode, byPerNode) {
		if t := c.x.tallyOf(j.Namespace, j.ID); !j.Stop && t.Live+t.Open > 0 { // what is being decided may be placed without it
			jobs = append(jobs, j)
		}
	}
	c.mint(jobs)
}

// maxClaimEvals bounds the evaluations that an edit of a virtual cluster makes: the jobs that were registered first.
const maxClaimEvals = 1_000

// evaluate makes evaluations of the owner's jobs of which something runs, so that it may be raised.
func (c claims) evaluate(owner string) {
	var jobs []*structs.Job
	for j := range rows[structs.Job](c.x.rows, false, TableJobs, byPrefix, owner, "") {
		if !j.Stop && !j.PerNode() && j.Class != structs.ClassOpportunistic && c.x.tallyOf(j.Namespace, j.ID).Live > 0 {
			jobs = append(jobs, j)
		}
	}
	c.mint(jobs)
}

// mint makes evaluations of jobs, of those that were registered first if there are too many.
func (c claims) mint(jobs []*structs.Job) {
	slices.SortFunc(jobs, func(a, b *structs.Job) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range jobs[:min(len(jobs), maxClaimEvals)] {
		c.x.mint(structs.Evaluation{
			Namespace: j.Namespace, JobID: j.ID, Priority: j.Priority, Type: j.Type, TriggeredBy: structs.EvalTriggerVirtualCluster, JobModifyIndex: j.JobModifyIndex,
		})
	}
}

// settle ends an entry: what has lost its claim is written back, and edits that wait are tried if cells may have come free, or time went on.
func (c claims) settle() {
	x := c.x
	x.edit.RetryPins()
	c.writeLost()
	if !x.tables.has(TableAllocs) && !x.tables.has(TableNodes) && !x.tables.has(TableVirtualClusters) && !x.tables.has(TableClaimsTime) && !x.tables.has(projecttable.Weeks) || !claimtable.AnyWaits(x.rows) {
		return
	}
	if x.seed == "" { // the entry makes no evaluations by itself, as one by which an instance ends: what it lets in has jobs evaluated all the same
		x.seed, x.minted = "virtual-clusters@"+strconv.FormatUint(x.index, 10), 0
	}
	c.edit().TryPending()
	x.edit.RetryPins()
	c.writeLost()
}

// writeLost writes back what has lost its claim, so that rows and World agree.
func (c claims) writeLost() {
	x := c.x
	for _, id := range x.edit.LostClaims() {
		was := x.alloc(id)
		if was == nil || was.AllocatedResources == nil || was.AllocatedResources.Shared.Terms == nil {
			continue
		}
		now := *was
		now.AllocatedResources = was.AllocatedResources.Copy()
		terms := was.AllocatedResources.Shared.Terms.Opportunistic()
		now.AllocatedResources.Shared.Terms = &terms
		now.DesiredDescription = structs.DescLostClaim
		now.ModifyTime = x.now
		x.putAlloc(was, &now, false)
	}
	workflows{x}.writeLost()
}

// claimTables are the tables of which every change may take a claim away.
var claimTables = []string{TableVirtualClusters, TableNodes, TableClaimsTime, projecttable.Projects, projecttable.Weeks, projecttable.Flows}

// check returns the part of a judged plan whose claims still hold, and the IDs of what is placed without its claim, see
// [claimcheck.Check.Plan]. Nothing can have lost its claim if neither what is owned nor a node has changed since the plan was judged, as
// far as entries have been applied.
func (c claims) check(p *structs.JudgedPlan) (judged *structs.JudgedPlan, placed []string) {
	if !slices.ContainsFunc(claimTables, func(table string) bool { return c.x.marks[tableNumber(table)].index > p.JudgedAt }) {
		return p, nil
	}
	return claimcheck.Check{
		World: c.x.edit, Alloc: c.x.alloc, Job: c.x.job,
		VirtualCluster: func(namespace string) *structs.VirtualCluster {
			return get[structs.VirtualCluster](c.x.rows, TableVirtualClusters, byID, namespace)
		},
	}.Plan(p)
}

// describeLoss states of an allocation that it was placed without the claim by which it was decided.
func (c claims) describeLoss(id string) {
	if was := c.x.alloc(id); was != nil && was.DesiredStatus == structs.AllocDesiredRun && !claimcheck.HasClaim(was.AllocatedResources) {
		now := *was
		now.DesiredDescription = structs.DescLostClaim
		c.x.putAlloc(was, &now, false)
	}
}
