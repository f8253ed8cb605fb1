package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// machine drives a broker as workers, operators and failures do, at random, and knows
// what must be true.
type machine struct {
	*bed
	r      *rapid.T
	evals  int
	nodes  int
	leased map[string]holding // by evaluation ID
	tried  map[string]uint64  // by evaluation ID: the state of its last turn
	came   map[string]time.Time
	rests  map[string]bool // what failed, or was leased for too long: it may back off
	opens  int             // how often the gate was open
	shut   int             // and how often it had to be shut
}

type holding struct {
	eval     *structs.Evaluation
	token    string
	decided  uint64 // the state that its worker decides on
	at       time.Time
	unretain func()
}

// priorityOf is that of a job of the machine: each is in a band of its own, so that nothing
// that happens changes their order.
func priorityOf(job string) int {
	return map[string]int{"job0": 10, "job1": 50, "job2": 90}[job]
}

// TestMachine has each case in a bubble of its own: a case takes hours of virtual time, and
// the time for all of them is the clock's.
func TestMachine(t *testing.T) {
	opens, shut := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		var failed any // what a case fails by goes through the bubble's wall
		synctest.Test(t, func(t *testing.T) {
			defer func() { failed = recover() }()
			m := newMachine(t, r)
			defer func() { m.stop() }()
			synctest.Wait()
			for range rapid.IntRange(1, 120).Draw(r, "steps") {
				m.step()
				synctest.Wait()
			}
			m.settle()
			opens, shut = opens+m.opens, shut+m.shut
		})
		if failed != nil {
			panic(failed)
		}
	})
	// Of a fifth of the cases, which is what -short runs, there are some now and then in which no plan had to be held back.
	if opens == 0 || shut == 0 && !testing.Short() {
		t.Fatalf("%d plans were let on, and %d had to be held back: nothing was looked at", opens, shut)
	}
}

func newMachine(t *testing.T, r *rapid.T) *machine {
	l := newLog(state.Options{EventBuffer: rapid.SampledFrom([]int{3, 1000}).Draw(r, "buffer")})
	m := &machine{
		bed: &bed{T: t, log: l, Broker: New(Options{NewID: testcluster.IDs("id-%d")}, l, l.store.LatestIndex)},
		r:   r, leased: map[string]holding{}, tried: map[string]uint64{}, came: map[string]time.Time{}, rests: map[string]bool{},
	}
	for _, job := range []string{"job0", "job1", "job2"} {
		m.jobOfPriority(job, structs.JobTypeService, priorityOf(job))
	}
	m.start()
	return m
}

func (m *machine) step() {
	switch rapid.IntRange(0, 14).Draw(m.r, "step") {
	case 0, 1:
		m.register1()
	case 2, 3, 4:
		m.dequeue()
	case 5:
		m.answer(structs.EvalStatusComplete)
	case 6:
		m.answer(structs.EvalStatusBlocked)
	case 7:
		m.answer("")
	case 8:
		m.pin()
	case 9:
		time.Sleep(time.Duration(rapid.IntRange(1, 90).Draw(m.r, "seconds")) * time.Second)
	case 10:
		m.join()
	case 11:
		m.disturb()
	case 12:
		m.pass()
	case 13, 14:
		m.letOn()
	}
}

// letOn checks whether a plan of a leased evaluation may be judged. THE guarantee: not while an
// evaluation of a job that goes before has not been tried, as far as is known for sure; what
// would overtake is sent back.
func (m *machine) letOn() {
	h, ok := m.some()
	if !ok || h.unretain != nil {
		return
	}
	if now, leases := m.Outstanding(h.eval.ID); !leases || now != h.token {
		return
	}
	base := m.store.LatestIndex()
	if err := m.CatchUp(m.Context()); err != nil {
		m.r.Fatalf("catch up: %v", err)
	}
	open := m.Admit(h.eval.ID, base, false).Verdict == GateOpen
	if waits := m.goesBefore(h.eval); waits != "" {
		m.shut++
		if open {
			m.r.Fatalf("%s of %s is let on before %s", h.eval.ID, h.eval.JobID, waits)
		}
	}
	if open {
		m.opens++
		return
	}
	delete(m.leased, h.eval.ID)
	m.SendBack(h.eval.ID, h.token)
	if _, leases := m.Outstanding(h.eval.ID); leases {
		m.r.Fatalf("%s is held after it was sent back", h.eval.ID)
	}
}

