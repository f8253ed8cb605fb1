package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// tenantNames are the namespaces that jobs are of, and that may own cells.
var tenantNames = []string{"t0", "t1", "t2", structs.DefaultNamespace}

// tenants are namespaces that own cells, and those who change what they own: edits, shifts, points and exchanges. They know what
// was acknowledged of edits. nil, in which every method is allowed: all jobs are of the default namespace, and nobody owns anything.
type tenants struct {
	*sim
	edits map[string]uint64 // the index of the last edit that was acknowledged, by namespace
	// rows are what each owned after the last entry that changed any of it.
	rows map[string]*structs.VirtualCluster
	// since is the index from which on each has always owned cells.
	since map[string]uint64
	// turned is the time up to which what is owned has been moved on, in Unix nanoseconds.
	turned  int64
	checked map[*replica]uint64 // the index of the last state whose claims were checked
}

// newTenants returns the tenants of a run: of three seeds out of five. The others run as they did before there were any, those
// among them that have found faults.
func newTenants(s *sim) *tenants {
	if rest := s.seed % 5; rest == 2 || rest == 4 {
		return nil
	}
	s.minEntries, s.minFaults = s.minEntries*4/5, s.minFaults*4/5 // each costs more
	return &tenants{sim: s, edits: map[string]uint64{}, since: map[string]uint64{}, rows: map[string]*structs.VirtualCluster{}, checked: map[*replica]uint64{}}
}

func (t *tenants) start() {
	if t != nil {
		t.after(time.Second, "namespaces", -1, t.create)
	}
}

// create makes the namespaces, however often it takes.
func (t *tenants) create() {
	for _, name := range tenantNames {
		if t.has(name) {
			continue
		}
		err := t.call(wire.MethodNamespaceUpsert, &structs.NamespaceUpsertRequest{Definition: &structs.Namespace{Name: name}}, &structs.WriteReply{})
		if t.notef(-1, "namespace %s: %v", name, err); err != nil {
			t.after(time.Second, "namespaces", -1, t.create)
			return
		}
	}
}

// has reports whether there is a namespace, as the leader knows.
func (t *tenants) has(name string) bool {
	return t == nil || name == structs.DefaultNamespace || t.leader != nil && t.leader.r.store.Snapshot().Namespaces().Get(nil, name) != nil
}

// of returns the namespace of the jobs of a name.
func (t *tenants) of(job string) string {
	if t == nil {
		return structs.DefaultNamespace
	}
	n := 0
	_, _ = fmt.Sscanf(job, "job-%d", &n) // names are ours
	return tenantNames[n%len(tenantNames)]
}

// demand has many jobs request GPUs, and state how they use what their namespace owns.
func (t *tenants) demand(j *structs.Job) {
	if t == nil || j.PerNode() {
		return
	}
	j.Class = one(t.sim, "", "", "", structs.ClassGuaranteed, structs.ClassOpportunistic)
	task := j.TaskGroups[0].Tasks[0]
	if len(task.Resources.Devices) == 0 && t.IntN(2) == 0 {
		task.Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: one(t.sim, 1, 1, 1, 2, 4), Share: structs.DeviceShareWhole}}
		task.Resources.CPU, task.Resources.MemoryMB = min(task.Resources.CPU, 500), min(task.Resources.MemoryMB, 2000)
	}
	if t.refused(j) {
		j.Class = ""
	}
}

// refused reports whether a job would be, as its namespace owns nothing by now, or as a group of it can use nothing of that.
func (t *tenants) refused(j *structs.Job) bool {
	if t == nil || j.Class != structs.ClassGuaranteed {
		return false
	}
	v := t.row(j.Namespace)
	_, why := scheduler.WithoutClaim(j)
	return v == nil || len(v.Cells)+len(v.Windows)+len(v.Changes) == 0 || why != ""
}

// row returns what a namespace owns, as the leader knows; nil: it has no virtual cluster.
func (t *tenants) row(name string) *structs.VirtualCluster {
	if t.leader == nil {
		return nil
	}
	return t.leader.r.store.Snapshot().VirtualClusters(nil).Get(name)
}

