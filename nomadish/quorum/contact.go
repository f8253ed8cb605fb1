package quorum

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// contacts is when servers answered last, and how long they had not heard the leader then. Autopilot itself goes on with what
// one reported that does not answer any more.
type contacts struct {
	mu       sync.Mutex
	answered map[raft.ServerID]bool // when they were last called
	last     map[raft.ServerID]contact
}

type contact struct {
	at       time.Time
	reported autopilot.ServerStats
}

// note takes over who answered now.
func (c *contacts) note(now time.Time, answers map[raft.ServerID]*autopilot.ServerStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = map[raft.ServerID]bool{}
	for id, stats := range answers { // order does not matter: each for itself
		c.answered[id], c.last[id] = true, contact{now, *stats}
	}
}

// get is how long a server has not heard the leader, as far as is known: below 0 if it never answered. said is what it reported last.
func (c *contacts) get(id raft.ServerID, reported time.Duration, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered[id] {
		return reported
	}
	return c.silentLocked(id, now).LastContact
}

// silent is what is known of a server that does not answer.
func (c *contacts) silent(id raft.ServerID, now time.Time) *autopilot.ServerStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silentLocked(id, now)
}

func (c *contacts) silentLocked(id raft.ServerID, now time.Time) *autopilot.ServerStats {
	last, ok := c.last[id]
	if !ok {
		return &autopilot.ServerStats{LastContact: -1}
	}
	stats := last.reported
	stats.LastContact = max(stats.LastContact, 0) + now.Sub(last.at)
	return &stats
}
