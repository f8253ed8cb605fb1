package cell

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTree draws a tree of at most so many devices: even or not, of any depth.
func drawTree(t *rapid.T, most int) Vertex {
	left := most
	top := rapid.IntRange(0, len(levels)-1).Draw(t, "top")
	var grow func(level int) Vertex
	grow = func(level int) Vertex {
		v := Vertex{Level: levels[level]}
		if level == 0 || left <= 1 || level < top && rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
			left--
			return v
		}
		for range rapid.IntRange(1, 4).Draw(t, "children") {
			if len(v.Children) > 0 && left <= 0 {
				break
			}
			down := 1
			if rapid.IntRange(0, 5).Draw(t, "skip") == 0 {
				down = rapid.IntRange(1, level).Draw(t, "down")
			}
			v.Children = append(v.Children, grow(level-down))
		}
		return v
	}
	return grow(top)
}

func devicesOf(v Vertex) int {
	if len(v.Children) == 0 {
		return 1
	}
	n := 0
	for _, c := range v.Children {
		n += devicesOf(c)
	}
	return n
}

func drawLinks(t *rapid.T, n int) (links []Link) {
	if n < 2 || rapid.Bool().Draw(t, "no links") {
		return nil
	}
	for range rapid.IntRange(1, 6).Draw(t, "links") {
		a := rapid.IntRange(0, n-1).Draw(t, "a")
		b := rapid.IntRange(0, n-2).Draw(t, "b")
		if b >= a {
			b++
		}
		links = append(links, Link{a, b, rapid.IntRange(1, 3).Draw(t, "lanes")})
	}
	return links
}

func drawRequest(t *rapid.T, n int) Request {
	a := Request{
		Count:     rapid.IntRange(1, n).Draw(t, "count"),
		Level:     rapid.SampledFrom([]string{"", "", "", "rack", "mig", "gpu", "nvlink", "pcie", "socket", "node"}).Draw(t, "level"),
		Required:  rapid.Bool().Draw(t, "required"),
		Gather:    rapid.Bool().Draw(t, "gather"),
		Preferred: rapid.SliceOfN(rapid.IntRange(1, 8), 0, 2).Draw(t, "preferred"),
	}
	if rapid.IntRange(0, 3).Draw(t, "some") == 0 {
		set := rapid.Uint64().Draw(t, "allowed")
		a.Allowed = func(d int) bool { return set>>uint(d)&1 == 1 }
	}
	return a
}

// machine is one State beside its oracle.
type machine struct {
	st       *State
	o        *oracle
	links    bool
	reserved [][2]int // device, share
}

func (m *machine) take(device, share int) {
	m.st.Take(device, share)
	m.o.taken[device] += share
	m.reserved = append(m.reserved, [2]int{device, share})
}

func (m *machine) step(t *rapid.T) {
	n := m.st.Layout().Devices()
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		d, ok := rapid.IntRange(0, n-1).Draw(t, "device"), rapid.IntRange(0, 2).Draw(t, "ok") > 0
		m.st.SetHealthy(d, ok)
		m.o.sick[d] = !ok
	case 1: // somebody took it without asking
		m.take(rapid.IntRange(0, n-1).Draw(t, "device"), rapid.IntRange(1, Whole).Draw(t, "share"))
	case 2, 3, 4:
		if len(m.reserved) > 0 {
			i := rapid.IntRange(0, len(m.reserved)-1).Draw(t, "held")
			m.st.Give(m.reserved[i][0], m.reserved[i][1])
			m.o.taken[m.reserved[i][0]] -= m.reserved[i][1]
			m.reserved = slices.Delete(m.reserved, i, i+1)
		}
	case 5:
		m.findShare(t, drawRequest(t, n))
	default:
		m.find(t, drawRequest(t, n))
	}
}

func (m *machine) find(t *rapid.T, a Request) {
	got, found := m.st.Find(a)
	want, wanted := m.o.find(a)
	if found != wanted {
		t.Fatalf("%+v: got %v %v, want %v %v", a, got, found, want, wanted)
	}
	if !found {
		return
	}
	if err := m.differ(a, got, want); err != nil {
		t.Fatalf("%s: %+v: got %v, want %v: %v", m.st.Layout().Key(), a, got, want, err)
	}
	for _, d := range got.Devices {
		m.take(d, Whole)
	}
}

// differ returns in what a choice differs from the oracle's. Where several cells are
// taken and some are linked, and in large trees, only what is left must agree.
func (m *machine) differ(a Request, got, want Choice) error {
	if m.st.Layout().inWord() && (want.Cell > 0 || !m.links) {
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("another choice")
		}
		return nil
	}
	free := m.o.free(a.Allowed)
	for _, d := range got.Devices {
		if !free[d] {
			return fmt.Errorf("device %d is not free", d)
		}
	}
	if len(got.Devices) != len(want.Devices) || got.Cell != want.Cell || got.Level != m.o.common(got.Devices) {
		return fmt.Errorf("wrong count, cell or level")
	}
	if x, y := m.cuts(free, got), m.cuts(free, want); !slices.EqualFunc(x, y, slices.Equal) {
		return fmt.Errorf("cells cut: %v, not %v", x, y)
	}
	return nil
}

