package forecast

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// What CI has no time for. An explanation costs as much as many decisions, so these are rarer than in earnest.
var (
	seedsFlag   = flag.Int("seeds", 0, "run queues of the seeds 1 to this, instead of those that CI runs")
	explainFlag = flag.Duration("explain", 20*time.Second, "how old an explanation grows before it is counted again (a leader: 5s)")
	eachFlag    = flag.Duration("explain-each", time.Second, "the least time between two of them (a leader: 50ms)")
)

// seedsOr returns the seeds of queues that are to be run.
func seedsOr(few []uint64) []uint64 {
	if *seedsFlag == 0 {
		return few
	}
	var all []uint64
	for i := range *seedsFlag {
		all = append(all, uint64(i+1)) // not negative
	}
	return all
}

// epoch is when each test begins.
var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// reality is a cluster in virtual time: the parts of a leader on a log, and clients that are not those of forecasts. What its jobs do is up to the test.
type reality struct {
	*leader
	t   testing.TB
	log *testcluster.Log
	// takes returns how long an allocation runs if nobody stops it.
	takes    func(a *structs.Allocation) time.Duration
	ends     map[string]time.Time // of what runs, by allocation
	ran      map[string]time.Duration
	since    map[string]time.Time
	starts   map[groupKey][]time.Time
	moves    map[groupKey][]move
	runs     map[string]bool // of what has started, whether it runs or is suspended
	over     map[string]bool
	gone     map[string]time.Time // when those end that were stopped
	stays    Stays
	reserved map[int64][]*structs.Reservation // by time, see lookAt
}

// move is that instances of a group start to run, or, before they have ended, do so no more.
type move struct {
	at time.Time
	by int
}

func newReality(t testing.TB) *reality {
	r := &reality{
		t: t, log: testcluster.New(1, state.Options{}), ends: map[string]time.Time{}, ran: map[string]time.Duration{}, since: map[string]time.Time{},
		starts: map[groupKey][]time.Time{}, moves: map[groupKey][]move{}, runs: map[string]bool{}, over: map[string]bool{},
		gone: map[string]time.Time{}, stays: Stays{}, reserved: map[int64][]*structs.Reservation{},
	}
	r.takes = func(a *structs.Allocation) time.Duration { return limitOf(a) }
	apply := func(typ structs.LogType, payload any) (uint64, error) {
		return r.log.Apply(context.Background(), typ, payload)
	}
	r.leader = newLeader(r.log.Store, apply, epoch, ids("reality"), worker.PassOptions{
		Explain: *explainFlag, ExplainEach: *eachFlag, Typicals: worker.NewTypicals(),
	}, queue.Options{})
	t.Cleanup(r.stop)
	return r
}

func limitOf(a *structs.Allocation) time.Duration {
	return a.Job.LookupTaskGroup(a.TaskGroup).MaxRunDuration
}

// put commits an entry.
func (r *reality) put(payload any) {
	r.t.Helper()
	r.log.Put(r.t, payload)
}

// submit registers a job.
func (r *reality) submit(j *structs.Job) {
	r.t.Helper()
	j.Canonicalize()
	now := r.now.UnixNano()
	j.SubmitTime = now
	r.put(&structs.JobRegisterEntry{Job: j, Eval: structs.NewEval(r.newID(), j, structs.EvalTriggerJobRegister, now), Time: now})
}

// until runs the cluster until a time.
func (r *reality) until(end time.Time) {
	r.t.Helper()
	for {
		if err := r.settle(r.t.Context(), r.look); err != nil {
			r.t.Fatal(err)
		}
		if !r.advance(end) {
			r.now = end
			return
		}
	}
}