// act changes what somebody owns.
func (t *tenants) act() {
	name := one(t.sim, tenantNames...)
	if !t.has(name) {
		return
	}
	switch n := t.IntN(20); {
	case n < 9:
		t.edit(name)
	case n < 10:
		t.users.tell("give up what is owned by "+name, t.call(wire.MethodVirtualClusterDelete, &structs.VirtualClusterDeleteRequest{Name: name}, &structs.WriteReply{}))
	case n < 12:
		from, until := t.time()
		to, untilTo := t.time()
		t.users.tell("shift of "+name, t.call(wire.MethodVirtualClusterShift, &structs.VirtualClusterShiftRequest{
			Name: name, Shift: structs.CellShift{Cells: *t.cells(1), From: from, Until: until, To: to, UntilTo: untilTo},
		}, &structs.WriteReply{}))
	case n < 13:
		t.users.tell("points of "+name, t.call(wire.MethodVirtualClusterPoints, &structs.VirtualClusterPointsRequest{Name: name, Points: t.Int64N(80) - 40}, &structs.WriteReply{}))
	case n < 19:
		t.exchange(name)
	default:
		t.withdraw()
	}
}

// edit assigns other cells to a namespace.
func (t *tenants) edit(name string) {
	was, now := t.row(name), &structs.VirtualCluster{Name: name, OverLimit: one(t.sim, "", "", structs.OverLimitWait, structs.OverLimitConfirm), Cells: t.quotas(3)}
	if was == nil {
		now.Points = t.Int64N(100)
	}
	for range t.IntN(3) {
		from, to := t.time()
		now.Windows = append(now.Windows, &structs.CellWindow{From: from, To: to, Cells: t.quotas(2)})
	}
	args := &structs.VirtualClusterUpsertRequest{VirtualCluster: now, WhenFree: t.IntN(5) == 0, CAS: t.IntN(4) == 0}
	stale := false
	if was != nil && args.CAS {
		stale = t.IntN(2) == 0
		if args.CheckIndex = was.ModifyIndex; stale {
			args.CheckIndex--
		}
	}
	reply := &structs.WriteReply{}
	err := t.call(wire.MethodVirtualClusterUpsert, args, reply)
	t.users.tell("edit of "+name, err)
	if err != nil {
		return
	}
	t.edits[name] = reply.Index
	if stale {
		t.fail("an edit of %s that was made of index %d was accepted, though it was last changed at %d", name, args.CheckIndex, was.ModifyIndex)
	}
}

// quotas draws what is owned: a few kinds of cells.
func (t *tenants) quotas(most int) (list []*structs.CellQuota) {
	for range 1 + t.IntN(most) {
		c := t.cells(t.IntN(4))
		if !slices.ContainsFunc(list, func(o *structs.CellQuota) bool { return o.Level == c.Level && o.Size == c.Size }) {
			list = append(list, c)
		}
	}
	return list
}

// cells draws cells of one kind.
func (t *tenants) cells(count int) *structs.CellQuota {
	c := &structs.CellQuota{Level: one(t.sim, structs.LevelGPU, structs.LevelPCIe, structs.LevelPCIe, structs.LevelNode, "rack"), Count: count}
	switch {
	case c.Level == "rack":
		c.Size, c.Count = 2+t.IntN(3), min(count, 1)
	case c.Level == structs.LevelNode && count > 0 && t.IntN(6) == 0:
		c.Pin = []string{one(t.sim, t.clients...).node.Name}
	}
	return c
}

// time draws a time of some tens of seconds, a little after the leader's present. There are few, so that exchanges meet and windows
// overlap.
func (t *tenants) time() (from, until time.Time) {
	now := epoch.Add(t.now + t.leader.r.skew)
	if turned := time.Unix(0, t.turned); turned.After(now) {
		now = turned
	}
	const grid = 10 * time.Second
	from = now.UTC().Truncate(grid).Add(grid * time.Duration(1+t.IntN(4)))
	return from, from.Add(grid * time.Duration(1+t.IntN(3)))
}

// exchange offers cells, or bids for some: mostly for some that are offered.
func (t *tenants) exchange(name string) {
	x := structs.Exchange{Owner: name, Cells: structs.CellQuota{Level: one(t.sim, structs.LevelGPU, structs.LevelPCIe), Count: 1 + t.IntN(2)}}
	x.From, x.Until = t.time()
	if open := t.open(); len(open) > 0 && t.IntN(3) > 0 {
		of := one(t.sim, open...)
		x.Cells.Level, x.From, x.Until = of.Cells.Level, of.From, of.Until
		if x.Bid = t.IntN(4) > 0; x.Bid {
			x.Points = 1 + t.Int64N(9)
		}
	}
	t.users.tell("exchange of "+name, t.call(wire.MethodExchangePut, &structs.ExchangePutRequest{Exchange: x}, &structs.ExchangePutReply{}))
}

