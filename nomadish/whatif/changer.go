package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/wire"
	jobendpoint "github.com/nomadish/nomadish/nomadish/endpoint/job"
	nodeendpoint "github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/endpoint/operator"
	"github.com/nomadish/nomadish/nomadish/endpoint/project"
	"github.com/nomadish/nomadish/nomadish/endpoint/virtualcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/workflow"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// Rules are those of the servers that changes have to keep.
type Rules struct {
	Region   string // empty: global
	Jobs     jobendpoint.Config
	Nodes    nodeendpoint.Config
	Identity *identity.Source // nil: no request states a user
	// Cluster is the servers, of which some may not know what a change needs; nil: all know everything.
	Cluster rpc.Cluster
}

// Changer makes changes by the endpoints that make them in earnest.
type Changer struct {
	region string
	store  *state.Store
	apply  rpc.Applier
	mux    *wire.Mux
	newID  func() string
	now    func() time.Time
	added  int // nodes
	bytes  int // of those
}

// NewChanger returns a changer of a state, whose entries apply applies before it returns.
func NewChanger(store *state.Store, apply rpc.Applier, now func() time.Time, newID func() string, r Rules) *Changer {
	if r.Region == "" {
		r.Region = structs.DefaultRegion
	}
	if r.Cluster == nil {
		r.Cluster = alone{}
	}
	silent := hclog.NewNullLogger()
	c := &Changer{region: r.Region, store: store, apply: apply, mux: wire.NewMux(silent, 0), newID: newID, now: now}
	router := rpc.New(rpc.Config{Region: r.Region, Hold: 1}, rpc.Deps{Store: store, Leadership: alone{}, Cluster: r.Cluster, Gossip: alone{}, Logger: silent})
	parts := rpc.Parts{Router: router, Applier: apply, NewID: newID, Now: now}
	rpc.Register(c.mux,
		jobendpoint.New(r.Jobs, jobendpoint.Deps{Parts: parts, Self: c.mux.Local, Typical: worker.LearnOnce().For, Identity: r.Identity}),
		nodeendpoint.New(r.Nodes, nodeendpoint.Deps{Parts: parts, Heartbeats: alone{}, Logger: silent}),
		operator.New(operator.Deps{Router: router, Applier: apply, Now: now}),
		virtualcluster.New(parts),
		project.New(project.Deps{Parts: parts, Identity: r.Identity}),
		workflow.New(workflow.Deps{Parts: parts, Self: c.mux.Local, Identity: r.Identity}),
	)
	return c
}

// Make makes a change. The error is the one that refuses it when it is applied in earnest.
func (c *Changer) Make(ctx context.Context, ch *structs.WhatIfChange) (warnings string, err error) {
	write := structs.WriteRequest{Region: c.region, User: ch.User}
	call := func(method string, args any) (string, error) {
		var reply structs.WriteReply
		return "", c.mux.Local(ctx, method, args, &reply)
	}
	cas, index := checked(ch)
	switch {
	case ch.Job != nil:
		return c.job(ctx, ch, write)
	case ch.VirtualCluster != nil:
		return call(wire.MethodVirtualClusterUpsert, &structs.VirtualClusterUpsertRequest{VirtualCluster: ch.VirtualCluster, WhenFree: ch.WhenFree, CAS: cas, CheckIndex: index, WriteRequest: write})
	case ch.Project != nil:
		return call(wire.MethodProjectUpsert, &structs.ProjectUpsertRequest{Project: ch.Project, Force: ch.Force, CAS: cas, CheckIndex: index, WriteRequest: write})
	case ch.Week != nil:
		w := ch.Week
		return call(wire.MethodProjectCalendarEdit, &structs.ProjectCalendarRequest{Project: w.Project, Week: w.Week, Rows: w.Rows, Force: ch.Force, WriteRequest: write})
	case ch.Flow != nil:
		return call(wire.MethodFlowUpsert, &structs.FlowUpsertRequest{Flow: ch.Flow, CAS: cas, CheckIndex: index, WriteRequest: write})
	case ch.Workflow != nil:
		var reply structs.WorkflowRunReply
		err := c.mux.Local(ctx, wire.MethodWorkflowRun, &structs.WorkflowRunRequest{Workflow: ch.Workflow, CAS: cas, CheckIndex: index, WriteRequest: write}, &reply)
		return reply.Warnings, err
	case ch.AddNodes != nil:
		return "", c.addNodes(ctx, ch.AddNodes)
	case ch.Drain != nil:
		return "", c.drain(ctx, ch.Drain, write)
	case ch.Lose != "":
		return "", c.lose(ctx, ch.Lose)
	case ch.Scheduler != nil:
		return "", c.configure(ctx, ch, write)
	}
	return "", structs.Errorf(structs.CodeBadRequest, "the change states nothing that is to be changed")
}

