package nomadish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// oneVersion is a cluster of which all servers know all types of log entries.
type oneVersion struct{}

// Readable implements rpc.Cluster.
func (oneVersion) Readable(structs.LogType) error { return nil }

// Configuration implements rpc.Cluster.
func (oneVersion) Configuration() (*structs.RaftConfigurationReply, error) {
	return &structs.RaftConfigurationReply{}, nil
}

// ownLeader is the leader as the workers of a server call it: that server, while it leads.
type ownLeader struct{ l *virtualLife }

func (o ownLeader) here() error {
	if !o.l.leader.leading() {
		return structs.Errorf(structs.CodeNoLeader, "another server leads")
	}
	return nil
}

// Dequeue implements queue.Leader.
func (o ownLeader) Dequeue(ctx context.Context, schedulers []string, timeout time.Duration) (*structs.EvalDequeueReply, error) {
	if err := o.here(); err != nil {
		return nil, err
	}
	return o.l.leader.broker.Dequeue(ctx, schedulers, timeout)
}

// Ack implements queue.Leader.
func (o ownLeader) Ack(_ context.Context, evalID, token string) error {
	return o.l.leader.broker.Ack(evalID, token)
}

// Nack implements queue.Leader.
func (o ownLeader) Nack(_ context.Context, evalID, token string) error {
	return o.l.leader.broker.Nack(evalID, token)
}

// Submit implements queue.Leader.
func (o ownLeader) Submit(ctx context.Context, p *structs.Plan) (*structs.PlanResult, error) {
	if err := o.here(); err != nil {
		return nil, err
	}
	return o.l.leader.plans.Submit(ctx, p)
}

// Update implements queue.Leader.
func (o ownLeader) Update(ctx context.Context, evalID, token string, evals []*structs.Evaluation) error {
	return o.l.mux.Local(ctx, wire.MethodEvalUpdate, &structs.EvalUpdateRequest{EvalID: evalID, Token: token, Evals: evals}, &structs.WriteReply{})
}

// claimsLog is all that was applied, and checks every state that a server shows.
type claimsLog struct {
	c  *virtualCluster
	mu sync.Mutex
	// logs are the entries by index, as the first that applied each had it.
	logs map[uint64]*raft.Log
	n    int
}

// watchClaims checks every state that a server of a cluster shows, from its start on. Call it before the start.
func watchClaims(c *virtualCluster) *claimsLog {
	w := &claimsLog{c: c, logs: map[uint64]*raft.Log{}}
	c.applied = w.applied
	return w
}

// wholeEach is of how many states one is checked as a whole; of the others only what is owned is.
const wholeEach = 100

func (w *claimsLog) applied(server string, logs []*raft.Log, snap *state.Snapshot) {
	w.mu.Lock()
	for _, l := range logs {
		if w.logs[l.Index] == nil {
			own := *l
			w.logs[l.Index] = &own
		}
	}
	w.n++
	whole := w.n%wholeEach == 0
	w.mu.Unlock()
	w.c.checks.count("states checked")
	if err := snap.World().CheckClaims(); err != nil {
		w.c.checks.fail("the claims of a state: %s at index %d: %v", server, snap.Index(), err)
	}
	if !whole {
		return
	}
	w.c.inOrder(server, snap)
	views := scheduler.ClaimViews(snap.World(), "", false)
	for v := range snap.VirtualClusters(nil).List("", false) {
		s := snap.VirtualClusters(nil).Status(v, views)
		w.c.checks.count("GPUs used by claims", s.GuaranteedGPUs)
		w.c.checks.count("GPUs used without", s.OpportunisticGPUs)
	}
}

// inOrder has the checker that operators run look at a state.
func (c *virtualCluster) inOrder(server string, snap *state.Snapshot) {
	report, err := check.Run(context.Background(), snap, check.Options{})
	if err != nil {
		c.checks.fail("check the state of %s: %v", server, err)
		return
	}
	for _, f := range report.Faults {
		c.checks.fail("a state is out of order: %s at index %d: %s: %s %s: %s", server, snap.Index(), f.Rule, f.Kind, f.ID, f.What)
	}
}

// replayed returns the state to which all entries lead that were applied up to an index.
func (w *claimsLog) replayed(to uint64) *state.Snapshot {
	o := w.c.servers[0].cfg
	store, writer := state.New(state.Options{EventBuffer: o.State.EventBuffer, HistoryMax: o.State.HistoryMax, JobVersions: o.State.JobVersions})
	m := fsm.New(writer, store, o.Logger)
	w.mu.Lock()
	defer w.mu.Unlock()
	for index := uint64(1); index <= to; index++ {
		l := w.logs[index]
		if l == nil {
			l = &raft.Log{Index: index, Type: raft.LogNoop} // Raft's own entries do not come to the state
		}
		m.Apply(l)
	}
	return store.Snapshot()
}

