package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// moving is forecasts that move starts now and then; end is called when there are no more.
type moving struct {
	noForecasts
	list [][]*structs.ForecastMove
	end  func()
}

func (m moving) Moved(ctx context.Context, from uint64) ([]*structs.ForecastMove, uint64, error) {
	if from >= uint64(len(m.list)) {
		m.end()
		return nil, from, ctx.Err()
	}
	return m.list[from], from + 1, nil
}

// TestForecastEvents: a stream of forecasts has each latest start that moves, of the jobs and the namespace that are requested.
func TestForecastEvents(t *testing.T) {
	move := func(index uint64, ns, job string) *structs.ForecastMove {
		return &structs.ForecastMove{Index: index, Was: 5, Forecast: &structs.RequestForecast{Namespace: ns, JobID: job, Group: "g"}}
	}
	router := rpc.New(rpc.Config{}, rpc.Deps{Store: testcluster.New(0, state.Options{}).Store})
	list := [][]*structs.ForecastMove{{move(7, "default", "a"), move(7, "red", "b")}, {move(7, "default", "a")}, {move(9, "default", "c")}}
	f := func(topic, namespace string, want ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := New(Deps{Router: router, Forecasts: moving{list: list, end: cancel}})
		var got []string
		err := e.eventStream(ctx, &structs.EventStreamRequest{Topics: map[string][]string{structs.TopicForecast: {topic}}, Namespace: namespace}, func(v any) error {
			for _, ev := range v.(codec.Given).V.(*structs.Events).Events {
				m := ev.Payload["ForecastMove"].(*structs.ForecastMove)
				got = append(got, fmt.Sprint(ev.Type, " ", ev.Key, " ", ev.Index, " ", m.Was))
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
			t.Errorf("%s of %s: %v: %q, not %q", topic, namespace, err, got, want)
		}
	}
	f("*", "*", "ForecastMoved a 7 5", "ForecastMoved b 7 5", "ForecastMoved a 7 5", "ForecastMoved c 9 5")
	f("*", "default", "ForecastMoved a 7 5", "ForecastMoved a 7 5", "ForecastMoved c 9 5")
	f("c", "default", "ForecastMoved c 9 5")
}
