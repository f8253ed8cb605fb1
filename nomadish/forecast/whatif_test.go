package forecast_test

import (
	"context"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/whatif"
	"github.com/nomadish/nomadish/structs"
)

// run makes a what-if of changes, with all that runs taking all the time that it may.
func run(t *testing.T, r forecast.Reality, changes ...*structs.WhatIfChange) *structs.WhatIf {
	t.Helper()
	w, err := whatif.Run(t.Context(), r.Store(), &structs.WhatIfRequest{Changes: changes, Latest: true}, whatif.Options{Now: r.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// makeAll makes changes in earnest, each when it is due.
func makeAll(t *testing.T, r forecast.Reality, changes func() []*structs.WhatIfChange) {
	t.Helper()
	begin := r.Now()
	c := whatif.NewChanger(r.Store(), r, r.Now, r.NewID, whatif.Rules{})
	for _, ch := range changes() {
		if ch.After > 0 {
			r.Until(begin.Add(ch.After))
		}
		if _, err := c.Make(context.Background(), ch); err != nil {
			t.Fatal(err)
		}
	}
}

// equal makes a what-if, then the changes in earnest, and reports every group that does not start as the what-if states.
func equal(t *testing.T, r forecast.Reality, changes func() []*structs.WhatIfChange) *structs.WhatIf {
	t.Helper()
	w, from := run(t, r, changes()...), r.Now()
	makeAll(t, r, changes)
	r.Until(time.Unix(0, w.Until).Add(time.Minute))
	verdicts, wrong := map[string]int{}, 0
	for _, g := range w.Groups {
		verdicts[g.Verdict]++
		if g.After == nil {
			continue
		}
		starts := r.Starts(g.Namespace, g.JobID, g.Group, from)
		if len(starts) < g.After.Waits || g.After.All == 0 {
			t.Errorf("%s/%s: %d of %d started; the last %d", g.Namespace, g.JobID, len(starts), g.After.Waits, g.After.All)
			continue
		}
		first, all := starts[0].Sub(time.Unix(0, g.After.First)), starts[g.After.Waits-1].Sub(time.Unix(0, g.After.All))
		if first.Abs() >= time.Second || all.Abs() >= time.Second {
			wrong++
			t.Logf("%s/%s: the first of %d started %s after what the what-if stated, the last %s", g.Namespace, g.JobID, g.After.Waits, first, all)
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d started at another time", wrong, len(w.Groups))
	}
	t.Logf("%v; %d taken, %d before", verdicts, len(w.After.Taken), len(w.Before.Taken))
	return w
}

// TestTwoNodesMore: with two nodes more all starts when the what-if states.
func TestTwoNodesMore(t *testing.T) {
	r := forecast.NewReality(t, 8, 80, 2)
	w := equal(t, r, func() []*structs.WhatIfChange {
		return []*structs.WhatIfChange{{AddNodes: &structs.WhatIfNodes{Count: 2, Like: "node-0003"}}}
	})
	if w.After.Namespaces[0].Mean >= w.Before.Namespaces[0].Mean {
		t.Errorf("two nodes more, and jobs wait %s in the mean, not less than %s", w.After.Namespaces[0].Mean, w.Before.Namespaces[0].Mean)
	}
}

// TestNodeDrained: a node is drained.
func TestNodeDrained(t *testing.T) {
	r := forecast.NewReality(t, 8, 60, 4)
	equal(t, r, func() []*structs.WhatIfChange {
		return []*structs.WhatIfChange{{Drain: &structs.WhatIfDrain{Node: "node-0003", DrainSpec: structs.DrainSpec{Deadline: 10 * time.Minute}}}}
	})
}
