package worker

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// How typical requests are learned.
const (
	// typicalEvery is how long what was learned is used though jobs have changed.
	typicalEvery = 10 * time.Second
	// typicalJobs is how many jobs are looked at, and typicalRequestKeys how many request keys
	// are distinguished among them.
	typicalJobs        = 10_000
	typicalRequestKeys = 4096
)

// Typicals learns what a server's cluster typically has to place: from all jobs that the
// state knows, those that wait, those that run and those that have ended and are not
// forgotten yet. It is safe for use by many goroutines.
type Typicals struct {
	mu       sync.Mutex
	requests []structs.TypicalRequest
	version  int // of requests; 0: nothing was learned yet
	index    uint64
	at       time.Time
	once     bool // what was learned first is used for ever
	// first, not nil, is the state that it is learned from, whatever is seen first.
	first *state.Snapshot
}

// NewTypicals makes one that has learned nothing.
func NewTypicals() *Typicals { return &Typicals{} }

// LearnOnce returns one that learns from the first state that it sees alone: for forecasts, whose jobs are those of that state.
func LearnOnce() *Typicals { return &Typicals{once: true} }

// LearnFrom returns one that learns from a state alone, when something is needed of it first: for the runs of a forecast beside each other, which begin with it.
func LearnFrom(snap *state.Snapshot) *Typicals { return &Typicals{once: true, first: snap} }

// learn returns what is typically requested, and a number that changes with it.
func (t *Typicals) learn(snap *state.Snapshot, now time.Time) ([]structs.TypicalRequest, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	index := snap.TableIndex(state.TableJobs)
	if t.version == 0 || !t.once && index > t.index && now.Sub(t.at) >= typicalEvery {
		if t.first != nil {
			snap, t.first = t.first, nil
		}
		t.requests, t.index, t.at = typicalRequests(snap), index, now
		t.version++
	}
	return t.requests, t.version
}

// typicalRequests counts the instances that jobs want, by what each of them wants. It is
// the same for the same snapshot.
func typicalRequests(snap *state.Snapshot) []structs.TypicalRequest {
	var requests []structs.TypicalRequest
	at := map[string]int{}
	jobs := 0
	for job := range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		if jobs++; jobs > typicalJobs {
			break
		}
		for _, g := range job.TaskGroups {
			key := requestKeyOf(job, g)
			i, known := at[key]
			if !known {
				if len(requests) == typicalRequestKeys {
					continue
				}
				i = len(requests)
				at[key] = i
				requests = append(requests, structs.TypicalRequest{Job: job, Group: g})
			}
			requests[i].Weight += int64(max(1, g.Count))
		}
	}
	return requests
}

// requestKeyOf is equal for groups that want as much of nodes that are as good for both.
func requestKeyOf(j *structs.Job, g *structs.TaskGroup) string {
	var b strings.Builder
	constraints := func(list []*structs.Constraint) {
		for _, c := range list {
			fmt.Fprintf(&b, "%q %q %q,", c.LTarget, c.Operand, c.RTarget)
		}
	}
	fmt.Fprintf(&b, "%q %q;", j.NodePool, j.Datacenters)
	constraints(j.Constraints)
	constraints(g.Constraints)
	for _, t := range g.Tasks {
		fmt.Fprintf(&b, ";%q ", t.Driver)
		constraints(t.Constraints)
		if t.Resources == nil {
			continue
		}
		fmt.Fprintf(&b, " %d %d %d", t.Resources.CPU, t.Resources.Cores, t.Resources.MemoryMB)
		for _, d := range t.Resources.Devices {
			fmt.Fprintf(&b, " %q %d %d ", d.Name, d.Count, d.Share)
			constraints(d.Constraints)
		}
	}
	return b.String()
}

// For returns what the scheduler keeps room for when it decides a job, for one goroutine;
// nil: the policy does not need it, or no node has devices.
func (t *Typicals) For(snap *state.Snapshot, job *structs.Job, c *structs.SchedulerConfiguration) *scheduler.Typical {
	l := learner{from: t}
	return l.typical(snap, job, c)
}

// learner is what one scheduler has learned, made ready for it. It is for one goroutine
// at a time.
type learner struct {
	from    *Typicals
	clock   clock.Clock // nil: the machine's
	made    *scheduler.Typical
	version int
}

// typical is For, with what it made the last time as long as that is valid.
func (l *learner) typical(snap *state.Snapshot, job *structs.Job, c *structs.SchedulerConfiguration) *scheduler.Typical {
	policy := c.NodeOrder()
	if job != nil && job.Policy != "" {
		policy = job.Policy
	}
	if policy != structs.PolicyLeastFragmentation || !snap.World().HasDevices() {
		return nil
	}
	requests, version := l.from.learn(snap, clock.Or(l.clock).Now())
	if version != l.version {
		l.made, l.version = scheduler.NewTypical(requests), version
	}
	return l.made
}
