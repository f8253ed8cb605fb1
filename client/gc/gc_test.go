package gc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPick(t *testing.T) {
	f := func(ages string, running int, disk float64, maxAllocs int, want string) {
		t.Helper()
		var ended []Ended
		for i, c := range ages { // a later letter ended later
			ended = append(ended, Ended{ID: fmt.Sprintf("%c%d", c, i), At: time.Unix(int64(c), 0)})
		}
		before := slices.Clone(ended)
		got := strings.Join(Pick(ended, running, disk, Limits{MaxAllocs: maxAllocs, DiskPercent: 80}), " ")
		if got != want {
			t.Errorf("%q, %d running, disk %v, at most %d: %q, want %q", ages, running, disk, maxAllocs, got, want)
		}
		if !slices.Equal(before, ended) {
			t.Error("the argument was changed")
		}
	}
	f("", 100, 99, 1, "")
	f("abc", 0, 10, 3, "")
	f("cab", 0, 10, 2, "a1")
	f("cab", 2, 10, 3, "a1 b2")
	f("cab", 50, 10, 3, "a1 b2 c0")
	f("cab", 0, 81, 50, "a1")
	f("cab", 0, 80, 50, "")
	f("cab", 1, 95, 2, "a1 b2")
	f("aaa", 0, 0, 1, "a0 a1")
}
