package nomadish

import (
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/keyring"
	"github.com/nomadish/nomadish/nomadish/clientgossip"
	"github.com/nomadish/nomadish/nomadish/endpoint/client"
	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	nodeendpoint "github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/gc"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/nomadish/portmux"
	"github.com/nomadish/nomadish/nomadish/queue"
	"github.com/nomadish/nomadish/nomadish/quorum"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/snapshot"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// Config is what a server is configured with at its start: who it is, and the options of its parts. What a part has to know of the server
// (its ID, its addresses, its logger, what to call) NewServer fills in; in the configuration it stays empty.
type Config struct {
	Region     string
	Datacenter string
	Name       string // of the server, unique in its region
	Version    string

	// DataDir holds what must outlive the server, under server/. Empty: all is in memory.
	DataDir string

	Port         portmux.Options      // of Raft and RPC
	Raft         raftnode.Options     // also when the disk counts as full
	Membership   membership.Options   // how the server finds others and forms a cluster with them
	ClientGossip clientgossip.Options // the gossip with the clients, in which nothing of the servers' keys is known
	// Autopilot seeds the replicated configuration of a new cluster, Peers states how often the servers' health is looked at.
	Autopilot structs.AutopilotConfiguration
	Peers     quorum.PeerReconcilerOptions

	RPC       rpc.Config
	State     state.Options
	Snapshots snapshot.SpoolOptions // archives of the state that are saved and restored

	NumSchedulers     int      // workers; 0: none
	EnabledSchedulers []string // job types that workers take
	// DefaultSchedule seeds the replicated configuration of a new cluster's schedulers.
	DefaultSchedule structs.SchedulerConfiguration
	Queue           queue.Options
	Heartbeats      heartbeat.Options // of the nodes, and how gossip and sessions that report clients are believed
	GC              gc.Options
	Forecasts       forecasts.Options   // of the queue; those of the queue are Queue
	Jobs            job.Config          // what jobs may be
	Identity        identity.Options    // who is believed to send a request
	Nodes           nodeendpoint.Config // what nodes may send

	Logger hclog.Logger
	// Agent answers operators' requests to the agent that the server runs in; nil: nobody does.
	Agent client.Agent
}

// serverDir is where a server keeps what must outlive it; empty: nothing does.
func (c *Config) serverDir() string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, "server")
}

// KeptKeyrings reports which gossips have keys in the data directory: that of the region's servers, that with other regions and
// that of the clients. They are encrypted with these, whatever the configuration states.
func (c *Config) KeptKeyrings() (servers, regions, clients bool) {
	dir := c.serverDir()
	if dir == "" {
		return false, false, false
	}
	kept := func(file string) bool { return keyring.Kept(filepath.Join(dir, file)) }
	return kept(membership.KeyringLAN), kept(membership.KeyringWAN), kept(clientgossip.KeyringFile)
}

// membershipOptions are how the server finds the others.
func (s *Server) membershipOptions() *membership.Options {
	c := s.cfg
	o := c.Membership
	o.ID, o.Name, o.Region, o.Datacenter, o.Version = s.raft.ID(), c.Name, c.Region, c.Datacenter, c.Version
	o.RPCAddr, o.Dir, o.Logger = s.RPCAddr(), c.serverDir(), c.Logger
	return &o
}

// raftOptions are how the server takes part in Raft.
func (c *Config) raftOptions() raftnode.Options {
	o := c.Raft
	o.Dir, o.Name, o.NewID, o.Alone, o.Logger = c.serverDir(), c.Name, NewID, c.Membership.Expect == 1, c.Logger
	return o
}
