package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// realNode is the configuration of an agent whose own node has 1000 MHz, and on which services preempt.
func realNode() string { return preempting("") + "client {\n  cpu_total_compute = 1000\n}\n" }

// numbers are the words of a file that a script writes, as numbers.
func numbers(t *testing.T, path string) (out []int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil { // the last may be half written
			out = append(out, n)
		}
	}
	return out
}

// spoken waits until a script has written numbers.
func spoken(t *testing.T, path string) {
	t.Helper()
	harness.Within(t, 20*time.Second, "words in "+path, func(context.Context) error {
		if _, err := os.Stat(path); err != nil {
			return err
		}
		if len(numbers(t, path)) == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
}

// TestVictimLetsGoFirst: the newcomer's process starts only after the victim's has ended, be it that this one takes its time to
// end, be it that it is killed at the end of its kill_timeout. What was taken waits while the newcomer runs, and then runs again.
func TestVictimLetsGoFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ timeout, trap string }{
		"slow":     {"30s", `trap 'for i in $(seq 20); do sleep 0.05; date +%s%N >> FILE; done; exit 0' TERM`},
		"stubborn": {"1s", `trap '' TERM`},
	} {
		t.Run(name, func(t *testing.T) {
			a := harness.StartDev(t, realNode())
			w := watchRoom(t, a)
			lives, starts := filepath.Join(a.Dir, "lives"), filepath.Join(a.Dir, "starts")
			victim := strings.ReplaceAll(c.trap+"\nwhile :; do date +%s%N >> FILE; sleep 0.02; done", "FILE", lives)
			a.Submit("victim", harness.ProcessJob("victim", 10, "", fmt.Sprintf("kill_signal = \"SIGTERM\"\n      kill_timeout = %q", c.timeout), victim))
			old := a.WaitRunning("victim", 1, 20*time.Second)[0].ID
			spoken(t, lives)
			start := quiet(a)
			a.Submit("newcomer", harness.ProcessJob("newcomer", 90, "", "", "date +%s%N >> "+starts+"; exec sleep 1000"))
			taker := a.WaitRunning("newcomer", 1, 30*time.Second)[0].ID
			spoken(t, starts)
			ended, began := numbers(t, lives), numbers(t, starts)
			if c.timeout == "30s" && len(ended) < 20 { // it had the time to end by itself
				t.Errorf("it was cut off after %d words", len(ended))
			}
			if last := ended[len(ended)-1]; began[0] <= last {
				t.Errorf("the newcomer began %s before the victim's last word", time.Duration(last-began[0]))
			}
			w.upTo(t, quiet(a))
			evicted := w.stopped("victim", structs.AllocDesiredEvict, start)
			if len(evicted) != 1 || evicted[old] == 0 || evicted[old] != w.placed("newcomer", start)[taker] {
				t.Errorf("taken at %v, placed at %v: not one entry", evicted, w.placed("newcomer", start))
			}
			// It waits, does not bounce, and comes back when there is room.
			a.WaitMissing("victim", 1)
			if came := w.placed("victim", start); len(came) > 0 {
				t.Errorf("while the newcomer runs %v of the victim came", came)
			}
			a.Stop("newcomer")
			back := a.WaitRunning("victim", 1, 20*time.Second)[0].ID
			w.upTo(t, quiet(a))
			if came := w.placed("victim", start); len(came) != 1 || came[back] == 0 {
				t.Errorf("%v of the victim came, %s runs", came, back)
			}
			a.WaitMissing("victim", 0)
		})
	}
}

