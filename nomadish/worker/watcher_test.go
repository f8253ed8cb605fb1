package worker_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// watcher looks at every entry of the log: nothing may be placed on a node while a request
// that goes before it, and waited in the state that the plan was judged on, could use that
// node. It knows what could by adding up, not by the scheduler: what is free there, what it
// may take back, and what is reserved; of a gang, whether all of it finds room.
type watcher struct {
	*cluster
	history map[uint64]*state.Snapshot
	plans   []committed // all, in order
	// What follows is the state of base and what was committed since.
	base     uint64
	running  map[string]map[string]*structs.Allocation // by node and ID
	nodeOf   map[string]string
	have     map[structs.PendingRequest]int  // instances by job and group
	reserved map[string]structs.NamespacedID // for whom, by node

	looked, waiting                      int // at what goes before, and at what of it waited
	gangs, preempted, backfilled, lessee int // what was met
	resumed, updated, twos               int
	broken                               []string
}

type committed struct {
	index uint64
	plan  *structs.JudgedPlan
}

func (c *cluster) watched() *watcher {
	w := &watcher{cluster: c, history: map[uint64]*state.Snapshot{}}
	c.after = func(index uint64) { w.history[index] = c.store.Snapshot() }
	c.watch = func(index uint64, payload any) {
		if entry, ok := payload.(*structs.PlanCommit); ok {
			for _, p := range entry.Plans {
				w.see(p)
				w.plans = append(w.plans, committed{index, p})
			}
		}
	}
	return w
}

// amount is CPU and memory.
type amount [2]int64

// volume is what an instance of a job of one group takes.
func volume(j *structs.Job) amount { return volumeOf(j.TaskGroups[0]) }

func volumeOf(g *structs.TaskGroup) amount {
	r := g.Tasks[0].Resources
	return amount{int64(r.CPU), int64(r.MemoryMB)}
}

func of(a *structs.Allocation) amount {
	cpu, memory, _, _ := a.AllocatedResources.Total()
	return amount{cpu, memory}
}

// leased returns what an allocation uses: one that is suspended, its memory.
func leased(a *structs.Allocation) amount {
	v := of(a)
	if a.Suspended() {
		v[0] = 0
	}
	return v
}

func (a amount) plus(v amount) amount  { return amount{a[0] + v[0], a[1] + v[1]} }
func (a amount) minus(v amount) amount { return amount{a[0] - v[0], a[1] - v[1]} }

// times is how often v fits into a.
func (a amount) times(v amount) int64 { return max(0, min(a[0]/v[0], a[1]/v[1])) }

func groupOf(a *structs.Allocation) structs.PendingRequest {
	return structs.PendingRequest{Namespace: a.Namespace, JobID: a.JobID, Group: a.TaskGroup}
}

// missing is how many instances of a group there are to be more.
func (w *watcher) missing(j *structs.Job, g *structs.TaskGroup) int {
	return g.Count - w.have[structs.PendingRequest{Namespace: j.Namespace, JobID: j.ID, Group: g.Name}]
}

// rebase begins with the state of another index and does what was committed since.
func (w *watcher) rebase(base uint64) {
	w.base, w.running, w.nodeOf = base, map[string]map[string]*structs.Allocation{}, map[string]string{}
	w.have, w.reserved = map[structs.PendingRequest]int{}, map[string]structs.NamespacedID{}
	snap := w.history[base]
	for n := range snap.Nodes(nil, "", false) {
		for _, a := range snap.AllocsByNode(nil, n.ID) {
			if !a.Terminal() {
				w.place(a)
			}
		}
	}
	for r := range snap.Reservations(nil) {
		w.reserved[r.NodeID] = structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
	}
	for _, c := range w.plans {
		if c.index > base {
			w.do(c.plan)
		}
	}
}

func (w *watcher) place(a *structs.Allocation) {
	if w.running[a.NodeID] == nil {
		w.running[a.NodeID] = map[string]*structs.Allocation{}
	}
	w.running[a.NodeID][a.ID], w.nodeOf[a.ID] = a, a.NodeID
	w.have[groupOf(a)]++
}

func (w *watcher) stop(id string) {
	if a := w.running[w.nodeOf[id]][id]; a != nil {
		delete(w.running[w.nodeOf[id]], id)
		w.have[groupOf(a)]--
	}
}

