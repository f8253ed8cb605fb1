package cell

import (
	"strings"
	"testing"
)

func TestNewLayoutRefuses(t *testing.T) {
	f := func(name string, levels []string, root Vertex, links []Link, want string) {
		t.Helper()
		_, err := NewLayout(levels, root, links)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", name, err, want)
		}
	}
	two := even([]int{2}, "node", "gpu")
	f("unknown level", levels, of("node", of("fpga")), nil, `level "fpga": it is not among`)
	f("unknown root", levels, of("rack"), nil, `level "rack": it is not among`)
	f("no level", levels, Vertex{}, nil, `level "": it is not among`)
	f("level of its parent", levels, of("node", of("node")), nil, `level "node": it must lie below`)
	f("level above its parent", levels, of("node", of("gpu", of("pcie"))), nil, `level "pcie": it must lie below`)
	f("a level twice", []string{"gpu", "node", "gpu"}, two, nil, `level "gpu": name each level once`)
	f("a level without a name", []string{"", "node"}, of("node"), nil, `level "": name each level once`)
	f("no levels", nil, two, nil, `level "node": it is not among`)
	f("many levels", make([]string, MaxLevels+1), two, nil, "33 levels")
	f("many devices", levels, of("node", many(MaxDevices+1, of("gpu"))...), nil, "more than 4096 devices")
	f("many links", levels, two, make([]Link, MaxLinks+1), "links: state at most")
	f("a link to nowhere", levels, two, []Link{{0, 2, 1}}, "link 0-2: devices are 0 to 1")
	f("a link from nowhere", levels, two, []Link{{-1, 1, 1}}, "link -1-1: devices are 0 to 1")
	f("a link to itself", levels, two, []Link{{1, 1, 1}}, "link 1-1: it must join two")
	f("a link without lanes", levels, two, []Link{{0, 1, 0}}, "link 0-1: 0 lanes")
	f("a link with too many", levels, two, []Link{{0, 1, MaxLanes + 1}}, "link 0-1: 65537 lanes")
}

func TestLayout(t *testing.T) {
	s := layout(t, of("node", even([]int{7}, "gpu", "mig"), of("socket", of("gpu"))))
	equal(t, "devices", s.Devices(), 8)
	equal(t, "levels", s.Levels(), []string{"mig", "gpu", "socket", "node"})
	equal(t, "key", s.Key(), "node(gpu(7*mig),socket(gpu))")
	for _, c := range []struct {
		devices []int
		want    string
	}{
		{nil, ""}, {[]int{8}, ""}, {[]int{-1, 2}, ""}, {[]int{3}, "mig"}, {[]int{7}, "gpu"},
		{[]int{6, 0}, "gpu"}, {[]int{5, 7}, "node"}, {[]int{7, 7}, "gpu"},
	} {
		equal(t, "common", s.Common(c.devices), c.want)
	}
	big := layout(t, of("node", many(MaxDevices, of("gpu"))...))
	equal(t, "the most devices", big.Devices(), MaxDevices)
	equal(t, "its key", big.Key(), "node(4096*gpu)")
	equal(t, "its cells", NewState(big).CellsBySize(), [5]int{0, 0, 0, 0, 1})
}