// open lists the offers and bids that are not settled, as the leader knows.
func (t *tenants) open() []*structs.Exchange {
	return slices.Collect(t.leader.r.store.Snapshot().VirtualClusters(nil).Exchanges())
}

func (t *tenants) withdraw() {
	if open := t.open(); len(open) > 0 {
		id := one(t.sim, open...).ID
		t.users.tell("withdraw "+id, t.call(wire.MethodExchangeWithdraw, &structs.ExchangeWithdrawRequest{ID: id}, &structs.WriteReply{}))
	}
}

// claims checks Invariant S, and that the accounts agree with the nodes and with what runs, in a replica's state.
func (t *tenants) claims(r *replica) {
	if t == nil {
		return
	}
	snap := r.store.Snapshot()
	at := snap.ClaimsIndex(nil)
	if at == t.checked[r] {
		return // nothing of it has changed
	}
	t.checked[r] = at
	if err := snap.World().CheckClaims(); err != nil {
		t.fail("replica %d at index %d: %v", r.id, r.index(), err)
	}
}

// plan looks at what a judged plan placed: who wants guaranteed devices or none gets no others, if its namespace owned any when the plan
// was made. What replaces an instance of an earlier version of its job runs on as that did.
func (t *tenants) plan(snap *state.Snapshot, p *structs.JudgedPlan) {
	if t == nil || len(p.Evals) == 0 || snap.TableIndex(state.TableVirtualClusters) == snap.Index() {
		return // with an edit that waited and was admitted after the plan, its claims may be gone
	}
	for _, b := range p.Place {
		job, since := snap.JobVersion(b.Namespace, b.JobID, b.JobVersion), t.since[b.Namespace]
		if job == nil || job.Class != structs.ClassGuaranteed || since == 0 || since > p.Evals[0].SnapshotIndex {
			continue
		}
		for i, in := range b.Instances {
			if slices.ContainsFunc(p.Stop, func(s *structs.AllocStop) bool { return s.AllocID == in.PreviousAllocation }) {
				continue
			}
			a := snap.Alloc(nil, b.Allocation(i).ID)
			if a == nil || a.CreateIndex != snap.Index() || a.AllocatedResources == nil || len(a.AllocatedResources.Tasks["t"].Devices) == 0 {
				continue
			}
			if terms := a.AllocatedResources.Shared.Terms; terms == nil || terms.Claim == "" && !completes(snap, a) {
				t.fail("%s of class guaranteed was placed without a claim (plan of evaluation %s)", a.ID, p.EvalID)
			}
		}
	}
}

// completes reports whether an allocation joins a gang that has run on without its claims: its members are all guaranteed, or none is.
func completes(snap *state.Snapshot, a *structs.Allocation) bool {
	gang := a.AllocatedResources.Shared.Terms.Gang
	return gang != "" && slices.ContainsFunc(snap.AllocsByJob(nil, a.Namespace, a.JobID, true), func(o *structs.Allocation) bool {
		if o.Terminal() || o.CreateIndex == a.CreateIndex || o.AllocatedResources == nil {
			return false
		}
		terms := o.AllocatedResources.Shared.Terms
		return terms != nil && terms.Gang == gang && terms.Claim == ""
	})
}

// entry looks at what an entry did to what is owned, in the state of the replica that applied it first.
func (t *tenants) entry(r *replica, index uint64, e *entry) {
	if t == nil {
		return
	}
	t.claims(r)
	if clock, ok := e.payload.(*structs.ClaimsTimeEntry); ok {
		t.turned = max(t.turned, clock.Now)
	}
	snap := r.store.Snapshot()
	if snap.TableIndex(state.TableVirtualClusters) != index {
		return
	}
	was, is := t.rows, map[string]*structs.VirtualCluster{}
	for v := range snap.VirtualClusters(nil).List("", false) {
		is[v.Name] = v
		if _, owned := t.since[v.Name]; !owned && len(v.Claims) > 0 {
			t.since[v.Name] = index
		} else if len(v.Claims) == 0 {
			delete(t.since, v.Name)
		}
	}
	t.rows = is
	t.points(e, was, is)
	t.sales(was, is)
	for name := range was { // order does not matter: each has an entry of its own
		if is[name] == nil {
			delete(t.edits, name)
			delete(t.since, name)
		}
	}
}