// cuts returns the size of each free cell that a choice takes devices of, and how many it takes; if
// it is but one cell, also the sizes of what is left of it.
func (m *machine) cuts(free []bool, c Choice) (cuts [][]int) {
	for _, v := range m.o.cells(free) {
		taken := slices.DeleteFunc(slices.Clone(c.Devices), func(d int) bool {
			return !slices.Contains(m.o.vs[v].devices, d)
		})
		switch {
		case len(taken) == 0:
		case c.Cell > 0:
			left := m.o.left(v, taken)
			if !m.st.Layout().inWord() && len(left) > 0 {
				left = left[:1] // the rule sees to the largest first, and may miss others
			}
			cuts = append(cuts, left)
			fallthrough
		default:
			cuts = append(cuts, []int{len(m.o.vs[v].devices), len(taken)})
		}
	}
	slices.SortFunc(cuts, slices.Compare)
	return cuts
}

func (m *machine) findShare(t *rapid.T, a Request) {
	a.Count, a.Share = 1, rapid.IntRange(1, Whole-1).Draw(t, "share")
	got, found := m.st.Find(a)
	if d := m.o.share(a); d >= 0 {
		if !found || !slices.Equal(got.Devices, []int{d}) || got.Cell != 0 {
			t.Fatalf("%+v: got %v, want a share of %d", a, got, d)
		}
	} else {
		want, wanted := m.o.find(a)
		if found != wanted {
			t.Fatalf("%+v: got %v, want %v", a, got, want)
		}
		if err := m.differ(a, got, want); found && err != nil {
			t.Fatalf("%s: %+v: got %v, want %v: %v", m.st.Layout().Key(), a, got, want, err)
		}
	}
	if found {
		m.take(got.Devices[0], a.Share)
	}
}

// agree compares all sums.
func (m *machine) agree(t *rapid.T) {
	if err := m.st.Check(); err != nil {
		t.Fatal(err)
	}
	free, most := m.o.free(nil), 0
	for d, taken := range m.o.taken {
		want := Whole - taken
		if m.o.sick[d] {
			want = 0
		} else if taken > 0 {
			most = max(most, want)
		}
		if got := m.st.FreeShare(d); got != want {
			t.Fatalf("device %d: free share %d, want %d", d, got, want)
		}
	}
	if got := m.st.MaxPartial(); got != most {
		t.Fatalf("largest part: %d, want %d", got, most)
	}
	if got, want := m.st.Free(), count(free, m.o.vs[0].devices); got != want {
		t.Fatalf("free: %d, want %d", got, want)
	}
	var sizes [5]int
	byLevel := map[string]int{}
	for _, c := range m.o.cells(free) {
		sizes[min(bits.Len(uint(len(m.o.vs[c].devices))), 5)-1]++
		byLevel[m.o.vs[c].level]++
	}
	if got := m.st.CellsBySize(); got != sizes {
		t.Fatalf("cells by size: %v, want %v", got, sizes)
	}
	for _, line := range m.st.CellsByLevel() {
		if line.Cells != byLevel[line.Level] {
			t.Fatalf("cells of %s: %d, want %d", line.Level, line.Cells, byLevel[line.Level])
		}
	}
}

// whole says what must be when everything is given back and healthy.
func (m *machine) whole(t *rapid.T) {
	for _, h := range rapid.Permutation(m.reserved).Draw(t, "order") {
		m.st.Give(h[0], h[1])
	}
	for d := range m.st.Layout().Devices() {
		m.st.SetHealthy(d, true)
	}
	if cells := freeCells(m.st); len(cells) != 1 || len(cells[0]) != m.st.Layout().Devices() {
		t.Fatalf("after all releases: cells %v", cells)
	}
	if !m.st.Equal(NewState(m.st.Layout())) {
		t.Fatal("after all releases the State is not as at first")
	}
}

// rounds is how often a cheap check is repeated.
const rounds = 5

func TestAgainstOracle(t *testing.T) {
	check := func(t *rapid.T) {
		root := drawTree(t, 9)
		links := drawLinks(t, devicesOf(root))
		s, err := NewLayout(levels, root, links)
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{st: NewState(s), o: newOracle(root, links), links: links != nil}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			before := m.st.Clone()
			m.step(t)
			if err := before.Check(); err != nil {
				t.Fatal(err)
			}
			m.agree(t)
		}
		m.whole(t)
	}
	for range rounds {
		rapid.Check(t, check)
	}
}

// widened returns the Layout as if it had more devices than a word has.
func widened(s *Layout) *Layout {
	w := *s
	w.mask, w.plan = nil, nil
	return &w
}

