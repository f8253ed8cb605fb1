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
