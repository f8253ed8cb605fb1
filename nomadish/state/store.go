package state

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/allocwatch"
	"github.com/nomadish/nomadish/nomadish/state/internal/historytable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/jobcount"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecthistory"
	"github.com/nomadish/nomadish/nomadish/state/internal/ring"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// Options bound what is kept. HistoryMax and JobVersions shape the replicated
// state: they must be the same on every server of a cluster.
type Options struct {
	EventBuffer int // changes that the feed's ring keeps; 0: structs.DefaultEventBufferSize
	HistoryMax  int // history records kept; 0: structs.DefaultHistoryMax
	JobVersions int // versions kept of a job, tagged ones and those still running apart; 0: structs.DefaultJobTrackedVersions
}

// Store is the reader's side. Safe for concurrent use.
type Store struct {
	opts    Options
	current atomic.Pointer[view]
	// publishing is held from the commit of the tables until the view of them is current.
	publishing sync.RWMutex
	hub        allocwatch.Hub
	ring       *ring.Ring[Change]
	fed        atomic.Uint64 // see Fed
}

// view is everything at one index. It never changes once published.
type view struct {
	store      *Store
	index      uint64
	db         *memdb.MemDB // see Store.Fork
	txn        tableRows    // reading only
	allocs     *alloctable.Table
	past       *historytable.Table
	world      *scheduler.World
	marks      marks
	tallies    persist.Tree[indexkey.Hashed, *jobcount.Tally]
	live       projecthistory.Live
	pending    *pendingCount // see Requests.PendingOf
	restored   uint64        // see Snapshot.Restored
	superseded chan struct{} // closed when a newer view is published
	abandoned  chan struct{} // closed when a restore replaces all tables
}

// pendingCount is how many instances are pending by project, counted once.
type pendingCount struct {
	once  sync.Once
	count map[string]int
}

// New makes an empty store and its only writer, which is the FSM's.
func New(opts Options) (*Store, *Writer) {
	if opts.EventBuffer <= 0 {
		opts.EventBuffer = structs.DefaultEventBufferSize
	}
	if opts.HistoryMax <= 0 {
		opts.HistoryMax = structs.DefaultHistoryMax
	}
	if opts.JobVersions <= 0 {
		opts.JobVersions = structs.DefaultJobTrackedVersions
	}
	s := &Store{opts: opts, ring: ring.New[Change](opts.EventBuffer)}
	w := &Writer{store: s, db: newDB()}
	s.current.Store(&view{
		store: s, db: w.db, txn: w.db.Txn(false), allocs: &alloctable.Table{}, past: &historytable.Table{}, world: scheduler.NewWorld(),
		marks: newMarks(), pending: &pendingCount{}, superseded: make(chan struct{}), abandoned: make(chan struct{}),
	})
	return s, w
}

// Fork returns a store that begins with the state of this one as it is now, and its only writer. What is written there is not seen here, nor the
// reverse. It takes as good as no time: the two share all that neither has changed since.
func (s *Store) Fork(eventBuffer int) (*Store, *Writer) {
	s.publishing.RLock() // else the tables might be newer than the view of them
	was := s.current.Load()
	db := was.db.Snapshot()
	s.publishing.RUnlock()
	opts := s.opts
	opts.EventBuffer = eventBuffer
	fork := &Store{opts: opts, ring: ring.New[Change](eventBuffer)}
	now := *was
	now.store, now.db, now.txn = fork, db, db.Txn(false)
	now.marks = newMarks()
	for i := range now.marks {
		now.marks[i].index = was.marks[i].index
	}
	now.pending, now.superseded, now.abandoned = &pendingCount{}, make(chan struct{}), make(chan struct{})
	fork.current.Store(&now)
	fork.fed.Store(now.index)
	return fork, &Writer{store: fork, db: db}
}

func newDB() *memdb.MemDB {
	db, err := memdb.NewMemDB(schema())
	if err != nil { // the schema is a constant: this is a mistake in tables.go
		panic(fmt.Sprintf("state schema: %v", err))
	}
	return db
}

// publish makes v the newest view and wakes those that wait for its index or for
// allocations that it changed. commit, if not nil, commits the tables of v, which wakes
// their watchers, and opens them: they find v, because a [WatchSet] looks for the end of
// what is being published before it lets its reader go on.
func (s *Store) publish(v *view, groups []alloctable.GroupRef, feed []Changes, commit func() tableRows) {
	s.publishing.Lock()
	if commit != nil {
		v.txn = commit()
	}
	s.hub.Lock()
	old := s.current.Swap(v)
	s.hub.Notify(old.allocs, v.allocs, groups, changedAllocs(feed))
	s.hub.Unlock()
	s.publishing.Unlock()
	old.marks.wake(&v.marks)
	close(old.superseded)
}

// published returns when what is being published now, if anything is, can be seen.
func (s *Store) published() {
	s.publishing.RLock()
	defer s.publishing.RUnlock()
}

// Snapshot is the state now, in O(1).
func (s *Store) Snapshot() *Snapshot { return &Snapshot{v: s.current.Load()} }

// Fed is the index of the last commit that changed anything that the feed reports: a feed
// has given it, or will without further ado. It covers every snapshot that was taken
// before the call.
func (s *Store) Fed() uint64 { return s.fed.Load() }

// LatestIndex is the index of the last entry applied.
func (s *Store) LatestIndex() uint64 { return s.current.Load().index }

// WaitIndex waits until the entry at index was applied, and returns the state then or
// later. The error is ctx's.
func (s *Store) WaitIndex(ctx context.Context, index uint64) (*Snapshot, error) {
	for {
		v := s.current.Load()
		if v.index >= index {
			return &Snapshot{v: v}, nil
		}
		select {
		case <-v.superseded:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for index %d, at %d: %w", index, v.index, ctx.Err())
		}
	}
}

// Snapshot is the state at one index. What its reads return is shared: never change
// it. Safe for concurrent use.
type Snapshot struct{ v *view }

// Index is the index of the last entry that the snapshot holds.
func (s *Snapshot) Index() uint64 { return s.v.index }

// World is what the scheduler sees, at the same index.
func (s *Snapshot) World() *scheduler.World { return s.v.world }

// TableIndex is the index that last changed the table, at least 1: the index that a
// read of a list, or of something that is not there, answers with.
func (s *Snapshot) TableIndex(table string) uint64 {
	return max(1, s.v.marks[tableNumber(table)].index, s.v.restored)
}

// WrittenIndex is TableIndex, but 0 where nothing was ever written to the table. A query that does not block answers with it,
// as Nomad does.
func (s *Snapshot) WrittenIndex(table string) uint64 {
	return max(s.v.marks[tableNumber(table)].index, s.v.restored)
}

// Restored is the index at which an operator put the state of an earlier time in place of
// the one there was; 0: nobody did. All that is read has changed then, whatever the index
// states that a row was changed at.
func (s *Snapshot) Restored() uint64 { return s.v.restored }