// do does what a plan does.
func (w *watcher) do(p *structs.JudgedPlan) {
	for _, u := range p.Update {
		if a := w.running[w.nodeOf[u.AllocID]][u.AllocID]; a != nil {
			now := *a
			if now.JobVersion = u.JobVersion; u.Resume {
				now.DesiredStatus = structs.AllocDesiredRun
			}
			w.running[a.NodeID][a.ID] = &now
		}
	}
	for _, s := range p.Stop {
		if s.KeepRunning {
			continue
		}
		if a := w.running[w.nodeOf[s.AllocID]][s.AllocID]; a != nil && s.Reclaim != "" {
			w.have[groupOf(a)]++ // what is taken back is requested anew once that is committed
		}
		w.stop(s.AllocID)
	}
	for _, id := range p.Unreserve {
		delete(w.reserved, id)
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			w.place(b.Allocation(i))
		}
	}
	for _, r := range p.Reserve {
		w.reserved[r.NodeID] = structs.NamespacedID{ID: r.JobID, Namespace: r.Namespace}
	}
}

// see looks at a judged plan.
func (w *watcher) see(p *structs.JudgedPlan) {
	if p.JudgedAt != w.base || w.running == nil {
		w.rebase(p.JudgedAt)
	}
	snap, now := w.history[w.base], w.store.Snapshot()
	stops := map[string]bool{}
	for _, s := range p.Stop {
		// What a job gives up for itself, it may have.
		stops[s.AllocID] = s.Reclaim != ""
		if s.Reclaim != "" {
			w.preempted++
		}
		if a := w.running[w.nodeOf[s.AllocID]][s.AllocID]; a != nil && s.Reclaim == "" && len(p.Place) > 0 {
			w.updated++
		}
	}
	w.lessee += len(p.Reserve)
	for _, u := range p.Update {
		if u.Resume {
			w.resumed++
		}
	}
	for _, b := range p.Place {
		mine := now.Job(nil, b.Namespace, b.JobID)
		rank := w.rank(now, mine)
		if b.Gang != nil {
			w.gangs++
		}
		if len(mine.TaskGroups) > 1 {
			w.twos++
		}
		for i := range b.Instances {
			id := b.Nodes[b.Instances[i].Node].ID
			if by, is := w.reserved[id]; is && by != mine.NamespacedID() {
				w.backfilled++
			}
			w.overtaken(snap, now, mine, rank, id, stops)
		}
	}
	w.do(p)
}

// rank is a job's place in the queue.
func (w *watcher) rank(snap *state.Snapshot, j *structs.Job) structs.Rank {
	since := int64(0)
	for _, e := range snap.EvalsByJob(nil, j.Namespace, j.ID) {
		if !e.Terminal() && (since == 0 || e.CreateTime < since) {
			since = e.CreateTime
		}
	}
	config := snap.SchedulerConfig(nil)
	best := config.Rank(j, nil, since)
	for _, request := range snap.Requests().OfJob(nil, j.Namespace, j.ID) {
		if r := config.Rank(j, request, since); r.Compare(&best) < 0 {
			best = r
		}
	}
	return best
}

// overtaken notes who waited, goes before a job that takes a node, and could use it.
func (w *watcher) overtaken(snap, now *state.Snapshot, mine *structs.Job, rank structs.Rank, nodeID string, stops map[string]bool) {
	seen := map[structs.NamespacedID]bool{}
	for _, e := range snap.PendingEvals() {
		j := snap.Job(nil, e.Namespace, e.JobID)
		if seen[e.Job()] || j == nil || j.Stop || j.NodePool != mine.NodePool || j.ID == mine.ID || e.WaitUntil.After(time.Now()) && e.Status == structs.EvalStatusPending {
			continue
		}
		if _, rests := w.nacked.Load(e.ID); rests {
			continue
		}
		cur := now.Job(nil, j.Namespace, j.ID)
		if cur == nil || cur.Stop {
			continue // it is not wanted any more
		}
		seen[e.Job()] = true
		if r := w.rank(snap, j); r.Compare(&rank) >= 0 {
			continue
		}
		w.looked++
		if !w.waits(j) {
			continue
		}
		w.waiting++
		why := w.couldUse(snap, j, nodeID, stops)
		if why != "" && cur.Version != j.Version {
			why = w.couldUse(snap, cur, nodeID, stops) // as it was decided, it may need more
		}
		if why != "" {
			w.broken = append(w.broken, fmt.Sprintf("%s (priority %d) took node %s at %d, which %s (priority %d, %s evaluation) could use for %s",
				mine.ID, mine.Priority, nodeID, w.base, j.ID, j.Priority, e.Status, why))
		}
	}
}

