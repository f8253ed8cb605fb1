package node

import (
	"context"
	"crypto/subtle"
	"net"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// authentic checks a node's secret. A node that is not known yet has none to check.
func (e *Endpoint) authentic(id, secret string) (*structs.Node, error) {
	node, err := e.Router.Node(id)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(node.SecretID), []byte(secret)) != 1 {
		if e.logLimit.AllowOf("secret", id, e.Now()) {
			e.Logger.Warn("refused a call in the name of a node: its secret does not match; more for this node are not logged for an hour",
				"node_id", id, "node", node.Name)
		}
		return nil, structs.Errorf(structs.CodeForbidden, "node %s: its secret does not match", id).
			WithHint("another machine uses this node's ID; remove its client state directory so that it gets a new one")
	}
	return node, nil
}

func (e *Endpoint) register(ctx context.Context, args *structs.NodeRegisterRequest) (*structs.NodeUpdateReply, error) {
	node := args.Node
	if err := checkNode(node); err != nil {
		return nil, err
	}
	if err := args.GossipKeys.CheckLimits(); err != nil {
		return nil, err
	}
	node.CutTexts()
	node.Events, node.LastDrain = nil, nil // the servers' own
	old := e.Router.Snapshot().Node(nil, node.ID)
	if old != nil {
		if _, err := e.authentic(node.ID, node.SecretID); err != nil {
			return nil, err
		}
	}
	if node.Datacenter == "" {
		node.Datacenter = e.Datacenter
	}
	if node.NodePool == "" {
		node.NodePool = structs.NodePoolDefault
	}
	if node.SchedulingEligibility == "" {
		node.SchedulingEligibility = structs.NodeEligible
	}
	now := e.Now()
	node.StatusUpdatedAt = now.Unix()
	node.ComputeClass()
	entry := &structs.NodeRegisterEntry{Node: node, Time: now.UnixNano(), EvalSeed: e.NewID()}
	switch {
	case old == nil:
		entry.Event = event("Cluster", "Node registered", now)
	case old.Status != node.Status:
		entry.Event = event("Cluster", "Node re-registered", now)
	}
	if err := e.makeNodePool(ctx, node.NodePool); err != nil {
		return nil, err
	}
	index, err := e.applyBounded(ctx, structs.LogNodeRegister, entry)
	if err != nil {
		return nil, err
	}
	if err := e.makeNodePool(ctx, node.NodePool); err != nil { // it was deleted before the node was in it
		return nil, err
	}
	return e.nodeReply(node.ID, index, args.GossipKeys), nil
}