// points checks that points are only passed on, except where an operator gives or takes some.
func (t *tenants) points(e *entry, was, is map[string]*structs.VirtualCluster) {
	change := int64(0)
	for _, v := range is { // order does not matter: a sum
		change += v.Points
	}
	for _, v := range was { // likewise
		change -= v.Points
	}
	switch p := e.payload.(type) {
	case *structs.VirtualClusterUpsertEntry:
		if was[p.VirtualCluster.Name] == nil {
			change -= p.VirtualCluster.Points
		}
	case *structs.VirtualClusterPointsEntry:
		change -= p.Points
	case *structs.VirtualClusterDeleteEntry:
		change += was[p.Name].Points
	}
	if change != 0 {
		t.fail("an entry of type %d changes the points of all by %d", e.kind, change)
	}
}

// sales checks that every cell that was won was sold by somebody who owned it, for the same time.
func (t *tenants) sales(was, is map[string]*structs.VirtualCluster) {
	left := map[string]int{}
	for _, name := range sortedKeys(is) {
		v, before := is[name], was[name]
		if v.Points < 0 {
			t.fail("%s has %d points", name, v.Points)
		}
		for i := range v.Changes {
			c := &v.Changes[i]
			if c.Why == structs.CellChangeShift {
				continue
			}
			left[fmt.Sprint(c.Cells.Level, c.Cells.Size, c.From, c.Until)] += c.Cells.Count
			if c.Why != structs.CellChangeSold || before == nil {
				continue
			}
			if sold := sold(v, c) - sold(before, c); sold > 0 && before.LeastOwned(&c.Cells, c.From, c.Until) < sold {
				t.fail("%s sold %d cells of level %s, and owned %d", name, sold, c.Cells.Level, before.LeastOwned(&c.Cells, c.From, c.Until))
			}
		}
	}
	for _, what := range sortedKeys(left) {
		if left[what] != 0 {
			t.fail("exchanged cells (level, size, from, until: %s): %d more were won than sold", what, left[what])
		}
	}
}

// sold returns how many cells of the kind and the time of a change were sold.
func sold(v *structs.VirtualCluster, c *structs.CellChange) (n int) {
	for i := range v.Changes {
		if o := &v.Changes[i]; o.Why == structs.CellChangeSold && o.Cells.SameCells(&c.Cells) && o.From == c.From && o.Until == c.Until {
			n -= o.Cells.Count
		}
	}
	return n
}

// votes looks for the edits that were acknowledged.
func (t *tenants) votes(r *replica) {
	if t == nil {
		return
	}
	snap := r.store.Snapshot()
	for _, name := range sortedKeys(t.edits) {
		index := t.edits[name]
		if index > snap.Index() {
			continue
		}
		if v := snap.VirtualClusters(nil).Get(name); v == nil || v.ModifyIndex < index {
			t.fail("replica %d: the edit of %s at index %d was acknowledged and is not there", r.id, name, index)
		}
	}
}

// waiting returns the oldest edit that waits to be admitted and could be, now that nothing changes any more; "": there is none.
func (t *tenants) waiting(snap *state.Snapshot) string {
	if t == nil {
		return ""
	}
	var first *structs.VirtualCluster
	for v := range snap.VirtualClusters(nil).List("", false) {
		if v.Pending != nil && (first == nil || v.Pending.Index < first.Pending.Index) {
			first = v
		}
	}
	if first == nil {
		return ""
	}
	err := t.call(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: &structs.VirtualCluster{
		Name: first.Name, OverLimit: first.Pending.OverLimit, Cells: first.Pending.Cells, Windows: first.Pending.Windows,
	}}, &structs.WriteReply{})
	if err == nil {
		return fmt.Sprintf("the edit of %s waited since index %d (%s), and could be admitted", first.Name, first.Pending.Index, strings.TrimSpace(first.Pending.Reason))
	}
	return ""
}
