package cell

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// The golden example of semantics part 2; devices count from 0 here.
func TestGoldenSplitAndMerge(t *testing.T) {
	st := state(t, eight())
	equal(t, "at first", freeCells(st), [][]int{{0, 1, 2, 3, 4, 5, 6, 7}})
	equal(t, "by size", st.CellsBySize(), [5]int{0, 0, 0, 1, 0})

	c := mustFind(t, st, Request{Count: 2})
	equal(t, "choice", c, Choice{Devices: []int{0, 1}, Level: "pcie", Cell: 8})
	takeAll(st, c.Devices...)
	equal(t, "left", freeCells(st), [][]int{{2, 3}, {4, 5, 6, 7}})
	equal(t, "by size", st.CellsBySize(), [5]int{0, 1, 1, 0, 0})
	equal(t, "free", st.Free(), 6)
	equal(t, "by level", st.CellsByLevel(), []LevelCells{{"gpu", 0}, {"pcie", 1}, {"socket", 1}, {"node", 0}})

	if _, found := st.Find(Request{Count: 8}); found {
		t.Fatal("8 of 6 were found")
	}
	giveAll(st, c.Devices...)
	equal(t, "released", freeCells(st), [][]int{{0, 1, 2, 3, 4, 5, 6, 7}})
	equal(t, "all", mustFind(t, st, Request{Count: 8}), Choice{Devices: []int{0, 1, 2, 3, 4, 5, 6, 7}, Level: "node", Cell: 8})
}

func TestFind(t *testing.T) {
	f := func(name string, root Vertex, taken []int, a Request, want Choice) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			st := state(t, root)
			takeAll(st, taken...)
			equal(t, "choice", mustFind(t, st, a), want)
		})
	}
	f("an exact cell before a larger one", eight(), []int{0, 1}, Request{Count: 2}, Choice{[]int{2, 3}, "pcie", 2})
	f("the smallest larger cell is split", eight(), []int{0, 1}, Request{Count: 1}, Choice{[]int{2}, "gpu", 2})
	f("3 of 4 leave 1", eight(), []int{0, 1}, Request{Count: 3}, Choice{[]int{4, 5, 6}, "socket", 4})
	f("5 of 8 leave 1 and 2", eight(), nil, Request{Count: 5}, Choice{[]int{0, 1, 2, 3, 4}, "node", 8})
	f("the most used parent", eight(), []int{0, 4, 5, 6}, Request{Count: 1}, Choice{[]int{7}, "gpu", 1})
	f("the most used grandparent", even([]int{2, 2, 2}, "node", "socket", "pcie", "gpu"),
		[]int{0, 4, 6, 7}, Request{Count: 1}, Choice{[]int{5}, "gpu", 1})
	f("the lowest number", eight(), []int{1, 5}, Request{Count: 1}, Choice{[]int{0}, "gpu", 1})
	f("several cells of one socket", eight(), []int{0, 2, 4, 5, 6}, Request{Count: 2}, Choice{[]int{1, 3}, "socket", 0})
	f("several cells of the node, the largest first", eight(), []int{0, 4, 6}, Request{Count: 3}, Choice{[]int{1, 2, 3}, "socket", 0})
	f("several cells, the fewest left over", eight(), []int{0, 4, 6}, Request{Count: 2, Level: "socket"}, Choice{[]int{2, 3}, "pcie", 2})
	f("pieces: the fewest left over, not the first", even([]int{2, 4}, "node", "socket", "gpu"),
		[]int{1, 5, 6}, Request{Count: 2}, Choice{[]int{4, 7}, "socket", 0})
	f("pieces over sockets, split at the end", eight(), []int{0, 2, 4, 5, 6}, Request{Count: 3}, Choice{[]int{1, 3, 7}, "node", 0})
	f("pieces: a cell is split only at the end", of("node", many(3, even([]int{3}, "pcie", "gpu"))...),
		[]int{0, 3}, Request{Count: 4, Level: "node"}, Choice{[]int{1, 6, 7, 8}, "node", 0})
	f("a switch with one GPU", of("node", even([]int{2}, "pcie", "gpu"), even([]int{1}, "pcie", "gpu")),
		nil, Request{Count: 1}, Choice{[]int{2}, "gpu", 3})
	f("uneven: larger cells stay", of("node", even([]int{4}, "pcie", "gpu"), of("gpu"), of("gpu")),
		nil, Request{Count: 2, Level: "node"}, Choice{[]int{4, 5}, "node", 6})
	f("uneven: the lowest level first", of("node", even([]int{4}, "pcie", "gpu"), of("gpu"), of("gpu")),
		nil, Request{Count: 2}, Choice{[]int{0, 1}, "pcie", 6})
	f("pieces: the most used of equal ones", of("node", even([]int{3}, "socket", "gpu"), even([]int{4}, "socket", "gpu")),
		[]int{1, 4, 6}, Request{Count: 2}, Choice{[]int{3, 5}, "socket", 0})
	f("pieces: a lower level before fewer left over", of("node", even([]int{3}, "socket", "gpu"), of("socket", even([]int{4}, "pcie", "gpu"))),
		[]int{1, 4}, Request{Count: 2, Level: "socket"}, Choice{[]int{3, 5}, "pcie", 0})
	f("one device", of("gpu"), nil, Request{Count: 1}, Choice{[]int{0}, "gpu", 1})
}