// applyBounded commits what a node reports about itself, of few nodes at once. The nodes of a large cluster come all together when its
// servers were away, and go together. Who has given up by the time that it is its turn comes again, and must not have cost a log
// entry: else those that wait grow by each round, and none is answered in time.
func (e *Endpoint) applyBounded(ctx context.Context, t structs.LogType, entry any) (uint64, error) {
	select {
	case e.registering <- struct{}{}:
		defer func() { <-e.registering }()
		return e.Applier.Apply(ctx, t, entry)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func event(subsystem, message string, now time.Time) *structs.NodeEvent {
	return &structs.NodeEvent{Subsystem: subsystem, Message: message, Timestamp: now}
}

// nodeReply returns when the node's next heartbeat is due and which servers it can reach.
func (e *Endpoint) nodeReply(id string, index uint64, has *structs.GossipKeys) *structs.NodeUpdateReply {
	reply := &structs.NodeUpdateReply{
		HeartbeatTTL: e.Heartbeats.Beat(id), NodeModifyIndex: index, EvalCreateIndex: index,
		LeaderRPCAddr: e.Router.Leadership.Leader().Addr, Registered: true, WriteMeta: structs.WriteMeta{Index: index},
	}
	reply.Servers = e.Router.Reachable()
	if e.Gossip != nil {
		reply.Gossip = e.Gossip.Contacts(id, has)
	}
	return reply
}

// heartbeat keeps a node up. Nothing is written unless its status moves.
func (e *Endpoint) heartbeat(ctx context.Context, args *structs.NodeHeartbeatRequest) (*structs.NodeUpdateReply, error) {
	if e.Router.Snapshot().Node(nil, args.NodeID) == nil {
		return &structs.NodeUpdateReply{Registered: false}, nil
	}
	node, err := e.authentic(args.NodeID, args.SecretID)
	if err != nil {
		return nil, err
	}
	if err := args.GossipKeys.CheckLimits(); err != nil {
		return nil, err
	}
	index := node.ModifyIndex
	status := args.Status
	if status == "" {
		status = structs.NodeStatusReady
	}
	if status != structs.NodeStatusReady && status != structs.NodeStatusInit && status != structs.NodeStatusDown {
		return nil, structs.Errorf(structs.CodeBadRequest, "node %s: status %q: a node may call itself %q, %q or %q", node.ID, structs.CutText(status, rpc.MaxNamed),
			structs.NodeStatusInit, structs.NodeStatusReady, structs.NodeStatusDown)
	}
	if node.Status != status {
		if err := e.chargeNode(node.ID, statusCost); err != nil {
			return nil, err
		}
		now := e.Now()
		entry := &structs.NodeStatusEntry{
			NodeIDs: []string{node.ID}, Status: status, Time: now.UnixNano(), EvalSeed: e.NewID(),
		}
		if node.Status == structs.NodeStatusDown || node.Status == structs.NodeStatusDisconnected {
			entry.Event = event("Cluster", "Node heartbeats again", now)
		}
		if index, err = e.applyBounded(ctx, structs.LogNodeStatus, entry); err != nil {
			return nil, err
		}
	}
	return e.nodeReply(node.ID, index, args.GossipKeys), nil
}

func (e *Endpoint) get(ctx context.Context, args *structs.IDRequest) (*structs.NodeReply, error) {
	if err := rpc.CheckUUID("node", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.NodeReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		node := snap.Node(ws, args.ID)
		if node == nil {
			reply.Node = nil
			return snap.TableIndex(state.TableNodes), nil
		}
		reply.Node = node.Sanitize()
		return node.ModifyIndex, nil
	})
}

func (e *Endpoint) list(ctx context.Context, args *structs.ListRequest) (*structs.NodeListReply, error) {
	reply := &structs.NodeListReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		var err error
		reply.Nodes, err = pageNodes(args, &reply.QueryMeta, snap.Nodes(ws, args.Prefix, args.Reverse), structs.NodePoolAll)
		return snap.TableIndex(state.TableNodes), err
	})
}

func nodeStub(n *structs.Node, fields map[string]bool) *structs.NodeListStub {
	address, _, err := net.SplitHostPort(n.HTTPAddr)
	if err != nil {
		address = n.HTTPAddr
	}
	s := &structs.NodeListStub{
		Address: address, ID: n.ID, Datacenter: n.Datacenter, Name: n.Name, NodeClass: n.NodeClass, NodePool: n.NodePool,
		Version: n.Attributes["nomad.version"], Drain: n.DrainStrategy != nil, SchedulingEligibility: n.SchedulingEligibility,
		Status: n.Status, StatusDescription: n.StatusDescription, Drivers: n.Drivers, HostVolumes: n.HostVolumes, LastDrain: n.LastDrain,
		CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	if fields["resources"] {
		s.NodeResources, s.ReservedResources = n.NodeResources, n.ReservedResources
	}
	if fields["os"] {
		s.Attributes = map[string]string{"os.name": n.Attributes["os.name"]}
	}
	return s
}

func (e *Endpoint) allocs(ctx context.Context, args *structs.IDRequest) (*structs.AllocsReply, error) {
	if err := rpc.CheckUUID("node", args.ID); err != nil {
		return nil, err
	}
	reply := &structs.AllocsReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		reply.Allocs = snap.AllocsByNode(ws, args.ID)
		if reply.Allocs == nil {
			reply.Allocs = []*structs.Allocation{}
		}
		for _, a := range reply.Allocs {
			rpc.ShowNetwork(snap, a)
		}
		return rpc.AllocsIndex(snap, reply.Allocs), nil
	})
}

