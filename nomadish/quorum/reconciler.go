package quorum

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// Leaver ends a failed member's membership.
type Leaver interface {
	ForceLeave(name string, prune bool) error
}

// PeerReconcilerOptions tune a PeerReconciler. Zero values are replaced by the defaults named.
type PeerReconcilerOptions struct {
	ID     string // of this server
	Region string
	Name   string
	// Cluster is the identity of the cluster.
	Cluster func() string
	// Config is the replicated configuration as it is now.
	Config func() structs.AutopilotConfiguration
	// Full returns why this server's disk counts as full; empty: it does not. Nil: it never does.
	Full func() string
	// Update is how often the servers' health is looked at (2 s), Reconcile how often
	// something is done about it (10 s), unless members change.
	Update, Reconcile time.Duration
	Call              time.Duration // limit of one question (2 s)
	Logger            hclog.Logger
}

// PeerReconciler keeps Raft's configuration in step with the servers that are there. It runs
// on the leader.
type PeerReconciler struct {
	opts      PeerReconcilerOptions
	raft      autopilot.Raft
	gossip    Gossip
	leaver    Leaver
	call      Caller
	autopilot *autopilot.Autopilot
	refused   map[string]bool // IDs of servers of other clusters, as logged; by reconcile
	logged    wire.LogLimiter // why a server's place in Raft could not be changed
	stepDowns stepDowns
	contacts  contacts
}

// NewPeerReconciler returns a new PeerReconciler; Run runs it.
func NewPeerReconciler(o PeerReconcilerOptions, r autopilot.Raft, g Gossip, l Leaver, a Caller) *PeerReconciler {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.Update, autopilot.DefaultUpdateInterval)
	set(&o.Reconcile, autopilot.DefaultReconcileInterval)
	set(&o.Call, 2*time.Second)
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	k := &PeerReconciler{opts: o, raft: r, gossip: g, leaver: l, call: a, refused: map[string]bool{}, contacts: contacts{last: map[raft.ServerID]contact{}}}
	k.autopilot = autopilot.New(r, &delegate{k}, autopilot.WithLogger(o.Logger),
		autopilot.WithUpdateInterval(o.Update), autopilot.WithReconcileInterval(o.Reconcile))
	return k
}

