package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/hashicorp/go-memdb"
	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/nomadish/nomadish/nomadish/state/internal/alloctable"
	"github.com/nomadish/nomadish/nomadish/state/internal/historytable"
	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/nomadish/state/internal/rowcheck"
	"github.com/nomadish/nomadish/nomadish/state/internal/workflowtable"
	"github.com/nomadish/nomadish/structs"
)

// exported lists the tables in the order in which they are written, with an empty
// row of each. What is derived is not among them.
var exported = []struct {
	table string
	row   func() any
}{
	{tableIndexes, func() any { return &indexRow{} }},
	{TableConfig, func() any { return &structs.SchedulerConfiguration{} }},
	{TableCluster, func() any { return &structs.ClusterMeta{} }},
	{TableAutopilot, func() any { return &structs.AutopilotConfiguration{} }},
	{TableNodes, func() any { return &structs.Node{} }},
	{TableJobs, func() any { return &structs.Job{} }},
	{TableVersions, func() any { return &structs.Job{} }},
	{TableSummaries, func() any { return &structs.JobSummary{} }},
	{TableSubmissions, func() any { return &submissionRow{} }},
	{TableScaling, func() any { return &scalingRow{} }},
	{TableEvals, func() any { return &structs.Evaluation{} }},
	{TableReservations, func() any { return &structs.Reservation{} }},
	{TableRequests, func() any { return &structs.PendingRequest{} }},
	{TableAllocs, func() any { return &structs.Allocation{} }},
	{TableSigningKeys, func() any { return &structs.SigningKey{} }},
	{TableNodePools, func() any { return &structs.NodePool{} }},
	{TableNamespaces, func() any { return &structs.Namespace{} }},
	{TableVirtualClusters, func() any { return &structs.VirtualCluster{} }},
	{TableClaimsTime, func() any { return &structs.ClaimsTime{} }},
	{TableExchanges, func() any { return &structs.Exchange{} }},
	{TableFlows, func() any { return &structs.Flow{} }},
	{TableProjects, func() any { return &structs.Project{} }},
	{TableProjectWeeks, func() any { return &structs.ProjectWeek{} }},
	{TableProjectEdits, func() any { return &structs.CalendarEdit{} }},
	{TableProjectUsage, func() any { return &structs.ProjectUsage{} }},
	{TableProjectHistory, func() any { return &structs.ProjectHistory{} }},
	{TableWorkflows, func() any { return &structs.WorkflowRun{} }},
	{TableLicenses, func() any { return &structs.License{} }},
	{TableHistory, func() any { return &structs.HistoryRecord{} }},
}

// NewRow returns an empty row of a table to decode an exported one into.
func NewRow(table string) (any, error) {
	for _, e := range exported {
		if e.table == table {
			return e.row(), nil
		}
	}
	return nil, fmt.Errorf("table %q: unknown; the snapshot was written by a newer version", table)
}