func (e *Endpoint) drain(ctx context.Context, args *structs.NodeDrainRequest) (*structs.NodeUpdateReply, error) {
	node, err := e.Router.Node(args.NodeID)
	if err != nil {
		return nil, err
	}
	if err := rpc.CheckMeta(args.Meta); err != nil {
		return nil, err
	}
	now := e.Now()
	entry := &structs.NodeDrainEntry{
		NodeID: node.ID, MarkEligible: args.MarkEligible, Meta: args.Meta, Time: now.UnixNano(), EvalSeed: e.NewID(),
	}
	switch {
	case args.DrainSpec != nil:
		entry.Strategy = &structs.DrainStrategy{DrainSpec: *args.DrainSpec, StartedAt: now}
		if node.DrainStrategy != nil {
			entry.Strategy.StartedAt = node.DrainStrategy.StartedAt
		}
		if args.DrainSpec.Deadline > 0 {
			entry.Strategy.ForceDeadline = now.Add(args.DrainSpec.Deadline)
		}
		entry.Status = "draining"
		entry.Event = event("Drain", "Node drain strategy set", now)
	case node.DrainStrategy == nil && !args.MarkEligible:
		return e.drainReply(node.ModifyIndex, ""), nil
	default:
		entry.Status = "canceled"
		entry.Event = event("Drain", "Node drain disabled", now)
	}
	index, err := e.Applier.Apply(ctx, structs.LogNodeDrain, entry)
	if err != nil {
		return nil, err
	}
	return e.drainReply(index, entry.EvalSeed), nil
}

// drainReply answers an operator, who is no heartbeat of the node. seed is what the
// entry's evaluations have their IDs from: a worker may have ended them by now.
func (e *Endpoint) drainReply(index uint64, seed string) *structs.NodeUpdateReply {
	reply := &structs.NodeUpdateReply{NodeModifyIndex: index, EvalCreateIndex: index, Registered: true, WriteMeta: structs.WriteMeta{Index: index}}
	if seed == "" {
		return reply
	}
	snap := e.Router.Snapshot()
	for i := uint64(0); ; i++ {
		id := structs.DeriveID(seed, i)
		if snap.Eval(nil, id) == nil {
			break
		}
		reply.EvalIDs = append(reply.EvalIDs, id)
	}
	return reply
}

func (e *Endpoint) eligibility(ctx context.Context, args *structs.NodeEligibilityRequest) (*structs.NodeUpdateReply, error) {
	node, err := e.Router.Node(args.NodeID)
	if err != nil {
		return nil, err
	}
	if args.Eligibility != structs.NodeEligible && args.Eligibility != structs.NodeIneligible {
		return nil, structs.Errorf(structs.CodeBadRequest, "eligibility %q: allowed are %q and %q", args.Eligibility,
			structs.NodeEligible, structs.NodeIneligible)
	}
	if args.Eligibility == structs.NodeEligible && node.DrainStrategy != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "node %s is draining: it cannot be made eligible", node.ID).
			WithHint("`node drain -disable` ends the drain")
	}
	if node.SchedulingEligibility == args.Eligibility {
		return e.drainReply(node.ModifyIndex, ""), nil
	}
	now := e.Now()
	entry := &structs.NodeEligibilityEntry{
		NodeID: node.ID, Eligibility: args.Eligibility, Time: now.UnixNano(), EvalSeed: e.NewID(),
		Event: event("Cluster", "Node marked as "+args.Eligibility+" for scheduling", now),
	}
	index, err := e.Applier.Apply(ctx, structs.LogNodeEligibility, entry)
	if err != nil {
		return nil, err
	}
	return e.drainReply(index, entry.EvalSeed), nil
}

func (e *Endpoint) purge(ctx context.Context, args *structs.NodeRequest) (*structs.NodeUpdateReply, error) {
	node, err := e.Router.Node(args.NodeID)
	if err != nil {
		return nil, err
	}
	entry := &structs.NodeDeregisterEntry{NodeIDs: []string{node.ID}, Time: e.Now().UnixNano(), EvalSeed: e.NewID()}
	index, err := e.Applier.Apply(ctx, structs.LogNodeDeregister, entry)
	if err != nil {
		return nil, err
	}
	return e.drainReply(index, entry.EvalSeed), nil
}

