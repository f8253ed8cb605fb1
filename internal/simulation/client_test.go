package simulation

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestHealthIsReportedAfterAnAgentsEnd: an agent that ends after a task has started, and before it has said whether it is healthy, says
// so when it is back, once; an update waits for that.
func TestHealthIsReportedAfterAnAgentsEnd(t *testing.T) {
	f := func(name string, edit func(*task), want int) {
		t.Helper()
		// Without faults, and without servers: what it reports stays with it.
		s := &sim{Rand: rand.New(rand.NewPCG(1, 1)), quietAt: 1, trace: fnv.New64a(), last: make([]noted, kept)}
		c := &client{sim: s, up: true, cut: true, tasks: map[string]*task{}, node: &structs.Node{NodeResources: &structs.NodeResources{}}}
		a := &structs.Allocation{ID: "a", ClientStatus: structs.AllocClientPending, Job: &structs.Job{Type: structs.JobTypeService}}
		c.consider(a)
		until := func(when string, over func() bool) {
			t.Helper()
			for end := s.now + time.Minute; !over(); {
				e := s.next()
				if e == nil || s.now > end {
					t.Fatalf("%s: it never came: %s", name, when)
				}
				e.do()
			}
		}
		reported := func() (n int) {
			for _, r := range c.reports {
				if r.DeploymentStatus.IsHealthy() {
					n++
				}
			}
			return n
		}
		until("running", func() bool { return len(c.reports) > 0 })
		edit(c.tasks["a"])
		for range 2 {
			c.end(false)
			c.back()
			at := s.now
			until("ten seconds", func() bool { return s.now > at+10*time.Second })
		}
		if n := reported(); n != want {
			t.Errorf("%s: %d times, want %d", name, n, want)
		}
	}
	f("it runs", func(*task) {}, 1)
	f("it sleeps", func(t *task) { t.suspended = true }, 0)
	f("it is to end", func(t *task) { t.stops = true }, 0)
}

// TestReplayHidesNothing: a replica that comes back applies what it lacks anew. What has changed on a node since is still news to a
// client that has not read it.
func TestReplayHidesNothing(t *testing.T) {
	t.Parallel()
	s := newSim(3, seams{}, minEntries, minFaults)
	defer s.end()
	for s.log.last() < 600 && s.failed == nil {
		s.step()
	}
	was := maps.Clone(s.checks.onNode)
	r := newReplica(s, len(s.replicas), 0) // as one that has lost its disk
	if err := r.apply(s.log.last() - 100); err != nil || s.failed != nil {
		t.Fatal(err, s.failed)
	}
	if len(was) == 0 || !maps.Equal(was, s.checks.onNode) {
		t.Errorf("the last entries that changed an allocation on a node were %v, and are %v", was, s.checks.onNode)
	}
}
