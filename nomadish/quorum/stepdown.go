package quorum

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// stepDowns is the set of servers that report that they step down, and why.
type stepDowns struct {
	mu  sync.Mutex
	why map[raft.ServerID]stepDown
}

type stepDown struct {
	why     string
	contact time.Duration // the true one
}

// judge makes autopilot count a server that steps down as not healthy: as one that never heard the leader.
func (a *stepDowns) judge(id raft.ServerID, why string, s *autopilot.ServerStats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if why == "" {
		delete(a.why, id)
		return
	}
	if a.why == nil {
		a.why = map[raft.ServerID]stepDown{}
	}
	a.why[id] = stepDown{why, s.LastContact}
	s.LastContact = -1
}

func (a *stepDowns) get(id raft.ServerID) (why string, contact time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why[id].why, a.why[id].contact
}
