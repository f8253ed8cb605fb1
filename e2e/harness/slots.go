package harness

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// slotSet bounds how many tests have agents at once, in all processes that have a set of the same name. What -parallel states of one
// package of tests holds for all that one `go test` runs at once: tests wait with limits, so the machine must not have
// twice the agents because their tests are in two packages.
//
// A slot is an abstract socket: the system frees it, however the process ends.
type slotSet struct {
	name  string
	count func() int
	mu    sync.Mutex
	taken map[string]bool // the tests of this process that have a slot
}

// slots are those of the `go test` that runs this package: its processes have one parent.
var slots = &slotSet{name: strconv.Itoa(os.Getppid()), count: parallel, taken: map[string]bool{}}

// parallel is what -parallel states.
func parallel() int {
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Alone waits until no other test has an agent, and keeps others from starting one until the test ends. It is for tests that measure,
// which call it first.
func Alone(t testing.TB) {
	t.Helper()
	slots.takeAll(t)
}

// take waits for a slot, which the test has until it and its agents have ended. A part of a test that has one needs none.
func (s *slotSet) take(t testing.TB) {
	t.Helper()
	if !s.needed(t.Name()) {
		return
	}
	n := s.count()
	for i := 0; ; i = (i + 1) % n {
		if free := s.try(i); free != nil {
			s.freeAtEnd(t, free)
			return
		}
		if i == n-1 {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// takeAll waits for all slots. It takes them in one order, so that two tests that want all do not wait for each other.
func (s *slotSet) takeAll(t testing.TB) {
	t.Helper()
	if !s.needed(t.Name()) {
		return
	}
	var all []func()
	for i := range s.count() {
		free := s.try(i)
		for ; free == nil; free = s.try(i) {
			time.Sleep(20 * time.Millisecond)
		}
		all = append(all, free)
	}
	s.freeAtEnd(t, all...)
}

// needed reports whether neither a test nor one that it is a part of has a slot, and notes that it has one from now on.
func (s *slotSet) needed(test string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for part := test; ; {
		if s.taken[part] {
			return false
		}
		slash := strings.LastIndexByte(part, '/')
		if slash < 0 {
			break
		}
		part = part[:slash]
	}
	s.taken[test] = true
	return true
}

func (s *slotSet) freeAtEnd(t testing.TB, all ...func()) {
	t.Cleanup(func() {
		for _, free := range all {
			free()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.taken, t.Name())
	})
}

// try takes a slot and returns what frees it; nil: another test has it.
func (s *slotSet) try(i int) func() { return claim(fmt.Sprintf("slot-%s-%d", s.name, i)) }

// claim takes a name that one process at a time has, and returns what frees it; nil: another has it.
func claim(name string) func() {
	l, err := net.Listen("unix", "@nomadish-e2e-"+name)
	if err != nil {
		return nil
	}
	return func() { _ = l.Close() } // nobody connects
}
