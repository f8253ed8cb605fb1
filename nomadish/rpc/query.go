package rpc

import (
	"context"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var queries = telemetry.NewCount("nomad.rpc.query")

// ReadFunc reads from a snapshot what a query requests, registering what it read with
// ws, and returns the index at which that last changed.
type ReadFunc func(ws *state.WatchSet, snap *state.Snapshot) (index uint64, err error)

// Contact is what goes with an answer at index: whether this server knows a leader, and when it heard one last.
func (r *Router) Contact(index uint64) structs.QueryMeta {
	return structs.QueryMeta{Index: index, KnownLeader: r.Leadership.Leader().Addr != "", LastContact: r.Leadership.LastContact()}
}

// Query runs a read. One that does not block answers with 0 if run returns 0: nothing was ever written there. A blocking query
// answers with 1 at least, so that a caller that continues from its index blocks again. A blocking query runs again each time that something it looked
// at has changed, until the index that it returns is past the requested one, or its time
// is over; then the last answer stands.
func (r *Router) Query(ctx context.Context, opts *structs.QueryOptions, meta *structs.QueryMeta, run ReadFunc) error {
	queries.Add(1)
	defer func() { // as it is when the answer is made
		contact := r.Contact(meta.Index)
		meta.KnownLeader, meta.LastContact = contact.KnownLeader, contact.LastContact
	}()
	if opts.MinQueryIndex == 0 {
		snap := r.Store.Snapshot()
		index, err := run(nil, snap)
		meta.Index = max(index, snap.Restored())
		return err
	}
	wait := opts.MaxQueryTime
	if wait <= 0 {
		wait = r.DefaultQuery
	}
	wait = min(wait, r.MaxQueryTime)
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		ws := state.NewWatchSet()
		snap := r.Store.Snapshot()
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

// NamespaceOf is the namespace that a read is for.
func NamespaceOf(opts *structs.QueryOptions) string {
	if opts.Namespace == "" {
		return structs.DefaultNamespace
	}
	return opts.Namespace
}

// Page takes from items, which come in order, those that pass the filter, one page
// of them. token names an item uniquely and in that order; NextToken is the first
// item of the next page.
func Page[T any](opts *structs.QueryOptions, meta *structs.QueryMeta, items func(yield func(T) bool), token func(T) string) ([]T, error) {
	return Take(opts, meta, FromToken(opts, items, token), token)
}

// FromToken leaves out the items before a page.
func FromToken[T any](opts *structs.QueryOptions, items func(yield func(T) bool), token func(T) string) func(yield func(T) bool) {
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

// Take is Page for items of which the page's first one comes first.
func Take[T any](opts *structs.QueryOptions, meta *structs.QueryMeta, items func(yield func(T) bool), token func(T) string) ([]T, error) {
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

// NotFound returns an error with CodeNotFound that names what was requested.
func NotFound(kind, id string) error {
	return structs.Errorf(structs.CodeNotFound, "%s %q: not found", kind, id)
}

// CheckUUID refuses what cannot be an ID before anything is read.
func CheckUUID(kind, id string) error {
	if id == "" {
		return structs.Errorf(structs.CodeBadRequest, "missing %s ID", kind)
	}
	if len(id) > 64 {
		return structs.Errorf(structs.CodeBadRequest, "%s ID of %d characters: an ID has 36", kind, len(id))
	}
	return nil
}
