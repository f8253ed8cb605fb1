package rpc

import (
	"fmt"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// noLeader says why nobody leads, as far as this server knows, and what to do. It begins in Nomad's words, which programs
// look for.
func (e *Endpoints) noLeader() error {
	why, todo := "", "an election may be going on; try again"
	if e.Founding != nil {
		if early, first := e.Founding.Unfounded(); early != "" {
			why, todo = early, first
		}
	}
	if why == "" {
		there, voters, missing := e.voters()
		if majority := voters/2 + 1; voters > 0 && there < majority {
			why = fmt.Sprintf("%d of %d servers can be seen, %d are needed; missing: %s", there, voters, majority, strings.Join(missing, ", "))
			todo = "start those again; if they are lost for good, peers.json makes a cluster of those that are left: docs/servers.md"
		}
	}
	if why != "" {
		return structs.Errorf(structs.CodeNoLeader, "No cluster leader: %s", why).WithHint("%s", todo)
	}
	return structs.Errorf(structs.CodeNoLeader, "No cluster leader").WithHint("%s", todo)
}

// voters counts the servers that decide, and those of them that gossip sees, and names the others. This server itself is there.
func (e *Endpoints) voters() (there, all int, missing []string) {
	if e.Cluster == nil || e.Gossip == nil {
		return 0, 0, nil
	}
	conf, err := e.Cluster.Configuration()
	if err != nil {
		return 0, 0, nil
	}
	alive := map[string]bool{e.ID: true}
	for _, m := range e.Gossip.Members() {
		if m.Status == structs.MemberAlive {
			alive[m.Tags["id"]] = true
		}
	}
	for _, s := range conf.Servers {
		switch {
		case !s.Voter:
			continue
		case alive[s.ID]:
			there++
		default:
			missing = append(missing, fmt.Sprintf("%s at %s", s.Node, s.Address))
		}
		all++
	}
	return there, all, missing
}