// Export returns every row that is kept, in an order that is the same on every
// replica, until yield fails.
func (s *Snapshot) Export(yield func(table string, row any) error) error {
	for _, e := range exported {
		switch e.table {
		case tableIndexes:
			for r := range s.v.marks.all {
				if err := yield(tableIndexes, r); err != nil {
					return err
				}
			}
			continue
		case TableAllocs:
			if err := s.v.exportAllocs(yield); err != nil {
				return err
			}
			continue
		case TableHistory:
			for h := range s.v.past.All {
				if err := yield(TableHistory, h); err != nil {
					return err
				}
			}
			continue
		}
		it := memtable.Open(s.v.txn, false, e.table, byID)
		for row := it.Next(); row != nil; row = it.Next() {
			if err := yield(e.table, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *view) exportAllocs(yield func(table string, row any) error) error {
	for r := range v.allocs.All {
		if err := yield(TableAllocs, r.Whole()); err != nil {
			return err
		}
	}
	return nil
}

// canonical writes maps in the order of their keys, so that equal values give equal
// bytes. Otherwise it is as wire.Handle, but that it does not know the tag wire: what that leaves out of
// entries and snapshots is hashed all the same, or builds from before the tag would have other hashes.
var canonical = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString, h.Canonical = true, true
	h.MapType = reflect.TypeOf(map[string]any(nil))
	return h
}()

// Hash is over all that is kept: equal on replicas that have applied the same log,
// and before and after a snapshot is written and restored.
func (s *Snapshot) Hash() string {
	sum := sha256.New()
	enc := codec.NewEncoder(sum, canonical)
	err := s.Export(func(table string, row any) error {
		if err := enc.Encode(table); err != nil {
			return err
		}
		return enc.Encode(row)
	})
	if err != nil {
		return fmt.Sprintf("not hashable: %v", err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Import gathers the rows of a snapshot. Readers see nothing of it before Commit.
type Import struct {
	// Restored is what Snapshot.Restored returns for the new state.
	Restored uint64

	db      *memdb.MemDB
	txn     *memdb.Txn
	pending int
	allocs  *alloctable.Import
	past    *historytable.Edit
	marks   marks
}

// importBatch bounds a transaction of an import: larger ones cost more a row.
const importBatch = 2_000

// Import begins to gather rows that shall replace all there is.
func (w *Writer) Import() *Import {
	return &Import{db: newDB(), allocs: alloctable.NewImport(), past: new(historytable.Table).Edit(), marks: newMarks()}
}

// Add takes a row, of the type that NewRow returns for its table.
func (in *Import) Add(table string, row any) error {
	if err := CheckRow(table, row); err != nil {
		return err
	}
	if table == TableAllocs || table == TableHistory {
		return in.addRow(table, row)
	}
	if r, ok := row.(*indexRow); ok {
		return in.marks.put(r)
	}
	if in.txn == nil {
		in.txn = in.db.Txn(true)
	}
	if err := in.txn.Insert(table, row); err != nil {
		return fmt.Errorf("import a row of %s: %w", table, err)
	}
	in.pending++
	if in.pending == importBatch {
		in.end()
	}
	return nil
}

// addRow takes a row of a table that memdb does not keep.
func (in *Import) addRow(table string, row any) error {
	switch r := row.(type) {
	case *structs.Allocation:
		if table == TableAllocs {
			in.allocs.AddWhole(r)
			return nil
		}
	case *structs.HistoryRecord:
		if table == TableHistory {
			for _, s := range []*string{&r.Namespace, &r.JobID, &r.Type, &r.Group, &r.User, &r.NodeID, &r.NodeName, &r.ClientStatus, &r.Reason} {
				*s = in.allocs.Intern(*s)
			}
			in.past.Put(r)
			return nil
		}
	}
	return fmt.Errorf("import a row of %s: it is of type %T", table, row)
}

func (in *Import) end() {
	if in.txn != nil {
		in.txn.Commit()
	}
	in.txn, in.pending = nil, 0
}

// CheckRow refuses a row that no state could hold. What it lets pass, Import takes.
func CheckRow(table string, row any) error {
	switch r := row.(type) {
	case *structs.Job:
		return rowcheck.Job(r)
	case *structs.Allocation:
		r.Job = nil
		return rowcheck.Alloc(r)
	case *structs.Node:
		if err := rowcheck.NodeParts(r); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		return checkID("node ID", r.ID)
	case *structs.Evaluation:
		return rowcheck.Eval(r)
	case *structs.SigningKey:
		return checkID("signing key ID", r.KeyID)
	case *structs.NodePool:
		if err := r.Validate(); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	case *structs.VirtualCluster:
		if err := checkID("virtual cluster", r.Name); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	case *structs.Project:
		return checkID("project", r.Name)
	case *structs.Flow:
		return checkID("flow", r.Name)
	case *structs.ProjectWeek:
		return cmp.Or(checkID("project", r.Project), checkID("week", r.Week))
	case *structs.CalendarEdit:
		return checkID("project", r.Project)
	case *structs.ProjectUsage:
		return rowcheck.ProjectUsage(r)
	case *structs.ProjectHistory:
		return rowcheck.ProjectHistory(r)
	case *structs.WorkflowRun:
		return workflowtable.CheckRow(r)
	case *structs.License:
		if err := r.Validate(); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	case *structs.PendingRequest:
		if err := rowcheck.RequestRow(r); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	case nil:
		return fmt.Errorf("import a row of %s: it is missing", table)
	}
	return nil
}

// Commit replaces everything by what was imported, at an index. Readers see the old
// state or the new one, never a part; all watchers wake, and feeds fall behind.
func (w *Writer) Commit(in *Import, index uint64) {
	in.end()
	x := &txn{db: in.db.Txn(true), opts: &w.store.opts, allocs: in.allocs.Edit, entry: entry{index: index}}
	x.rows = x.db
	x.rebuildTallies()
	x.db.Commit()
	w.db = in.db
	was := w.store.current.Load()
	read, allocs := in.db.Txn(false), in.allocs.Commit()
	w.store.publish(&view{
		store: w.store, index: index, db: in.db, txn: read, allocs: allocs, past: in.past.Commit(), world: rebuild(read, allocs).World(),
		marks: in.marks, tallies: x.tallies, live: x.live, restored: in.Restored, pending: &pendingCount{},
		superseded: make(chan struct{}), abandoned: make(chan struct{}),
	}, nil, nil, nil)
	w.store.fed.Store(index)
	w.store.ring.Reset(index)
	close(was.abandoned)
}