// checked returns at which index what a change changes must have been changed last; false: at any.
func checked(ch *structs.WhatIfChange) (cas bool, index uint64) {
	if ch.CheckIndex == nil {
		return false, 0
	}
	return true, *ch.CheckIndex
}

// configure replaces the scheduler's configuration.
func (c *Changer) configure(ctx context.Context, ch *structs.WhatIfChange, write structs.WriteRequest) error {
	req := &structs.SchedulerConfigRequest{Config: *ch.Scheduler, Absent: ch.Absent, WriteRequest: write}
	if cas, index := checked(ch); cas {
		req.CAS, req.Config.ModifyIndex = true, index
	}
	var reply structs.SchedulerSetReply
	if err := c.mux.Local(ctx, wire.MethodSchedulerSet, req, &reply); err != nil || reply.Updated {
		return err
	}
	return structs.Errorf(structs.CodeConflict, "%s", structs.SchedulerConfigChanged)
}

// job registers a job, in this region alone.
func (c *Changer) job(ctx context.Context, ch *structs.WhatIfChange, write structs.WriteRequest) (string, error) {
	job := ch.Job
	if job.Multiregion != nil {
		if job = job.InRegion(c.region); job == nil {
			return "", structs.Errorf(structs.CodeBadRequest, "job %q: it does not run in region %q", ch.Job.ID, c.region).
				WithHint("name one of its own: %s", strings.Join(ch.Job.RegionNames(), ", "))
		}
	}
	var reply structs.JobRegisterReply
	write.Namespace = job.Namespace
	req := &structs.JobRegisterRequest{Job: job, Opportunistic: ch.Opportunistic, WriteRequest: write}
	req.EnforceIndex, req.JobModifyIndex = checked(ch)
	err := c.mux.Local(ctx, wire.MethodJobRegister, req, &reply)
	return reply.Warnings, err
}

// node returns a node by its ID, the beginning of that, or its name.
func (c *Changer) node(name string) (*structs.Node, error) {
	snap := c.store.Snapshot()
	if n := snap.Node(nil, name); n != nil {
		return n, nil
	}
	var found []*structs.Node
	for n := range snap.Nodes(nil, "", false) {
		if n.Name == name {
			found = append(found, n)
		}
	}
	if len(found) == 0 && len(name) >= minPrefix {
		for n := range snap.Nodes(nil, name, false) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, structs.Errorf(structs.CodeBadRequest, "node %q: %d nodes are called so or have such an ID, the first are %s and %s", name, len(found), found[0].ID, found[1].ID).
			WithHint("name one by its ID")
	}
	return nil, structs.Errorf(structs.CodeNotFound, "node %q: not found", structs.Clip(name, structs.MaxUserBytes)).WithHint("`nomadish node status` lists the nodes")
}

// minPrefix is how many characters of an ID name a node at least.
const minPrefix = 4

func (c *Changer) drain(ctx context.Context, d *structs.WhatIfDrain, write structs.WriteRequest) error {
	n, err := c.node(d.Node)
	if err != nil {
		return err
	}
	spec := d.DrainSpec
	var reply structs.NodeUpdateReply
	return c.mux.Local(ctx, wire.MethodNodeDrain, &structs.NodeDrainRequest{NodeID: n.ID, DrainSpec: &spec, WriteRequest: write}, &reply)
}

// lose has a node be down, as if nobody heard it any more.
func (c *Changer) lose(ctx context.Context, name string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	now := c.now()
	_, err = c.apply.Apply(ctx, structs.LogNodeStatus, &structs.NodeStatusEntry{
		NodeIDs: []string{n.ID}, Status: structs.NodeStatusDown, Time: now.UnixNano(), EvalSeed: c.newID(),
		Event: &structs.NodeEvent{Subsystem: "Cluster", Message: "Node is lost", Timestamp: now},
	})
	return err
}

