package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJudge: whatever is not as the lists say is reported, and nothing else.
func TestJudge(t *testing.T) {
	got := parse([]byte(`{"Action":"run","Test":"TestGood"}
{"Action":"run","Test":"TestGood/part"}
{"Action":"fail","Test":"TestGood/part"}
{"Action":"pass","Test":"TestGood"}
not JSON
{"Action":"run","Test":"TestBroken"}
{"Action":"output","Test":"TestBroken","Output":"broken because\n"}
{"Action":"output","Test":"TestBroken","Output":"--- FAIL: TestBroken (0.10s)\n"}
{"Action":"fail","Test":"TestBroken"}
{"Action":"run","Test":"TestHung"}
{"Action":"run","Test":"TestWaits"}
{"Action":"output","Test":"TestWaits","Output":"--- FAIL: TestWaits (0.10s)\n"}
{"Action":"fail","Test":"TestWaits"}
{"Action":"run","Test":"TestWaitsSkipped"}
{"Action":"skip","Test":"TestWaitsSkipped"}
{"Action":"run","Test":"TestCame"}
{"Action":"pass","Test":"TestCame"}
{"Action":"run","Test":"TestEither"}
{"Action":"pass","Test":"TestEither"}
{"Action":"run","Test":"TestNewGood"}
{"Action":"pass","Test":"TestNewGood"}
{"Action":"run","Test":"TestNewBad"}
{"Action":"output","Test":"TestNewBad","Output":"--- FAIL: TestNewBad (0.10s)\n"}
{"Action":"fail","Test":"TestNewBad"}
{"Action":"pass"}
`)).got
	l := &lists{
		passing: map[string]bool{"TestGood": true, "TestBroken": true, "TestHung": true, "TestGone": true},
		waiting: map[string]string{"TestWaits": "ACLs", "TestWaitsSkipped": "itself", "TestCame": "ACLs", "TestEither": "sometimes: luck", "TestGoneToo": "ACLs"},
	}
	want := []string{
		"TestBroken: fail, and must pass\nbroken because\n", "TestCame: passes now (it waited for: ACLs)",
		"TestHung: did not end, and must pass", "TestNewBad: fail, and is in no list", "TestNewGood: passes and is in no list",
		"TestGone: is in the list of those that pass, and did not run", "TestGoneToo: is in the list of those that wait, and did not run",
	}
	wrong := l.judge(got)
	if len(wrong) != len(want) {
		t.Fatalf("%d texts, want %d: %q", len(wrong), len(want), wrong)
	}
	for i := range want {
		if !strings.HasPrefix(wrong[i], want[i]) {
			t.Errorf("%q, want %q", wrong[i], want[i])
		}
	}
	if again := l.failed(got); strings.Join(again, " ") != "TestBroken TestHung" {
		t.Errorf("to be run again: %q", again)
	}
}

// TestLists: the lists are well formed, and what is not is refused.
func TestLists(t *testing.T) {
	if _, err := readLists("passing.txt", "waiting.txt"); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][2]string{
		"no reason":   {"TestA\n", "TestB\n"},
		"in both":     {"TestA\n", "TestA ACLs\n"},
		"twice":       {"TestA\nTestA\n", "TestB ACLs\n"},
		"waits twice": {"TestA\n", "TestB ACLs\nTestB ACLs\n"},
		"a remark":    {"TestA nearly\n", "TestB ACLs\n"},
	} {
		dir := t.TempDir()
		p, w := filepath.Join(dir, "p"), filepath.Join(dir, "w")
		if err := os.WriteFile(p, []byte(bad[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w, []byte(bad[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readLists(p, w); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
