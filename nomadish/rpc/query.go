package rpc

import (
	"context"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var queries = telemetry.NewCount("nomad.rpc.query")

// look reads from a snapshot what a query asks for, registering what it read with
// ws, and gives the index at which that last changed.
type look func(ws *state.WatchSet, snap *state.Snapshot) (index uint64, err error)

// contact is what goes with an answer at index: whether this server knows a leader, and when it heard one last.
func (e *Endpoints) contact(index uint64) structs.QueryMeta {
	return structs.QueryMeta{Index: index, KnownLeader: e.Leadership.Reign().Addr != "", LastContact: e.Leadership.LastContact()}
}

// query runs a read. One that does not block answers with 0 if run says so: nothing was ever written there. A blocking query
// answers with 1 at least, so that who asks on from its index blocks again. A blocking query runs again each time that something it looked
// at has changed, until the index that it gives is past the one asked, or its time
// is over; then the last answer stands.
func (e *Endpoints) query(ctx context.Context, opts *structs.QueryOptions, meta *structs.QueryMeta, run look) error {
	queries.Add(1)
	defer func() { // as it is when the answer is made
		contact := e.contact(meta.Index)
		meta.KnownLeader, meta.LastContact = contact.KnownLeader, contact.LastContact
	}()
	if opts.MinQueryIndex == 0 {
		snap := e.Store.Snapshot()
		index, err := run(nil, snap)
		meta.Index = max(index, snap.Restored())
		return err
	}
	wait := opts.MaxQueryTime
	if wait <= 0 {
		wait = e.DefaultQuery
	}
	wait = min(wait, e.MaxQueryTime)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		ws := state.NewWatchSet()
		snap := e.Store.Snapshot()
		index, err := run(ws, snap)
		meta.Index = max(index, 1, snap.Restored())
		if err != nil || meta.Index > opts.MinQueryIndex {
			return err
		}
		if !ws.Wait(waiting) {
			return ctx.Err() // nil when only our own time was over: the answer is what was read
		}
	}
}

// namespaceOf is the namespace that a read is for.
func namespaceOf(opts *structs.QueryOptions) string {
	if opts.Namespace == "" {
		return structs.DefaultNamespace
	}
	return opts.Namespace
}

// page takes from items, which come in order, those that pass the filter, one page
// of them. token names an item uniquely and in that order; NextToken is the first
// item of the next page.
func page[T any](opts *structs.QueryOptions, meta *structs.QueryMeta, items func(yield func(T) bool), token func(T) string) ([]T, error) {
	return take(opts, meta, fromToken(opts, items, token), token)
}

// fromToken leaves out the items before a page.
func fromToken[T any](opts *structs.QueryOptions, items func(yield func(T) bool), token func(T) string) func(yield func(T) bool) {
	if opts.NextToken == "" {
		return items
	}
	return func(yield func(T) bool) {
		items(func(item T) bool {
			before := token(item) < opts.NextToken
			if opts.Reverse {
				before = token(item) > opts.NextToken
			}
			return before || yield(item)
		})
	}
}

// take is page for items of which the page's first one comes first.
func take[T any](opts *structs.QueryOptions, meta *structs.QueryMeta, items func(yield func(T) bool), token func(T) string) ([]T, error) {
	out := []T{}
	keep, err := filter[T](opts.Filter)
	if err != nil {
		return nil, err
	}
	if opts.PerPage < 0 {
		return nil, structs.Errorf(structs.CodeBadRequest, "per_page %d: allowed are 0 and more", opts.PerPage)
	}
	meta.NextToken = ""
	var failed error
	items(func(item T) bool {
		ok, err := keep(item)
		if err != nil {
			failed = err
			return false
		}
		if !ok {
			return true
		}
		if opts.PerPage > 0 && len(out) == opts.PerPage {
			meta.NextToken = token(item)
			return false
		}
		out = append(out, item)
		return true
	})
	return out, failed
}

func notFound(kind, id string) error {
	return structs.Errorf(structs.CodeNotFound, "%s %q: not found", kind, id)
}

// checkUUID refuses what cannot be an ID before anything is read.
func checkUUID(kind, id string) error {
	if id == "" {
		return structs.Errorf(structs.CodeBadRequest, "missing %s ID", kind)
	}
	if len(id) > 64 {
		return structs.Errorf(structs.CodeBadRequest, "%s ID of %d characters: an ID has 36", kind, len(id))
	}
	return nil
}
