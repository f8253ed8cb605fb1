package alloc

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

// A process of simulated nodes holds a million running tasks: each must be small, and have no goroutine.
func TestRunningMockIsSmall(t *testing.T) {
	const many, most = 2000, 3072 // bytes
	n := newNode(t)
	config := n.config()
	config.Store = nil
	job := service(map[string]any{"run_for": "24h"}, update).Job
	live := func() (bytes uint64, goroutines int) {
		runtime.GC()
		runtime.GC() // what the first finalizes
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	before, goroutines := live()
	runners := make([]*Runner, many)
	for i := range runners {
		a := service(nil, nil)
		a.ID, a.Job = fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i), job
		r, err := New(config, Dir{}, a)
		if err != nil {
			t.Fatal(err)
		}
		r.Grant()
		runners[i] = r
	}
	n.wg.Wait() // all starts are over
	for _, r := range runners {
		if s := r.ClientStatus(); s != structs.AllocClientRunning {
			t.Fatalf("allocation %s is %s", r.ID(), s)
		}
	}
	after, more := live()
	if each := (int64(after) - int64(before)) / many; each > most { // bytes of a heap
		t.Errorf("%d bytes for each, %d at most", each, most)
	}
	if more > goroutines+many/10 {
		t.Errorf("%d goroutines, %d before", more, goroutines)
	}
	n.close(runners...)
}