// sameEverywhere requires that all servers have the state that the log leads to.
func (w *claimsLog) sameEverywhere() *state.Snapshot {
	w.c.settleAlike()
	var snap *state.Snapshot
	for _, s := range w.c.servers {
		s.use(func(l *virtualLife) {
			snap = l.store.Snapshot()
			if again := w.replayed(snap.Index()); again.Hash() != snap.Hash() {
				w.c.checks.fail("%s has another state at index %d than its log leads to", s.cfg.Name, snap.Index())
			}
		})
	}
	return snap
}

// callLeader calls whoever leads until it answers, and returns that and how often it is not known whether an earlier call was heeded.
func (c *virtualCluster) callLeader(method string, args, reply any) (open int, err error) {
	for began := time.Now(); time.Since(began) < mended; time.Sleep(20 * time.Millisecond) {
		for _, s := range c.servers {
			called := false
			s.use(func(l *virtualLife) {
				if !l.leader.leading() {
					return
				}
				called = true
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				err = l.mux.Local(ctx, method, args, reply)
			})
			switch code := structs.CodeOf(err); {
			case !called:
			case err == nil || code == structs.CodeConflict || code == structs.CodeBadRequest || code == structs.CodeNotFound || code == structs.CodeTooLarge:
				return open, err
			default:
				open++
			}
		}
	}
	return open, fmt.Errorf("%s: nobody answers: %w", method, err)
}

// kill ends whoever leads at once, and starts it again after a time.
func (c *virtualCluster) kill(down time.Duration) {
	at := c.leads()
	c.stop(at, true)
	c.checks.count("leaders killed")
	time.Sleep(down)
	c.start(at)
}

// addTenants makes GPU nodes and namespaces, and waits for a cluster to have them.
func (c *virtualCluster) addTenants(nodes int, names ...string) {
	c.t.Helper()
	for i := range nodes {
		n := gpuNode(i)
		c.servers[c.leads()].use(func(l *virtualLife) {
			_, err := l.Apply(context.Background(), structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: n, Time: time.Now().UnixNano(), EvalSeed: NewID()})
			c.must(err)
		})
	}
	for _, name := range names {
		_, err := c.callLeader(wire.MethodNamespaceUpsert, &structs.NamespaceUpsertRequest{Definition: &structs.Namespace{Name: name}}, &structs.WriteReply{})
		c.must(err)
	}
}

// gpuNode is a node of 2 PCIe switches × 2 GPUs.
func gpuNode(i int) *structs.Node {
	n := node(i)
	n.Status, n.SchedulingEligibility = structs.NodeStatusReady, structs.NodeEligible
	group, tree := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}, &structs.NodeTopology{}
	for p := range 2 {
		at := &structs.TopologyCell{ID: fmt.Sprint("pcie-", p), Level: structs.LevelPCIe}
		for g := range 2 {
			id := fmt.Sprintf("%s-gpu-%d", n.Name, 2*p+g)
			at.Devices = append(at.Devices, id)
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: id, Healthy: true})
		}
		tree.Cells = append(tree.Cells, at)
	}
	n.NodeResources.Devices, n.NodeResources.Topology = []*structs.NodeDeviceResource{group}, tree
	n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB = 1_000_000, 1_000_000
	return n
}

// gpuJob requests a number of GPUs for each of its instances.
func gpuJob(namespace, id string, count, gpus int) *structs.Job {
	j := batchJob(id, count)
	j.Namespace = namespace
	if gpus > 0 {
		j.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: gpus}}
	}
	j.Canonicalize()
	return j
}

// ownedNow describes what namespaces have: cells by level, points, changes to come, GPUs in guaranteed use and in other use.
func ownedNow(snap *state.Snapshot) string {
	var out strings.Builder
	views := scheduler.ClaimViews(snap.World(), "", false)
	for v := range snap.VirtualClusters(nil).List("", false) {
		s := snap.VirtualClusters(nil).Status(v, views)
		fmt.Fprintf(&out, "%s: %d points, GPUs %d guaranteed, %d not;", v.Name, v.Points, s.GuaranteedGPUs, s.OpportunisticGPUs)
		for _, c := range s.Cells {
			fmt.Fprintf(&out, " %s %d given %d won %d offered %d bound;", c.Level, c.Given, c.Won, c.Offered, c.Bound)
		}
		fmt.Fprintf(&out, " %d changes\n", len(v.Changes))
	}
	fmt.Fprintf(&out, "%d offers and bids\n", len(slices.Collect(snap.VirtualClusters(nil).Exchanges())))
	return out.String()
}
