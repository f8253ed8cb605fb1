package queue

import (
	"context"
	"time"

	"github.com/hashicorp/go-metrics"
)

// Stats counts what the queue contains.
type Stats struct {
	Ready   int            // may be taken now
	ReadyBy map[string]int // the same by job type
	Unacked int            // leased by workers
	// UnackedBy is the same by job type.
	UnackedBy map[string]int
	Waiting   int // delayed, backing off after a failure, or sent back to wait for a gate
	Pending   int // behind another evaluation of their job
	Blocked   int // waiting for room
	Escaped   int // of the blocked: any node may be what they wait for
}

// Stats counts now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{ReadyBy: map[string]int{}, UnackedBy: map[string]int{}}
	for key := range b.blocked.of { // order does not matter: a count
		if !key.entitled {
			s.Blocked++
		}
	}
	for kind := range b.gates.dequeued { // 0 as well, so that the gauge of a type falls
		s.ReadyBy[kind], s.UnackedBy[kind] = 0, 0
	}
	for key, q := range b.gates.ready { // order does not matter: sums
		s.ReadyBy[key.kind] += q.len()
		s.Ready += q.len()
	}
	for _, l := range b.serial {
		if l.next != nil {
			s.Pending++
		}
	}
	for _, it := range b.known {
		switch {
		case it.token != "":
			s.Unacked++
			s.UnackedBy[it.eval.Type]++
		case it.timer != nil || it.inBack > 0:
			s.Waiting++
		}
	}
	for _, g := range b.blocked.groups { // order does not matter: a sum
		if !g.key.entitled && g.known.EscapedComputedClass {
			for of := range g.users {
				s.Escaped += of.members
			}
		}
	}
	return s
}

// report keeps the gauges, with Nomad's names.
func (b *Broker) report(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		b.nudge()
		s := b.Stats()
		for name, n := range map[string]int{
			"total_ready": s.Ready, "total_unacked": s.Unacked, "total_waiting": s.Waiting, "total_pending": s.Pending,
		} {
			metrics.SetGauge([]string{"nomad", "broker", name}, float32(n))
		}
		for t, n := range s.ReadyBy {
			metrics.SetGauge([]string{"nomad", "broker", t, "ready"}, float32(n))
		}
		for t, n := range s.UnackedBy {
			metrics.SetGauge([]string{"nomad", "broker", t, "unacked"}, float32(n))
		}
		metrics.SetGauge([]string{"nomad", "blocked_evals", "total_blocked"}, float32(s.Blocked))
		metrics.SetGauge([]string{"nomad", "blocked_evals", "total_escaped"}, float32(s.Escaped))
		metrics.SetGauge([]string{"nomad", "blocked_evals", "total_quota_limit"}, 0) // there are no quotas
	}
}

// nudge has those look again that wait for what a worker has had for too long.
func (b *Broker) nudge() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.gates.pools { // order does not matter: each by itself
		b.gates.head(p, p.gate)
		b.gates.head(p, p.pass)
	}
}