// Run keeps the configuration until ctx ends, and waits until nothing of it runs.
func (k *PeerReconciler) Run(ctx context.Context) {
	k.autopilot.Start(ctx)
	defer func() { <-k.autopilot.Stop() }()
	changed, cancel := k.gossip.Subscribe()
	defer cancel()
	tick := time.NewTicker(k.opts.Reconcile)
	defer tick.Stop()
	for {
		again := k.opts.Reconcile
		if !k.reconcile(ctx) {
			again = min(again, time.Second)
		}
		tick.Reset(again)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

var reconcileTime = telemetry.NewTimer("nomad.leader.reconcile")

// reconcile adds who came and removes who left. It reports whether that went well.
func (k *PeerReconciler) reconcile(ctx context.Context) bool {
	defer reconcileTime.Since(time.Now())
	f := k.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		k.opts.Logger.Warn("read Raft's configuration", "error", err)
		return false
	}
	conf, well := f.Configuration(), true
	for _, s := range k.gossip.Servers() {
		if s.Region != k.opts.Region || ctx.Err() != nil {
			continue
		}
		var err error
		switch known := find(conf, s.ID); {
		case s.Status == structs.MemberLeft && known != nil && !k.replaced(s):
			k.opts.Logger.Info("a server has left; removing it from Raft", "name", s.Name, "id", s.ID)
			err = k.autopilot.RemoveServer(raft.ServerID(s.ID))
		case s.Alive() && (known == nil || string(known.Address) != s.RPCAddr):
			err = k.add(ctx, s, conf)
		}
		if err != nil {
			if k.logged.Allow(s.Name+"\x00"+err.Error(), time.Now()) { // it is tried again each second, for as long as that lasts
				k.opts.Logger.Warn("change Raft's configuration; trying again", "name", s.Name, "error", err)
			}
			well = false
		}
	}
	return well
}

// replaced reports whether a server that left lives under another name.
func (k *PeerReconciler) replaced(left gossip.Server) bool {
	return slices.ContainsFunc(k.gossip.Servers(), func(s gossip.Server) bool { return s.ID == left.ID && s.Alive() })
}

func find(conf raft.Configuration, id string) *raft.Server {
	for i := range conf.Servers {
		if string(conf.Servers[i].ID) == id {
			return &conf.Servers[i]
		}
	}
	return nil
}

// add adds a server that belongs to no other cluster.
func (k *PeerReconciler) add(ctx context.Context, s gossip.Server, conf raft.Configuration) error {
	server := &autopilot.Server{ID: raft.ServerID(s.ID), Name: s.Name, Address: raft.ServerAddress(s.RPCAddr)}
	if s.ID == k.opts.ID { // this server's own address is another now
		return k.autopilot.AddServer(server)
	}
	ctx, cancel := context.WithTimeout(ctx, k.opts.Call)
	defer cancel()
	cluster := k.opts.Cluster()
	state, err := k.call.RaftState(ctx, s.RPCAddr, &structs.RaftStateRequest{Claim: cluster, Leader: k.opts.Name})
	switch {
	case err != nil:
		return err
	case state.ID != s.ID:
		return structs.Errorf(structs.CodeConflict, "at %s answers server %s, not %s", s.RPCAddr, state.ID, s.ID)
	case find(conf, s.ID) != nil: // it is one of ours, at another address
	case state.VotedFor != "":
		return structs.Errorf(structs.CodeConflict, "%s", votedFor("server "+s.Name, state.VotedFor))
	case state.Cluster != cluster:
		if !k.refused[s.ID] {
			k.opts.Logger.Error("a server belongs to another cluster and is not added; to move it here, end it, remove server/ from its data_dir, and start it without bootstrap_expect = 1",
				"name", s.Name, "address", s.RPCAddr, "cluster", state.Cluster)
		}
		k.refused[s.ID] = true
		return nil
	}
	k.opts.Logger.Info("adding a server to Raft", "name", s.Name, "id", s.ID, "address", s.RPCAddr)
	return k.autopilot.AddServer(server)
}

// Health is the servers' health as it was looked at last.
func (k *PeerReconciler) Health() structs.AutopilotHealth {
	state := k.autopilot.GetState()
	out := structs.AutopilotHealth{
		Healthy: state.Healthy, FailureTolerance: state.FailureTolerance, Leader: string(state.Leader),
		Servers: []structs.ServerHealth{}, Voters: []string{},
	}
	for _, id := range state.Voters {
		out.Voters = append(out.Voters, string(id))
	}
	for _, s := range state.Servers {
		why, contact := k.stepDowns.get(s.Server.ID)
		if why == "" {
			contact = k.contacts.get(s.Server.ID, s.Stats.LastContact, time.Now())
		}
		out.Servers = append(out.Servers, structs.ServerHealth{
			ID: string(s.Server.ID), Name: s.Server.Name, Address: string(s.Server.Address), SerfStatus: string(s.Server.NodeStatus),
			Version: s.Server.Version, Leader: s.State == autopilot.RaftLeader, LastContact: structs.Duration(contact), Reason: why,
			LastTerm: s.Stats.LastTerm, LastIndex: s.Stats.LastIndex, Healthy: s.Health.Healthy, Voter: s.HasVotingRights(),
			StableSince: s.Health.StableSince,
		})
	}
	slices.SortFunc(out.Servers, func(a, b structs.ServerHealth) int {
		if a.Name != b.Name {
			return compare(a.Name, b.Name)
		}
		return compare(a.ID, b.ID)
	})
	slices.Sort(out.Voters)
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// delegate is the cluster as autopilot sees it.
type delegate struct{ k *PeerReconciler }

// AutopilotConfig implements autopilot.ApplicationIntegration.
func (d *delegate) AutopilotConfig() *autopilot.Config {
	c := d.k.opts.Config()
	return &autopilot.Config{
		CleanupDeadServers: c.CleanupDeadServers, LastContactThreshold: c.LastContactThreshold, MaxTrailingLogs: c.MaxTrailingLogs,
		MinQuorum: c.MinQuorum, ServerStabilizationTime: c.ServerStabilizationTime,
	}
}

// NotifyState implements autopilot.ApplicationIntegration.
func (d *delegate) NotifyState(s *autopilot.State) {
	healthy := float32(0)
	if s.Healthy {
		healthy = 1
	}
	metrics.SetGauge([]string{"nomad", "autopilot", "healthy"}, healthy)
	metrics.SetGauge([]string{"nomad", "autopilot", "failure_tolerance"}, float32(s.FailureTolerance))
}

// FetchServerStats implements autopilot.ApplicationIntegration: it calls all servers at
// once; who does not answer in time has not heard the leader for as long as the leader has not heard it.
func (d *delegate) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	ctx, cancel := context.WithTimeout(ctx, d.k.opts.Call)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := map[raft.ServerID]*autopilot.ServerStats{}
	for id, s := range servers { // order does not matter: each is called for itself
		if s.NodeStatus != autopilot.NodeAlive {
			continue
		}
		wg.Go(func() {
			state, err := d.stats(ctx, id, s)
			if err != nil {
				d.k.opts.Logger.Debug("a server's state is not known", "name", s.Name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = state
		})
	}
	wg.Wait()
	now := time.Now()
	d.k.contacts.note(now, out)
	for id := range servers { // order does not matter: each for itself
		if out[id] == nil {
			out[id] = d.k.contacts.silent(id, now)
		}
	}
	return out
}

func (d *delegate) stats(ctx context.Context, id raft.ServerID, s *autopilot.Server) (*autopilot.ServerStats, error) {
	if string(id) == d.k.opts.ID {
		term, err := strconv.ParseUint(d.k.raft.Stats()["last_log_term"], 10, 64)
		stats := &autopilot.ServerStats{LastTerm: term, LastIndex: d.k.raft.LastIndex()}
		if full := d.k.opts.Full; full != nil {
			d.k.stepDowns.judge(id, full(), stats)
		}
		return stats, err
	}
	state, err := d.k.call.RaftState(ctx, string(s.Address), &structs.RaftStateRequest{})
	if err != nil {
		return nil, err
	}
	stats := &autopilot.ServerStats{LastContact: state.LastContact, LastTerm: state.LastTerm, LastIndex: state.LastIndex}
	d.k.stepDowns.judge(id, state.DiskFull, stats)
	return stats, nil
}

// KnownServers implements autopilot.ApplicationIntegration.
func (d *delegate) KnownServers() map[raft.ServerID]*autopilot.Server {
	out := map[raft.ServerID]*autopilot.Server{}
	for _, s := range d.k.gossip.Servers() {
		if s.Region != d.k.opts.Region {
			continue
		}
		if was, ok := out[raft.ServerID(s.ID)]; ok && was.NodeStatus == autopilot.NodeAlive {
			continue // it left under another name
		}
		out[raft.ServerID(s.ID)] = &autopilot.Server{
			ID: raft.ServerID(s.ID), Name: s.Name, Address: raft.ServerAddress(s.RPCAddr), NodeStatus: statusOf(s.Status),
			Version: s.Version, RaftVersion: 3, IsLeader: s.ID == d.k.opts.ID, NodeType: autopilot.NodeVoter,
		}
	}
	return out
}

func statusOf(s string) autopilot.NodeStatus {
	switch s {
	case structs.MemberAlive, structs.MemberLeaving:
		return autopilot.NodeAlive
	case structs.MemberFailed:
		return autopilot.NodeFailed
	case structs.MemberLeft:
		return autopilot.NodeLeft
	}
	return autopilot.NodeUnknown
}

// RemoveFailedServer implements autopilot.ApplicationIntegration: the member counts as
// one that left, which reconcile sees. It may not block.
func (d *delegate) RemoveFailedServer(s *autopilot.Server) {
	for _, member := range d.k.gossip.Servers() {
		if member.ID != string(s.ID) || member.Status != structs.MemberFailed {
			continue
		}
		d.k.opts.Logger.Info("cleaning up a server that failed", "name", s.Name, "id", s.ID)
		go func() { // ends when Serf has notified the others, or gives that up
			if err := d.k.leaver.ForceLeave(member.Member, false); err != nil {
				d.k.opts.Logger.Warn("clean up a server that failed; trying again", "name", s.Name, "error", err)
			}
		}()
	}
}