func TestRequestedLevels(t *testing.T) {
	f := func(name string, taken []int, a Request, want Choice) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			st := state(t, eight())
			takeAll(st, taken...)
			c, found := st.Find(a)
			equal(t, "found", found, want.Devices != nil)
			equal(t, "choice", c, want)
		})
	}
	f("required and had", nil, Request{Count: 2, Level: "pcie", Required: true}, Choice{[]int{0, 1}, "pcie", 8})
	f("required and too small", nil, Request{Count: 3, Level: "pcie", Required: true}, Choice{})
	f("required and not whole", []int{0, 2, 4, 6}, Request{Count: 2, Level: "pcie", Required: true}, Choice{})
	f("required, in pieces", []int{0, 2, 4, 6}, Request{Count: 2, Level: "socket", Required: true}, Choice{[]int{1, 3}, "socket", 0})
	f("required, over sockets", []int{0, 4}, Request{Count: 4, Level: "socket", Required: true}, Choice{})
	f("required node", []int{0, 4}, Request{Count: 4, Level: "node", Required: true}, Choice{[]int{2, 3, 6, 7}, "node", 0})
	f("required and lacking", nil, Request{Count: 1, Level: "nvlink", Required: true}, Choice{})
	f("required and unknown", nil, Request{Count: 1, Level: "rack", Required: true}, Choice{})
	f("required, none stated", nil, Request{Count: 1, Required: true}, Choice{[]int{0}, "gpu", 8})
	f("preferred and had", nil, Request{Count: 2, Level: "pcie"}, Choice{[]int{0, 1}, "pcie", 8})
	f("preferred and too small", nil, Request{Count: 3, Level: "pcie"}, Choice{[]int{0, 1, 2}, "socket", 8})
	f("preferred, next level reached", []int{0, 2, 4, 6}, Request{Count: 2, Level: "pcie"}, Choice{[]int{1, 3}, "socket", 0})
	f("preferred, top reached", []int{0, 2, 3, 4, 6, 7}, Request{Count: 2, Level: "pcie"}, Choice{[]int{1, 5}, "node", 0})
	f("preferred and unknown", nil, Request{Count: 2, Level: "rack"}, Choice{[]int{0, 1}, "pcie", 8})
	f("nothing asked", nil, Request{}, Choice{})
	f("too many", nil, Request{Count: 9}, Choice{})
	f("less than nothing", nil, Request{Count: 1, Share: -1}, Choice{})
	f("more than whole", nil, Request{Count: 1, Share: 1001}, Choice{})
	f("shares of two", nil, Request{Count: 2, Share: 500}, Choice{})
}

// A device that hangs beside the switches lies under no vertex of their level.
func TestRequiredLevelMeansThatVeryLevel(t *testing.T) {
	root := of("node", of("gpu"), even([]int{2}, "pcie", "gpu"))
	st := state(t, root)
	equal(t, "any", mustFind(t, st, Request{Count: 1, Level: "pcie"}).Devices, []int{0})
	equal(t, "required", mustFind(t, st, Request{Count: 1, Level: "pcie", Required: true}).Devices, []int{1})
	st.Take(0, 500)
	equal(t, "share", mustFind(t, st, Request{Count: 1, Share: 300}).Devices, []int{0})
	equal(t, "required share", mustFind(t, st, Request{Count: 1, Share: 300, Level: "pcie", Required: true}).Devices, []int{1})
}

