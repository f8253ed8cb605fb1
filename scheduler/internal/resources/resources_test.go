package resources

import (
	"testing"

	"pgregory.net/rapid"
)

func draw(t *rapid.T, name string, least, most int) Resources {
	n := func(of string) int { return rapid.IntRange(least, most).Draw(t, name+" "+of) }
	return Resources{Vector{int64(n("cpu")), int64(n("memory")), int64(n("disk"))}, n("cores"), n("devices")}
}

// TestHolds: a room holds as many as can be taken out of it, one after the other.
func TestHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room, each, most, want := draw(t, "room", 0, 20), draw(t, "each", 0, 3), rapid.IntRange(0, 12).Draw(t, "most"), 0
		for left := room; want < most && left.Lacks(each) == ""; want++ {
			left = left.Less(each)
		}
		if got := room.Holds(each, most); got != want {
			t.Fatalf("%+v holds %d of %+v, want %d", room, got, each, want)
		}
	})
}

// TestMayHold: groups are held if each of them has room on its own, and all of them have in the sum.
func TestMayHold(t *testing.T) {
	gpu := Resources{Devices: 1}
	rooms := []Resources{{Devices: 3}, {Devices: 2}}
	for _, c := range []struct {
		groups []Group
		want   bool
	}{
		{nil, true},
		{[]Group{{gpu, 5}}, true},
		{[]Group{{gpu, 6}}, false},
		{[]Group{{Resources{Devices: 2}, 2}}, true},
		{[]Group{{Resources{Devices: 2}, 3}}, false}, // by the sum alone there are five
		{[]Group{{gpu, 3}, {gpu, 2}}, true},
		{[]Group{{gpu, 3}, {gpu, 3}}, false},
		{[]Group{{Resources{}, 1_000_000_000}}, true},
	} {
		if got := MayHold(rooms, c.groups); got != c.want {
			t.Errorf("%+v: %v, want %v", c.groups, got, c.want)
		}
	}
}

// BenchmarkMayHold is of a large gang: each decision on who borrows needs it.
func BenchmarkMayHold(b *testing.B) {
	rooms := make([]Resources, 200)
	for i := range rooms {
		rooms[i] = Resources{Amount: Vector{CPU: 100_000, MemoryMB: 100_000, DiskMB: 100_000}}
	}
	groups := []Group{{Resources{Amount: Vector{CPU: 1000, MemoryMB: 1000, DiskMB: 300}}, 10_000}}
	for b.Loop() {
		MayHold(rooms, groups)
	}
}
