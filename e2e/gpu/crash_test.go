//go:build cgo

package gpu

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestRealTasksKeepTheirGPUs: two processes of a gang, with a GPU each, run on through kill -9 of their agent; it finds them
// again with the same GPUs, and gives these to nobody else.
func TestRealTasksKeepTheirGPUs(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../client/gpu/bin/probe.gz"); err != nil {
		return // such a binary sees no GPUs, and says so: TestGPUs looks at that
	}
	env, _ := fakeDriver(t)
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	a.Env = []string{env}
	a.Start()
	a.WaitReady(1)
	waitGPUs(a, 4)
	text := func(id string, count int) string {
		return strings.NewReplacer("NAME", id, "COUNT", strconv.Itoa(count)).Replace(`job "NAME" {
  group "g" {
    count = COUNT
    gang {}
    network {
      port "p" {}
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo pid $$ rank $NOMADISH_GANG_RANK of $NOMADISH_GANG_SIZE at $NOMADISH_GANG_HOSTS with $CUDA_VISIBLE_DEVICES and $NVIDIA_VISIBLE_DEVICES; exec sleep 1000"]
      }
      resources {
        cpu    = 20
        memory = 10
        device "nvidia/gpu" {}
      }
    }
  }
}`)
	}
	a.Submit("two", text("two", 2))
	running := a.WaitRunning("two", 2, 20*time.Second)
	reported := func() map[string]string {
		out := map[string]string{}
		for _, alloc := range running {
			harness.Within(t, 10*time.Second, "the log of "+alloc.ID, func(ctx context.Context) error {
				body, err := a.API.AllocFS().Cat(ctx, alloc.ID, "alloc/logs/t.stdout.0")
				if err != nil {
					return err
				}
				defer body.Close() //nolint:errcheck // read only
				text, err := io.ReadAll(body)
				if err == nil && !strings.HasSuffix(string(text), "\n") {
					err = fmt.Errorf("it says %q", text)
				}
				out[alloc.ID] = strings.TrimSpace(string(text))
				return err
			})
		}
		return out
	}
	members := a.ReadAllocs(running)
	harness.CheckGangRanks(t, members)
	pids, before, words := a.PIDs(running), a.GPUs().Owners(), reported()
	var given []string
	for _, alloc := range members {
		ids := alloc.AllocatedResources.Tasks["t"].Devices[0].DeviceIDs
		given = append(given, ids...)
		want := fmt.Sprintf("pid %d rank %d of 2 at %s with %s and %s", pids[alloc.ID], alloc.Gang.Rank, strings.Join(alloc.Gang.Hosts, ","), ids[0], ids[0])
		if words[alloc.ID] != want {
			t.Errorf("%s says %q, want %q", alloc.Name, words[alloc.ID], want)
		}
	}
	if slices.Sort(given); !slices.Equal(given, []string{"GPU-fake-0", "GPU-fake-1"}) || len(before) != 2 {
		t.Fatalf("given are %v, held %v", given, before)
	}

	a.Kill()
	a.Start()
	a.WaitReady(1)
	waitGPUs(a, 4)
	running = a.WaitRunning("two", 2, 20*time.Second)
	if after := a.PIDs(running); !maps.Equal(pids, after) {
		t.Errorf("the tasks are the processes %v, were %v", after, pids)
	}
	if after := reported(); !maps.Equal(words, after) {
		t.Errorf("the tasks say %v, said %v", after, words)
	}
	if after := a.GPUs().Owners(); !maps.Equal(before, after) {
		t.Errorf("GPUs are held by %v, were by %v", after, before)
	}
	if out, code := a.CLI("job", "run", a.JobFile("third", text("third", 1))); code != 2 || !strings.Contains(out, "devices") {
		t.Errorf("a third member of two GPUs: exit %d\n%s", code, out)
	}
	a.Stop("two")
	a.WaitRunning("third", 1, 20*time.Second)
}

// waitGPUs waits until nodes report n GPUs and slices of such, all of them well.
func waitGPUs(a *harness.Agent, n int) {
	a.T.Helper()
	harness.Within(a.T, 20*time.Second, "GPUs", func(ctx context.Context) error {
		v, err := a.ReadGPUs(ctx)
		if err == nil && (len(v.GPUs) != n || slices.ContainsFunc(v.GPUs, func(g harness.GPU) bool { return !g.Healthy })) {
			err = fmt.Errorf("there are %+v", v.GPUs)
		}
		return err
	})
}
