//go:build netns

package net

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
)

// What clients saw of registers, and whether a single copy of them can have shown it. A register is a job: a write registers
// it with another value in its meta, a read reads it.

// operation is one read or write of a register, as its client saw it.
type operation struct {
	register int
	write    bool
	value    int // written, or read; 0: there is no such job
	client   int
	call     int64 // when it was asked for, in nanoseconds
	ret      int64 // when it was answered; never: nobody knows whether, or when, it takes effect
	by       string
}

const never = math.MaxInt64

func (o operation) String() string {
	verb, ret := "read ", "never"
	if o.write {
		verb = "wrote"
	}
	if o.ret != never {
		ret = time.Duration(o.ret).Round(time.Microsecond).String()
	}
	return fmt.Sprintf("%12v – %-12s client %d %s %d of register %d at %s", time.Duration(o.call).Round(time.Microsecond), ret, o.client, verb, o.value, o.register, o.by)
}

// history is what all clients saw. It is safe for use by many goroutines.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []operation
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
}

// register as the checker knows it: writes set it, reads tell it.
var registerModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		o := input.(operation) // the checker's own
		if o.write {
			return true, o.value
		}
		return state == o.value, state
	},
}

// check reports whether the history is linearizable; if not, it names a register that is not and gives its operations. Every
// value is written to a register once.
//
// A write of unknown outcome has taken effect by the end of the first read of its value, which is its own then: kept open to the
// end, a few dozen of them cost the checker minutes. One whose value nobody read is left out: if an order of the operations exists
// with it there is one without it, and the reverse, as it can stand at the end.
func (h *history) check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := map[[2]int]int64{} // until when a value was first read
	for _, o := range h.ops {
		key := [2]int{o.register, o.value}
		if at, ok := seen[key]; !o.write && (!ok || o.ret < at) {
			seen[key] = o.ret
		}
	}
	parts := map[int][]porcupine.Operation{}
	for _, o := range h.ops {
		if o.write && o.ret == never {
			at, ok := seen[[2]int{o.register, o.value}]
			if !ok {
				continue
			}
			o.ret = max(at, o.call) // read before it was written: the checker will say so
		}
		parts[o.register] = append(parts[o.register], porcupine.Operation{ClientId: o.client, Input: o, Call: o.call, Output: o.value, Return: o.ret})
	}
	for _, register := range slices.Sorted(maps.Keys(parts)) {
		switch porcupine.CheckOperationsTimeout(registerModel, parts[register], limit) {
		case porcupine.Illegal:
			return fmt.Errorf("%w: register %d:\n%s", errNotLinearizable, register, h.of(register))
		case porcupine.Unknown:
			return fmt.Errorf("whether register %d is linearizable was not decided within %v; it has %d operations", register, limit, len(parts[register]))
		}
	}
	return nil
}

var errNotLinearizable = errors.New("not linearizable")

// of lists a register's operations in the order in which they were asked for.
func (h *history) of(register int) string {
	var ops []operation
	for _, o := range h.ops {
		if o.register == register {
			ops = append(ops, o)
		}
	}
	slices.SortFunc(ops, func(a, b operation) int { return cmp.Compare(a.call, b.call) })
	text := ""
	for _, o := range ops {
		text += o.String() + "\n"
	}
	return text
}

// tally counts reads, writes that were acknowledged, and those whose outcome is unknown.
func (h *history) tally() (reads, writes, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.ops {
		switch {
		case !o.write:
			reads++
		case o.ret == never:
			open++
		default:
			writes++
		}
	}
	return reads, writes, open
}

// registers are jobs that clients write and read through agents.
type registers struct {
	*history
	t      *testing.T
	prefix string
	agents []*harness.Agent
	values []atomic.Int64 // the last value written, of each
	client atomic.Int32
	// acked is when a write was last acknowledged, since the history's begin.
	acked atomic.Int64
}

func newRegisters(t *testing.T, prefix string, n int, agents ...*harness.Agent) *registers {
	return &registers{history: newHistory(), t: t, prefix: prefix, agents: agents, values: make([]atomic.Int64, n)}
}

// holding is the job that is a register with a value. It has nothing to run.
func holding(id string, value int) *nomad.Job {
	job := harness.OfficialJob(id, "true")
	job.TaskGroups[0].Count = harness.Ptr(0)
	job.Meta = map[string]string{"value": strconv.Itoa(value)}
	return job
}

// requesting is how long a client waits for an answer. It is short, so that clients go on elsewhere while one server is away.
const requesting = 3 * time.Second

// write sets a register to a value that nobody wrote yet.
func (r *registers) write(ctx context.Context, client int, a *harness.Agent, register int) error {
	o := operation{register: register, write: true, value: int(r.values[register].Add(1)), client: client, by: a.HTTP, call: r.now(), ret: never}
	ctx, cancel := context.WithTimeout(ctx, requesting)
	defer cancel()
	_, _, err := a.Nomad.Jobs().Register(holding(r.id(register), o.value), (&nomad.WriteOptions{}).WithContext(ctx))
	if err == nil {
		o.ret = r.now()
		r.acked.Store(o.ret)
	}
	r.add(o)
	return err
}