// TestSuspended: with reclaim = "suspend" a job's process stands still while another has its place, and goes on with all that it
// had in memory: the same allocation, the same process, no restart.
func TestSuspended(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, realNode())
	w := watchRoom(t, a)
	counts := filepath.Join(a.Dir, "counts")
	script := "echo pid $$; n=0; while :; do n=$((n+1)); echo $n >> " + counts + "; sleep 0.01; done"
	a.Submit("sleeper", harness.ProcessJob("sleeper", 10, `reclaim = "suspend"`, "", script))
	id := a.WaitRunning("sleeper", 1, 20*time.Second)[0].ID
	pid := a.PIDs(a.WaitRunning("sleeper", 1, time.Second))
	spoken(t, counts)
	harness.Within(t, 10*time.Second, "some counting", func(context.Context) error {
		if n := len(numbers(t, counts)); n < 20 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	start := quiet(a)
	round := func() {
		t.Helper()
		a.Submit("newcomer", harness.ProcessJob("newcomer", 90, "", "", "exec sleep 1000"))
		a.WaitRunning("newcomer", 1, 20*time.Second)
		suspended := a.WaitInStatus("sleeper", structs.AllocClientSuspended, 1, 10*time.Second)[0]
		if suspended.ID != id || suspended.DesiredStatus != structs.AllocDesiredSuspend {
			t.Errorf("%s is to %s", suspended.ID, suspended.DesiredStatus)
		}
		before := len(numbers(t, counts))
		a.Submit("probe", harness.ProcessJob("probe", 95, "", "", "sleep 0.3")) // of the same band as the newcomer: it waits for it
		a.WaitMissing("probe", 1)
		if out, code := a.CLI("queue"); code != 0 || !strings.Contains(out, "sleeper") || !strings.Contains(out, "1 suspended") {
			t.Errorf("queue: exit %d\n%s", code, out)
		}
		if out, code := a.CLI("alloc", "status", id); code != 0 || !strings.Contains(out, "suspended") {
			t.Errorf("alloc status: exit %d\n%s", code, out)
		}
		if after := len(numbers(t, counts)); after != before {
			t.Errorf("it counted %d times while it stood still", after-before)
		}
		a.Stop("newcomer")
		a.Stop("probe")
		if again := a.WaitRunning("sleeper", 1, 30*time.Second)[0]; again.ID != id {
			t.Fatalf("%s runs, not %s", again.ID, id)
		}
		harness.Within(t, 10*time.Second, "more counting", func(context.Context) error {
			if n := len(numbers(t, counts)); n <= before+5 {
				return fmt.Errorf("%d after %d", n, before)
			}
			return nil
		})
	}
	round()
	round()
	for i, n := range numbers(t, counts) {
		if n != int64(i+1) {
			t.Fatalf("number %d is %d: it did not go on where it was", i, n)
		}
	}
	if now := a.PIDs(a.WaitRunning("sleeper", 1, time.Second)); now[id] != pid[id] || pid[id] == 0 {
		t.Errorf("process %d, was %d", now[id], pid[id])
	}
	s := a.ReadAllocs(a.WaitRunning("sleeper", 1, time.Second))[0].TaskStates["t"]
	if s.Restarts != 0 || s.Failed {
		t.Errorf("%d restarts, failed %v", s.Restarts, s.Failed)
	}
	w.upTo(t, quiet(a))
	if came := w.placed("sleeper", start); len(came) > 0 {
		t.Errorf("%v came", came)
	}
	a.WaitMissing("sleeper", 0)
}

// TestNoRoomToSuspend: what cannot keep its memory beside the newcomer's is stopped instead, and says why.
func TestNoRoomToSuspend(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 1, preempting(""), harness.PlainNodes("n", 1, 1000, 1000))
	watchRoom(t, a)
	low := func(id string, memory int) harness.MockJob {
		return harness.MockJob{ID: id, Priority: 10, Count: 1, CPU: 1000, Memory: memory, Job: `reclaim = "suspend"`}
	}
	high := harness.MockJob{ID: "high", Priority: 90, Count: 1, CPU: 1000, Memory: 500}
	stays := place(a, low("stays", 500))[0].ID
	place(a, high)
	a.WaitInStatus("stays", structs.AllocClientSuspended, 1, 10*time.Second)
	a.Stop("high")
	if got := a.WaitRunning("stays", 1, 20*time.Second)[0].ID; got != stays {
		t.Errorf("%s runs, not %s", got, stays)
	}
	a.Stop("stays")
	goes := place(a, low("goes", 501))[0].ID
	place(a, high)
	a.WaitMissing("goes", 1)
	alloc, _, err := a.API.Allocations().Info(t.Context(), goes, nil)
	if err != nil || alloc.DesiredStatus != structs.AllocDesiredEvict || !strings.Contains(alloc.DesiredDescription, "memory cannot stay") {
		t.Errorf("it is to %s, as %q (%v)", alloc.DesiredStatus, alloc.DesiredDescription, err)
	}
}
