//go:build netns

package net

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// TestNetCutOff: a machine whose cable is pulled loses its work to another while its own tasks go on; when it is plugged in
// again it stops them, and nothing else is stopped. Its logs are read through the server, over the connection that the
// client opened.
func TestNetCutOff(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 3)
	server := w.hosts[0].agent("server", quickServer)
	server.Start()
	client := func(i int) *harness.Agent {
		a := w.hosts[i].agent(fmt.Sprintf("node-%d", i), fmt.Sprintf("client {\n  enabled = true\n  servers = [%q]\n}\n", server.RPC))
		a.Start()
		server.WaitReady(i)
		return a
	}
	first := client(1)
	job := server.JobFile("cable", restful("cable", 3))
	if out, code := server.CLI("job", "run", job); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	lines(t, server, 10*time.Second, 3, []string{"node-1", "running"}, "job", "allocs", "cable")
	lines(t, server, 10*time.Second, 1, []string{"here"}, "alloc", "logs", "-job", "cable")
	second := client(2)

	pulled := time.Now()
	plug := w.hosts[1].unplug()
	lines(t, server, 30*time.Second, 3, []string{"node-2", "running"}, "job", "allocs", "cable")
	t.Logf("its work runs elsewhere %v after the cable was pulled", time.Since(pulled).Round(time.Millisecond))
	if n := harness.SleepTasks(first); n != 3 {
		t.Errorf("%d tasks go on on the machine that was cut off, want 3", n)
	}

	plug()
	lines(t, server, 60*time.Second, 2, []string{"ready"}, "node", "status")
	harness.Within(t, 30*time.Second, "the machine that is back stopping what it lost", func(context.Context) error {
		if n := harness.SleepTasks(first); n != 0 {
			return fmt.Errorf("%d go on", n)
		}
		return nil
	})
	if n := harness.SleepTasks(second); n != 3 {
		t.Errorf("%d tasks on the other machine, want 3", n)
	}
	lines(t, server, 10*time.Second, 6, []string{"node-"}, "job", "allocs", "cable")
}

// restful is a job file: instances that say "here" and sleep, and are soon tried elsewhere where that fails.
func restful(name string, count int) string {
	return fmt.Sprintf(`job %q {
  group "g" {
    count = %d
    ephemeral_disk { size = 10 }
    restart {
      attempts = 1
      delay    = "1s"
      interval = "10m"
      mode     = "fail"
    }
    reschedule {
      delay          = "5s"
      delay_function = "constant"
      unlimited      = true
    }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 2
        max_file_size = 1
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "echo here; exec sleep 1000"]
      }
      resources {
        cpu    = 20
        memory = 16
      }
    }
  }
}
`, name, count)
}