// By the rule of lowest levels: broken devices leave three free ones under one switch,
// which is closer than a whole socket.
func TestBrokenDevices(t *testing.T) {
	st := state(t, of("node",
		of("socket", even([]int{4}, "pcie", "gpu")),
		of("socket", even([]int{2}, "pcie", "gpu"), even([]int{2}, "pcie", "gpu"))))
	st.SetHealthy(1, false)
	equal(t, "free", st.Free(), 7)
	equal(t, "cells", freeCells(st), [][]int{{0}, {2}, {3}, {4, 5, 6, 7}})
	equal(t, "3", mustFind(t, st, Request{Count: 3}), Choice{[]int{0, 2, 3}, "pcie", 0})
	equal(t, "3 of a socket", mustFind(t, st, Request{Count: 3, Level: "socket"}), Choice{[]int{4, 5, 6}, "socket", 4})
	equal(t, "1", mustFind(t, st, Request{Count: 1}), Choice{[]int{0}, "gpu", 1})
	equal(t, "share", st.FreeShare(1), 0)

	st.Take(1, 400) // a holder of a broken device is still there when it is healthy again
	equal(t, "largest part", st.MaxPartial(), 0)
	st.SetHealthy(1, true)
	equal(t, "largest part", st.MaxPartial(), 600)
	st.Give(1, 400)
	equal(t, "cells", freeCells(st), [][]int{{0, 1, 2, 3, 4, 5, 6, 7}})
	st.SetHealthy(-1, false)
	st.SetHealthy(8, false)
	equal(t, "free", st.Free(), 8)
}

func TestPreferredCells(t *testing.T) {
	st := state(t, of("node",
		even([]int{2, 2}, "socket", "pcie", "gpu"), even([]int{2, 2}, "socket", "pcie", "gpu")))
	takeAll(st, 0, 1) // cells of 2 and 4
	equal(t, "smallest", mustFind(t, st, Request{Count: 1}).Devices, []int{2})
	equal(t, "of 4", mustFind(t, st, Request{Count: 1, Preferred: []int{8, 4, 2}}), Choice{[]int{4}, "gpu", 4})
	equal(t, "of 2", mustFind(t, st, Request{Count: 1, Preferred: []int{2, 4}}), Choice{[]int{2}, "gpu", 2})
	equal(t, "an exact one needs no preference", mustFind(t, st, Request{Count: 2, Preferred: []int{4}}).Devices, []int{2, 3})
	takeAll(st, 2)
	equal(t, "nor does a single one", mustFind(t, st, Request{Count: 1, Preferred: []int{4}}).Devices, []int{3})
}

func TestShares(t *testing.T) {
	st := state(t, eight())
	request := Request{Count: 1, Share: 300}
	equal(t, "nothing taken yet", mustFind(t, st, request), Choice{[]int{0}, "gpu", 8})
	st.Take(5, 300)
	equal(t, "the used one", mustFind(t, st, request), Choice{[]int{5}, "gpu", 0})
	st.Take(2, 600)
	equal(t, "the most used one", mustFind(t, st, request).Devices, []int{2})
	equal(t, "the most used one that fits", mustFind(t, st, Request{Count: 1, Share: 401}).Devices, []int{5})
	equal(t, "a free one, whole", mustFind(t, st, Request{Count: 1, Share: 701}), Choice{[]int{3}, "gpu", 1})
	equal(t, "not allowed", mustFind(t, st, Request{Count: 1, Share: 300, Allowed: func(d int) bool { return d > 5 }}).Devices, []int{6})
	equal(t, "largest part", st.MaxPartial(), 700)
	equal(t, "free share", []int{st.FreeShare(2), st.FreeShare(5), st.FreeShare(0), st.FreeShare(8)}, []int{400, 700, 1000, 0})
	st.SetHealthy(2, false)
	equal(t, "healthy only", mustFind(t, st, request).Devices, []int{5})
	st.Take(5, 900) // more than there is
	equal(t, "below nothing", st.FreeShare(5), -200)
	equal(t, "largest part", st.MaxPartial(), 0)
	st.Give(5, 900)
	st.Give(5, 300)
	equal(t, "given back", st.FreeShare(5), 1000)
	equal(t, "check", st.Check(), error(nil))
}

