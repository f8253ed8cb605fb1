package nomadish

import (
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/endpoint/alloc"
	"github.com/nomadish/nomadish/nomadish/endpoint/client"
	clusterendpoint "github.com/nomadish/nomadish/nomadish/endpoint/cluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/eval"
	"github.com/nomadish/nomadish/nomadish/endpoint/job"
	"github.com/nomadish/nomadish/nomadish/endpoint/license"
	"github.com/nomadish/nomadish/nomadish/endpoint/namespace"
	nodeendpoint "github.com/nomadish/nomadish/nomadish/endpoint/node"
	"github.com/nomadish/nomadish/nomadish/endpoint/operator"
	"github.com/nomadish/nomadish/nomadish/endpoint/project"
	"github.com/nomadish/nomadish/nomadish/endpoint/snapshot"
	"github.com/nomadish/nomadish/nomadish/endpoint/view"
	"github.com/nomadish/nomadish/nomadish/endpoint/virtualcluster"
	whatifendpoint "github.com/nomadish/nomadish/nomadish/endpoint/whatif"
	workflowendpoint "github.com/nomadish/nomadish/nomadish/endpoint/workflow"
	"github.com/nomadish/nomadish/nomadish/identity"
	"github.com/nomadish/nomadish/nomadish/membership"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/whatif"
)

// endpoints answer the requests to this server: the router of all, and of the services those that do more than answer.
type endpoints struct {
	router  *rpc.Router
	evals   *eval.Endpoint
	clients *client.Endpoint
}

// openEndpoints registers the methods of all services with the server's mux.
func (s *Server) openEndpoints(servers *membership.RaftServers) {
	cfg := s.cfg
	conf := cfg.RPC
	conf.ID, conf.Name, conf.Region = s.raft.ID(), cfg.Name, cfg.Region
	router := rpc.New(conf, rpc.Deps{
		Store: s.store, Leadership: &leadership{Node: s.raft, leading: s.leader.leading}, Cluster: servers, Gossip: s.gossip,
		Bootstrap: s.bootstrapper, Pool: s.pool, Regions: s.regions, Far: s.far, Logger: s.logger,
	})
	parts := rpc.Parts{Router: router, Applier: s.raft, NewID: NewID, Now: time.Now}
	nodes := nodeendpoint.Deps{Parts: parts, Heartbeats: s.leader.heartbeats, Logger: s.logger}
	clients := client.Deps{Router: router, Heartbeats: s.leader.heartbeats, Agent: cfg.Agent}
	if s.clients != nil {
		nodes.Gossip, clients.Gossip = s.clients, s.clients
	}
	s.endpoints = &endpoints{
		router:  router,
		evals:   eval.New(eval.Deps{Router: router, Applier: s.raft, Broker: s.leader.broker, Plans: s.leader.plans, Now: time.Now, Logger: s.logger}),
		clients: client.New(clients),
	}
	limits, users := cfg.Nodes, identity.New(cfg.Identity)
	limits.Datacenter = cfg.Datacenter
	rpc.Register(s.mux,
		job.New(cfg.Jobs, job.Deps{Parts: parts, Self: s.mux.Local, Typical: s.typicals.For, Forecast: s.forecasts.IfRegistered, Identity: users}),
		alloc.New(parts),
		s.endpoints.evals,
		nodeendpoint.New(limits, nodes),
		s.endpoints.clients,
		clusterendpoint.New(clusterendpoint.Deps{
			Router: router, Gossip: s.gossip, Regions: s.regions, Keyrings: s.keyrings(), Bootstrap: s.bootstrapper, Raft: servers,
			Datacenter: cfg.Datacenter,
		}),
		operator.New(operator.Deps{Router: router, Applier: s.raft, Collector: s.leader.collector, Raft: servers, PeerReconciler: s.leader.peerReconciler, Now: time.Now}),
		snapshot.New(snapshot.Deps{Router: router, State: &snapshots{s.raft, s.leader}, Spool: s.spool, NewID: NewID, Now: time.Now, Logger: s.logger, Version: cfg.Version}),
		namespace.New(parts),
		virtualcluster.New(parts),
		project.New(project.Deps{Parts: parts, Identity: users}),
		workflowendpoint.New(workflowendpoint.Deps{
			Parts: parts, Self: s.mux.Local, Identity: users, Forecasts: s.forecasts,
			DefaultPriority: cfg.Jobs.DefaultPriority, MaxPriority: cfg.Jobs.MaxPriority,
		}),
		license.New(parts),
		view.New(view.Deps{Router: router, Typical: s.typicals.For, Forecasts: s.forecasts, Now: time.Now}),
		whatifendpoint.New(whatifendpoint.Deps{
			Router: router, Now: time.Now, Rules: whatif.Rules{Region: conf.Region, Jobs: cfg.Jobs, Nodes: limits, Identity: users, Cluster: servers},
		}),
	)
}

// sessionClosed has the endpoints forget a session, after the last of its calls.
func (e *endpoints) sessionClosed(session *wire.Session) {
	e.evals.SessionClosed(session)
	e.clients.SessionClosed(session)
}

// leadership shows who leads to the endpoints.
type leadership struct {
	*raftnode.Node
	leading func() bool
}

// Leader implements rpc.Leadership.
func (l *leadership) Leader() rpc.LeaderInfo { return rpc.LeaderInfo(l.LeaderInfo()) }

// IsLeader implements rpc.Leadership.
func (l *leadership) IsLeader() bool { return l.leading() }

// LastContact implements rpc.Leadership.
func (l *leadership) LastContact() time.Duration { return l.LeaderContact() }
