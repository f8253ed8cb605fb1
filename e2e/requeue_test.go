package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// smallNode is the configuration of an agent whose own node has 1000 MHz and 100 MiB, and on which services and batch jobs preempt.
func smallNode() string {
	return preempting("") + "client {\n  enabled = true\n  cpu_total_compute = 1000\n  memory_total_mb = 100\n}\n"
}

// printsRequeues is a script that writes how often its instance was requeued, and why, as a line of a file, and runs on.
func printsRequeues(file string) string {
	return `echo "$NOMADISH_REQUEUED $NOMADISH_REQUEUE_REASON" >> ` + file + "; exec sleep 1000"
}

// needs is the text of a job whose task needs so much of a processor and memory.
func needs(text string, cpu, memory int) string {
	return strings.NewReplacer("cpu    = 1000", fmt.Sprintf("cpu    = %d", cpu), "memory = 16", fmt.Sprintf("memory = %d", memory)).Replace(text)
}

// fileLines waits until a file has so many lines, and returns the last one.
func fileLines(t *testing.T, path string, n int) (last string) {
	t.Helper()
	within(t, 30*time.Second, fmt.Sprintf("%d lines in %s", n, path), func(context.Context) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(all) != n {
			return errorf("%q", all)
		}
		last = all[n-1]
		return nil
	})
	return last
}

