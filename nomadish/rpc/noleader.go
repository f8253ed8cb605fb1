package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// NoLeader returns why there is no leader, as far as this server knows, and what to do. It begins in Nomad's words, which programs
// look for.
func (r *Router) NoLeader() error {
	why, todo := r.leaderless()
	if why == "" {
		return structs.Errorf(structs.CodeNoLeader, "No cluster leader").WithHint("an election may be going on; try again")
	}
	return structs.Errorf(structs.CodeNoLeader, "No cluster leader: %s", why).WithHint("%s", todo)
}

// leaderless is why nobody can lead, as far as this server knows, and what to do; empty: it knows of nothing.
func (r *Router) leaderless() (why, todo string) {
	if r.Bootstrap != nil {
		if why, todo = r.Bootstrap.WhyNotBootstrapped(); why != "" {
			return why, todo
		}
	}
	there, voters, missing := r.voters()
	if majority := voters/2 + 1; voters > 0 && there < majority {
		return fmt.Sprintf("%d of %d servers can be seen, at least %d must be; missing: %s", there, voters, majority, strings.Join(missing, ", ")),
			"start those again; if they are lost for good, peers.json makes a cluster of those that are left: docs/guides/disaster-recovery.md"
	}
	return "", ""
}

const (
	// leaderWait is how long nobody may lead before that is logged: elections are over by then.
	leaderWait = 10 * time.Second
	// leaderAgain is the time between two lines of that.
	leaderAgain = time.Minute
)

// WatchLeader logs that nobody leads, when that lasts, and that somebody does again, until ctx ends.
func (r *Router) WatchLeader(ctx context.Context) {
	var lost time.Time // zero: somebody leads
	var due <-chan time.Time
	logged := false
	for {
		changed, leader := r.Leadership.Changed(), r.Leadership.Leader().Addr // in this order: none is missed
		switch {
		case leader == "" && lost.IsZero():
			lost, due = time.Now(), time.After(leaderWait)
		case leader != "":
			if logged {
				r.Logger.Info("there is a leader again", "leader", leader, "after", time.Since(lost).Round(time.Second))
			}
			lost, due, logged = time.Time{}, nil, false
		}
		select {
		case <-changed:
		case <-due:
			why, todo := r.leaderless()
			if why == "" {
				why, todo = "not known here: enough servers can be seen to elect one", "see the logs of the others"
			}
			r.Logger.Warn("no cluster leader", "for", time.Since(lost).Round(time.Second), "reason", why, "to_do", todo)
			logged, due = true, time.After(leaderAgain)
		case <-ctx.Done():
			return
		}
	}
}

// voters counts the servers that decide, and those of them that gossip sees, and names the others. This server itself is there.
func (r *Router) voters() (there, all int, missing []string) {
	if r.Cluster == nil || r.Gossip == nil {
		return 0, 0, nil
	}
	conf, err := r.Cluster.Configuration()
	if err != nil {
		return 0, 0, nil
	}
	alive := map[string]bool{r.ID: true}
	for _, m := range r.Gossip.Members() {
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
