package api

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
)

// MonitorOptions select whose log is streamed, and which part of it. With neither node nor server it is that of the agent that is called.
type MonitorOptions struct {
	NodeID, ServerID string // a whole ID; the name or ID of a server, or "leader"
	LogLevel         string // trace, debug, info, warn or error; empty: info
	JSON             bool
	IncludeLocation  bool
}

// Monitor writes an agent's log lines to w, from now on, until ctx ends. It returns nil if the agent ends the stream.
func (a Agent) Monitor(ctx context.Context, o MonitorOptions, w io.Writer) error {
	q := (&Query{}).with("log_json", strconv.FormatBool(o.JSON)).with("log_include_location", strconv.FormatBool(o.IncludeLocation))
	for name, value := range map[string]string{"node_id": o.NodeID, "server_id": o.ServerID, "log_level": o.LogLevel} {
		if value != "" {
			q = q.with(name, value)
		}
	}
	return a.client.AllocFS().frames(ctx, "/v1/agent/monitor", q, w)
}

// Host returns what the machine of an agent is, as JSON: that of a node, of a server, or of the agent that is called.
func (a Agent) Host(ctx context.Context, nodeID, serverID string) (raw json.RawMessage, err error) {
	_, err = a.client.Get(ctx, "/v1/agent/host", agentOf(nodeID, serverID), &raw)
	return raw, err
}

// Profile opens a runtime profile of an agent, which the caller closes: cmdline, profile, trace or one that package
// runtime/pprof names. Seconds are of profile and trace; debug above 0 makes the others text.
func (a Agent) Profile(ctx context.Context, nodeID, serverID, profile string, seconds, debug int) (io.ReadCloser, error) {
	q := agentOf(nodeID, serverID).with("seconds", strconv.Itoa(seconds)).with("debug", strconv.Itoa(debug))
	return a.client.Raw(ctx, "/v1/agent/pprof/"+url.PathEscape(profile), q)
}

func agentOf(nodeID, serverID string) *Query {
	q := &Query{}
	if nodeID != "" {
		q = q.with("node_id", nodeID)
	}
	if serverID != "" {
		q = q.with("server_id", serverID)
	}
	return q
}

// SchedulerWorkers are the workers of a server that decide evaluations.
type SchedulerWorkers struct {
	ServerID          string   `json:"server_id,omitempty"`
	NumSchedulers     int      `json:"num_schedulers"`
	EnabledSchedulers []string `json:"enabled_schedulers"`
}

// SetSchedulerWorkers changes the workers of the agent's server until it is started again. The types must include "_core".
func (a Agent) SetSchedulerWorkers(ctx context.Context, want SchedulerWorkers) (now *SchedulerWorkers, err error) {
	_, err = a.client.Put(ctx, "/v1/agent/schedulers/config", nil, want, &now)
	return now, err
}
