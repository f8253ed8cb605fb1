package nomadish

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// virtualChecks know what must hold, and note what does not.
type virtualChecks struct {
	mu       sync.Mutex
	leaders  map[uint64]string // by term
	entries  map[uint64]string // by index, with who was the first to apply it
	sums     map[uint64]uint64
	deeds    []*deed
	acked    uint64 // the highest index that somebody was told
	job      string // the job that was registered last, as somebody was told
	jobAt    uint64 // the index of that
	counts   map[string]int
	wrong    []string
	reported map[string]int // how often, by kind
}

// What a writer was told of its entry.
const (
	fateReported = "acknowledged"
	fateOpen     = "left open"
	fateRefused  = "refused"
)

// deed is one entry of a writer, of which there is no second.
type deed struct {
	kind  structs.LogType
	id    string
	fate  string
	index uint64 // if it was acknowledged; 0: it is not known
	at    string // the server
}

func (d *deed) String() string {
	return fmt.Sprintf("entry of type %d for %s, which %s %s (index %d)", d.kind, d.id, d.at, d.fate, d.index)
}

func newVirtualChecks() *virtualChecks {
	return &virtualChecks{leaders: map[uint64]string{}, entries: map[uint64]string{}, sums: map[uint64]uint64{}, counts: map[string]int{}, reported: map[string]int{}}
}

// fail notes what is wrong; the first of a kind are enough.
func (v *virtualChecks) fail(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failLocked(format, args...)
}

func (v *virtualChecks) failLocked(format string, args ...any) {
	if v.reported[format]++; v.reported[format] <= 5 {
		v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
	}
}

// found is what is wrong.
func (v *virtualChecks) found() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.wrong)
}

// count counts what happened.
func (v *virtualChecks) count(what string, n ...int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n == nil {
		v.counts[what]++
	}
	for _, n := range n {
		v.counts[what] += n
	}
}

// happened lists what was counted.
func (v *virtualChecks) happened() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		out = append(out, fmt.Sprintf("%d %s", v.counts[what], what))
	}
	return strings.Join(out, ", ")
}

// led takes note of who leads a term: nobody else may.
func (v *virtualChecks) led(term uint64, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch was := v.leaders[term]; was {
	case id:
	case "":
		v.leaders[term] = id
		v.counts["terms led"]++
	default:
		v.failLocked("%s and %s lead in term %d", was, id, term)
	}
}

// applied takes note of an entry that a server applies: all apply the same one at an index.
func (v *virtualChecks) applied(server string, l *raft.Log) {
	sum := fnv.New64a()
	_ = binary.Write(sum, binary.BigEndian, l.Term) // never fails
	_, _ = sum.Write([]byte{byte(l.Type)})          // never fails
	_, _ = sum.Write(l.Data)                        // never fails
	v.mu.Lock()
	defer v.mu.Unlock()
	if first, seen := v.entries[l.Index]; !seen {
		v.entries[l.Index], v.sums[l.Index] = server, sum.Sum64()
	} else if v.sums[l.Index] != sum.Sum64() {
		v.failLocked("%s applies another entry at index %d than %s has", server, l.Index, first)
	}
}

// done takes note of a deed and what was said of it.
func (v *virtualChecks) done(d *deed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.deeds = append(v.deeds, d)
	v.counts["writes "+d.fate]++
	if d.fate == fateReported {
		v.acked = max(v.acked, d.index)
		if d.kind == structs.LogJobRegister && d.index > v.jobAt {
			v.job, v.jobAt = d.id, d.index
		}
	}
}

// notices is the highest index that somebody was told by now.
func (v *virtualChecks) notices() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.acked
}

// newest is the job whose registration was acknowledged last; empty: none.
func (v *virtualChecks) newest() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.job
}

// created is the index at which a deed's object came into a state; 0: it is not there.
func (d *deed) created(snap *state.Snapshot) uint64 {
	switch d.kind {
	case structs.LogJobRegister:
		if job := snap.Job(nil, structs.DefaultNamespace, d.id); job != nil {
			return job.CreateIndex
		}
	case structs.LogNodeRegister:
		if n := snap.Node(nil, d.id); n != nil {
			return n.CreateIndex
		}
	default:
		if e := snap.Eval(nil, d.id); e != nil {
			return e.CreateIndex
		}
	}
	return 0
}

// states compares the servers' states, which have come as far as each other, with each other and with what was promised.
func (v *virtualChecks) states(names []string, snaps []*state.Snapshot) {
	first := snaps[0].Hash()
	for i, snap := range snaps {
		if hash := snap.Hash(); hash != first {
			v.fail("at index %d the state of %s has hash %.8s, that of %s %.8s", snap.Index(), names[i], hash, names[0], first)
		}
		report, err := check.Run(context.Background(), snap, check.Options{})
		if err != nil {
			v.fail("check the state of %s: %v", names[i], err)
			continue
		}
		for _, f := range report.Faults {
			v.fail("%s: %s: %s %s: %s", names[i], f.Rule, f.Kind, f.ID, f.What)
		}
	}
	v.votes(names, snaps)
}

// votes looks whether what writers were told is so.
func (v *virtualChecks) votes(names []string, snaps []*state.Snapshot) {
	v.mu.Lock()
	deeds := slices.Clone(v.deeds)
	v.mu.Unlock()
	for _, d := range deeds {
		v.kept(d, names, snaps)
	}
}

