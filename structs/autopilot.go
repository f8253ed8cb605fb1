package structs

import (
	"encoding/json"
	"fmt"
	"time"
)

// AutopilotConfiguration describes how the leader looks after the set of servers. It is replicated;
// `operator autopilot set-config` changes it. JSON has its durations as text, as Nomad does.
type AutopilotConfiguration struct {
	// CleanupDeadServers removes servers that have failed from Raft's configuration, as long
	// as a majority is there and MinQuorum are left.
	CleanupDeadServers bool
	// LastContactThreshold is how long a healthy server may not have heard the leader.
	LastContactThreshold time.Duration
	// MaxTrailingLogs is by how many log entries a healthy server may lag.
	MaxTrailingLogs uint64
	// MinQuorum is how many voters cleaning up must leave.
	MinQuorum uint
	// ServerStabilizationTime is how long a new server must be healthy before it may vote.
	ServerStabilizationTime time.Duration

	// Nomad's enterprise version alone heeds these; here they stay off.
	EnableRedundancyZones   bool
	DisableUpgradeMigration bool
	EnableCustomUpgrades    bool

	CreateIndex uint64
	ModifyIndex uint64
}

// DefaultAutopilotConfiguration is Nomad's.
func DefaultAutopilotConfiguration() AutopilotConfiguration {
	return AutopilotConfiguration{
		CleanupDeadServers: true, LastContactThreshold: 200 * time.Millisecond, MaxTrailingLogs: 250,
		ServerStabilizationTime: 10 * time.Second,
	}
}

// Validate returns what cannot be.
func (c *AutopilotConfiguration) Validate() error {
	switch {
	case c.LastContactThreshold <= 0:
		return Errorf(CodeBadRequest, "LastContactThreshold %s: must be positive, such as 200ms", c.LastContactThreshold)
	case c.ServerStabilizationTime < 0:
		return Errorf(CodeBadRequest, "ServerStabilizationTime %s: must not be negative", c.ServerStabilizationTime)
	case c.MinQuorum > 255:
		return Errorf(CodeBadRequest, "MinQuorum %d: must be at most 255", c.MinQuorum)
	case c.EnableRedundancyZones || c.EnableCustomUpgrades:
		return Errorf(CodeUnsupported, "redundancy zones and custom upgrades: Nomad's enterprise version has them, this server does not")
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (c AutopilotConfiguration) MarshalJSON() ([]byte, error) {
	type plain AutopilotConfiguration
	return json.Marshal(struct {
		plain
		LastContactThreshold    string
		ServerStabilizationTime string
	}{plain(c), c.LastContactThreshold.String(), c.ServerStabilizationTime.String()})
}

// UnmarshalJSON implements json.Unmarshaler. Durations are texts, or numbers of
// nanoseconds; what is not stated stays.
func (c *AutopilotConfiguration) UnmarshalJSON(data []byte) error {
	type plain AutopilotConfiguration
	with := struct {
		*plain
		LastContactThreshold    any
		ServerStabilizationTime any
	}{plain: (*plain)(c)}
	if err := json.Unmarshal(data, &with); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		from any
		to   *time.Duration
	}{
		{"LastContactThreshold", with.LastContactThreshold, &c.LastContactThreshold},
		{"ServerStabilizationTime", with.ServerStabilizationTime, &c.ServerStabilizationTime},
	} {
		switch from := d.from.(type) {
		case nil:
		case string:
			v, err := time.ParseDuration(from)
			if err != nil {
				return Errorf(CodeBadRequest, "%s %q: must be a duration such as 200ms", d.name, from)
			}
			*d.to = v
		case float64:
			*d.to = time.Duration(from)
		default:
			return Errorf(CodeBadRequest, "%s %v: must be a duration such as 200ms", d.name, from)
		}
	}
	return nil
}

// ServerHealth is a server's health as the leader sees it.
type ServerHealth struct {
	ID          string
	Name        string
	Address     string // RPC
	SerfStatus  string
	Version     string
	Leader      bool
	LastContact Duration // since it heard the leader, or since it was heard last; negative: never
	LastTerm    uint64
	LastIndex   uint64
	Healthy     bool
	Voter       bool
	StableSince time.Time // when Healthy changed last
	// Reason is why it is not healthy, if it reported so itself: its disk is full.
	Reason string `json:",omitempty"`
}

// Duration is a time.Duration that JSON has as text.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	v, err := time.ParseDuration(text)
	*d = Duration(v)
	return err
}

// AutopilotHealth is the health of all servers, as the leader sees it.
type AutopilotHealth struct {
	Healthy          bool
	FailureTolerance int // healthy voters that may be lost with a majority left
	Servers          []ServerHealth
	Leader           string   // ID
	Voters           []string // IDs
}

// ClusterMeta is what a cluster is known by, from its bootstrap on.
type ClusterMeta struct {
	ClusterID   string
	CreateTime  int64 // Unix nanoseconds
	CreateIndex uint64
}

// What servers query of each other about their cluster, and operators of it.
type (
	// BootstrapVoteRequest requests that a server let Candidate bootstrap the cluster: it then lets nobody else do
	// so. Release takes that back.
	BootstrapVoteRequest struct {
		Region    string
		Candidate string `codec:"Founder"` // Raft ID
		Name      string // of the candidate
		Release   bool
		// Try numbers the bootstrapper's tries, so that a late message does not undo a later try. 0: not stated.
		Try uint64
		// Voters are the Raft IDs of the servers that it bootstraps the cluster with, whose Raft is
		// let in until there is one.
		Voters []string
	}
	// BootstrapVoteReply answers it. A server agrees if it has no state and has agreed to nobody else.
	BootstrapVoteReply struct {
		Agreed   bool
		HasState bool   // it belongs to a cluster already
		VotedFor string `codec:"Promised"` // the name of the other candidate that it has agreed to
	}
	// RaftStateRequest requests a server's view of Raft. Claim: the cluster that would add it;
	// a server that belongs to none agrees, and then to no other.
	RaftStateRequest struct {
		Claim  string
		Leader string // name, of who claims
	}
	// RaftStateReply is a server's own view of Raft.
	RaftStateReply struct {
		ID          string
		Cluster     string        // that it belongs to, or has agreed to
		VotedFor    string        `codec:"Promised"` // the name of who stands in the way of a claim
		Servers     []*RaftServer // of its configuration; none: it belongs to no cluster
		LastContact time.Duration // with the leader; 0 on the leader, negative: never
		LastTerm    uint64        // of its last log entry
		LastIndex   uint64
		DiskFull    string // why it steps down; empty: there is room
	}
	// JoinRequest requests that a server join others by gossip: of its own region, or, with WAN, of others.
	JoinRequest struct {
		Addresses []string
		WAN       bool
	}
	// ForceLeaveRequest makes a failed server count as one that left. Prune: it is forgotten.
	ForceLeaveRequest struct {
		Name  string
		Prune bool
	}
	// AutopilotConfigRequest sets the configuration.
	AutopilotConfigRequest struct {
		Config AutopilotConfiguration
		CAS    bool
		WriteRequest
	}
	// AutopilotConfigReply is the configuration.
	AutopilotConfigReply struct {
		Config AutopilotConfiguration
		QueryMeta
	}
	// AutopilotSetReply reports whether the configuration was taken (CAS).
	AutopilotSetReply struct {
		Updated bool
		WriteMeta
	}
	// AutopilotHealthReply is the servers' health.
	AutopilotHealthReply struct {
		Health AutopilotHealth
		QueryMeta
	}
)
