package harness

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// TestSlots: tests of two processes share their slots. A part of a test that has one needs none, and a slot is free when its test
// has ended.
func TestSlots(t *testing.T) {
	t.Parallel()
	process := func() *slotSet {
		return &slotSet{name: fmt.Sprintf("test-%d", os.Getpid()), count: func() int { return 2 }, taken: map[string]bool{}}
	}
	one, other := process(), process()
	free := func(want int) {
		t.Helper()
		have := 0
		for i := range 2 {
			if release := other.try(i); release != nil {
				defer release()
				have++
			}
		}
		if have != want {
			t.Errorf("%d slots are free, not %d", have, want)
		}
	}
	t.Run("one", func(t *testing.T) {
		one.take(t)
		free(1)
		t.Run("part", func(t *testing.T) { one.take(t) })
		free(1)
		t.Run("all of a part", func(t *testing.T) { one.takeAll(t) })
		free(1)
	})
	free(2)
	t.Run("all", func(t *testing.T) {
		release, taken := other.try(1), make(chan struct{})
		go func() {
			defer close(taken)
			one.takeAll(t)
		}()
		release()
		<-taken
		free(0)
	})
	free(2)
}

// TestPorts: no port is given twice, here or to two processes.
func TestPorts(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 2 * portBlock {
		port := FreePort(t)
		if given[port] {
			t.Fatalf("%d is given twice", port)
		}
		given[port] = true
		if len(given)%portBlock == 1 {
			runtime.GC() // which closes what nobody refers to
		}
		if claim(fmt.Sprintf("ports-%d", (port-firstPort)/portBlock)) != nil {
			t.Fatalf("another process may take the block of %d", port)
		}
	}
}
