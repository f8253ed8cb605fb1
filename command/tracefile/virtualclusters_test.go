package tracefile

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

func given(rows ...trace.Row) iter.Seq2[*trace.Row, error] {
	return func(yield func(*trace.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

// A peak is what would run at a time if nobody waited; what ends as another arrives runs no more then.
func TestPeaks(t *testing.T) {
	row := func(tenant string, at, duration, count, gpus, share int) trace.Row {
		return trace.Row{
			Tenant: tenant, Arrival: time.Duration(at) * time.Second, Duration: time.Duration(duration) * time.Second, Count: count, GPUs: gpus, Share: share,
		}
	}
	peaks, err := Peaks(given(row("a", 0, 10, 2, 4, 0), row("b", 1, 10, 1, 1, 0), row("", 2, 10, 1, 2, 0), row("b", 5, 10, 1, 1, 500), row("b", 6, 10, 1, 3, 0),
		row("a", 10, 10, 1, 3, 0), row("b", 40, 10, 1, 2, 0)))
	if got := fmt.Sprint(peaks); err != nil || got != "[{a 8} {b 4} {default 2}]" {
		t.Errorf("%s %v", got, err)
	}
}

// Nodes are given out whole, all of them, by the largest remainders.
func TestInProportion(t *testing.T) {
	list, err := InProportion([]Peak{{"a", 70}, {"b", 21}, {"c", 8}, {"d", 1}}, 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v %v", list, err)
	}
	for i, want := range []int{7, 2, 1} {
		if c := list[i].Cells; len(c) != 1 || c[0].Level != "node" || c[0].Count != want {
			t.Errorf("%s owns %+v, want %d nodes", list[i].Name, c[0], want)
		}
	}
	if _, err := InProportion([]Peak{{"a", 0}}, 10); err == nil {
		t.Error("nothing was given in proportion to nothing")
	}
}
