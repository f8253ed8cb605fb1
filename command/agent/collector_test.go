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

// An idle process collects when an eighth of its headroom is used up, or of what lives, and only then: not within a burst, nor
// in a short pause of one, nor again before it has grown as much once more.
func TestIdleCollects(t *testing.T) {
	const mib = 1 << 20
	i := &idler{room: headroom{128 * mib, 512 * mib}}
	allocated, grown := uint64(0), uint64(0)
	look := func(more, live uint64, want bool) {
		t.Helper()
		allocated, grown = allocated+more*mib, grown+more*mib
		got := i.due(allocated, live*mib, grown)
		if got != want {
			t.Errorf("%d MiB more: collects: %v", more, got)
		}
		if got {
			grown = 0
		}
	}
	look(0, 10, false)
	look(1, 10, false)
	look(14, 10, false) // busy
	look(1, 10, false)  // a pause
	look(1, 10, true)   // 17 of 128 MiB
	look(1, 10, false)
	look(1, 10, false)
	look(200, 10, false)
	grown = 0 // the burst's own, of which the rest was not seen
	look(8, 10, false)
	look(1, 10, false)
	look(1, 10, false) // the burst's own was enough
	look(50, 200, false)
	look(1, 200, false)
	look(1, 200, true) // more than 50 of 400 MiB
	look(0, 200, false)
	look(49, 200, false)
	for range 5 {
		look(0, 200, false) // not an eighth
	}
	grown = 0
	look(80, 1000, false)
	for range 20 {
		look(2, 1000, false) // more than an eighth of 512, but of 1,000 it is not
	}
}