func (e *Endpoint) evaluate(ctx context.Context, args *structs.NodeRequest) (*structs.NodeUpdateReply, error) {
	node, err := e.Router.Node(args.NodeID)
	if err != nil {
		return nil, err
	}
	snap := e.Router.Snapshot()
	now := e.Now().UnixNano()
	entry := &structs.EvalUpsertEntry{Time: now}
	seen := map[structs.NamespacedID]bool{}
	for _, a := range snap.AllocsByNode(nil, node.ID) {
		id := structs.NamespacedID{ID: a.JobID, Namespace: a.Namespace}
		job := snap.Job(nil, a.Namespace, a.JobID)
		if seen[id] || job == nil {
			continue
		}
		seen[id] = true
		ev := structs.NewEval(e.NewID(), job, structs.EvalTriggerNodeUpdate, now)
		ev.NodeID, ev.NodeModifyIndex = node.ID, node.ModifyIndex
		entry.Evals = append(entry.Evals, ev)
	}
	if len(entry.Evals) == 0 {
		return e.drainReply(node.ModifyIndex, ""), nil
	}
	index, err := e.Applier.Apply(ctx, structs.LogEvalUpsert, entry)
	if err != nil {
		return nil, err
	}
	reply := e.drainReply(index, "")
	for _, ev := range entry.Evals {
		reply.EvalIDs = append(reply.EvalIDs, ev.ID)
	}
	return reply, nil
}

// clientAllocs returns what a node shall run: all by their index, whole what
// the servers changed since the index that it knows.
func (e *Endpoint) clientAllocs(ctx context.Context, args *structs.ClientAllocsRequest) (*structs.ClientAllocsReply, error) {
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return nil, err
	}
	reply := &structs.ClientAllocsReply{}
	err := e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		return snap.NodeAllocsIndex(ws, args.NodeID), nil
	})
	if err != nil {
		return reply, err
	}
	// Looked at anew, because a waiting call must not keep what was read before: the states of 50,000 waiting nodes are as
	// many different ones.
	snap := e.Router.Snapshot()
	reply.Index = max(snap.NodeAllocsIndex(nil, args.NodeID), 1, snap.Restored())
	fillClientAllocs(reply, snap, args)
	if 0 < args.MinQueryIndex && args.MinQueryIndex < snap.Restored() {
		// All may be other than it was, with indexes of before: an answer without progress has
		// the client request everything.
		reply.Index = args.MinQueryIndex
	}
	return reply, nil
}

// fillClientAllocs fills a node's answer, which contains each version of a job once.
func fillClientAllocs(reply *structs.ClientAllocsReply, snap *state.Snapshot, args *structs.ClientAllocsRequest) {
	all, changed := snap.NodeAllocsSince(args.NodeID, args.MinQueryIndex)
	reply.Allocs = all
	jobs := map[*structs.Job]bool{}
	for _, a := range changed {
		if job := a.Job; job != nil && !jobs[job] {
			jobs[job] = true
			reply.Jobs = append(reply.Jobs, job)
		}
		a.Job = nil
		a.Metrics = nil // how its node was chosen is nothing that the node needs, and half of the answer
		reply.Changed = append(reply.Changed, a)
	}
}