func TestKeyTellsStructuresApart(t *testing.T) {
	odd := []string{"gpu", "2*gpu", "gpu)", "gpu,gpu", "node"}
	seen := map[string]int{}
	for i, s := range []struct {
		levels []string
		root   Vertex
		links  []Link
	}{
		{levels, of("gpu"), nil},
		{levels, of("node", of("gpu")), nil},
		{levels, of("node", of("gpu"), of("gpu")), nil},
		{odd, of("node", of("2*gpu")), nil},
		{odd, of("node", of("gpu,gpu")), nil},
		{odd, of("node", of("gpu)")), nil},
		{levels, of("node", of("gpu"), of("gpu")), []Link{{0, 1, 1}}},
		{levels, of("node", of("gpu"), of("gpu")), []Link{{0, 1, 2}}},
		{levels, of("node", of("gpu"), of("pcie")), nil},
		{levels, of("node", of("pcie"), of("gpu")), nil},
		{levels, of("node", of("pcie", of("gpu")), of("gpu")), nil},
		{levels, of("node", of("pcie", of("gpu"), of("gpu"))), nil},
		{levels, eight(), nil},
		{levels, eight(), []Link{{0, 1, 1}, {2, 3, 1}, {4, 5, 1}, {6, 7, 1}, {0, 3, 1}, {4, 7, 1}}},
		{levels, eight(), []Link{{0, 1, 1}, {2, 3, 1}, {4, 5, 1}, {6, 7, 1}, {0, 3, 1}, {4, 6, 1}}},
	} {
		made, err := NewLayout(s.levels, s.root, s.links)
		if err != nil {
			t.Fatal(err)
		}
		if before, twice := seen[made.Key()]; twice {
			t.Errorf("structures %d and %d have one key: %s", before, i, made.Key())
		}
		if len(made.Key()) > readableKey {
			t.Errorf("structure %d: the key is long: %s", i, made.Key())
		}
		seen[made.Key()] = i
	}
	// Order and direction of links, repeated ones, and levels that do not occur say nothing.
	a := layout(t, eight(), Link{0, 1, 2}, Link{4, 2, 1})
	b, err := NewLayout([]string{"gpu", "pcie", "socket", "node", "rack"}, eight(), []Link{{2, 4, 1}, {1, 0, 2}, {0, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "key", a.Key(), b.Key())
	equal(t, "States of one key", NewState(a).Equal(NewState(b)), true)
	equal(t, "States of two keys", NewState(a).Equal(NewState(layout(t, eight()))), false)
}

// A mix of many different parts has a key of bounded length, and different ones two.
func TestLongKeys(t *testing.T) {
	mix := func(last int) *Layout {
		var parts []Vertex
		for n := range 20 {
			parts = append(parts, of("socket", even([]int{n + 1}, "pcie", "gpu"), even([]int{last + 1, n + 1}, "pcie", "gpu", "mig")))
		}
		return layout(t, of("node", parts...))
	}
	a, b := mix(1), mix(2)
	equal(t, "length", len(a.Key()), 33)
	equal(t, "again", a.Key(), mix(1).Key())
	equal(t, "different", a.Key() != b.Key(), true)
}

// The published value of 128 bit FNV-1a for "foobar".
func TestHash(t *testing.T) {
	high, low := fnv128("foobar")
	equal(t, "hash", [2]uint64{high, low}, [2]uint64{0x343e1662793c64bf, 0x6f0d3597ba446f18})
}

// decode makes a tree of bytes: each is a level and how far its subtree goes.
func decode(data []byte) (root Vertex, links []Link) {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	var grow func(depth int) Vertex
	grow = func(depth int) Vertex {
		b := next()
		v := Vertex{Level: append(levels, "")[b%(len(levels)+1)]}
		for range b / 16 % 8 {
			if depth < 10 && len(data) > 0 {
				v.Children = append(v.Children, grow(depth+1))
			}
		}
		return v
	}
	root = grow(0)
	for len(data) > 0 {
		links = append(links, Link{next() - 1, next(), next()})
	}
	return root, links
}

func FuzzNewLayout(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{5 + 21, 4 + 35, 1, 1, 4 + 35, 1, 1})
	f.Add([]byte{37, 36, 33, 1, 1, 33, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		root, links := decode(data)
		s, err := NewLayout(levels, root, links)
		if err != nil {
			return
		}
		again, err := NewLayout(levels, root, links)
		if err != nil || again.Key() != s.Key() {
			t.Fatalf("the same again: %v, key %s and %s", err, again.Key(), s.Key())
		}
		n := s.Devices()
		for _, st := range []*State{NewState(s), NewState(widened(s))} {
			for count := 1; count <= n; count += 1 + count/2 {
				for _, level := range append(s.Levels(), "") {
					a := Request{Count: count, Level: level}
					c, found := st.Find(a)
					checkChoice(t, st, a, c, found)
				}
			}
			for d := range n {
				st.Take(d, 1+d*300)
			}
			if err := st.Check(); err != nil {
				t.Fatal(err)
			}
			for d := range n {
				st.Give(d, 1+d*300)
			}
			equal(t, "as at first", st.Equal(NewState(st.Layout())), true)
		}
	})
}
