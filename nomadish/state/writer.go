package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/historytable"
	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/nomadish/state/internal/jobcount"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/projecthistory"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/persist"
	"github.com/nomadish/nomadish/structs"
)

// Writer moves the state on. Only the FSM holds it, and it is for one goroutine. It
// has a method for each log entry type, but those of virtual clusters, projects and workflows, which
// [Writer.Apply] passes on to their tables. Each applies its entry as a whole or, when
// it answers with an error, not at all. Either way the store's index moves to the
// entry's, but see [Writer.Together]. Payloads may be kept by the state: their maker must not change them.
type Writer struct {
	store  *Store
	db     *memdb.MemDB
	group  *txn    // of entries that are applied together; nil: each is by itself
	unread *unread // see Unread; nil: what is written is read
}

// unread is what a writer that nobody reads changes in place.
type unread struct {
	tok    *persist.Token
	edit   *scheduler.Edit
	rows   *memtable.Overlay
	broken error // of an entry that was applied in part
	// remembers: somebody decides by what the history has of instances that are of no project: workflows lend by it.
	remembers bool
}

// Unread has what nobody reads be kept no longer, as the state is a fork of which only what the leader's parts decide by is wanted: of jobs that are of no
// workflow, their statuses, evaluations that have ended, the summaries of those of which no evaluation is open, how the nodes of instances were found and,
// unless there are workflows or it is of a project, the history of what has ended. All is changed in place: of Snapshots only the latest may be read, watched
// none of them, and the state must not be forked. If an entry is refused when something of it has been applied, so are all after it.
func (w *Writer) Unread() {
	rows := w.db.Txn(false)
	w.unread = &unread{
		remembers: memtable.Open(rows, false, TableWorkflows, byID).Next() != nil,
		tok:       persist.NewToken(), edit: scheduler.EditInPlace(w.store.current.Load().world), rows: memtable.NewOverlay(rows, schema()),
	}
}

// Drop has the changes up to an index kept no longer: all feeds have read them.
func (w *Writer) Drop(index uint64) { w.store.ring.Drop(index) }

// Together shows what apply does with entries as one step, and writes what they share
// once: the state is the same as after one entry at a time, but nobody sees it in
// between. If apply answers with an error, which it must if an entry's method does, or
// panics, none of the entries has been applied, and the index is as it was.
func (w *Writer) Together(apply func() error) error {
	x := w.begin()
	w.group = x
	defer func() {
		w.group = nil
		abort(x.db)
	}()
	if err := apply(); err != nil {
		return err
	}
	w.finish(x)
	return nil
}

// Changed is how many changes there are to be shown together as yet. Tables are made for some thousand of them in one
// step, not for more.
func (w *Writer) Changed() int {
	if w.group == nil {
		return 0
	}
	return w.group.changed
}

// Apply moves the state on by one entry of any type. The payload is what
// structs.NewLogPayload returns for the type.
func (w *Writer) Apply(index uint64, t structs.LogType, payload any) error {
	switch p := payload.(type) {
	case *structs.NodeRegisterEntry:
		return w.NodeRegister(index, p)
	case *structs.NodeDeregisterEntry:
		return w.NodeDeregister(index, p)
	case *structs.NodeStatusEntry:
		return w.NodeStatus(index, p)
	case *structs.NodeEligibilityEntry:
		return w.NodeEligibility(index, p)
	case *structs.NodeDrainEntry:
		return w.NodeDrain(index, p)
	case *structs.NodeEventsEntry:
		return w.NodeEvents(index, p)
	case *structs.JobRegisterEntry:
		return w.JobRegister(index, p)
	case *structs.JobDeregisterEntry:
		return w.JobDeregister(index, p)
	case *structs.JobScaleEntry:
		return w.JobScale(index, p)
	case *structs.EvalUpsertEntry:
		return w.EvalUpsert(index, p)
	case *structs.PlanCommit:
		return w.PlanApply(index, p)
	case *structs.AllocClientEntry:
		return w.AllocClient(index, p)
	case *structs.AllocTransitionEntry:
		return w.AllocTransition(index, p)
	case *structs.SchedulerConfigEntry:
		return w.SchedulerConfig(index, p)
	case *structs.AutopilotConfigEntry:
		return w.AutopilotConfig(index, p)
	case *structs.ClusterMetaEntry:
		return w.ClusterMeta(index, p)
	case *structs.SigningKeyEntry:
		return w.SigningKey(index, p)
	case *structs.NodePoolUpsertEntry:
		return w.NodePoolUpsert(index, p)
	case *structs.NodePoolDeleteEntry:
		return w.NodePoolDelete(index, p)
	case *structs.NamespaceUpsertEntry:
		return w.NamespaceUpsert(index, p)
	case *structs.NamespaceDeleteEntry:
		return w.NamespaceDelete(index, p)
	case *structs.LicenseUpsertEntry:
		return w.LicenseUpsert(index, p)
	case *structs.LicenseDeleteEntry:
		return w.LicenseDelete(index, p)
	case *structs.JobStabilityEntry:
		return w.JobStability(index, p)
	case *structs.CollectEntry:
		return w.Collect(index, p)
	case *structs.ReconcileEntry:
		return w.Reconcile(index, p)
	}
	return w.applyClaims(index, t, payload)
}