// kept looks whether what was said of a deed is so, on all servers alike.
func (v *virtualChecks) kept(d *deed, names []string, snaps []*state.Snapshot) {
	on := d.created(snaps[0])
	for i, snap := range snaps {
		at := d.created(snap)
		switch {
		case d.fate == fateReported && at == 0:
			v.fail("%s: %s has it not", d, names[i])
		case d.fate == fateReported && d.index > 0 && at != d.index:
			v.fail("%s: %s has it of index %d", d, names[i], at)
		case d.fate == fateRefused && at > 0:
			v.fail("%s: %s has it all the same, of index %d", d, names[i], at)
		case at != on:
			v.fail("%s: %s has it of index %d, %s of %d", d, names[i], at, names[0], on)
		}
	}
}

const (
	lookEvery = 5 * time.Millisecond
	// mended is by when a leader is there and takes a write once all faults have ended. Raft itself rests up to 10 s before it
	// tries again to reach a follower.
	mended = 20 * time.Second
	// alike is by when all servers have come as far as each other after that.
	alike = time.Minute
)

// lives waits until one of some servers leads and takes a write.
func (c *virtualCluster) lives(among []int, what string) {
	began := time.Now()
	for time.Since(began) < mended {
		for _, i := range among {
			ok := false
			c.servers[i].use(func(l *virtualLife) {
				if l.leader.leading() {
					ok = c.write(l, c.servers[i].cfg.Name, c.dice) == fateReported
				}
			})
			if ok {
				c.checks.count("ms until a write was taken", int(time.Since(began)/time.Millisecond))
				c.checks.count("waits for a write")
				return
			}
		}
		time.Sleep(lookEvery)
	}
	c.checks.fail("%s: for %s nobody has led and taken a write (%s)", what, mended, c.describe())
}

// describe returns what the servers think of themselves.
func (c *virtualCluster) describe() string {
	var out []string
	for _, s := range c.servers {
		what := s.cfg.Name + ": down"
		s.use(func(l *virtualLife) {
			what = fmt.Sprintf("%s: %s, term %d, log up to %d, applied %d, state %d, leads: %v, its parts run since term %d",
				s.cfg.Name, l.State(), l.CurrentTerm(), l.LastIndex(), l.AppliedIndex(), l.store.LatestIndex(), l.leader.leading(), l.leader.established.Load())
		})
		out = append(out, what)
	}
	return strings.Join(out, "; ")
}

// settleAlike waits until all servers have come as far as each other and one alone runs what a leader runs, and compares them.
func (c *virtualCluster) settleAlike() {
	var names []string
	var snaps []*state.Snapshot
	for began := time.Now(); time.Since(began) < alike; time.Sleep(lookEvery) {
		names, snaps = nil, nil
		leading, established := 0, 0
		for _, s := range c.servers {
			s.use(func(l *virtualLife) {
				names, snaps = append(names, s.cfg.Name), append(snaps, l.store.Snapshot())
				if l.leader.leading() {
					leading++
				}
				if l.leader.established.Load() > 0 {
					established++ // of those that led once the parts have ended
				}
			})
		}
		same := len(snaps) == len(c.servers) && leading == 1 && established == 1
		for _, snap := range snaps {
			same = same && snap.Index() == snaps[0].Index() && snap.Index() >= c.checks.notices()
		}
		if same {
			c.checks.states(names, snaps)
			return
		}
	}
	c.checks.fail("for %s not all servers have come as far as each other, or not one alone leads (told: %d; %s)", alike, c.checks.notices(), c.describe())
	if len(snaps) > 0 {
		c.checks.votes(names, snaps)
	}
}

// watch looks at who leads, and reads as users do, until ctx ends.
func (c *virtualCluster) watch(ctx context.Context, d *dice) {
	for ctx.Err() == nil {
		time.Sleep(d.between(time.Millisecond, 2*lookEvery))
		for _, s := range c.servers {
			s.use(func(l *virtualLife) { c.look(ctx, s, l) })
		}
	}
}

// readLimit is how long a user waits for an answer.
const readLimit = 500 * time.Millisecond

// read reads, as a user does, whether there is a job.
func (l *virtualLife) read(ctx context.Context, id string, stale bool) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	reply := &structs.JobReply{}
	err = l.mux.Local(ctx, wire.MethodJobGet, &structs.IDRequest{ID: id, QueryOptions: structs.QueryOptions{AllowStale: stale}}, reply)
	return reply.Job != nil, err
}

// look reads, at a server that takes itself for the leader, what somebody was told last.
func (c *virtualCluster) look(ctx context.Context, s *virtualServer, l *virtualLife) {
	newest := c.checks.newest()
	if !l.leader.leading() || newest == "" {
		return
	}
	if term := l.leader.established.Load(); term > 0 {
		c.checks.led(term, s.id)
	}
	there, err := l.read(ctx, newest, false)
	if err != nil {
		return
	}
	c.checks.count("reads")
	if !there {
		c.checks.fail("%s answers a read from an old state: job %s, whose registration had been acknowledged, is not there", s.cfg.Name, newest)
	}
}