// Large trees are cut by rule, not by trying. On uneven ones that may leave smaller
// cells than could be, but never a smaller largest one.
func TestWideAgainstOracle(t *testing.T) {
	check := func(t *rapid.T) {
		root := drawTree(t, 9)
		s, err := NewLayout(levels, root, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &machine{st: NewState(widened(s)), o: newOracle(root, nil)}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.step(t)
			m.agree(t)
		}
		m.whole(t)
	}
	for range rounds {
		rapid.Check(t, check)
	}
}

// On even trees, which is what machines are, the rule is as good as trying.
func TestRuleAgainstTrying(t *testing.T) {
	for _, counts := range [][]int{{8}, {2, 4}, {4, 2}, {2, 2, 2}, {3, 3}, {2, 3, 2}, {12}, {2, 5}, {2, 1, 4}} {
		s := layout(t, even(counts, "node", "socket", "pcie", "gpu"))
		w := widened(s)
		for v := range int32(len(s.vs)) {
			for k := 1; k <= s.vs[v].size(); k++ {
				for level := range s.levels {
					lim := within{level: level}
					if s.contains(v, k, lim) != w.contains(v, k, lim) {
						t.Fatalf("%s: vertex %d, %d devices: one holds them, one does not", s.Key(), v, k)
					}
					if !s.contains(v, k, lim) {
						continue
					}
					tried, ruled := s.take(v, k, lim, nil), w.take(v, k, lim, nil)
					if !slices.Equal(tried, ruled) {
						t.Fatalf("%s: vertex %d, %d devices: tried %v, by rule %v", s.Key(), v, k, tried, ruled)
					}
				}
			}
		}
	}
}

// Many steps over middling and large trees, where no oracle can follow: the sums must
// hold, what was found must be free, and all must merge in the end.
func TestManySteps(t *testing.T) {
	steps := []int{70_000, 20_000, 5_000, 4_000, 1_000} // 100,000, most where they are cheap
	roots := []Vertex{
		eight(),
		even([]int{2, 4, 2}, "node", "socket", "pcie", "gpu"),
		even([]int{2, 4, 7}, "node", "socket", "gpu", "mig"),
		of("node", even([]int{3, 1}, "socket", "pcie", "gpu"), even([]int{5}, "pcie", "gpu"), even([]int{2, 4, 2}, "socket", "pcie", "nvlink", "gpu")),
		even([]int{2, 5, 9}, "node", "socket", "pcie", "gpu"),
	}
	for i, root := range roots {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		st := state(t, root, Link{0, 3, 2}, Link{2, 3, 1}, Link{5, 7, 4})
		n := st.Layout().Devices()
		var reserved []Choice
		for step := range steps[i] {
			if r.IntN(2) == 0 && len(reserved) > 0 {
				i := r.IntN(len(reserved))
				giveAll(st, reserved[i].Devices...)
				reserved = slices.Delete(reserved, i, i+1)
			} else {
				a := Request{Count: 1 + r.IntN(min(n, 1+r.IntN(n))), Level: levels[r.IntN(len(levels))], Required: r.IntN(4) == 0, Gather: i%2 == 0}
				c, found := st.Find(a)
				checkChoice(t, st, a, c, found)
				takeAll(st, c.Devices...)
				if found {
					reserved = append(reserved, c)
				}
			}
			if d := r.IntN(n); step%7 == 0 {
				st.SetHealthy(d, r.IntN(3) > 0)
			}
			if err := st.Check(); err != nil {
				t.Fatal(err)
			}
		}
		r.Shuffle(len(reserved), func(i, j int) { reserved[i], reserved[j] = reserved[j], reserved[i] })
		for _, c := range reserved {
			giveAll(st, c.Devices...)
		}
		for d := range n {
			st.SetHealthy(d, true)
		}
		equal(t, "cells at the end", len(freeCells(st)), 1)
		equal(t, "as at first", st.Equal(NewState(st.Layout())), true)
	}
}

// checkChoice says what must hold of every answer.
func checkChoice(t *testing.T, st *State, a Request, c Choice, found bool) {
	t.Helper()
	s := st.Layout()
	if !found {
		if st.Free() >= a.Count && !a.Required {
			t.Fatalf("%+v: nothing found, with %d free", a, st.Free())
		}
		return
	}
	if len(c.Devices) != a.Count || !slices.IsSorted(c.Devices) || c.Level != s.Common(c.Devices) {
		t.Fatalf("%+v: got %+v", a, c)
	}
	for i, d := range c.Devices {
		if st.FreeShare(d) != Whole || i > 0 && c.Devices[i-1] == d {
			t.Fatalf("%+v: got %+v, but %d is not free", a, c, d)
		}
	}
	if at := slices.Index(s.levels, c.Level); a.Required && at > slices.Index(s.levels, a.Level) {
		t.Fatalf("%+v: got %+v", a, c)
	}
}