// own are the instances of a group.
func (w *watcher) own(j *structs.Job, g *structs.TaskGroup) (out []*structs.Allocation) {
	for _, on := range w.running {
		for _, a := range on {
			if groupOf(a) == (structs.PendingRequest{Namespace: j.Namespace, JobID: j.ID, Group: g.Name}) {
				out = append(out, a)
			}
		}
	}
	return out
}

// old reports whether an instance is to be replaced, by one of another size. j may be older than it.
func old(a *structs.Allocation, j *structs.Job, g *structs.TaskGroup) bool {
	return a.JobVersion < j.Version && of(a) != volumeOf(g) && !a.Suspended()
}

// toGoOn reports whether an instance is suspended, and not as a user wants it so.
func toGoOn(a *structs.Allocation) bool {
	return a.Suspended() && !a.DesiredTransition.ShouldSuspend()
}

// waits reports whether a job wants anything that it has not.
func (w *watcher) waits(j *structs.Job) bool {
	for _, g := range j.TaskGroups {
		if w.missing(j, g) > 0 || slices.ContainsFunc(w.own(j, g), func(a *structs.Allocation) bool { return toGoOn(a) || old(a, j, g) }) {
			return true
		}
	}
	return false
}

// couldUse returns for what a job could use a node; "": it could not. That is for one more
// instance, or if it is a gang, for as many as are missing there and on the other nodes of
// its pool; for one that was suspended there; for one that replaces another, whose room it
// may take.
func (w *watcher) couldUse(snap *state.Snapshot, j *structs.Job, nodeID string, stops map[string]bool) string {
	for _, g := range j.TaskGroups {
		missing := w.missing(j, g)
		switch here := w.room(snap, j, g, nodeID, stops); {
		case missing <= 0 || here == 0:
		case g.Gang == nil:
			return fmt.Sprintf("%d missing of group %s", missing, g.Name)
		default:
			sum := int64(0)
			for n := range snap.Nodes(nil, "", false) {
				if n.InPool(j.NodePool) {
					sum += w.room(snap, j, g, n.ID, stops)
				}
			}
			if sum >= int64(missing) {
				return "a gang"
			}
		}
		if why := w.instead(snap, j, g, nodeID, stops); why != "" {
			return why
		}
	}
	return ""
}

// instead is couldUse for what has instances already, and takes nothing from others.
func (w *watcher) instead(snap *state.Snapshot, j *structs.Job, g *structs.TaskGroup, nodeID string, stops map[string]bool) string {
	free, may := w.free(snap, j, nodeID, nil, false)
	if !may || g.Gang != nil {
		return ""
	}
	for _, a := range w.own(j, g) {
		switch here := a.NodeID == nodeID && !stops[a.ID]; {
		case toGoOn(a) && here && a.JobVersion == j.Version && free.plus(leased(a)).times(of(a)) > 0:
			return "what is suspended there"
		case old(a, j, g) && (free.times(volumeOf(g)) > 0 || here && free.plus(leased(a)).times(volumeOf(g)) > 0):
			return "an update of " + a.ID
		}
	}
	return ""
}

// room is how many instances of a group find room on a node, with what it may take back.
func (w *watcher) room(snap *state.Snapshot, j *structs.Job, g *structs.TaskGroup, nodeID string, stops map[string]bool) int64 {
	free, may := w.free(snap, j, nodeID, stops, true)
	if !may {
		return 0
	}
	return free.times(volumeOf(g))
}

// free is what a job finds free on a node, if it may use it. With takes, that is with what
// it may take back: of lower bands, but for gangs, which may not be left in part, and for what was requeued too often.
func (w *watcher) free(snap *state.Snapshot, j *structs.Job, nodeID string, stops map[string]bool, takes bool) (free amount, may bool) {
	node := snap.Node(nil, nodeID)
	if by, is := w.reserved[nodeID]; node == nil || is && by != j.NamespacedID() {
		return free, false // for others
	}
	config := snap.SchedulerConfig(nil)
	takes = takes && config.Preempts(j.Type)
	free = amount{node.NodeResources.Cpu.CpuShares, node.NodeResources.Memory.MemoryMB}
	for a := range maps.Values(w.running[nodeID]) {
		terms := a.AllocatedResources.Shared.Terms
		lower := takes && terms != nil && terms.Gang == "" && config.Band(terms.Priority) < config.Band(j.Priority) && !a.Suspended() &&
			a.Requeues < config.RequeuesAllowed() // else it is immune
		if !lower && !stops[a.ID] {
			free = free.minus(leased(a))
		}
	}
	return free, true
}
