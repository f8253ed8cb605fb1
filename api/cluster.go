package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// List lists evaluations.
func (e Evaluations) List(ctx context.Context, q *Query) (evals []*structs.Evaluation, meta Meta, err error) {
	meta, err = e.client.Get(ctx, "/v1/evaluations", q, &evals)
	return evals, meta, err
}

// Info reads an evaluation.
func (e Evaluations) Info(ctx context.Context, id string, q *Query) (eval *structs.Evaluation, meta Meta, err error) {
	meta, err = e.client.Get(ctx, "/v1/evaluation/"+seg(id), q, &eval)
	return eval, meta, err
}

// Allocations lists the allocations that an evaluation placed.
func (e Evaluations) Allocations(ctx context.Context, id string, q *Query) (allocs []*structs.AllocListStub, meta Meta, err error) {
	meta, err = e.client.Get(ctx, "/v1/evaluation/"+seg(id)+"/allocations", q, &allocs)
	return allocs, meta, err
}

// List lists nodes.
func (n Nodes) List(ctx context.Context, q *Query) (nodes []*structs.NodeListStub, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/nodes", q, &nodes)
	return nodes, meta, err
}

// Info reads a node.
func (n Nodes) Info(ctx context.Context, id string, q *Query) (node *structs.Node, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/"+seg(id), q, &node)
	return node, meta, err
}

// Allocations lists a node's allocations.
func (n Nodes) Allocations(ctx context.Context, id string, q *Query) (allocs []*structs.Allocation, meta Meta, err error) {
	meta, err = n.client.Get(ctx, "/v1/node/"+seg(id)+"/allocations", q, &allocs)
	return allocs, meta, err
}

// Drain starts a drain, or ends it (nil).
func (n Nodes) Drain(ctx context.Context, id string, spec *structs.DrainSpec, markEligible bool) (reply *structs.NodeUpdateReply, err error) {
	return n.client.Nodes().DrainMeta(ctx, id, spec, markEligible, nil)
}

// DrainMeta is Drain with what is to be remembered of the drain: the node shows it as LastDrain.Meta.
func (n Nodes) DrainMeta(
	ctx context.Context, id string, spec *structs.DrainSpec, markEligible bool, meta map[string]string,
) (reply *structs.NodeUpdateReply, err error) {
	body := map[string]any{"NodeID": id, "DrainSpec": spec, "MarkEligible": markEligible, "Meta": meta}
	_, err = n.client.Put(ctx, "/v1/node/"+seg(id)+"/drain", nil, body, &reply)
	return reply, err
}

// SetEligibility makes a node eligible for new work, or not.
func (n Nodes) SetEligibility(ctx context.Context, id string, eligible bool) (reply *structs.NodeUpdateReply, err error) {
	eligibility := structs.NodeIneligible
	if eligible {
		eligibility = structs.NodeEligible
	}
	body := map[string]any{"NodeID": id, "Eligibility": eligibility}
	_, err = n.client.Put(ctx, "/v1/node/"+seg(id)+"/eligibility", nil, body, &reply)
	return reply, err
}

// SetSimHealth makes a simulated node, or a device of it, bad or good again. device empty:
// the node, which is down while it is bad.
func (n Nodes) SetSimHealth(ctx context.Context, nodeID, device string, healthy bool) error {
	body := map[string]any{"Device": device, "Healthy": healthy}
	_, err := n.client.Put(ctx, "/v1/node/"+seg(nodeID)+"/sim-health", nil, body, nil)
	return err
}

// Purge forgets a node.
func (n Nodes) Purge(ctx context.Context, id string) (reply *structs.NodeUpdateReply, err error) {
	_, err = n.client.Put(ctx, "/v1/node/"+seg(id)+"/purge", nil, nil, &reply)
	return reply, err
}

// Stats reads a node's use; empty: the agent's own node.
func (n Nodes) Stats(ctx context.Context, nodeID string) (stats *structs.HostStats, err error) {
	_, err = n.client.Get(ctx, "/v1/client/stats", (&Query{}).with("node_id", nodeID), &stats)
	return stats, err
}

// Regions lists the names of the regions that the agent's servers know.
func (s Status) Regions(ctx context.Context) (names []string, err error) {
	_, err = s.client.Get(ctx, "/v1/regions", nil, &names)
	return names, err
}

// Leader is the leader's RPC address.
func (s Status) Leader(ctx context.Context) (addr string, err error) {
	_, err = s.client.Get(ctx, "/v1/status/leader", nil, &addr)
	return addr, err
}