func TestSharesKeepToUsedParts(t *testing.T) {
	st := state(t, eight())
	st.Take(0, 500)
	st.Take(7, 500)
	takeAll(st, 4)
	equal(t, "the more used socket", mustFind(t, st, Request{Count: 1, Share: 500}).Devices, []int{7})
}

func TestSlicesOfAGPU(t *testing.T) {
	st := state(t, of("node",
		of("pcie", even([]int{7}, "gpu", "mig"), of("gpu")),
		of("pcie", of("gpu"), of("gpu"))))
	slice := func(d int) bool { return d < 7 }
	gpu := func(d int) bool { return d >= 7 }
	equal(t, "a slice", mustFind(t, st, Request{Count: 1, Allowed: slice}), Choice{[]int{0}, "mig", 7})
	equal(t, "a GPU", mustFind(t, st, Request{Count: 1, Allowed: gpu}), Choice{[]int{7}, "gpu", 1})
	equal(t, "two GPUs", mustFind(t, st, Request{Count: 2, Allowed: gpu}), Choice{[]int{8, 9}, "pcie", 2})
	equal(t, "three slices of one GPU", mustFind(t, st, Request{Count: 3, Level: "gpu", Required: true, Allowed: slice}),
		Choice{[]int{0, 1, 2}, "gpu", 7})
	if _, found := st.Find(Request{Count: 8, Allowed: slice}); found {
		t.Fatal("8 of 7 slices were found")
	}
}

func TestLinkedDevicesFirst(t *testing.T) {
	flat := even([]int{8}, "node", "gpu")
	f := func(name string, root Vertex, links []Link, taken []int, a Request, want ...int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			st := state(t, root, links...)
			takeAll(st, taken...)
			equal(t, "devices", mustFind(t, st, a).Devices, want)
		})
	}
	pairs := []Link{{0, 7, 2}, {1, 2, 4}, {3, 5, 6}}
	f("the pair with most lanes", flat, pairs, nil, Request{Count: 2}, 3, 5)
	f("of what is free", flat, pairs, []int{3}, Request{Count: 2}, 1, 2)
	f("and again", flat, pairs, []int{3, 1}, Request{Count: 2}, 0, 7)
	f("two pairs", flat, pairs, nil, Request{Count: 4}, 1, 2, 3, 5)
	f("a square of linked ones", flat,
		[]Link{{1, 3, 1}, {3, 6, 1}, {6, 7, 1}, {7, 1, 1}, {0, 2, 2}}, nil, Request{Count: 4}, 1, 3, 6, 7)
	f("3 of 4: the linked three", even([]int{4}, "pcie", "gpu"), []Link{{1, 2, 1}, {2, 3, 1}}, nil, Request{Count: 3}, 1, 2, 3)
	f("cells stay whole first", even([]int{2, 2}, "node", "pcie", "gpu"), []Link{{1, 2, 9}}, nil, Request{Count: 2}, 0, 1)
	f("among equal cells the linked one", eight(), []Link{{6, 7, 1}}, nil, Request{Count: 2}, 6, 7)
	f("also when they are apart", eight(), []Link{{6, 7, 1}}, []int{0, 4}, Request{Count: 2}, 6, 7)
	f("16 alike", even([]int{16}, "node", "gpu"), []Link{{10, 11, 1}, {11, 15, 1}, {15, 10, 1}}, nil, Request{Count: 3}, 10, 11, 15)
	f("80 alike", even([]int{80}, "node", "gpu"), []Link{{10, 11, 1}, {11, 62, 1}, {62, 10, 1}}, nil, Request{Count: 3}, 10, 11, 62)
	f("in pieces", even([]int{2, 2}, "socket", "pcie", "gpu"), []Link{{1, 3, 1}}, []int{0, 2}, Request{Count: 2}, 1, 3)
	f("pieces linked to those before", of("node", even([]int{2}, "pcie", "gpu"), of("pcie", many(3, of("gpu"))...)),
		[]Link{{1, 4, 1}}, []int{2}, Request{Count: 3}, 0, 1, 4)
}