// look has the clients do what the servers want, and report.
func (r *reality) look(ctx context.Context) error {
	snap := r.log.Store.Snapshot()
	var allocs []*structs.Allocation
	for row := range snap.AllocRows(nil, structs.AllNamespaces) {
		if !row.ClientTerminal() && !r.over[row.ID()] {
			allocs = append(allocs, snap.Alloc(nil, row.ID()))
		}
	}
	slices.SortFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, a := range allocs {
		end, runs := r.ends[a.ID]
		switch {
		case a.ServerTerminal():
			r.over[a.ID] = true
			if _, started := r.runs[a.ID]; !started {
				r.report(a, structs.AllocClientComplete, true)
				continue
			}
			r.moved(a, false)
			r.gone[a.ID] = r.now.Add(a.Job.TaskGroups[0].Tasks[0].KillTimeout)
			r.at(r.now.Add(a.Job.TaskGroups[0].Tasks[0].KillTimeout), func() { r.report(a, structs.AllocClientComplete, true) })
		case a.Suspended() && a.ClientStatus == structs.AllocClientRunning:
			r.ran[a.ID] += r.now.Sub(r.since[a.ID])
			delete(r.ends, a.ID)
			r.moved(a, false)
			r.report(a, structs.AllocClientSuspended, false)
		case a.Suspended():
		case !runs:
			r.begin(a)
		case !end.After(r.now):
			r.over[a.ID] = true
			r.report(a, structs.AllocClientComplete, false)
		}
	}
	return nil
}

// begin starts an allocation, when those are gone that were stopped and have its devices.
func (r *reality) begin(a *structs.Allocation) {
	from := r.now
	for _, o := range r.log.Store.Snapshot().AllocsByNode(nil, a.NodeID) {
		if gone := r.gone[o.ID]; gone.After(from) && !o.ClientTerminal() && overlap(a, o) {
			from = gone
		}
	}
	r.since[a.ID] = from
	took := r.takes(a)
	if took == 0 {
		took = 10 * 365 * 24 * time.Hour
	}
	r.ends[a.ID] = from.Add(took - r.ran[a.ID])
	r.at(from, func() {
		now := r.log.Store.Snapshot().Alloc(nil, a.ID)
		if now.Terminal() || now.Suspended() {
			return
		}
		r.starts[keyOf(a)] = append(r.starts[keyOf(a)], from)
		r.moved(a, true)
		r.stays.Begin(a.Namespace+"/"+a.Name, a.NodeID, from)
		r.report(a, structs.AllocClientRunning, false)
	})
	r.at(r.ends[a.ID], func() {})
}

func keyOf(a *structs.Allocation) groupKey {
	return groupKey{structs.NamespacedID{Namespace: a.Namespace, ID: a.JobID}, a.TaskGroup}
}

// moved records that an instance starts to run, or does so no more though it has not ended.
func (r *reality) moved(a *structs.Allocation, runs bool) {
	if r.runs[a.ID] != runs {
		by := 1
		if !runs {
			by = -1
		}
		r.moves[keyOf(a)] = append(r.moves[keyOf(a)], move{r.now, by})
	}
	r.runs[a.ID] = runs
}

// overlap reports whether two allocations have a device in common.
func overlap(a, b *structs.Allocation) bool {
	has := map[string]bool{}
	for _, d := range a.AllocatedResources.Tasks["t"].Devices {
		for _, id := range d.DeviceIDs {
			has[id] = true
		}
	}
	for _, d := range b.AllocatedResources.Tasks["t"].Devices {
		if slices.ContainsFunc(d.DeviceIDs, func(id string) bool { return has[id] }) {
			return true
		}
	}
	return false
}

