package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/nomadish/worker"
	"github.com/nomadish/nomadish/structs"
)

// agreed is the log that a majority has agreed on, which never loses an entry, and what a
// leader had proposed that lost its leadership before anybody agreed.
type agreed struct {
	entries []entry
	tail    []entry
	owner   *replica // of the tail
}

// entry is one log entry. Without data it is Raft's own, with which a leader begins.
type entry struct {
	data    []byte
	kind    structs.LogType
	payload any    // as it was proposed; nil once it has been looked at
	answer  string // of the state that applied it first
	changed uint64 // what that changed, as a hash
}

func (a *agreed) last() uint64 { return uint64(len(a.entries)) }

func (a *agreed) at(index uint64) *entry { return &a.entries[index-1] }

// replica is one server: what it has on disk, and, while it is up, its state.
type replica struct {
	*sim
	id     int
	buffer int // of the feed
	skew   time.Duration

	up       bool
	cut      bool // it reaches nobody
	life     int  // counts its starts
	store    *state.Store
	machine  raft.FSM
	typicals *worker.Typicals
	workers  []*hand
	has      map[string]string // what its workers were given out, with its tokens
	lagging  bool              // it is to be brought further

	snapshot []byte // on disk
	snapAt   uint64
	snapHash string
}

func newReplica(s *sim, id, buffer int) *replica {
	r := &replica{sim: s, id: id, buffer: buffer}
	r.start()
	return r
}

// reachable reports whether it takes part.
func (r *replica) reachable() bool { return r.up && !r.cut }

// start starts the process: the state is what its snapshot says, until the log is replayed.
func (r *replica) start() {
	r.up = true
	r.life++
	store, writer := state.New(state.Options{EventBuffer: r.buffer, HistoryMax: 100, JobVersions: 3})
	r.store, r.machine = store, fsm.New(writer, store, hclog.NewNullLogger())
	if r.seams.machine != nil {
		r.machine = r.seams.machine(r.id, r.machine)
	}
	if r.snapshot != nil {
		r.restore(r.snapshot, r.snapAt, r.snapHash)
	}
	r.typicals = worker.NewTypicals()
	r.workers, r.has = nil, map[string]string{}
	assumed := worker.NewAssumed()
	for range 2 {
		r.workers = append(r.workers, newHand(r, assumed))
	}
	life := r.life
	r.after(r.between(20*time.Second, 3*time.Minute), "snapshot", r.id, func() { r.take(life) })
	r.replicate()
}

// crash ends the process; what it had in memory is gone.
func (r *replica) crash() {
	r.up, r.store, r.machine, r.workers = false, nil, nil, nil
	r.life++
}

// index is how far its state is.
func (r *replica) index() uint64 { return r.store.LatestIndex() }

// apply brings the state further, up to an index: one entry at a time where it is the first to apply it, else several at
// once, as Raft hands them over. How they are cut must not matter.
func (r *replica) apply(to uint64) (answer error) {
	for first := r.index() + 1; first <= to; {
		batch := r.batch(first, to)
		next := first + uint64(len(batch))
		for i, reply := range r.give(batch) {
			answer, _ = reply.(error)
			r.compare(first+uint64(i), answer)
		}
		if r.index() != next-1 {
			r.fail("replica %d is at index %d after entry %d", r.id, r.index(), next-1)
			return answer
		}
		r.checks.replica(r, next-1)
		first = next
	}
	return answer
}

// batch returns the entries that are to be applied next, of those up to an index.
func (r *replica) batch(first, to uint64) (batch []*raft.Log) {
	hashed := (first + hashEvery - 1) / hashEvery * hashEvery
	to = min(to, hashed, first+(first+3*uint64(r.id))%8) // replicas are few
	if r.buffer > 0 {
		to = first // its feed may not contain all that a batch changes
	}
	for index := first; index <= to; index++ {
		e := r.log.at(index)
		if e.answer == "" && index > first {
			break
		}
		entry := &raft.Log{Index: index, Type: raft.LogCommand, Data: e.data}
		if e.data == nil {
			entry.Type = raft.LogNoop
		}
		batch = append(batch, entry)
		if e.answer == "" {
			break
		}
	}
	return batch
}

// give has entries applied, and returns the answer to each.
func (r *replica) give(batch []*raft.Log) (answers []any) {
	if m, ok := r.machine.(raft.BatchingFSM); ok && len(batch) > 1 {
		return m.ApplyBatch(batch)
	}
	for _, entry := range batch {
		answers = append(answers, r.machine.Apply(entry))
	}
	return answers
}

