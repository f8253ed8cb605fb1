package worker_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// watcher looks at every entry of the log: nothing may be placed on a node while an ask
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
	have     map[structs.NamespacedID]int    // instances by job
	reserved map[string]structs.NamespacedID // for whom, by node

	looked, waiting                      int // at what goes before, and at what of it waited
	gangs, preempted, backfilled, holder int // what was met
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

// volume is what an instance of a job takes.
func volume(j *structs.Job) amount {
	r := j.TaskGroups[0].Tasks[0].Resources
	return amount{int64(r.CPU), int64(r.MemoryMB)}
}

func of(a *structs.Allocation) amount {
	cpu, memory, _, _ := a.AllocatedResources.Total()
	return amount{cpu, memory}
}

// times is how often v fits into a.
func (a amount) times(v amount) int64 { return max(0, min(a[0]/v[0], a[1]/v[1])) }

func jobOf(a *structs.Allocation) structs.NamespacedID {
	return structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
}

// rebase begins with the state of another index and does what was committed since.
func (w *watcher) rebase(base uint64) {
	w.base, w.running, w.nodeOf = base, map[string]map[string]*structs.Allocation{}, map[string]string{}
	w.have, w.reserved = map[structs.NamespacedID]int{}, map[string]structs.NamespacedID{}
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
	w.have[jobOf(a)]++
}

func (w *watcher) stop(id string) {
	if a := w.running[w.nodeOf[id]][id]; a != nil {
		delete(w.running[w.nodeOf[id]], id)
		w.have[jobOf(a)]--
	}
}

// do does what a plan does.
func (w *watcher) do(p *structs.JudgedPlan) {
	for _, s := range p.Stop {
		if !s.KeepRunning {
			w.stop(s.AllocID)
		}
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
		stops[s.AllocID] = !s.KeepRunning
		if s.Reclaim != "" {
			w.preempted++
		}
	}
	w.holder += len(p.Reserve)
	for _, b := range p.Place {
		mine := now.Job(nil, b.Namespace, b.JobID)
		rank := w.rank(now, mine)
		if b.Gang != nil {
			w.gangs++
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
	return config.Rank(j, snap.Ask(nil, j.Namespace, j.ID, "g"), since)
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
		if cur := now.Job(nil, j.Namespace, j.ID); cur == nil || cur.Stop {
			continue // it is not wanted any more
		}
		seen[e.Job()] = true
		if r := w.rank(snap, j); r.Compare(&rank) >= 0 {
			continue
		}
		w.looked++
		missing := j.TaskGroups[0].Count - w.have[e.Job()]
		if missing <= 0 {
			continue
		}
		w.waiting++
		if w.couldUse(snap, j, missing, nodeID, stops) {
			w.broken = append(w.broken, fmt.Sprintf("%s (priority %d) took node %s at %d, which %s (priority %d, %d missing, %s evaluation) could use",
				mine.ID, mine.Priority, nodeID, w.base, j.ID, j.Priority, missing, e.Status))
		}
	}
}

// couldUse tells whether a job could use a node: one instance of it, or if it is a gang, as
// many as are missing there and on the other nodes of its pool.
func (w *watcher) couldUse(snap *state.Snapshot, j *structs.Job, missing int, nodeID string, stops map[string]bool) bool {
	here := w.room(snap, j, nodeID, stops)
	if j.TaskGroups[0].Gang == nil || here == 0 {
		return here > 0
	}
	sum := int64(0)
	for n := range snap.Nodes(nil, "", false) {
		if n.InPool(j.NodePool) {
			sum += w.room(snap, j, n.ID, stops)
		}
	}
	return sum >= int64(missing)
}

// room is how many instances of a job find room on a node, with what it may take back: of
// lower bands, but for gangs, which may not be left in part.
func (w *watcher) room(snap *state.Snapshot, j *structs.Job, nodeID string, stops map[string]bool) int64 {
	node := snap.Node(nil, nodeID)
	if by, is := w.reserved[nodeID]; node == nil || is && by != j.NamespacedID() {
		return 0 // for others
	}
	config := snap.SchedulerConfig(nil)
	free := amount{node.NodeResources.Cpu.CpuShares, node.NodeResources.Memory.MemoryMB}
	for a := range maps.Values(w.running[nodeID]) {
		terms := a.AllocatedResources.Shared.Terms
		lower := config.Preempts(j.Type) && terms != nil && terms.Gang == "" && config.Band(terms.Priority) < config.Band(j.Priority)
		if v := of(a); !lower && !stops[a.ID] {
			free = amount{free[0] - v[0], free[1] - v[1]}
		}
	}
	return free.times(volume(j))
}