func TestManyDevices(t *testing.T) {
	st := state(t, even([]int{4, 4, 4, 8}, "node", "socket", "pcie", "gpu", "mig")) // 512
	c := mustFind(t, st, Request{Count: 3})
	equal(t, "3", c, Choice{[]int{0, 1, 2}, "gpu", 512})
	takeAll(st, c.Devices...)
	equal(t, "5 of a whole cell", mustFind(t, st, Request{Count: 5}).Devices, []int{8, 9, 10, 11, 12})
	equal(t, "8", mustFind(t, st, Request{Count: 8}), Choice{[]int{8, 9, 10, 11, 12, 13, 14, 15}, "gpu", 8})
	c = mustFind(t, st, Request{Count: 200})
	equal(t, "200 level", c.Level, "node")
	equal(t, "200 cell", c.Cell, 0)
	takeAll(st, c.Devices...)
	equal(t, "left", st.Free(), 512-203)
	equal(t, "check", st.Check(), error(nil))
	c = mustFind(t, st, Request{Count: 8, Level: "gpu", Required: true})
	equal(t, "gpu", c.Level, "gpu")
	if !st.Clone().Equal(st) {
		t.Fatal("a clone differs")
	}
}

// The rule for large trees, where equal sizes hide different parts.
func TestRuleOnUnevenTrees(t *testing.T) {
	parts := of("nvlink", of("mig"), even([]int{2}, "gpu", "mig"))
	plain := even([]int{3}, "gpu", "mig")
	for _, c := range []struct {
		root  Vertex
		k     int
		level string
		want  []int
	}{
		{of("node", parts, plain), 1, "node", []int{0}}, // stays: 3 and 2
		{of("node", plain, parts), 1, "node", []int{3}},
		{of("node", of("nvlink", plain), parts), 1, "nvlink", []int{3}},
		{of("node", parts, of("nvlink", plain)), 1, "nvlink", []int{0}},
	} {
		w := widened(layout(t, c.root))
		equal(t, w.Key(), w.take(0, c.k, within{level: slices.Index(w.levels, c.level)}, nil), c.want)
	}
}

func TestEqual(t *testing.T) {
	for _, n := range []int{8, 40, 90} {
		a := state(t, even([]int{n}, "node", "gpu"))
		f := func(what string, same bool, change func(b *State)) {
			t.Helper()
			b := a.Clone()
			change(b)
			equal(t, what, []bool{a.Equal(b), b.Equal(a)}, []bool{same, same})
		}
		f("nothing done", true, func(*State) {})
		f("taken", false, func(b *State) { b.Take(3, 1) })
		f("taken and given", true, func(b *State) { b.Take(3, 7); b.Take(3, 1000); b.Give(3, 7); b.Give(3, 1000) })
		f("broken", false, func(b *State) { b.SetHealthy(n-1, false) })
		f("broken and mended", true, func(b *State) { b.SetHealthy(2, false); b.SetHealthy(2, true) })
	}
}

func TestCloneIsApart(t *testing.T) {
	for _, n := range []int{1, 8, 16, 17, 64, 65, 300} {
		st := state(t, even([]int{n}, "node", "gpu"))
		st.Take(0, 10)
		c := st.Clone()
		if !c.Equal(st) {
			t.Fatalf("%d devices: a clone differs", n)
		}
		c.Take(n-1, 700)
		c.SetHealthy(0, false)
		if c.Equal(st) || st.FreeShare(0) != 990 || n > 1 && st.FreeShare(n-1) != Whole {
			t.Fatalf("%d devices: a change of the clone shows", n)
		}
		equal(t, "check", c.Check(), error(nil))
		equal(t, "check", st.Check(), error(nil))
	}
}