// compare compares the answer to an entry, and what it has changed, with what it did elsewhere, or keeps it.
func (r *replica) compare(index uint64, answer error) {
	e, outcome := r.log.at(index), "done"
	if answer != nil {
		outcome = answer.Error()
	}
	changed := r.checks.changed(r, index)
	switch {
	case e.answer == "":
		e.answer, e.changed = outcome, changed
		r.checks.entry(r, index, e)
		e.payload = nil
	case e.answer != outcome || e.changed != changed:
		r.fail("entry %d of type %d: replica %d answers %q with changes %x, another %q with %x", index, e.kind, r.id, outcome, changed, e.answer, e.changed)
	}
}

// replicate brings a follower further, a little at a time.
func (r *replica) replicate() {
	if r.lagging || !r.up {
		return
	}
	r.lagging = true
	wait := r.between(time.Millisecond, 30*time.Millisecond)
	if r.chance(40) {
		r.fault("a follower lags", r.id)
		wait = r.between(100*time.Millisecond, 4*time.Second)
	}
	r.after(wait, "replicate", r.id, func() {
		r.lagging = false
		if !r.reachable() {
			return
		}
		if behind := r.log.last() - min(r.index(), r.log.last()); behind > 0 {
			r.apply(r.index() + 1 + r.Uint64N(behind)) //nolint:errcheck // what the state says to it is compared
		}
		if r.index() < r.log.last() {
			r.replicate()
		}
	})
}

// take writes a snapshot to its disk, now and then.
func (r *replica) take(life int) {
	if r.life != life {
		return
	}
	r.snapshot, r.snapAt, r.snapHash = r.persist()
	r.after(r.between(2*time.Minute, 6*time.Minute), "snapshot", r.id, func() { r.take(life) })
}

// persist returns a snapshot of its state, and the hash of that.
func (r *replica) persist() (data []byte, at uint64, hash string) {
	snap, err := r.machine.Snapshot()
	at, hash = r.index(), r.store.Snapshot().Hash()
	var out sink
	if err == nil {
		err = snap.Persist(&out)
		snap.Release()
	}
	if err != nil {
		r.fail("replica %d: take a snapshot at %d: %v", r.id, at, err)
	}
	return out.Bytes(), at, hash
}

// restore replaces the state by a snapshot: what comes of it is what the log yields.
func (r *replica) restore(data []byte, at uint64, hash string) {
	if err := r.machine.Restore(io.NopCloser(bytes.NewReader(data))); err != nil {
		r.fail("replica %d: restore the snapshot of %d: %v", r.id, at, err)
		return
	}
	snap := r.store.Snapshot()
	if got := snap.Hash(); snap.Index() != at || got != hash {
		r.fail("replica %d: the snapshot of %d was restored as index %d with hash %.8s, not %.8s", r.id, at, snap.Index(), got, hash)
	}
	r.checks.order(r)
}

// install brings a follower that is far behind up to date as Raft does when the entries that
// it lacks are not kept any more.
func (r *replica) install(from *replica) {
	data, at, hash := from.persist()
	if at > r.index() {
		r.restore(data, at, hash)
	}
}

// sink implements raft.SnapshotSink.
type sink struct{ bytes.Buffer }

// ID implements raft.SnapshotSink.
func (*sink) ID() string { return "simulated" }

// Close implements raft.SnapshotSink.
func (*sink) Close() error { return nil }

// Cancel implements raft.SnapshotSink.
func (s *sink) Cancel() error { return errCancelled }

var errCancelled = errors.New("the snapshot was not written")

// elect finds somebody to lead, if a majority can be reached.
func (s *sim) elect() {
	if s.leader != nil {
		return
	}
	var can []*replica
	for _, r := range s.replicas {
		if r.reachable() {
			can = append(can, r)
		}
	}
	if len(can) <= len(s.replicas)/2 {
		s.after(s.between(300*time.Millisecond, time.Second), "elect", -1, s.elect)
		return
	}
	r := can[s.IntN(len(can))]
	// What the last leader had proposed is agreed on by the next if that has it.
	if s.log.owner == r {
		s.log.entries = append(s.log.entries, s.log.tail...)
	}
	s.log.tail, s.log.owner = nil, nil
	if s.elected != nil {
		s.elected(s.log)
	}
	s.log.entries = append(s.log.entries, entry{})
	r.apply(s.log.last()) //nolint:errcheck // Raft's own entry says nothing
	s.leader = lead(r)
	s.note(fmt.Sprintf("leads from %d", s.log.last()), r.id)
	s.spread()
}

// spread has the followers brought further.
func (s *sim) spread() {
	for _, r := range s.replicas {
		if r.reachable() && r.index() < s.log.last() {
			r.replicate()
		}
	}
}
