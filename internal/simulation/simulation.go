package simulation

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// What one seed does at least before its faults stop.
const (
	minEntries = 5_000
	minFaults  = 500
)

const (
	// calm is how long, in virtual time, everything that can be placed may take when the faults
	// have stopped. It is long as clocks were wrong by up to maxSkew until then, and what was
	// to be done later was written down by them.
	calm    = 2*maxSkew + 5*time.Minute
	maxSkew = 5 * time.Minute
	// life bounds a seed in virtual time, so that one that stands still ends.
	life = 4 * time.Hour
	// kept is how many of the last steps a failure lists.
	kept = 60
)

// Result is what a seed did.
type Result struct {
	Seed     uint64
	Replicas int
	Nodes    int
	Steps    int // events of the timeline
	Entries  int // of the agreed log
	Plans    int // that were decided
	Placed   int // allocations
	Lost     int // nodes that were declared down
	Away     int // nodes that were declared disconnected
	Unknown  int // allocations of such
	Kept     int // nodes that were declared disconnected as only their RPC was lost
	Faults   map[string]int
	Kinds    map[structs.LogType]int // entries by type
	Calm     time.Duration           // virtual time from the last fault until nothing was left to be placed
	Virtual  time.Duration
	// Trace is the hash of all that happened, in its order.
	Trace string
}

// Total counts the faults.
func (r *Result) Total() (n int) {
	for _, k := range r.Faults { // order does not matter: a sum
		n += k
	}
	return n
}

// String is the result in one line.
func (r *Result) String() string {
	return fmt.Sprintf("seed %d: %d replicas, %d nodes, %d entries, %d faults, %d steps in %s, %d plans, %d placed, nodes %d times down and %d disconnected (%d of these kept) with %d allocations, calm after %s, trace %s",
		r.Seed, r.Replicas, r.Nodes, r.Entries, r.Total(), r.Steps, r.Virtual.Round(time.Second), r.Plans, r.Placed, r.Lost, r.Away, r.Kept, r.Unknown, r.Calm.Round(time.Second), r.Trace[:16])
}

// Failure is an invariant that was violated.
type Failure struct {
	Seed  uint64
	At    time.Duration // virtual time
	Index uint64        // of the agreed log
	What  string
	Last  []string // the last steps, oldest first
}

// Error implements error.
func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, after %s and %d entries: %s\nthe last steps:\n  %s\nrun it again: go test ./internal/simulation -run TestSeeds -seed %d",
		f.Seed, f.At, f.Index, f.What, strings.Join(f.Last, "\n  "), f.Seed)
}

// Run runs one seed. The error is a *Failure. It is the same each time.
func Run(seed uint64) (*Result, error) { return run(seed, seams{}, minEntries, minFaults) }

// sim is one run.
type sim struct {
	timeline
	*rand.Rand
	seams
	seed   uint64
	faults map[string]int
	result Result
	failed *Failure

	log       *agreed
	replicas  []*replica
	leader    *leader // nil: nobody leads
	clients   []*client
	prober    *prober // nil: clients do not gossip
	steady    bool    // leaders lead for long, so that they see through what takes them long
	users     *users
	tenants   *tenants   // nil: nobody owns anything
	workflows *workflows // nil: there are none
	checks    *checks

	minEntries, minFaults int
	quietAt               time.Duration // when the faults stopped; 0: they have not
	lastFault             time.Duration

	trace hash.Hash64
	last  []noted
	at    int // in last, where the next goes
}

// noted is a step that was done, to be reported when it goes wrong.
type noted struct {
	at   time.Duration
	who  int
	what string
}

// newSim returns a run that has been set up.
func newSim(seed uint64, broken seams, entries, faults int) *sim {
	s := &sim{
		Rand: rand.New(rand.NewPCG(seed, 0x6e6f6d6164697368)), seams: broken, seed: seed, faults: map[string]int{}, result: Result{Kinds: map[structs.LogType]int{}},
		trace: fnv.New64a(), last: make([]noted, kept), log: &agreed{}, minEntries: entries, minFaults: faults,
	}
	s.checks = newChecks(s)
	s.begin()
	return s
}