// Advance moves the index on without a change: for log entries that carry no
// command, or one that cannot be read.
func (w *Writer) Advance(index uint64) {
	if w.group != nil {
		w.group.upTo = max(w.group.upTo, index)
		return
	}
	now := w.store.current.Load()
	if index <= now.index {
		return
	}
	next := *now
	next.index, next.superseded = index, make(chan struct{})
	w.store.publish(&next, nil, nil, nil)
}

// txn is log entries being applied: tables and World together.
type txn struct {
	rows    tableRows
	db      *memdb.Txn // what is to be committed of them; nil: they are changed in place
	opts    *Options
	was     *view // that they begin with
	allocs  *alloctable.Edit
	past    *historytable.Edit
	edit    *scheduler.Edit
	tallies persist.Tree[indexkey.Hashed, *jobcount.Tally]
	live    projecthistory.Live
	tok     *persist.Token // of tallies and live
	upTo    uint64         // the index of the last entry
	marks   marks
	feed    []Changes // of the entries that have any
	changed int       // how many those are
	unread  bool      // see Writer.Unread
	// remembers is as of unread.
	remembers bool

	entry
}

// entry is the one log entry of a txn that is being applied now.
type entry struct {
	index   uint64
	now     int64  // the entry's time, Unix nanoseconds
	event   string // the event type of its changes
	seed    string // its evaluations' IDs derive from it; empty: it makes none
	minted  uint64
	changes []Change
	tables  tableSet // changed
	jobs    map[structs.NamespacedID]*counts
	moves   projecthistory.Moves
}

// begin begins with the state as it is.
func (w *Writer) begin() *txn {
	was := w.store.current.Load()
	x := &txn{opts: &w.store.opts, was: was, upTo: was.index, marks: was.marks, tallies: was.tallies, live: was.live}
	if u := w.unread; u != nil {
		x.rows, x.unread, x.remembers = u.rows, true, u.remembers
		x.allocs, x.past, x.edit, x.tok = was.allocs.EditInPlace(u.tok), was.past.EditInPlace(u.tok), u.edit, u.tok
		return x
	}
	x.db = w.db.Txn(true)
	x.rows = x.db
	x.allocs, x.past, x.edit, x.tok = was.allocs.Edit(), was.past.Edit(), was.world.Edit(), persist.NewToken()
	return x
}

// refused notes that an entry was, which has changed something in place if it has changed anything.
func (w *Writer) refused(x *txn, err error) {
	if w.unread != nil && (len(x.changes) > 0 || x.tables != tableSet{}) {
		w.unread.broken = structs.Errorf(structs.CodeInternal, "the fork is of no use any more, as an entry was refused of which something had been applied: %w", err)
	}
}

