package config

import (
	"slices"
	"testing"
)

// Who gossips with clients, and what the addresses that an agent is given are for.
func TestClientGossip(t *testing.T) {
	type want struct {
		server, client bool // take part
		rpc, gossip    []string
	}
	f := func(what, text string, w want) {
		t.Helper()
		c := merged(t, text)
		got := want{c.ServerGossips(), c.ClientGossips(), c.ServerAddrs(), c.GossipAddrs()}
		if got.server != w.server || got.client != w.client || !slices.Equal(got.rpc, w.rpc) || !slices.Equal(got.gossip, w.gossip) {
			t.Errorf("%s: %+v, want %+v", what, got, w)
		}
	}
	f("nothing", ``, want{})
	f("a server", `server { enabled = true }`, want{server: true})
	f("a server without", `
server {
  enabled = true
  client_gossip = false
}`, want{})
	f("a client", `
client {
  enabled = true
  servers = ["a", "b:1"]
  gossip_join = ["c", "d:2"]
}`, want{client: true, rpc: []string{"a:4647", "b:1"}, gossip: []string{"c", "d:2"}})
	f("a client without", `
client {
  enabled = true
  gossip = false
  servers = ["a"]
  gossip_join = ["c"]
  server_join { retry_join = ["d"] }
}`, want{rpc: []string{"a:4647", "d:4647"}})
	f("an agent that is both", `
server { enabled = true }
client {
  enabled = true
  gossip_join = ["c"]
}`, want{server: true})
	f("both, and neither gossips", `
server {
  enabled = true
  client_gossip = false
}
client { enabled = true }`, want{})
	f("server_join without a port is tried as both", `
client {
  enabled = true
  server_join {
    start_join = ["a"]
    retry_join = ["[::1]"]
  }
}`, want{client: true, rpc: []string{"a:4647", "[::1]:4647"}, gossip: []string{"a", "[::1]"}})
	f("server_join with a port is that one's", `
client {
  enabled = true
  server_join { retry_join = ["a:4650", "b:4647", "c:14647"] }
}`, want{client: true, rpc: []string{"b:4647", "c:14647"}, gossip: []string{"a:4650"}})
	f("the port of the gossip is another", `
ports { client_gossip = 9 }
client {
  enabled = true
  server_join { retry_join = ["a:4650", "b:9"] }
}`, want{client: true, rpc: []string{"a:4650"}, gossip: []string{"b:9"}})
	f("any free port is nobody's", `
ports { client_gossip = 0 }
client {
  enabled = true
  server_join { retry_join = ["a:0"] }
}`, want{client: true, rpc: []string{"a:0"}})
	f("simulated nodes only", `
client {
  enabled = true
  simulate = "shapes.hcl"
  servers = ["a"]
}`, want{rpc: []string{"a:4647"}})
	f("simulated nodes that gossip", `
client {
  enabled = true
  simulate = "shapes.hcl"
  simulate_gossip = true
  servers = ["a"]
}`, want{client: true, rpc: []string{"a:4647"}})
	f("simulated nodes beside a true one", `
client {
  enabled = true
  simulate = "shapes.hcl"
  simulate_beside = true
  servers = ["a"]
}`, want{client: true, rpc: []string{"a:4647"}})
	f("simulated nodes that would gossip, and do not", `
client {
  enabled = true
  gossip = false
  simulate = "shapes.hcl"
  simulate_gossip = true
  servers = ["a"]
}`, want{rpc: []string{"a:4647"}})
	dev := Default()
	dev.SetDev()
	if dev.ServerGossips() || dev.ClientGossips() {
		t.Error("-dev gossips with clients")
	}
}
