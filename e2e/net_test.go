//go:build netns

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// hosts makes network namespaces that stand for machines on one wire: the first holds the switch. Machine i has the address
// 10.77.0.i+1. They are the test's own and are removed with it; the machine's own network is not touched.
func hosts(t *testing.T, n int) []string {
	t.Helper()
	var names []string
	for i := range n {
		name := fmt.Sprintf("nd%d-%d", time.Now().UnixNano()%1_000_000, i)
		ip(t, "netns", "add", name)
		t.Cleanup(func() { ip(t, "netns", "del", name) })
		ip(t, "-n", name, "link", "set", "lo", "up")
		names = append(names, name)
	}
	hub := names[0]
	ip(t, "-n", hub, "link", "add", "wire", "type", "bridge")
	ip(t, "-n", hub, "addr", "add", "10.77.0.1/24", "dev", "wire")
	ip(t, "-n", hub, "link", "set", "wire", "up")
	for i, name := range names[1:] {
		port := fmt.Sprintf("port%d", i+1)
		ip(t, "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
		ip(t, "-n", hub, "link", "set", port, "master", "wire", "up")
		ip(t, "-n", name, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+2), "dev", "eth0")
		ip(t, "-n", name, "link", "set", "eth0", "up")
	}
	return names
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v %s(this test needs root and iproute2)", strings.Join(args, " "), err, out)
	}
}

// onHost gives an agent that lives on a host.
func onHost(t *testing.T, host, address, config string) *agent {
	t.Helper()
	a := newAgent(t, false, fmt.Sprintf("bind_addr = %q\nports {\n  http = 4646\n  rpc = 4647\n}\n%s", address, config))
	a.netns, a.http, a.rpc = host, "http://"+address+":4646", address+":4647"
	return a
}

// lines waits until a command prints n lines that hold all words.
func lines(t *testing.T, a *agent, limit time.Duration, n int, words []string, args ...string) {
	t.Helper()
	within(t, limit, fmt.Sprintf("%d lines with %v", n, words), func(context.Context) error {
		out, code := a.cli(args...)
		found := 0
		for line := range strings.Lines(out) {
			has := true
			for _, w := range words {
				has = has && strings.Contains(line, w)
			}
			if has {
				found++
			}
		}
		if code != 0 || found != n {
			return fmt.Errorf("exit %d, %d lines\n%s", code, found, out)
		}
		return nil
	})
}

// TestNetCutOff: a machine whose cable is pulled loses its work to another while its own tasks go on; when it is plugged in
// again it stops them, and nothing else is stopped. Its logs are read through the server, over the connection that the
// client opened.
func TestNetCutOff(t *testing.T) {
	names := hosts(t, 3)
	server := onHost(t, names[0], "10.77.0.1", "name = \"server\"\nserver {\n  enabled = true\n  bootstrap_expect = 1\n  min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"1s\"\n}\n")
	server.start()
	client := func(i, nodes int) *agent {
		name := fmt.Sprintf("node-%d", i)
		a := onHost(t, names[i], fmt.Sprintf("10.77.0.%d", i+1), fmt.Sprintf("name = %q\nclient {\n  enabled = true\n  servers = [%q]\n}\n", name, server.rpc))
		a.start()
		lines(t, server, 20*time.Second, nodes, []string{"ready"}, "node", "status")
		return a
	}
	first := client(1, 1)
	job := server.job("cable", `job "cable" {
  group "g" {
    count = 3
    ephemeral_disk { size = 10 }
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
}`)
	if out, code := server.cli("job", "run", job); code != 0 {
		t.Fatalf("job run: exit %d\n%s", code, out)
	}
	lines(t, server, 10*time.Second, 3, []string{"node-1", "running"}, "job", "allocs", "cable")
	lines(t, server, 10*time.Second, 1, []string{"here"}, "alloc", "logs", "-job", "cable")
	second := client(2, 2)

	ip(t, "-n", names[1], "link", "set", "eth0", "down")
	pulled := time.Now()
	lines(t, server, 30*time.Second, 3, []string{"node-2", "running"}, "job", "allocs", "cable")
	t.Logf("its work runs elsewhere %v after the cable was pulled", time.Since(pulled).Round(time.Millisecond))
	if n := tasksOf(first); n != 3 {
		t.Errorf("%d tasks go on on the machine that was cut off, want 3", n)
	}

	ip(t, "-n", names[1], "link", "set", "eth0", "up")
	lines(t, server, 60*time.Second, 2, []string{"ready"}, "node", "status")
	within(t, 30*time.Second, "the machine that is back stopping what it lost", func(context.Context) error {
		if n := tasksOf(first); n != 0 {
			return fmt.Errorf("%d go on", n)
		}
		return nil
	})
	if n := tasksOf(second); n != 3 {
		t.Errorf("%d tasks on the other machine, want 3", n)
	}
	lines(t, server, 10*time.Second, 6, []string{"node-"}, "job", "allocs", "cable")
}
