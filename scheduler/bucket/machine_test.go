package bucket_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// chance draws a number in [0, n).
type chance func(n int) int

// machine does random things to an index and to the oracle, and compares.
type machine struct {
	draw      chance
	ids       int // how many IDs there are
	dims      int // how many dimensions are used
	values    int // how many values there are in a dimension
	wild      bool
	uuids     bool
	token     *bucket.Token
	index     bucket.Index[int]
	oracle    *oracle
	snapshots []snapshot
	cursors   []cursor
	counter   int
}

type snapshot struct {
	index  bucket.Index[int]
	oracle *oracle
}

type cursor struct {
	cursor bucket.Cursor[int]
	walk   *walk
}

func newMachine(draw chance, ids int) *machine {
	m := &machine{draw: draw, ids: ids, token: bucket.NewToken()}
	m.dims = 1 + draw(bucket.MaxDims)
	m.values = []int{2, 5, 20, 1000}[draw(4)]
	m.wild = draw(4) == 0
	m.uuids = draw(2) == 0
	c := bucket.Config{Order: m.order(), PageBudget: draw(5)}
	for d := range c.Granularity {
		c.Granularity[d] = int64([]int{0, 1, 2, 3, 7}[draw(5)])
	}
	m.index, m.oracle = bucket.New[int](c), &oracle{config: c}
	return m
}

// order draws dimensions without repeating one.
func (m *machine) order() []int {
	out := []int{}
	for n := m.draw(4); len(out) < min(n, m.dims); {
		d := m.draw(m.dims)
		for i := 0; i < len(out); i++ {
			if out[i] == d {
				d, i = (d+1)%m.dims, -1
			}
		}
		out = append(out, d)
	}
	return out
}

func (m *machine) id(i int) string {
	if m.uuids { // of one time, or of one batch: alike at the start
		return fmt.Sprintf("0190a5b2-%04x-7000-8%03x-%012x", i%3, i%2, i)
	}
	return fmt.Sprintf("n%d", i)
}

func (m *machine) value() int64 {
	v := int64(m.draw(m.values)) - 2
	if m.wild && m.draw(20) == 0 {
		v = []int64{math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, 1 << 31, -1 << 40}[m.draw(6)]
	}
	return v
}

func (m *machine) vector() (v bucket.Vector) {
	for d := range m.dims {
		if m.draw(4) > 0 {
			v[d] = m.value()
		}
	}
	return v
}

func (m *machine) list() []entry {
	out := []entry{}
	seen := map[string]bool{}
	for range m.draw(5) {
		id := m.id(m.draw(m.ids))
		if !seen[id] {
			seen[id] = true
			out = append(out, entry{ID: id, At: m.vector(), Value: -1})
		}
	}
	return out
}

func (m *machine) query() bucket.Query[int] {
	q := bucket.Query[int]{Policy: bucket.Policy(m.draw(5)), Seed: uint64(m.draw(1000))}
	for d := range m.dims {
		if m.draw(3) == 0 {
			q.Need[d] = m.value() / 2
		}
	}
	if m.draw(12) == 0 {
		q.Need[m.draw(bucket.MaxDims)] = m.value()
	}
	if m.draw(3) == 0 {
		q.Order = m.order()
	}
	if m.draw(2) == 0 {
		q.After = m.id(m.draw(m.ids))
	}
	if m.draw(5) == 0 {
		q.First = m.list()
	}
	if m.draw(8) == 0 {
		q.Candidates = m.list()
	}
	return q
}

// step does one random thing.
func (m *machine) step() error {
	m.counter++
	switch n := m.draw(20); {
	case n < 9:
		m.edit()
	case n < 10:
		m.snapshots = append(m.snapshots, snapshot{m.index, m.oracle.clone()})
		m.token = bucket.NewToken()
		if len(m.snapshots) > 3 {
			m.snapshots = m.snapshots[1:]
		}
	case n < 11 && len(m.snapshots) > 0: // go on from an older one
		s := m.snapshots[m.draw(len(m.snapshots))]
		if err := s.oracle.same(&s.index); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		m.index, m.oracle, m.token = s.index, s.oracle.clone(), bucket.NewToken()
	case n < 13 || len(m.cursors) == 0:
		q := m.query()
		m.cursors = append(m.cursors, cursor{bucket.Search(&m.index, q), m.oracle.search(q)})
		if len(m.cursors) > 4 {
			m.cursors = m.cursors[1:]
		}
	default:
		c := &m.cursors[m.draw(len(m.cursors))]
		got, ok := c.cursor.Next(&m.index)
		return m.oracle.next(c.walk, got, ok)
	}
	return m.oracle.check(&m.index)
}

func (m *machine) edit() {
	if m.draw(30) == 0 { // to empty pages and to fill them
		add := m.draw(2) == 0
		for i, start := 0, m.draw(m.ids); i < m.ids/3; i++ {
			m.change(m.id((start+i)%m.ids), add)
		}
		return
	}
	m.change(m.id(m.draw(m.ids)), m.draw(3) > 0)
}

// change puts one entry somewhere, or takes it out.
func (m *machine) change(id string, put bool) {
	token := m.token
	if m.draw(10) == 0 {
		token = nil
	}
	at := m.oracle.find(id)
	m.counter++
	switch {
	case at < 0 && put:
		e := entry{ID: id, At: m.vector(), Value: m.counter}
		m.oracle.entries = append(m.oracle.entries, e)
		bucket.Add(token, &m.index, id, e.At, e.Value)
	case at < 0:
		if bucket.Remove(token, &m.index, id, m.vector()) {
			panic("an entry was removed that is not there")
		}
	case put:
		e := &m.oracle.entries[at]
		from := e.At
		if m.draw(2) == 0 {
			e.At = m.vector()
		} else if d := m.draw(m.dims); e.At[d] > math.MinInt64 && e.At[d] < math.MaxInt64 {
			e.At[d] += int64(m.draw(3)) - 1
		}
		e.Value = m.counter
		bucket.Update(token, &m.index, id, from, e.At, e.Value)
	default:
		if !bucket.Remove(token, &m.index, id, m.oracle.entries[at].At) {
			panic("an entry was not removed")
		}
		m.oracle.entries[at] = m.oracle.entries[len(m.oracle.entries)-1]
		m.oracle.entries = m.oracle.entries[:len(m.oracle.entries)-1]
	}
}

// finish compares everything once more.
func (m *machine) finish() error {
	if err := m.oracle.same(&m.index); err != nil {
		return err
	}
	for _, s := range m.snapshots {
		if err := s.oracle.check(&s.index); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if err := s.oracle.same(&s.index); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	return nil
}

// TestMachine does machineSteps random steps, always the same ones.
func TestMachine(t *testing.T) {
	steps := 0
	for seed := uint64(1); steps < machineSteps; seed++ {
		rng := rand.New(rand.NewPCG(seed, 0))
		ids, run := 40, 400
		switch seed % 40 {
		case 0, 20:
			ids = 400
		case 10:
			ids, run = 4000, 100
		}
		m := newMachine(rng.IntN, ids)
		for range run {
			if err := m.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, m.counter, err)
			}
		}
		if err := m.finish(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		steps += run
	}
}

// TestProperties does random steps that rapid chooses, and shrinks those that fail.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.IntRange(0, math.MaxInt32)
		m := newMachine(func(n int) int { return gen.Draw(t, "n") % n }, 40)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if err := m.step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.finish(); err != nil {
			t.Fatal(err)
		}
	})
}
