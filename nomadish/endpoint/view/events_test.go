package view

import (
	"context"
	"errors"
	"testing"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestEventStreamFromAnIndex: a stream begins with the first commit kept from the
// requested index on, also when that one is not kept any more. Before them it says at once that it is open, as 0.
func TestEventStreamFromAnIndex(t *testing.T) {
	l := testcluster.New(0, state.Options{EventBuffer: 3})
	for n := range 5 {
		l.Put(t, &structs.SchedulerConfigEntry{Config: structs.DefaultSchedulerConfiguration(), Time: int64(n + 1)})
	}
	e := New(Deps{Router: rpc.New(rpc.Config{}, rpc.Deps{Store: l.Store})})
	enough := errors.New("enough")
	f := func(requested uint64, want ...uint64) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []uint64
		err := e.eventStream(ctx, &structs.EventStreamRequest{Index: requested}, func(v any) error {
			if got = append(got, v.(codec.Given).V.(*structs.Events).Index); len(got) == len(want) {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("from %d: %v", requested, err)
		}
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Errorf("from %d: commits %v, want %v", requested, got, want)
				return
			}
		}
	}
	f(0, 0, 3, 4, 5) // no index: all that is kept
	f(1, 0, 3, 4, 5) // 1 and 2 are not kept
	f(3, 0, 3, 4, 5)
	f(5, 0, 5)
}
