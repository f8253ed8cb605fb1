package rpc

import (
	"net"

	"github.com/nomadish/nomadish/structs"
)

// Reachable are the RPC addresses of the servers, without those that gossip takes for
// gone.
func (r *Router) Reachable() []string {
	conf, err := r.Cluster.Configuration()
	if err != nil {
		return nil
	}
	gone := map[string]bool{}
	members := r.Gossip.Members()
	for _, m := range members {
		if m.Status == structs.MemberFailed || m.Status == structs.MemberLeft {
			gone[net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"])] = true
		}
	}
	for _, m := range members { // one of another name may have been there before
		if m.Status == structs.MemberAlive {
			delete(gone, net.JoinHostPort(m.Tags["rpc_addr"], m.Tags["port"]))
		}
	}
	var out []string
	for _, s := range conf.Servers {
		if !gone[s.Address] || s.Leader {
			out = append(out, s.Address)
		}
	}
	return out
}
