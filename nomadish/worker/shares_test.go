package worker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/structs"
)

// TestFairShares: what nobody owns goes to the namespace that runs least of it, whatever the priorities within a band and however many
// others have waiting before it; so does what comes free.
func TestFairShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2)
		c.Put(t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "c"}})
		running := map[string][]*structs.Job{}
		add := func(name string, count, priority int) {
			for i := range count {
				j := gpuJob(name, fmt.Sprint(name, "-", i), priority, 1)
				c.register(t, j)
				running[name] = append(running[name], j)
			}
		}
		runs := func(name string) (list []*structs.Job) {
			for _, j := range running[name] {
				if _, n := c.classes(j); n == 1 {
					list = append(list, j)
				}
			}
			return list
		}
		want := func(what string, a, b, c int) {
			t.Helper()
			if x, y, z := len(runs("a")), len(runs("b")), len(runs("c")); x != a || y != b || z != c {
				t.Errorf("%s: %d, %d and %d run, want %d, %d and %d", what, x, y, z, a, b, c)
			}
		}
		add("a", 40, 55)
		add("b", 40, 51)
		defer c.run(t.Context(), 4)()
		c.rests(t)
		want("two share 16", 8, 8, 0)

		add("c", 40, 51)
		c.rests(t)
		want("nothing is taken from them", 8, 8, 0)
		if lines := queueview.Order(c.store.Snapshot(), time.Now().UnixNano()); lines[0].Job.Namespace != "c" || lines[0].Rank.Share != 0 || lines[40].Rank.Share != 50 {
			t.Errorf("the first in the queue is %+v, the 41st %+v", lines[0], lines[40])
		}
		for _, j := range append(runs("a")[:4], runs("b")[:2]...) {
			c.deregister(t, j)
		}
		c.rests(t)
		// Of these c has four, until it and a have a quarter each; then each has one more.
		want("six come free", 5, 6, 5)
	})
}

// TestShareGoesBeforeRequeued: a namespace of whose job a few instances were reclaimed once does not get all that comes free before one that
// has nothing.
func TestShareGoesBeforeRequeued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenantCluster(t, 2, cells("node", 1))
		c.Put(t, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "c"}})
		defer c.run(t.Context(), 4)()
		red := gpuJob("b", "red", 60, 60)
		c.register(t, red)
		c.rests(t)
		train := gpuJob("a", "train", 50, 8)
		c.register(t, train)
		c.rests(t)
		c.wantClasses(t, train, 8, 0)
		c.wantClasses(t, red, 0, 8)
		blue := gpuJob("c", "blue", 50, 60)
		c.register(t, blue)
		c.rests(t)
		c.wantClasses(t, blue, 0, 0)
		c.deregister(t, train)
		c.rests(t)
		c.wantClasses(t, blue, 0, 8)
		c.wantClasses(t, red, 0, 8)
	})
}