// AgentSelf is an agent as it describes itself.
type AgentSelf struct {
	Config map[string]any               `json:"config"`
	Member Member                       `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// NodeID is the ID of the agent's own node; empty if it runs no client.
func (s *AgentSelf) NodeID() string { return s.Stats["client"]["node_id"] }

// Self describes the agent.
func (a Agent) Self(ctx context.Context) (self *AgentSelf, err error) {
	_, err = a.client.Get(ctx, "/v1/agent/self", nil, &self)
	return self, err
}

// Member is a server as the agents know it.
type Member struct {
	Name   string
	Addr   string
	Port   uint16
	Tags   map[string]string
	Status string
}

// Members lists the servers.
func (a Agent) Members(ctx context.Context) ([]Member, error) {
	var reply struct{ Members []Member }
	_, err := a.client.Get(ctx, "/v1/agent/members", nil, &reply)
	return reply.Members, err
}

// Join makes the agent's server join others of its region by gossip, at host or host:port. It
// returns how many were reached.
func (a Agent) Join(ctx context.Context, addrs ...string) (int, error) {
	return a.client.Agent().join(ctx, url.Values{"address": addrs})
}

// JoinWAN is Join of servers of other regions.
func (a Agent) JoinWAN(ctx context.Context, addrs ...string) (int, error) {
	return a.client.Agent().join(ctx, url.Values{"address": addrs, "wan": {"true"}})
}

func (a Agent) join(ctx context.Context, params url.Values) (int, error) {
	var reply struct {
		NumJoined int    `json:"num_joined"`
		Error     string `json:"error"`
	}
	_, err := a.client.Put(ctx, "/v1/agent/join?"+params.Encode(), nil, nil, &reply)
	if err == nil && reply.Error != "" {
		err = errors.New(reply.Error)
	}
	return reply.NumJoined, err
}

// ForceLeave makes a failed server count as one that left. prune: it is forgotten.
func (a Agent) ForceLeave(ctx context.Context, name string, prune bool) error {
	q := (&Query{}).with("node", name)
	if prune {
		q = q.with("prune", "1")
	}
	_, err := a.client.Put(ctx, "/v1/agent/force-leave", q, nil, nil)
	return err
}

// Keyring does something with the keys of the servers' gossip, or of another pool's
// (structs.PoolClients), on all members: op is structs.KeyInstall and so on, key in base64,
// empty for structs.KeyList.
func (a Agent) Keyring(ctx context.Context, op, key, pool string) (reply *structs.KeyringReply, err error) {
	q := &Query{}
	if pool != "" {
		q = q.with("pool", pool)
	}
	if op == structs.KeyList {
		_, err = a.client.Get(ctx, "/v1/agent/keyring/list", q, &reply)
		return reply, err
	}
	_, err = a.client.Put(ctx, "/v1/agent/keyring/"+seg(op), q, map[string]string{"Key": key}, &reply)
	return reply, err
}

// AutopilotConfig reads how the leader looks after the servers.
func (o Operator) AutopilotConfig(ctx context.Context) (config *structs.AutopilotConfiguration, err error) {
	_, err = o.client.Get(ctx, "/v1/operator/autopilot/configuration", nil, &config)
	return config, err
}

// SetAutopilotConfig sets it, if it has not moved since it was read.
func (o Operator) SetAutopilotConfig(ctx context.Context, config *structs.AutopilotConfiguration) (updated bool, err error) {
	q := (&Query{}).with("cas", strconv.FormatUint(config.ModifyIndex, 10))
	_, err = o.client.Put(ctx, "/v1/operator/autopilot/configuration", q, config, &updated)
	return updated, err
}

// AutopilotHealth reads the servers' health, as the leader sees it. That some are not
// healthy, which the agent answers with status 429, is no error.
func (o Operator) AutopilotHealth(ctx context.Context) (health *structs.AutopilotHealth, err error) {
	_, err = o.client.Get(ctx, "/v1/operator/autopilot/health", nil, &health)
	var unwell *Error
	if errors.As(err, &unwell) && unwell.Status == http.StatusTooManyRequests {
		unhealthy := &structs.AutopilotHealth{}
		if json.Unmarshal([]byte(unwell.Msg), unhealthy) == nil {
			return unhealthy, nil
		}
	}
	return health, err
}

// SchedulerConfig reads the scheduler configuration.
func (o Operator) SchedulerConfig(ctx context.Context) (config *structs.SchedulerConfiguration, err error) {
	var reply structs.SchedulerConfigReply
	_, err = o.client.Get(ctx, "/v1/operator/scheduler/configuration", nil, &reply)
	return reply.SchedulerConfig, err
}

// SetSchedulerConfig sets it; with check, only if it has not moved since it was read.
func (o Operator) SetSchedulerConfig(ctx context.Context, config *structs.SchedulerConfiguration, check bool) (updated bool, err error) {
	q := &Query{}
	if check {
		q = q.with("cas", strconv.FormatUint(config.ModifyIndex, 10))
	}
	var reply structs.SchedulerSetReply
	_, err = o.client.Put(ctx, "/v1/operator/scheduler/configuration", q, config, &reply)
	return reply.Updated, err
}

// RaftConfig lists the servers of the Raft cluster.
func (o Operator) RaftConfig(ctx context.Context) (conf *structs.RaftConfigurationReply, err error) {
	_, err = o.client.Get(ctx, "/v1/operator/raft/configuration", nil, &conf)
	return conf, err
}

// RaftRemovePeer removes a server from the Raft cluster, by ID or address.
func (o Operator) RaftRemovePeer(ctx context.Context, id, address string) error {
	q := &Query{Params: map[string]string{}}
	if id != "" {
		q.Params["id"] = id
	}
	if address != "" {
		q.Params["address"] = address
	}
	_, err := o.client.Delete(ctx, "/v1/operator/raft/peer", q, nil)
	return err
}

// RaftTransfer hands leadership to a server.
func (o Operator) RaftTransfer(ctx context.Context, id, address string) error {
	q := &Query{Params: map[string]string{}}
	if id != "" {
		q.Params["id"] = id
	}
	if address != "" {
		q.Params["address"] = address
	}
	_, err := o.client.Put(ctx, "/v1/operator/raft/transfer-leadership", q, nil, nil)
	return err
}

// GC collects what is over, whatever its age.
func (s System) GC(ctx context.Context) error {
	_, err := s.client.Put(ctx, "/v1/system/gc", nil, nil, nil)
	return err
}

// Reconcile rebuilds what the servers derive, and lists what was wrong in it.
func (s System) Reconcile(ctx context.Context) (reply *structs.ReconcileReply, err error) {
	_, err = s.client.Put(ctx, "/v1/system/reconcile/summaries", nil, nil, &reply)
	return reply, err
}

// History lists the records of what has ended.
func (o Operator) History(ctx context.Context, q *Query) (records []*structs.HistoryRecord, meta Meta, err error) {
	meta, err = o.client.Get(ctx, "/v1/history", q, &records)
	return records, meta, err
}

// Prefix finds IDs by their start.
func (s Search) Prefix(ctx context.Context, prefix, kind string) (reply *structs.SearchReply, err error) {
	return s.client.Search().PrefixIn(ctx, prefix, kind, nil)
}

// PrefixIn is Prefix in the namespace of a query.
func (s Search) PrefixIn(ctx context.Context, prefix, kind string, q *Query) (reply *structs.SearchReply, err error) {
	_, err = s.client.Put(ctx, "/v1/search", q, map[string]string{"Prefix": prefix, "Context": kind}, &reply)
	return reply, err
}

// FuzzyFound is what SearchFuzzy has found: matches by their kind, and of which kinds there are more.
type FuzzyFound struct {
	Matches     map[string][]structs.FuzzyMatch
	Truncations map[string]bool
}

// Fuzzy finds things by a part of their name, of 2 characters at least. The scope of a match names where it is: of a
// job and an allocation its namespace and ID, of a node its ID.
func (s Search) Fuzzy(ctx context.Context, text, kind string, q *Query) (found *FuzzyFound, err error) {
	_, err = s.client.Put(ctx, "/v1/search/fuzzy", q, map[string]string{"Text": text, "Context": kind}, &found)
	return found, err
}

// Metrics reads the agent's metrics as JSON.
func (a Agent) Metrics(ctx context.Context) (raw json.RawMessage, err error) {
	_, err = a.client.Get(ctx, "/v1/metrics", nil, &raw)
	return raw, err
}

// EventStream calls f with each line of the event stream until ctx ends or f fails.
// topics: "Job:web", "*", …; index 0 starts with all that is kept. The first line has no events: the stream is open.
func (c *Client) EventStream(ctx context.Context, topics []string, index uint64, f func(*structs.Events) error) error {
	v := url.Values{"topic": topics}
	if index > 0 {
		v.Set("index", strconv.FormatUint(index, 10))
	}
	body, err := c.Raw(ctx, "/v1/event/stream?"+v.Encode(), nil)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	dec := json.NewDecoder(body)
	for {
		var line structs.Events
		if err := streamed(dec, body, &line); err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return ctx.Err()
			}
			return err
		}
		if line.Index == 0 {
			continue // a heartbeat
		}
		if err := f(&line); err != nil {
			return err
		}
	}
}

// WaitLeader waits until the agent knows a leader.
func (s Status) WaitLeader(ctx context.Context) error {
	for {
		if addr, err := s.client.Status().Leader(ctx); err == nil && addr != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