func (r *reality) report(a *structs.Allocation, status string, killed bool) {
	task := &structs.TaskState{State: structs.TaskStateRunning, StartedAt: r.since[a.ID]}
	if structs.TerminalClientStatus(status) {
		task.State, task.FinishedAt = structs.TaskStateDead, r.now
		r.stays.End(a.Namespace+"/"+a.Name, r.now)
	}
	if killed {
		task.Events = []*structs.TaskEvent{{Type: structs.TaskKilled}}
	}
	u := &structs.AllocClientUpdate{ID: a.ID, NodeID: a.NodeID, ClientStatus: status, TaskStates: map[string]*structs.TaskState{"t": task}}
	e := &structs.AllocClientEntry{Time: r.now.UnixNano(), Updates: []*structs.AllocClientUpdate{u}}
	snap := r.log.Store.Snapshot()
	job := snap.Job(nil, a.Namespace, a.JobID)
	if trigger := structs.ReportTrigger(job, snap.Alloc(nil, a.ID), u); trigger != "" && trigger != structs.EvalTriggerAllocHealth {
		e.Evals = append(e.Evals, structs.NewEval(r.newID(), job, trigger, e.Time))
	}
	r.put(e)
}

// forecast makes a forecast of the state now.
func (r *reality) forecast(o Options) *structs.Forecast {
	r.t.Helper()
	o.Now = r.now
	f, err := Run(r.t.Context(), r.log.Store, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// gpuNode is a node of two sockets of four GPUs.
func gpuNode(id string) *structs.Node {
	n := testcluster.Node(id, 100_000)
	n.NodePool = structs.NodePoolDefault
	n.NodeResources.Topology = &structs.NodeTopology{}
	group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for s := range 2 {
		at := &structs.TopologyCell{ID: fmt.Sprint("socket-", s), Level: structs.LevelSocket}
		for g := range 4 {
			d := fmt.Sprintf("%s-gpu-%d", id, 4*s+g)
			at.Devices = append(at.Devices, d)
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: d, Healthy: true})
		}
		n.NodeResources.Topology.Cells = append(n.NodeResources.Topology.Cells, at)
	}
	n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
	n.ComputeClass()
	return n
}

// nodes registers so many nodes.
func (r *reality) nodes(n int) {
	r.t.Helper()
	for i := range n {
		r.put(&structs.NodeRegisterEntry{Node: gpuNode(fmt.Sprintf("node-%04d", i)), Time: r.now.UnixNano()})
	}
}

// gpuJob is a job of instances with so many GPUs each, and a time limit; 0: none.
func gpuJob(id string, priority, count, gpus int, limit time.Duration) *structs.Job {
	j := testcluster.Job(id, structs.JobTypeBatch, count)
	j.Priority, j.NodePool = priority, structs.NodePoolDefault
	g := j.TaskGroups[0]
	g.MaxRunDuration = limit
	g.Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}
	return j
}

// started returns when the instances of a group started after a time, in order.
func (r *reality) started(f *structs.RequestForecast, after time.Time) []time.Time {
	all := slices.Clone(r.starts[groupKey{structs.NamespacedID{Namespace: f.Namespace, ID: f.JobID}, f.Group}])
	all = slices.DeleteFunc(all, func(t time.Time) bool { return t.Before(after) })
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// differs returns by how much later than is forecast the first of a group started after a time that waits, and by how much later all ran that wait: those that
// were stopped before that wait again. So many of the group go before. waits, not 0: so many have not started.
func (r *reality) differs(f *structs.RequestForecast, before int, after time.Time) (first, all time.Duration, waits int) {
	waits, started := f.Missing, false
	for _, m := range r.moves[groupKey{structs.NamespacedID{Namespace: f.Namespace, ID: f.JobID}, f.Group}] {
		if m.at.Before(after) || waits == 0 {
			continue
		}
		if m.by > 0 && before > 0 {
			before--
			continue
		}
		if waits -= m.by; m.by > 0 && !started {
			started, first = true, m.at.Sub(time.Unix(0, f.Latest.First))
		}
		all = m.at.Sub(time.Unix(0, f.Latest.All))
	}
	return first, all, waits
}

// goBefore returns how many instances of a request's group are entitled and it is of the others: these start first.
func goBefore(f *structs.Forecast, q *structs.RequestForecast) (n int) {
	for _, o := range f.Requests {
		if o.Entitled && !q.Entitled && o.Namespace == q.Namespace && o.JobID == q.JobID && o.Group == q.Group {
			n += o.Missing
		}
	}
	return n
}