func run(seed uint64, broken seams, entries, faults int) (*Result, error) {
	s := newSim(seed, broken, entries, faults)
	for s.failed == nil {
		s.step()
		if s.over() {
			break
		}
	}
	s.end()
	s.result.Seed, s.result.Replicas, s.result.Nodes = seed, len(s.replicas), len(s.clients)
	s.result.Entries, s.result.Faults, s.result.Virtual = int(s.log.last()), s.faults, s.now // a small count
	s.result.Trace = hex.EncodeToString(s.trace.Sum(nil))
	if s.failed != nil {
		return &s.result, s.failed
	}
	return &s.result, nil
}

// step does what is next.
func (s *sim) step() {
	e := s.next()
	if e == nil || s.now > life {
		s.fail("nothing came to an end in %s of virtual time: %d entries, %d faults", life, s.log.last(), s.total())
		return
	}
	s.result.Steps++
	s.note(e.what, e.who)
	do := e.do
	e.do = nil
	do()
}

// begin sets everything up.
func (s *sim) begin() {
	count := 3
	if s.IntN(8) == 0 {
		count = 5
	}
	buffer := 0
	if s.IntN(3) == 0 {
		buffer = 20 + s.IntN(200) // so that those who follow the feed fall behind
	}
	for i := range count {
		s.replicas = append(s.replicas, newReplica(s, i, buffer))
	}
	s.tenants, s.workflows = newTenants(s), newWorkflows(s)
	s.prober, s.steady = newProber(s), s.IntN(3) == 0
	s.makeClients()
	s.users = newUsers(s)
	s.after(0, "elect", -1, s.elect)
	s.users.start()
	s.tenants.start()
	s.startFaults()
}

// end stops what would stay in memory.
func (s *sim) end() {
	if s.leader != nil {
		s.leader.stop()
	}
}

// over goes on to calm, and reports whether that has come.
func (s *sim) over() bool {
	if s.quietAt == 0 {
		if int(s.log.last()) >= s.minEntries && s.total() >= s.minFaults { // a small count
			s.quieten()
		}
		return false
	}
	return s.checks.calm
}

func (s *sim) total() (n int) {
	for _, k := range s.faults { // order does not matter: a sum
		n += k
	}
	return n
}

// fault counts a fault.
func (s *sim) fault(kind string, who int) {
	s.faults[kind]++
	s.lastFault = s.now
	s.note("FAULT "+kind, who)
}

// quiet reports whether faults have stopped.
func (s *sim) quiet() bool { return s.quietAt > 0 }

// chance is true once in n times, and never when faults have stopped.
func (s *sim) chance(n int) bool { return !s.quiet() && s.IntN(n) == 0 }

// spared reports whether a leader keeps its leadership, which a fault would have ended.
func (s *sim) spared() bool { return s.steady && s.IntN(8) > 0 }

// between is a time from a to below b.
func (s *sim) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.Int64N(int64(b-a)))
}

// newID mints an ID.
func (s *sim) newID() string {
	var random [10]byte
	binary.BigEndian.PutUint64(random[:], s.Uint64())
	binary.BigEndian.PutUint16(random[8:], uint16(s.Uint32())) // the lower half is meant
	return structs.MintedID(epoch.Add(s.now).UnixMilli(), random)
}

// note adds a step to the trace.
func (s *sim) note(what string, who int) {
	var at [16]byte
	binary.BigEndian.PutUint64(at[:], uint64(s.now)) // never negative
	binary.BigEndian.PutUint64(at[8:], uint64(who))  // a bit pattern
	_, _ = s.trace.Write(at[:])                      // never fails
	_, _ = s.trace.Write([]byte(what))               // never fails
	s.last[s.at%kept] = noted{s.now, who, what}
	s.at++
}

func (s *sim) notef(who int, format string, args ...any) { s.note(fmt.Sprintf(format, args...), who) }

// fail ends the run; only the first counts.
func (s *sim) fail(format string, args ...any) {
	if s.failed != nil {
		return
	}
	var last []string
	for i := range kept {
		if at := s.last[(s.at+i)%kept]; at.what != "" {
			last = append(last, fmt.Sprintf("%-14s #%d %s", at.at.Round(time.Microsecond), at.who, at.what))
		}
	}
	s.failed = &Failure{Seed: s.seed, At: s.now, Index: s.log.last(), What: fmt.Sprintf(format, args...), Last: last}
}

// one draws one of several.
func one[T any](s *sim, of ...T) T { return of[s.IntN(len(of))] }

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// forever is the context of what is never cancelled here: nothing waits.
var forever = context.Background()