// addNodes registers nodes that are like one that there is, or like the one that is stated.
func (c *Changer) addNodes(ctx context.Context, add *structs.WhatIfNodes) error {
	if add.Count < 1 || add.Count > structs.MaxWhatIfNodes {
		return structs.Errorf(structs.CodeBadRequest, "add nodes: count %d: must be 1 to %d", add.Count, structs.MaxWhatIfNodes)
	}
	if (add.Like == "") == (add.Node == nil) {
		return structs.Errorf(structs.CodeBadRequest, "add nodes: one of Like and Node states what the nodes are like")
	}
	model := add.Node
	if add.Like != "" {
		var err error
		if model, err = c.node(add.Like); err != nil {
			return err
		}
	}
	if add.Node != nil {
		c.equip(model)
	}
	raw, err := codec.Encode(model) // the state's own is never changed, and Copy shares what is in it
	if err != nil {
		return structs.Errorf(structs.CodeInternal, "copy node %q: %w", model.Name, err)
	}
	if c.bytes += add.Count * len(raw); c.bytes > structs.MaxWhatIfNodeBytes {
		return structs.Errorf(structs.CodeBadRequest, "add nodes: those that are added have %d bytes in all: at most %d are allowed", c.bytes, structs.MaxWhatIfNodeBytes)
	}
	for range add.Count {
		c.added++
		var reply structs.NodeUpdateReply
		n, err := another(raw, fmt.Sprintf("%s-new-%d", model.Name, c.added), c.newID())
		if err != nil {
			return err
		}
		if err := c.mux.Local(ctx, wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: n, WriteRequest: structs.WriteRequest{Region: c.region}}, &reply); err != nil {
			return err
		}
	}
	return nil
}

// equip gives a node the drivers of a node of the cluster, of its pool if it can be: a shape states none.
func (c *Changer) equip(n *structs.Node) {
	var like *structs.Node
	for o := range c.store.Snapshot().Nodes(nil, "", false) {
		if like == nil || o.NodePool == n.NodePool && like.NodePool != n.NodePool {
			like = o
		}
	}
	if like == nil {
		return
	}
	n.Drivers = maps.Clone(like.Drivers)
	n.Attributes = maps.Clone(n.Attributes)
	if n.Attributes == nil {
		n.Attributes = map[string]string{}
	}
	for name, value := range like.Attributes { // each by itself: the order cannot show
		if strings.HasPrefix(name, "driver.") {
			n.Attributes[name] = value
		}
	}
}

// another returns a node that is like an encoded one, with a name and an ID of its own, and so its devices.
func another(raw []byte, name, id string) (*structs.Node, error) {
	n := &structs.Node{}
	if err := codec.Decode(raw, n); err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "copy node %q: %w", name, err)
	}
	n.ID, n.Name, n.SecretID = id, name, id
	n.Status, n.StatusDescription, n.SchedulingEligibility = structs.NodeStatusReady, "", structs.NodeEligible
	n.DrainStrategy, n.LastDrain, n.Events, n.KeptUntil = nil, nil, nil, 0
	n.CreateIndex, n.ModifyIndex = 0, 0
	r := n.NodeResources
	if r == nil {
		return n, nil
	}
	called := map[string]string{}
	for _, group := range r.Devices {
		if group == nil {
			continue
		}
		for _, d := range group.Instances {
			if d != nil {
				called[d.ID] = fmt.Sprintf("%s-device-%d", name, len(called))
				d.ID, d.Healthy, d.HealthDescription = called[d.ID], true, ""
			}
		}
	}
	if t := r.Topology; t != nil {
		for _, cell := range t.Cells {
			if cell == nil {
				continue
			}
			for i, d := range cell.Devices {
				cell.Devices[i] = cmp.Or(called[d], d)
			}
		}
		for _, link := range t.Links {
			if link != nil {
				link.A, link.B = cmp.Or(called[link.A], link.A), cmp.Or(called[link.B], link.B)
			}
		}
	}
	return n, nil
}

// alone is a cluster of one server that leads itself.
type alone struct{}

// Leader implements rpc.Leadership.
func (alone) Leader() rpc.LeaderInfo {
	return rpc.LeaderInfo{Addr: "what-if", ID: "what-if", Over: context.Background()}
}

// IsLeader implements rpc.Leadership.
func (alone) IsLeader() bool { return true }

// Verify implements rpc.Leadership.
func (alone) Verify(context.Context) error { return nil }

// Changed implements rpc.Leadership: nobody waits for a leader here.
func (alone) Changed() <-chan struct{} { return nil }

// LastContact implements rpc.Leadership.
func (alone) LastContact() time.Duration { return 0 }

// Readable implements rpc.Cluster.
func (alone) Readable(structs.LogType) error { return nil }

// Configuration implements rpc.Cluster.
func (alone) Configuration() (*structs.RaftConfigurationReply, error) {
	return nil, structs.Errorf(structs.CodeUnsupported, "a what-if has no servers")
}

// Members implements rpc.Gossip.
func (alone) Members() []structs.ServerMember { return nil }

// Beat implements node.Heartbeats.
func (alone) Beat(string) time.Duration { return time.Hour }