// commit applies one entry by f.
func (w *Writer) commit(index uint64, now int64, event, seed string, f func(*txn) error) error {
	if w.unread != nil && w.unread.broken != nil {
		return w.unread.broken
	}
	x := w.group
	if x == nil {
		x = w.begin()
		defer abort(x.db)
	}
	x.entry = entry{index: index, now: now, event: event, seed: seed, jobs: map[structs.NamespacedID]*counts{}}
	x.allocs.NextEntry()
	if err := f(x); err != nil {
		w.refused(x, err)
		w.Advance(index)
		return err
	}
	projects{x}.settle()
	claims{x}.settle()
	projects{x}.settleHistory()
	x.settle()
	x.upTo = max(x.upTo, index)
	x.marks.set(&x.tables, index, &x.was.marks)
	if len(x.changes) > 0 {
		x.feed = append(x.feed, Changes{Index: index, Items: x.changes})
		x.changed += len(x.changes)
	}
	if w.group == nil {
		w.finish(x)
	}
	return nil
}

// finish shows what the entries of x have made.
func (w *Writer) finish(x *txn) {
	next := &view{
		store: w.store, index: x.upTo, db: w.db, allocs: x.was.allocs, past: x.was.past, world: x.edit.World(),
		marks: x.marks, tallies: x.tallies, live: x.live,
		restored: x.was.restored, pending: &pendingCount{}, superseded: make(chan struct{}), abandoned: x.was.abandoned,
	}
	if x.moved(TableAllocs) {
		next.allocs = x.allocs.Commit()
	}
	if x.moved(TableHistory) {
		next.past = x.past.Commit()
	}
	if n := len(x.feed); n > 0 {
		w.store.fed.Store(x.feed[n-1].Index) // before anybody can see what the feed is still to report
	}
	w.store.publish(next, x.allocs.Touched(), x.feed, func() tableRows {
		if x.db == nil {
			return x.rows
		}
		x.db.Commit()
		return w.db.Txn(false)
	})
	if len(x.feed) > 0 {
		w.store.ring.Append(x.feed)
	}
}

// abort ends a transaction, if there is one; it has no effect once that was committed.
func abort(db *memdb.Txn) {
	if db != nil {
		db.Abort()
	}
}

// moved reports whether an entry has changed a table.
func (x *txn) moved(table string) bool {
	n := tableNumber(table)
	return x.marks[n].changed != x.was.marks[n].changed
}

// store writes a row. It fails only on a mistake in the schema.
func (x *txn) store(table string, row any) {
	if err := x.rows.Insert(table, row); err != nil {
		panic(fmt.Sprintf("state: store %T in %s: %v", row, table, err))
	}
}

// put stores a row and notes that its table has changed.
func (x *txn) put(table string, row any) {
	x.store(table, row)
	x.tables.add(table)
}

// drop removes a row that is there.
func (x *txn) drop(table string, row any) {
	if err := x.rows.Delete(table, row); err != nil {
		panic(fmt.Sprintf("state: remove %T from %s: %v", row, table, err))
	}
	x.tables.add(table)
}

// note adds a change to the feed. A nil pointer becomes a nil interface.
func note[T any](x *txn, kind Kind, key string, was, now *T) {
	x.changes = append(x.changes, Change{Kind: kind, Key: key, Old: memtable.OrNil(was), New: memtable.OrNil(now), Type: x.event})
}

// tableEdit is a txn as the packages of tables see it.
type tableEdit struct{ x *txn }

// entry returns the log entry.
func (t tableEdit) entry() memtable.Entry {
	return memtable.Entry{Rows: t.x.rows, Index: t.x.index, Now: t.x.now, Put: t.x.put, Drop: t.x.drop}
}

// notes returns what adds changes of a kind to the feed.
func (t tableEdit) notes(kind Kind) func(key string, was, now any) {
	return func(key string, was, now any) {
		t.x.changes = append(t.x.changes, Change{Kind: kind, Key: key, Old: was, New: now, Type: t.x.event})
	}
}

func (x *txn) time() time.Time { return timeOf(x.now) }

func timeOf(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

func sortedIDs[V any](m map[structs.NamespacedID]V) []structs.NamespacedID {
	return slices.SortedFunc(maps.Keys(m), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
}

// checkID refuses what cannot be a key.
func checkID(what, id string) error { return memtable.CheckKey(what, id) }