// read reads a register; a read that failed tells nothing and is not kept.
func (r *registers) read(ctx context.Context, client int, a *harness.Agent, register int, stale bool) error {
	o := operation{register: register, client: client, by: a.HTTP, call: r.now()}
	ctx, cancel := context.WithTimeout(ctx, requesting)
	defer cancel()
	job, _, err := a.API.Jobs().Info(ctx, r.id(register), &api.Query{Stale: stale})
	switch {
	case err == nil:
		if o.value, err = strconv.Atoi(job.Meta["value"]); err != nil {
			return err
		}
	case !api.IsNotFound(err):
		return err
	}
	o.ret = r.now()
	r.add(o)
	return nil
}

func (r *registers) id(register int) string { return fmt.Sprintf("%s-%d", r.prefix, register) }

// load has clients write and read, each about ten times a second through an agent of its own and half of it writes, until
// the function that it gives is called.
func (r *registers) load(clients int) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	for range clients {
		client := int(r.client.Add(1))
		wg.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				a, register := r.agents[client%len(r.agents)], rand.IntN(len(r.values)) // a test
				if rand.IntN(2) == 0 {                                                  // a test
					_ = r.write(ctx, client, a, register) // what came of it is in the history
				} else {
					_ = r.read(ctx, client, a, register, false)
				}
			}
		})
	}
	return undoing(r.t, func() {
		cancel()
		wg.Wait()
	})
}

// call has n clients read at once through one agent: whoever was away and does not know it yet may answer what was true then.
func (r *registers) call(a *harness.Agent, n int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range n {
		client := int(r.client.Add(1))
		wg.Go(func() { _ = r.read(r.t.Context(), client, a, i%len(r.values), false) })
	}
	return &wg
}

// judge reads every register through every agent, so that what was lost is seen, and checks the history.
func (r *registers) judge() {
	r.t.Helper()
	client := int(r.client.Add(1))
	for register := range r.values {
		for _, a := range r.agents {
			harness.Within(r.t, 30*time.Second, "a read when all is well", func(ctx context.Context) error {
				return r.read(ctx, client, a, register, false)
			})
		}
	}
	reads, writes, open := r.tally()
	if err := r.check(harness.Scaled(30 * time.Second)); err != nil {
		r.t.Error(err)
	}
	if writes == 0 {
		r.t.Error("no write was acknowledged: the history proves nothing")
	}
	r.t.Logf("history of %d registers: %d reads, %d writes acknowledged, %d of unknown outcome", len(r.values), reads, writes, open)
}

// TestNetHistory: the checker tells histories that a single copy can have shown from those that it cannot.
func TestNetHistory(t *testing.T) {
	t.Parallel()
	write := func(value int, call, ret int64) operation {
		return operation{write: true, value: value, call: call, ret: ret}
	}
	read := func(value int, call, ret int64) operation { return operation{value: value, call: call, ret: ret} }
	elsewhere := func(o operation) operation { o.register = 1; return o }
	f := func(what string, fine bool, ops ...operation) {
		t.Helper()
		for i := range ops {
			ops[i].client = i
		}
		h := &history{ops: ops}
		if err := h.check(time.Minute); (err == nil) != fine || (!fine && !errors.Is(err, errNotLinearizable)) {
			t.Errorf("%s: %v, want it to be linearizable: %t", what, err, fine)
		}
	}
	f("nothing", true)
	f("one after the other", true, write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7))
	f("a stale read", false, write(1, 0, 1), write(2, 2, 3), read(1, 4, 5))
	f("a lost write", false, write(1, 0, 1), read(0, 2, 3))
	f("a read of what was never written", false, write(1, 0, 1), read(2, 2, 3))
	f("at the same time", true, write(1, 0, 9), read(0, 1, 2), read(1, 3, 4))
	f("there and gone again", false, write(1, 0, 9), read(1, 1, 2), read(0, 3, 4))
	f("two clients that saw two orders", false, write(1, 0, 9), write(2, 0, 9), read(1, 10, 11), read(2, 12, 13))
	f("unknown, and it never was", true, write(1, 0, 1), write(2, 2, never), read(1, 4, 5), read(1, 6, 7))
	f("unknown, and it took effect late", true, write(1, 0, 1), write(2, 2, never), read(1, 4, 5), read(2, 6, 7))
	f("unknown, and it took effect twice", false, write(1, 0, never), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7), read(1, 8, 9))
	f("registers of their own", true, write(1, 0, 1), elsewhere(write(2, 2, 3)), read(1, 4, 5), elsewhere(read(2, 6, 7)))
	f("the second is wrong", false, write(1, 0, 1), elsewhere(write(2, 2, 3)), read(1, 4, 5), elsewhere(read(0, 6, 7)))
}