// What is not there is left alone; what lies outside of 1 to 999 is all of a device.
func TestOddShares(t *testing.T) {
	st := state(t, eight())
	for _, d := range []int{-1, 8, 1 << 40} {
		st.Take(d, 1000)
		st.Give(d, 1000)
	}
	equal(t, "free", st.Free(), 8)
	for _, share := range []int{0, -5, 1000, 1001} {
		st.Take(3, share)
		equal(t, "free share", st.FreeShare(3), 0)
		st.Give(3, share)
		equal(t, "free share", st.FreeShare(3), 1000)
	}
	st.Give(3, 1)
	if st.Check() == nil {
		t.Fatal("more was given than taken, and Check sees nothing")
	}
}

func TestGather(t *testing.T) {
	f := func(name string, root Vertex, taken []int, a Request, want, gathered Choice) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			st := state(t, root)
			takeAll(st, taken...)
			equal(t, "choice", mustFind(t, st, a), want)
			a.Gather = true
			equal(t, "gathered", mustFind(t, st, a), gathered)
		})
	}
	fours := even([]int{2, 4}, "node", "pcie", "gpu")
	f("2 where cells have 4", fours, []int{0, 1}, Request{Count: 2}, Choice{[]int{4, 5}, "pcie", 4}, Choice{[]int{2, 3}, "pcie", 0})
	f("nothing is left over", fours, nil, Request{Count: 2}, Choice{[]int{0, 1}, "pcie", 8}, Choice{[]int{0, 1}, "pcie", 8})
	f("too little is left over", fours, []int{0, 1, 2}, Request{Count: 2}, Choice{[]int{4, 5}, "pcie", 4}, Choice{[]int{4, 5}, "pcie", 4})
	f("3 where cells have 4", eight(), []int{0}, Request{Count: 3}, Choice{[]int{4, 5, 6}, "socket", 4}, Choice{[]int{1, 2, 3}, "socket", 0})
	f("2 where cells have 2", eight(), []int{0, 2}, Request{Count: 2}, Choice{[]int{4, 5}, "pcie", 4}, Choice{[]int{4, 5}, "pcie", 4})
	f("not across a cell that holds all", fours, []int{0}, Request{Count: 4, Level: "node"}, Choice{[]int{4, 5, 6, 7}, "pcie", 4}, Choice{[]int{4, 5, 6, 7}, "pcie", 4})
	f("nor one of more", of("node", fours.Children[0], of("pcie", of("gpu"))), []int{4}, Request{Count: 2, Level: "node"},
		Choice{[]int{0, 1}, "pcie", 4}, Choice{[]int{0, 1}, "pcie", 4})
}

func TestAllowedDevices(t *testing.T) {
	for _, root := range []Vertex{eight(), of("node", even([]int{2, 2, 2}, "socket", "nvlink", "gpu", "mig"), even([]int{70}, "socket", "gpu"))} {
		st := state(t, root)
		odd := func(d int) bool { return d%2 == 1 && d < 8 }
		equal(t, "one", mustFind(t, st, Request{Count: 1, Allowed: odd}).Devices, []int{1})
		equal(t, "four", mustFind(t, st, Request{Count: 4, Allowed: odd}).Devices, []int{1, 3, 5, 7})
		if _, found := st.Find(Request{Count: 5, Allowed: odd}); found {
			t.Fatal("5 of 4 were found")
		}
		equal(t, "nothing taken", st.Free(), st.Layout().Devices())
		all := mustFind(t, st, Request{Count: 4, Allowed: func(d int) bool { return d < 8 }})
		if !slices.Equal(all.Devices, []int{0, 1, 2, 3}) {
			t.Fatalf("four of eight allowed: %v", all)
		}
	}
}

// Check is only worth what it finds.
func TestCheckFinds(t *testing.T) {
	f := func(want string, spoil func(st *State)) {
		t.Helper()
		for _, root := range []Vertex{eight(), even([]int{2, 40}, "node", "pcie", "gpu")} {
			st := state(t, root)
			st.Take(0, 500)
			spoil(st)
			if err := st.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		}
	}
	f("reserved in part", func(st *State) { st.partial++ })
	f("reserved in part", func(st *State) { st.taken()[0] = 1000 })
	f("more was released", func(st *State) { st.Give(1, 1) })
	f("counted", func(st *State) { st.taken()[2] = 1000 })
	f("counted", func(st *State) { st.mark(3, true) })
	f("counted", func(st *State) {
		if st.free |= 1; st.wide != nil {
			st.wide.free[0]++
		}
	})
}
