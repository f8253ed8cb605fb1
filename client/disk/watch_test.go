package disk

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

const mib = 1 << 20

func TestWatch(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	free := map[string]uint64{"/a": 500 * mib, "/b": 500 * mib}
	w := NewWatch(Options{
		Dirs: []string{"/a", "/b", "/gone"}, Limit: structs.DiskLimit{MB: 10, Percent: 5}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log}),
		Measure: func(dir string) (structs.DiskRoom, error) {
			if dir == "/gone" {
				return structs.DiskRoom{}, errors.New("not there")
			}
			return structs.DiskRoom{Path: dir, Total: 1000 * mib, Free: free[dir]}, nil
		},
	})
	f := func(a, b uint64, want string, changed bool) {
		t.Helper()
		free["/a"], free["/b"] = a*mib, b*mib
		w.Look()
		if w.Full() != want {
			t.Errorf("%q, want %q", w.Full(), want)
		}
		select {
		case <-w.Changed():
			if !changed {
				t.Error("a word of a change that is none")
			}
		default:
			if changed {
				t.Error("no word of the change")
			}
		}
	}
	const full = "the disk of /b is full (3.0 MiB of 1000.0 MiB left)"
	f(500, 500, "", false)
	f(500, 3, full, true)
	f(500, 2, full, false) // the words stay
	f(5, 2, full, false)
	f(500, 19, full, false) // not twice the limit
	f(500, 20, "", true)
	for text, want := range map[string]int{"takes no new work": 1, "room on the disk again": 1, "not known": 1} {
		if n := strings.Count(log.String(), text); n != want {
			t.Errorf("%q is said %d times, want %d:\n%s", text, n, want, log.String())
		}
	}
	var none *Watch
	if none.Full() != "" || none.Changed() != nil {
		t.Error("no disk is full")
	}
}
