// Package claimtable is what the state keeps of what namespaces own: their virtual clusters, the time up to which what these own has been
// moved on, and the offers and bids that are not settled (docs/design/semantics.md, part 2). It does not know jobs and allocations: nomadish/state
// evaluates the jobs that a change concerns, and writes back what has lost its claim by one.
package claimtable

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// The tables.
const (
	VirtualClusters = "virtual_clusters"
	ClaimsTime      = "claims_time" // one row
	Exchanges       = "exchanges"
)

// Indexes of the tables.
const (
	byID      = memtable.ByID
	byPrefix  = memtable.ByPrefix
	byPending = "pending" // virtual clusters with an edit, or cells, that wait
)

// Indexes returns the tables with their indexes.
func Indexes() map[string][]*memtable.Index {
	return map[string][]*memtable.Index{
		VirtualClusters: {
			memtable.UniqueBy(func(v *structs.VirtualCluster) []byte { return memtable.Key(v.Name) }),
			memtable.Also(byPending, func(v *structs.VirtualCluster) []byte {
				if !v.Waits() {
					return nil
				}
				return memtable.Key(byPending)
			}),
		},
		ClaimsTime: {memtable.UniqueBy(func(*structs.ClaimsTime) []byte { return memtable.Key(ClaimsTime) })},
		Exchanges:  {memtable.UniqueBy(func(x *structs.Exchange) []byte { return memtable.Key(x.ID) })},
	}
}

// Edit is a log entry that is being applied, as what changes what is owned.
type Edit struct {
	memtable.Entry
	// World counts what is owned and what uses it. It moves on with the rows.
	World *scheduler.Edit
	// Sites are the levels of cells above nodes.
	Sites []structs.TopologyLevel
	// Weeks are those of the calendars of all projects.
	Weeks iter.Seq[*structs.ProjectWeek]
	// HasNamespace reports whether there is a namespace of a name, other than the default one.
	HasNamespace func(name string) bool
	// Note reports what was changed in a table; nil: there was nothing, or is nothing any more.
	Note func(table, key string, was, now any)
	// Evaluate has the jobs of an owner evaluated, so that what runs may be raised.
	Evaluate func(owner string)
	// EvaluatePerNode has system and sysbatch jobs evaluated, because somebody owns something by now.
	EvaluatePerNode func()
}

// Event returns the time of an entry, the type of its event, and the seed of the evaluations that it makes; the type is "" if the entry is
// not about what namespaces own.
func Event(payload any) (at int64, event, seed string) {
	switch e := payload.(type) {
	case *structs.VirtualClusterUpsertEntry:
		return e.Time, structs.EventVirtualClusterUpserted, e.EvalSeed
	case *structs.VirtualClusterDeleteEntry:
		return e.Time, structs.EventVirtualClusterDeleted, e.EvalSeed
	case *structs.ClaimsTimeEntry:
		return e.Now, structs.EventVirtualClusterTurned, e.EvalSeed
	case *structs.VirtualClusterShiftEntry:
		return e.Time, structs.EventVirtualClusterUpserted, e.EvalSeed
	case *structs.VirtualClusterPointsEntry:
		return e.Time, structs.EventVirtualClusterUpserted, ""
	case *structs.ExchangePutEntry:
		return e.Time, structs.EventExchangePut, ""
	case *structs.ExchangeWithdrawEntry:
		return e.Time, structs.EventExchangeWithdrawn, ""
	}
	return 0, "", ""
}

// Apply applies an entry that [Event] knows: as a whole, or not at all if it returns an error.
func (x Edit) Apply(payload any) error {
	switch e := payload.(type) {
	case *structs.VirtualClusterUpsertEntry:
		return x.upsert(e)
	case *structs.VirtualClusterDeleteEntry:
		return x.delete(e)
	case *structs.ClaimsTimeEntry:
		return x.advance(e)
	case *structs.VirtualClusterShiftEntry:
		return x.shift(e)
	case *structs.VirtualClusterPointsEntry:
		return x.grant(e)
	case *structs.ExchangePutEntry:
		return x.putExchange(e)
	case *structs.ExchangeWithdrawEntry:
		return x.withdraw(e)
	}
	return structs.Errorf(structs.CodeInternal, "log entry with a payload of type %T: it is not about what namespaces own", payload)
}

// AnyWaits reports whether an edit, or cells that are due, wait: [Edit.TryPending] may have something to do.
func AnyWaits(r memtable.Reader) bool {
	return memtable.Open(r, false, VirtualClusters, byPending, byPending).Next() != nil
}

// world returns the World as the entry has moved it on so far.
func (x Edit) world() *scheduler.World { return x.World.World() }

// note reports a change. A nil pointer becomes a nil interface.
func note[T any](x Edit, table, key string, was, now *T) {
	x.Note(table, key, memtable.OrNil(was), memtable.OrNil(now))
}
