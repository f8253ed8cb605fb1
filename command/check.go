package command

import (
	"context"
	"flag"
	"strconv"
	"time"

	"github.com/nomadish/nomadish/api"
)

// Exit codes of check, as Nagios and programs like it know them.
const (
	healthPass     = 0
	healthWarning  = 1
	healthCritical = 2
)

// healthCheck is what the check command requires of an agent.
type healthCheck struct{ minPeers, minServers int }

func checkCommand() spec {
	return spec{
		synopsis: "Check the health of an agent",
		usage:    "", misuse: healthCritical, example: "-min-peers 2",
		details: "Exit code 0: the agent is healthy. 1: a warning, for example a server that knows no leader. 2: the agent is unhealthy\n" +
			"or does not answer. Nagios and similar programs read these codes.",
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			var c healthCheck
			fs.IntVar(&c.minPeers, "min-peers", 0, "how many other `servers` a server must know at least")
			fs.IntVar(&c.minServers, "min-servers", 1, "how many `servers` a client must know at least")
			return func(ctx context.Context, e *env, _ []string) int {
				self, err := e.client.Agent().Self(ctx)
				if err != nil {
					e.fail(err)
					return healthCritical
				}
				return c.run(e, self)
			}
		},
	}
}

// run checks what an agent reports about itself: its server first.
func (c *healthCheck) run(e *env, self *api.AgentSelf) int {
	server, client := self.Stats["nomad"] != nil, self.Stats["client"] != nil
	if !server && !client {
		e.eprintf("the agent runs neither a server nor a client\n")
		return healthWarning
	}
	code := healthPass
	if server {
		code = c.server(e, self.Stats)
	}
	if client {
		code = max(code, c.client(e, self.Stats["client"]))
	}
	return code
}

func (c *healthCheck) server(e *env, stats map[string]map[string]string) int {
	peers, err := strconv.Atoi(stats["raft"]["num_peers"])
	switch {
	case err != nil:
		e.eprintf("the server's answer has no valid number of peers: num_peers is %q\n", stats["raft"]["num_peers"])
		return healthCritical
	case peers < c.minPeers:
		e.eprintf("known peers: %d, expected are at least %d\n", peers, c.minPeers)
		return healthCritical
	case stats["nomad"]["disk_full"] != "":
		e.eprintf("the server's disk is full: %s\n", stats["nomad"]["disk_full"])
		return healthCritical
	case stats["nomad"]["leader_addr"] == "":
		e.eprintf("the server knows no leader\n")
		return healthWarning
	}
	return healthPass
}

func (c *healthCheck) client(e *env, stats map[string]string) int {
	known, err := strconv.Atoi(stats["known_servers"])
	if err != nil || known < c.minServers {
		e.eprintf("known servers: %s, expected are at least %d\n", stats["known_servers"], c.minServers)
		return healthCritical
	}
	if stats["registered"] == "0" {
		e.eprintf("the client is not registered with its servers\n")
		return healthCritical
	}
	last, errLast := time.ParseDuration(stats["last_heartbeat"])
	ttl, errTTL := time.ParseDuration(stats["heartbeat_ttl"])
	if errLast == nil && errTTL == nil && last > ttl { // agents of earlier versions do not report it
		e.eprintf("the last heartbeat was %s ago, and one is due every %s\n", last, ttl)
		return healthCritical
	}
	return healthPass
}
