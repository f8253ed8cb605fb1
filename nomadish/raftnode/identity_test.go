package raftnode

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOlderLog: a log from before servers had IDs knows its server by name.
func TestOlderLog(t *testing.T) {
	t.Parallel()
	old := &Options{Dir: t.TempDir(), Name: "old"}
	for range 2 {
		if id, err := serverID(old, true); err != nil || id != "old" {
			t.Fatalf("with a log: %q, %v", id, err)
		}
	}
	fresh := &Options{Dir: t.TempDir(), Name: "new", NewID: func() string { return "minted" }}
	id, err := serverID(fresh, false)
	if again, err2 := serverID(fresh, true); err != nil || err2 != nil || id == "new" || again != id {
		t.Fatalf("without one: %q (%v), then %q (%v)", id, err, again, err2)
	}
	if err := os.WriteFile(filepath.Join(fresh.Dir, "node-id"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serverID(fresh, true); err == nil {
		t.Fatal("an empty ID was taken")
	}
}
