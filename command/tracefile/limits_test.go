package tracefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Rows that state no time limit get a round one, no less than so many times their duration; what states one keeps it, and what does not end gets none.
func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	text := "arrival,duration,cpu,memory,max_run_duration\n0,100,1,1,\n0,3600,1,1,\n0,3600,1,1,5000\n0,,1,1,\n0,4000000,1,1,\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(path, Options{Limits: 1.1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{5 * time.Minute, 2 * time.Hour, 5000 * time.Second, 0, 60 * 24 * time.Hour} {
		if got := tr.At(i).MaxRun; got != want {
			t.Errorf("row %d: %s, not %s", i, got, want)
		}
	}
}