// goesBefore names what must be tried before an evaluation: by the state alone, it is pending
// for less time than others wait for it, and behind no other of its job, or blocked while a node came that may help it.
func (m *machine) goesBefore(e *structs.Evaluation) string {
	snap := m.store.Snapshot()
	open := map[string]int{}
	for _, o := range snap.PendingEvals() {
		if o.Status == structs.EvalStatusPending {
			open[o.JobID]++
		}
	}
	for _, o := range snap.PendingEvals() {
		if priorityOf(o.JobID) <= priorityOf(e.JobID) || m.rests[o.JobID] {
			continue
		}
		switch o.Status {
		case structs.EvalStatusPending:
			if open[o.JobID] == 1 && o.WaitUntil.IsZero() && time.Since(m.came[o.ID]) < m.opts.LeaseLimit && !m.decided(o.JobID, m.opts.LeaseLimit) {
				return o.ID + " (pending)"
			}
		case structs.EvalStatusBlocked:
			for n := range snap.Nodes(nil, "", false) {
				if n.CreateIndex > max(o.SnapshotIndex, m.tried[o.ID]) && helps(o, n.ComputedClass) && !m.decided(o.JobID, 0) {
					return o.ID + " (blocked)"
				}
			}
		}
	}
	return ""
}

// decided reports whether a worker believes to have leased an evaluation of a job, for so long.
func (m *machine) decided(job string, since time.Duration) bool {
	for _, h := range m.leased {
		if h.eval.JobID == job && time.Since(h.at) >= since {
			return true
		}
	}
	return false
}

// pass tries some of what waits, to no avail, or returns it.
func (m *machine) pass() {
	for range rapid.IntRange(1, 4).Draw(m.r, "turns") {
		index := m.store.LatestIndex()
		t, _ := m.Next(index, nil)
		if t == nil {
			return
		}
		for id, h := range m.leased {
			if now, ok := m.Outstanding(id); ok && now == h.token && h.eval.Job() == t.Eval.Job() {
				m.r.Fatalf("%s had its turn while %s of the same job is held", t.Eval.ID, id)
			}
		}
		if rapid.Bool().Draw(m.r, "changes meanwhile") {
			m.register1()
			synctest.Wait()
		}
		switch rapid.IntRange(0, 3).Draw(m.r, "outcome") {
		case 0:
			m.rests[t.Eval.JobID] = true
			m.Answered(t, true, false)
		case 1:
			m.rests[t.Eval.JobID] = true
			m.Answered(t, false, true)
		default:
			m.tried[t.Eval.ID] = index
			m.Tried(t, index, t.Eval)
		}
	}
}

// join has a node come.
func (m *machine) join() {
	m.nodes++
	n := node(fmt.Sprint("node-", m.nodes), rapid.SampledFrom([]string{"small", "big"}).Draw(m.r, "class"))
	m.Put(m.r, &structs.NodeRegisterEntry{Node: n})
}

func (m *machine) register1() {
	m.evals++
	e := eval(fmt.Sprint("e", m.evals), fmt.Sprint("job", rapid.IntRange(0, 2).Draw(m.r, "job")), rapid.IntRange(1, 3).Draw(m.r, "priority"))
	if rapid.IntRange(0, 4).Draw(m.r, "delayed") == 0 {
		e.WaitUntil = time.Now().Add(30 * time.Second).UTC()
	}
	m.came[e.ID] = time.Now()
	m.log.evals(m.r, e)
}

// dequeue takes an evaluation. THE invariant: its job has no other one leased.
func (m *machine) dequeue() {
	e, token, index, err := m.dequeued(m.Context(), service, time.Nanosecond)
	if err != nil {
		m.r.Fatalf("dequeue: %v", err)
	}
	if e == nil {
		return
	}
	for id, h := range m.leased {
		if now, ok := m.Outstanding(id); ok && now == h.token && h.eval.Job() == e.Job() {
			m.r.Fatalf("%s was given out while %s of the same job is held", e.ID, id)
		}
		if h.unretain != nil && h.eval.Job() == e.Job() {
			m.r.Fatalf("%s was given out while a plan of %s is being committed", e.ID, id)
		}
	}
	if now := time.Now(); e.WaitUntil.After(now) {
		m.r.Fatalf("%s was given out %s before its time", e.ID, e.WaitUntil.Sub(now))
	}
	if stored := m.store.Snapshot().Eval(nil, e.ID); stored.Status != structs.EvalStatusPending {
		m.r.Fatalf("%s was given out but is %s", e.ID, stored.Status)
	}
	m.leased[e.ID] = holding{eval: e, token: token, decided: index, at: time.Now()}
}

