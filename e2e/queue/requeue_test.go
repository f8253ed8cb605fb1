package queue

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
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
			a := harness.StartDev(t, smallNode())
			watchRoom(t, a)
			told := filepath.Join(a.Dir, "told")
			a.Submit("victim", harness.WithResources(harness.ProcessJob("victim", 10, fmt.Sprintf("reclaim = %q", c.reclaim), "", printsRequeues(told)), 1000, 60))
			first := a.WaitRunning("victim", 1, 20*time.Second)[0].ID
			if got := harness.WaitFileLines(t, told, 1); got != "0 " {
				t.Errorf("at first it is told %q", got)
			}
			newcomer := func(id, script string) {
				t.Helper()
				a.Submit(id, harness.WithResources(harness.ProcessJob(id, 90, `type = "batch"`, "", script), 500, c.memory))
			}
			newcomer("newcomer", "while [ ! -e "+told+".end ]; do sleep 0.05; done")
			a.WaitRunning("newcomer", 1, 20*time.Second)
			if c.why != byBands {
				a.WaitInStatus("victim", structs.AllocClientSuspended, 1, 10*time.Second)
				newcomer("another", "while [ ! -e "+told+".end ]; do sleep 0.05; done")
				a.WaitRunning("another", 1, 20*time.Second)
			}
			a.WaitMissing("victim", 1)
			was := a.ReadAllocs([]*structs.AllocListStub{{ID: first}})[0]
			if was.DesiredStatus != structs.AllocDesiredEvict || was.Requeues != 1 || was.RequeueReason != c.why {
				t.Errorf("it is to %s, requeued %d times: %q", was.DesiredStatus, was.Requeues, was.RequeueReason)
			}
			if err := os.WriteFile(told+".end", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			next := a.WaitRunning("victim", 1, 30*time.Second)[0]
			if got := harness.WaitFileLines(t, told, 2); got != "1 "+c.why {
				t.Errorf("it is told %q", got)
			}
			if next.ID == first || next.Requeues != 1 || next.RequeueReason != c.why {
				t.Errorf("%s runs, requeued %d times: %q", next.ID, next.Requeues, next.RequeueReason)
			}
			if out, code := a.CLI("alloc", "status", next.ID); code != 0 || !strings.Contains(out, "= 1 (the last: "+c.why+")") {
				t.Errorf("alloc status: exit %d\n%s", code, out)
			}
		})
	}
}

// suspendLimit sets suspend_limit, and leaves preemption on.
func suspendLimit(a *harness.Agent, d time.Duration) {
	a.T.Helper()
	body := fmt.Sprintf(`{"Slots":{"SuspendLimit":%d},"PreemptionConfig":{"ServiceSchedulerEnabled":true,"BatchSchedulerEnabled":true}}`, d)
	req, err := http.NewRequestWithContext(a.T.Context(), "PUT", a.HTTP+"/v1/operator/scheduler/configuration", strings.NewReader(body))
	if err != nil {
		a.T.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.T.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		a.T.Fatalf("suspend_limit: status %d", resp.StatusCode)
	}
}

// TestSuspendedOverRestarts: an agent that is killed and started again finds what is suspended suspended, and lets it go on where it was;
// past suspend_limit, which is the state's and not a server's, it is requeued.
func TestSuspendedOverRestarts(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, strings.Replace(smallNode(), "server {", "server {\n  bootstrap_expect = 1", 1))
	a.Start()
	a.WaitReady(1)
	counts, told := filepath.Join(a.Dir, "counts"), filepath.Join(a.Dir, "told")
	script := `echo "$NOMADISH_REQUEUED $NOMADISH_REQUEUE_REASON" >> ` + told + "; echo pid $$; n=0; while :; do n=$((n+1)); echo $n >> " + counts + "; sleep 0.01; done"
	a.Submit("counter", harness.ProcessJob("counter", 10, `reclaim = "suspend"`, "", script))
	id := a.WaitRunning("counter", 1, 20*time.Second)[0].ID
	spoken(t, counts)
	pid := a.PIDs(a.WaitRunning("counter", 1, time.Second))[id]
	suspended := func() int {
		t.Helper()
		a.Submit("newcomer", harness.ProcessJob("newcomer", 90, "", "", "exec sleep 1000"))
		a.WaitRunning("newcomer", 1, 20*time.Second)
		a.WaitInStatus("counter", structs.AllocClientSuspended, 1, 10*time.Second)
		return len(numbers(t, counts))
	}
	restart := func() {
		t.Helper()
		a.Kill()
		a.Start()
		a.WaitReady(1)
	}
	before := suspended()
	restart()
	if now := a.WaitInStatus("counter", structs.AllocClientSuspended, 1, 20*time.Second)[0]; now.ID != id {
		t.Errorf("%s is suspended, not %s", now.ID, id)
	}
	if after := len(numbers(t, counts)); after != before {
		t.Errorf("it counted %d times while it stood still", after-before)
	}
	a.Stop("newcomer")
	now := a.WaitRunning("counter", 1, 30*time.Second)
	if a.PIDs(now)[id] != pid {
		t.Errorf("%v run, of process %d before", a.PIDs(now), pid)
	}
	harness.Within(t, 10*time.Second, "more counting", func(context.Context) error {
		if n := len(numbers(t, counts)); n <= before+5 {
			return fmt.Errorf("%d after %d", n, before)
		}
		return nil
	})

	// The limit passes after another restart: whoever leads then knows of it.
	limit := 6 * time.Second
	suspendLimit(a, limit)
	suspended()
	start := time.Now()
	restart()
	why := fmt.Sprintf("suspended for longer than %s", limit)
	harness.Within(t, 60*time.Second, "its end", func(ctx context.Context) error {
		alloc, _, err := a.API.Allocations().Info(ctx, id, nil)
		if err != nil {
			return err
		}
		if alloc.DesiredStatus != structs.AllocDesiredEvict || alloc.DesiredDescription != "requeued: "+why || !alloc.ClientTerminal() {
			return fmt.Errorf("it is %s, to %s: %q", alloc.ClientStatus, alloc.DesiredStatus, alloc.DesiredDescription)
		}
		return nil
	})
	if passed := time.Since(start); passed < limit-2*time.Second {
		t.Errorf("requeued after %s", passed)
	}
	a.WaitMissing("counter", 1)
	a.Stop("newcomer")
	if next := a.WaitRunning("counter", 1, 30*time.Second)[0]; next.ID == id || next.Requeues != 1 {
		t.Errorf("%s runs, requeued %d times", next.ID, next.Requeues)
	}
	if got := harness.WaitFileLines(t, told, 2); got != "1 "+why {
		t.Errorf("it is told %q", got)
	}
}