// updateAllocs takes clients' reports. What ends or turns healthy may need a
// look at its job: the evaluations for that are minted here.
func (e *Endpoint) updateAllocs(ctx context.Context, args *structs.ClientUpdateRequest) (*structs.WriteReply, error) {
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return nil, err
	}
	if len(args.Updates) > structs.MaxReportAllocs {
		return nil, structs.Errorf(structs.CodeBadRequest, "node %s: a report of %d allocations, at most %d are allowed", args.NodeID, len(args.Updates), structs.MaxReportAllocs)
	}
	snap, err := e.asFarAs(ctx, args.KnownIndex)
	if err != nil {
		return nil, err
	}
	now := e.Now().UnixNano()
	entry := &structs.AllocClientEntry{Time: now}
	seen := map[structs.NamespacedID]bool{}
	for _, u := range args.Updates {
		if u == nil {
			continue
		}
		row := snap.AllocRow(u.ID)
		if row == nil {
			continue // collected meanwhile
		}
		if row.NodeID() != args.NodeID {
			return nil, structs.Errorf(structs.CodeForbidden, "node %s: allocation %s is not on it", args.NodeID, u.ID)
		}
		if u, err = checkReport(snap, row, u); err != nil {
			return nil, err
		}
		u.NodeID, u.ModifyTime = args.NodeID, now
		entry.Updates = append(entry.Updates, u)
		id := row.JobID()
		if runs(row.ClientStatus(), u) || seen[id] {
			continue
		}
		job := snap.Job(nil, id.Namespace, id.ID)
		if job == nil || job.Stop {
			continue
		}
		trigger := structs.ReportTrigger(job, snap.AllocToDecide(u.ID), u)
		if trigger == "" || trigger == structs.EvalTriggerAllocHealth && *u.DeploymentStatus.Healthy && !snap.OlderWait(job) {
			continue // nothing waits for one more to be well
		}
		seen[id] = true
		entry.Evals = append(entry.Evals, structs.NewEval(e.NewID(), job, trigger, now))
	}
	if len(entry.Updates) == 0 {
		return &structs.WriteReply{}, nil
	}
	index, err := e.reports.commit(ctx, e.Applier, entry)
	if err != nil {
		return nil, err
	}
	return &structs.WriteReply{WriteMeta: structs.WriteMeta{Index: index}}, nil
}

// reportWait bounds how long a report waits for what it is about.
const reportWait = 5 * time.Second

// asFarAs returns the state with all that has been sent to a node. A follower that has applied an entry before the leader informs nodes of
// an allocation that the leader does not know yet: its report must not be taken for one of something that was collected.
func (e *Endpoint) asFarAs(ctx context.Context, index uint64) (*state.Snapshot, error) {
	if snap := e.Router.Snapshot(); snap.Index() >= index {
		return snap, nil
	}
	waits, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	snap, err := e.Router.Store.WaitIndex(waits, index)
	switch {
	case err == nil:
		return snap, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return e.Router.Snapshot(), nil // a server whose state was set back will not come as far
}

// runs reports whether a report states no more than that an allocation runs, as most do: structs.ReportTrigger need not look at it.
func runs(was string, now *structs.AllocClientUpdate) bool {
	return now.ClientStatus == structs.AllocClientRunning && was != structs.AllocClientSuspended &&
		(now.DeploymentStatus == nil || now.DeploymentStatus.Healthy == nil)
}

func (e *Endpoint) events(ctx context.Context, args *structs.NodeEventsRequest) (*structs.WriteReply, error) {
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return nil, err
	}
	if err := structs.CheckNodeEvents(args.Events); err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "node %s: %w", args.NodeID, err)
	}
	args.Events = structs.CutNodeEvents(args.Events)
	return rpc.Applied(ctx, e.Applier, structs.LogNodeEvents, &structs.NodeEventsEntry{Events: map[string][]*structs.NodeEvent{args.NodeID: args.Events}})
}

// hello registers the session that it comes over as the node's. The node has
// registered; that may still be on its way here. A call is only ever passed to a node
// whose hello carried the stored secret.
func (e *Endpoint) hello(ctx context.Context, call *wire.Call) error {
	var args structs.NodeHeartbeatRequest
	if err := call.Args(&args); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: %w", call.Method, err)
	}
	if call.Session == nil {
		return structs.Errorf(structs.CodeBadRequest, "%s: comes over a session only", call.Method)
	}
	if !e.Router.Leadership.IsLeader() {
		e.Router.Await(ctx, func(ws *state.WatchSet, snap *state.Snapshot) bool { return snap.Node(ws, args.NodeID) != nil })
	}
	if _, err := e.authentic(args.NodeID, args.SecretID); err != nil {
		return err
	}
	e.Router.Sessions.Put(args.NodeID, call.Session)
	return call.Send(&structs.WriteReply{})
}