// some picks an evaluation that a worker believes to have leased.
func (m *machine) some() (holding, bool) {
	var ids []string
	for i := range m.evals + 100 {
		for _, id := range []string{fmt.Sprint("e", i), fmt.Sprint("id-", i)} {
			if _, ok := m.leased[id]; ok {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return holding{}, false
	}
	return m.leased[rapid.SampledFrom(ids).Draw(m.r, "held")], true
}

// answer commits an end (if its worker still may) and acknowledges, or returns it.
func (m *machine) answer(status string) {
	h, ok := m.some()
	if !ok {
		return
	}
	delete(m.leased, h.eval.ID)
	defer func() {
		if h.unretain != nil {
			h.unretain()
		}
	}()
	now, leases := m.Outstanding(h.eval.ID)
	leases = leases && now == h.token
	if status == "" {
		m.rests[h.eval.JobID] = true
		if err := m.Nack(h.eval.ID, h.token); (err == nil) != leases {
			m.r.Fatalf("nack of %s: %v, held: %v", h.eval.ID, err, leases)
		}
		return
	}
	if leases {
		e := with(h.eval, status)
		if status == structs.EvalStatusBlocked {
			e.SnapshotIndex, e.ClassEligibility = h.decided, map[string]bool{"small": true, "big": false}
			e.WaitUntil = time.Time{} // that was when it was to be decided, not when it is again
		}
		m.log.evals(m.r, e)
	}
	if rapid.Bool().Draw(m.r, "late") {
		m.join()
		synctest.Wait()
	}
	if err := m.Ack(h.eval.ID, h.token); (err == nil) != leases {
		m.r.Fatalf("ack of %s: %v, held: %v", h.eval.ID, err, leases)
	}
}

func (m *machine) pin() {
	h, ok := m.some()
	if !ok || h.unretain != nil {
		return
	}
	if unretain, ok := m.Retain(h.eval.ID, h.token, ""); ok {
		h.unretain = unretain
		m.leased[h.eval.ID] = h
	}
}

// disturb has the leader change, the log be away for a while, or the broker fall behind.
func (m *machine) disturb() {
	switch rapid.IntRange(0, 2).Draw(m.r, "disturbance") {
	case 0:
		m.stop()
		for id, h := range m.leased { // plans in flight end with the leadership
			if h.unretain != nil {
				h.unretain()
				h.unretain = nil
				m.leased[id] = h
			}
		}
		m.start()
	case 1:
		m.lose(true)
		time.Sleep(time.Second)
		m.lose(false)
	case 2:
		m.mu.Lock()
		for range 5 {
			m.register1()
		}
		m.mu.Unlock()
	}
}

// settle: when the disturbances end, everything is dealt with but what waits for room
// that has not come since it was decided.
func (m *machine) settle() {
	for _, h := range m.leased {
		if h.unretain != nil {
			h.unretain()
		}
	}
	m.leased = map[string]holding{}
	tries := map[string]uint64{}
	for range 500 {
		synctest.Wait()
		e, token, _, err := m.dequeued(m.Context(), service, time.Nanosecond)
		if err != nil {
			m.r.Fatalf("dequeue: %v", err)
		}
		if e == nil {
			if m.pending() == 0 {
				break
			}
			m.walk(tries)
			time.Sleep(20 * time.Second)
			continue
		}
		done := with(e, structs.EvalStatusComplete)
		done.FailedTGAllocs = map[string]*structs.AllocMetric{"g": {}} // what is blocked stays so
		m.log.evals(m.r, done)
		if err := m.Ack(e.ID, token); err != nil {
			m.r.Fatalf("ack: %v", err)
		}
	}
	// What waits and may be helped has its turn, once.
	for again := true; again; {
		time.Sleep(20 * time.Minute) // what failed rests
		synctest.Wait()
		again = m.walk(tries)
	}
	blocked := 0
	for e := range m.store.Snapshot().Evals(nil, structs.AllNamespaces, "", false) {
		switch e.Status {
		case structs.EvalStatusPending:
			m.r.Fatalf("evaluation %s was lost: it is pending (%+v)", e.ID, m.Stats())
		case structs.EvalStatusBlocked:
			blocked++
			for n := range m.store.Snapshot().Nodes(nil, "", false) {
				if n.CreateIndex > max(e.SnapshotIndex, tries[e.ID], m.tried[e.ID]) && helps(e, n.ComputedClass) {
					m.r.Fatalf("evaluation %s, decided at %d, missed node %s of class %s at %d", e.ID, e.SnapshotIndex, n.ID, n.ComputedClass, n.CreateIndex)
				}
			}
		}
	}
	if s := m.Stats(); s.Ready+s.Unacked+s.Waiting+s.Pending > 0 || s.Blocked != blocked {
		m.r.Fatalf("left over: %+v, %d blocked", s, blocked)
	}
}

// walk has all that must be tried be tried, and notes on what state.
func (m *machine) walk(tries map[string]uint64) (any bool) {
	for {
		index := m.store.LatestIndex()
		t, _ := m.Next(index, nil)
		if t == nil {
			return any
		}
		any, tries[t.Eval.ID] = true, index
		m.Tried(t, index, t.Eval)
	}
}

func (m *machine) pending() (n int) {
	for _, e := range m.store.Snapshot().PendingEvals() {
		if e.Status == structs.EvalStatusPending {
			n++
		}
	}
	return n
}
