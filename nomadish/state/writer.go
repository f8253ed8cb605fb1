package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// Writer moves the state on. Only the FSM holds it, and it is for one goroutine. It
// has a method for each log entry type; each applies its entry as a whole or, when
// it answers with an error, not at all. Either way the store's index moves to the
// entry's. Payloads may be kept by the state: their maker must not change them.
type Writer struct {
	store *Store
	db    *memdb.MemDB
}

// Apply moves the state on by one entry of any type. The payload is what
// structs.NewLogPayload gives for the type.
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
	case *structs.JobStabilityEntry:
		return w.JobStability(index, p)
	case *structs.CollectEntry:
		return w.Collect(index, p)
	case *structs.ReconcileEntry:
		return w.Reconcile(index, p)
	}
	return w.commit(index, 0, "", "", func(*txn) error {
		return structs.Errorf(structs.CodeInternal, "log entry type %d with a payload of type %T: unknown", t, payload)
	})
}

// Advance moves the index on without a change: for log entries that carry no
// command, or one that cannot be read.
func (w *Writer) Advance(index uint64) {
	now := w.store.current.Load()
	if index <= now.index {
		return
	}
	next := *now
	next.index, next.superseded = index, make(chan struct{})
	w.store.publish(&next, nil, nil, nil)
}

// txn is one log entry being applied: tables and World together.
type txn struct {
	*memdb.Txn
	opts    *Options
	index   uint64
	now     int64  // the entry's time, Unix nanoseconds
	event   string // the event type of its changes
	seed    string // its evaluations' IDs derive from it; empty: it makes none
	minted  uint64
	allocs  *allocEdit
	past    *historyEdit
	edit    *scheduler.Edit
	changes []Change
	tables  tableSet // changed
	tallies tree[label, *tally]
	tok     *token // of tallies
	jobs    map[structs.NamespacedID]*counts
}

// commit applies one entry by f.
func (w *Writer) commit(index uint64, now int64, event, seed string, f func(*txn) error) error {
	was := w.store.current.Load()
	x := &txn{
		Txn: w.db.Txn(true), opts: &w.store.opts, index: index, now: now, event: event, seed: seed,
		allocs: was.allocs.edit(), past: was.past.edit(), edit: was.world.Edit(), tallies: was.tallies, tok: &token{}, jobs: map[structs.NamespacedID]*counts{},
	}
	defer x.Abort() // has no effect once committed
	if err := f(x); err != nil {
		w.Advance(index)
		return err
	}
	x.settle()
	next := &view{
		store: w.store, index: max(index, was.index), allocs: was.allocs, past: was.past, world: x.edit.World(),
		marks: was.marks.set(&x.tables, index), tallies: x.tallies,
		restored: was.restored, superseded: make(chan struct{}), abandoned: was.abandoned,
	}
	if x.tables.has(TableAllocs) {
		next.allocs = x.allocs.table()
	}
	if x.tables.has(TableHistory) {
		next.past = x.past.table()
	}
	if len(x.changes) > 0 {
		w.store.fed.Store(index) // before anybody can see what the feed is still to tell
	}
	w.store.publish(next, x.allocs.touched, x.changes, func() *memdb.Txn {
		x.Commit()
		return w.db.Txn(false)
	})
	if len(x.changes) > 0 {
		w.store.ring.append(Changes{Index: index, Items: x.changes})
	}
	return nil
}

// store writes a row. It fails only on a mistake in the schema.
func (x *txn) store(table string, row any) {
	if err := x.Insert(table, row); err != nil {
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
	if err := x.Delete(table, row); err != nil {
		panic(fmt.Sprintf("state: remove %T from %s: %v", row, table, err))
	}
	x.tables.add(table)
}

// note adds a change to the feed. A nil pointer becomes a nil interface.
func note[T any](x *txn, kind Kind, key string, was, now *T) {
	c := Change{Kind: kind, Key: key, Type: x.event}
	if was != nil {
		c.Old = was
	}
	if now != nil {
		c.New = now
	}
	x.changes = append(x.changes, c)
}

func (x *txn) time() time.Time { return timeOf(x.now) }

func timeOf(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }

func sortedIDs[V any](m map[structs.NamespacedID]V) []structs.NamespacedID {
	return slices.SortedFunc(maps.Keys(m), func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
}

// checkID refuses what cannot be a key.
func checkID(what, id string) error {
	switch {
	case id == "":
		return structs.Errorf(structs.CodeBadRequest, "%s: empty", what)
	case len(id) > 1024:
		return structs.Errorf(structs.CodeTooLarge, "%s of %d bytes: allowed are 1024", what, len(id))
	case strings.ContainsRune(id, 0):
		return structs.Errorf(structs.CodeBadRequest, "%s %q: holds a zero byte", what, id)
	}
	return nil
}

func checkJobID(ns, id string) error {
	if err := checkID("namespace", ns); err != nil {
		return err
	}
	return checkID("job ID", id)
}

func missing(what, id string) error {
	return structs.Errorf(structs.CodeNotFound, "%s %q: not found", what, id)
}
