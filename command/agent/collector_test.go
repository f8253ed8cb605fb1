package agent

import "testing"

func TestPercentFor(t *testing.T) {
	f := func(live, least uint64, want int) {
		t.Helper()
		if got := (headroom{least, 1 << 30}).percentFor(live); got != want {
			t.Errorf("%d bytes live, %d to grow by: %d %%, want %d", live, least, got, want)
		}
	}
	f(0, 128<<20, 3200)
	f(1<<20, 128<<20, 3200)
	f(16<<20, 128<<20, 800)
	f(64<<20, 128<<20, 200)
	f(512<<20, 128<<20, 200)
	f(1<<30, 128<<20, 100)
	f(2<<30, 128<<20, 50)
	f(4<<30, 128<<20, 25)
	f(4<<30, 2<<30, 50)
}

// An idle process collects when a quarter of its headroom is used up, and only then: not within a burst, nor in a short pause
// of one, nor again before it has allocated as much once more.
func TestIdleCollects(t *testing.T) {
	const mib = 1 << 20
	i := &idler{room: headroom{128 * mib, 512 * mib}}
	allocated, cycles := uint64(0), uint64(1)
	look := func(more, live uint64, want bool) {
		t.Helper()
		allocated += more * mib
		got := i.due(cycles, allocated, live*mib)
		if got != want {
			t.Errorf("%d MiB more: collects: %v", more, got)
		}
		if got {
			cycles++
		}
	}
	look(0, 10, false)
	look(1, 10, false)
	look(30, 10, false) // busy
	look(1, 10, false)  // a pause
	look(1, 10, true)   // 33 of 128 MiB
	look(1, 10, false)
	look(1, 10, false)
	look(200, 10, false)
	cycles++ // one of the burst's own
	look(100, 10, false)
	look(1, 10, false)
	look(1, 10, false) // the burst's own was enough
	look(120, 200, false)
	look(1, 200, false)
	look(1, 200, true) // more than 100 of 400 MiB
	look(0, 200, false)
	look(99, 200, false)
	for range 5 {
		look(0, 400, false) // a quarter of 512
	}
}