// TestRequeuedIsTold: what starts anew after it made room knows how often its instance was requeued, and why: with reclaim = "requeue",
// where its memory could not stay beside the newcomer's, and where it stayed and another needed it.
func TestRequeuedIsTold(t *testing.T) {
	t.Parallel()
	const byBands = "preempted by job newcomer of band 71-100"
	for name, c := range map[string]struct {
		reclaim, why string
		memory       int // of the newcomers
	}{
		"requeue":   {"requeue", byBands, 16},
		"no room":   {"suspend", byBands, 60},
		"its needs": {"suspend", "its node needed the memory", 30},
	} {
		t.Run(name, func(t *testing.T) {
			a := startDev(t, smallNode())
			watchRoom(t, a)
			told := filepath.Join(a.dir, "told")
			a.submit("victim", needs(process("victim", 10, fmt.Sprintf("reclaim = %q", c.reclaim), "", printsRequeues(told)), 1000, 60))
			first := a.running("victim", 1, 20*time.Second)[0].ID
			if got := fileLines(t, told, 1); got != "0 " {
				t.Errorf("at first it is told %q", got)
			}
			newcomer := func(id, script string) {
				t.Helper()
				a.submit(id, needs(process(id, 90, `type = "batch"`, "", script), 500, c.memory))
			}
			newcomer("newcomer", "while [ ! -e "+told+".end ]; do sleep 0.05; done")
			a.running("newcomer", 1, 20*time.Second)
			if c.why != byBands {
				a.inStatus("victim", structs.AllocClientSuspended, 1, 10*time.Second)
				newcomer("another", "while [ ! -e "+told+".end ]; do sleep 0.05; done")
				a.running("another", 1, 20*time.Second)
			}
			a.missing("victim", 1)
			was := a.whole([]*structs.AllocListStub{{ID: first}})[0]
			if was.DesiredStatus != structs.AllocDesiredEvict || was.Requeues != 1 || was.RequeueReason != c.why {
				t.Errorf("it is to %s, requeued %d times: %q", was.DesiredStatus, was.Requeues, was.RequeueReason)
			}
			if err := os.WriteFile(told+".end", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			next := a.running("victim", 1, 30*time.Second)[0]
			if got := fileLines(t, told, 2); got != "1 "+c.why {
				t.Errorf("it is told %q", got)
			}
			if next.ID == first || next.Requeues != 1 || next.RequeueReason != c.why {
				t.Errorf("%s runs, requeued %d times: %q", next.ID, next.Requeues, next.RequeueReason)
			}
			if out, code := a.cli("alloc", "status", next.ID); code != 0 || !strings.Contains(out, "= 1 (the last: "+c.why+")") {
				t.Errorf("alloc status: exit %d\n%s", code, out)
			}
		})
	}
}

// suspendLimit sets suspend_limit, and leaves preemption on.
func (a *agent) suspendLimit(d time.Duration) {
	a.t.Helper()
	body := fmt.Sprintf(`{"Slots":{"SuspendLimit":%d},"PreemptionConfig":{"ServiceSchedulerEnabled":true,"BatchSchedulerEnabled":true}}`, d)
	req, err := http.NewRequestWithContext(a.t.Context(), "PUT", a.http+"/v1/operator/scheduler/configuration", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		a.t.Fatalf("suspend_limit: status %d", resp.StatusCode)
	}
}

// TestSuspendedOverRestarts: an agent that is killed and started again finds what is suspended suspended, and lets it go on where it was;
// past suspend_limit, which is the state's and not a server's, it is requeued.
func TestSuspendedOverRestarts(t *testing.T) {
	t.Parallel()
	a := newAgent(t, false, strings.Replace(smallNode(), "server {", "server {\n  bootstrap_expect = 1", 1))
	a.start()
	a.ready(1)
	counts, told := filepath.Join(a.dir, "counts"), filepath.Join(a.dir, "told")
	script := `echo "$NOMADISH_REQUEUED $NOMADISH_REQUEUE_REASON" >> ` + told + "; echo pid $$; n=0; while :; do n=$((n+1)); echo $n >> " + counts + "; sleep 0.01; done"
	a.submit("counter", process("counter", 10, `reclaim = "suspend"`, "", script))
	id := a.running("counter", 1, 20*time.Second)[0].ID
	spoken(t, counts)
	pid := a.pids(a.running("counter", 1, time.Second))[id]
	suspended := func() int {
		t.Helper()
		a.submit("newcomer", process("newcomer", 90, "", "", "exec sleep 1000"))
		a.running("newcomer", 1, 20*time.Second)
		a.inStatus("counter", structs.AllocClientSuspended, 1, 10*time.Second)
		return len(numbers(t, counts))
	}
	restart := func() {
		t.Helper()
		a.kill()
		a.start()
		a.ready(1)
	}
	before := suspended()
	restart()
	if now := a.inStatus("counter", structs.AllocClientSuspended, 1, 20*time.Second)[0]; now.ID != id {
		t.Errorf("%s is suspended, not %s", now.ID, id)
	}
	if after := len(numbers(t, counts)); after != before {
		t.Errorf("it counted %d times while it stood still", after-before)
	}
	a.stop("newcomer")
	now := a.running("counter", 1, 30*time.Second)
	if a.pids(now)[id] != pid {
		t.Errorf("%v run, of process %d before", a.pids(now), pid)
	}
	within(t, 10*time.Second, "more counting", func(context.Context) error {
		if n := len(numbers(t, counts)); n <= before+5 {
			return errorf("%d after %d", n, before)
		}
		return nil
	})

	// The limit passes after another restart: whoever leads then knows of it.
	limit := 6 * time.Second
	a.suspendLimit(limit)
	suspended()
	start := time.Now()
	restart()
	why := fmt.Sprintf("suspended for longer than %s", limit)
	within(t, 60*time.Second, "its end", func(ctx context.Context) error {
		alloc, _, err := a.api.Allocations().Info(ctx, id, nil)
		if err != nil {
			return err
		}
		if alloc.DesiredStatus != structs.AllocDesiredEvict || alloc.DesiredDescription != "requeued: "+why || !alloc.ClientTerminal() {
			return errorf("it is %s, to %s: %q", alloc.ClientStatus, alloc.DesiredStatus, alloc.DesiredDescription)
		}
		return nil
	})
	if passed := time.Since(start); passed < limit-2*time.Second {
		t.Errorf("requeued after %s", passed)
	}
	a.missing("counter", 1)
	a.stop("newcomer")
	if next := a.running("counter", 1, 30*time.Second)[0]; next.ID == id || next.Requeues != 1 {
		t.Errorf("%s runs, requeued %d times", next.ID, next.Requeues)
	}
	if got := fileLines(t, told, 2); got != "1 "+why {
		t.Errorf("it is told %q", got)
	}
}
