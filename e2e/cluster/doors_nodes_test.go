package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestDoorGossipNonsense: 20,000 packets of nonsense to each gossip port, from many addresses, are a few lines in the log, and the agent
// goes on.
func TestDoorGossipNonsense(t *testing.T) {
	t.Parallel()
	for what, keys := range map[string][2]string{"in the clear": {}, "encrypted": {"MDEyMzQ1Njc4OWFiY2RlZg==", "YWJjZGVmZ2hpamtsbW5vcA=="}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := harness.NewAgent(t, false, "log_level = \"INFO\"\n"+fmt.Sprintf(
				"server {\n  enabled = true\n  bootstrap_expect = 1\n  encrypt = %q\n  client_gossip_encrypt = %q\n}\nclient {\n  enabled = true\n  gossip_encrypt = %q\n}\n", keys[0], keys[1], keys[1]))
			a.Start()
			a.WaitReady(1)
			before := a.LogCount("\n")
			for _, port := range []string{a.Serf, a.Gossip} {
				nonsense(t, port, 20_000)
			}
			if out, code := a.CLI("job", "run", "-detach", a.JobFile("noise", restfulBatch("noise"))); code != 0 {
				t.Errorf("job run: exit %d\n%s", code, out)
			}
			a.WaitInStatus("noise", structs.AllocClientComplete, 1, 30*time.Second)
			// Two ports of which each may say a few things a minute, and the ordinary lines of a job.
			if n := a.LogCount("\n") - before; n > 30 {
				t.Errorf("%d lines are logged:\n%s", n, a.Log.Tail(40))
			}
			if n := a.LogCount("[WARN]") + a.LogCount("[ERROR]"); n == 0 || n > 20 {
				t.Errorf("%d warnings and errors are logged, want a few:\n%s", n, a.Log.Tail(40))
			}
		})
	}
}

// nonsense sends packets of random bytes to an address, from 50 others.
func nonsense(t *testing.T, to string, count int) {
	t.Helper()
	addr, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2)) // a test
	const hosts = 50
	packet := make([]byte, 1200)
	for h := range hosts {
		conn, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 1, byte(h+1))}, addr)
		if err != nil {
			t.Fatal(err)
		}
		for range count / hosts {
			for i := range packet {
				packet[i] = byte(rng.Uint32())
			}
			packet[0] %= 16                                     // the kinds of messages that there are
			_, _ = conn.Write(packet[:1+rng.IntN(len(packet))]) // one that is lost is no loss
		}
		_ = conn.Close()
	}
}

// TestDoorLongMessages: a task that fails with a message of 100 KB, and one whose command has 50 KB, end as others do: their node's
// reports are taken, with the message cut, and so is what else it reports.
func TestDoorLongMessages(t *testing.T) {
	t.Parallel()
	a := harness.NewAgent(t, false, harness.ServerAndClient)
	a.Start()
	a.WaitReady(1)
	long := strings.Repeat("x", 100<<10)
	task := func(name, driver, config string) string {
		return fmt.Sprintf("  group %q {\n    restart {\n      attempts = 0\n      mode = \"fail\"\n    }\n    reschedule {\n      attempts = 0\n      unlimited = false\n    }\n    task \"t\" {\n      driver = %q\n      config {\n        %s\n      }\n    }\n  }\n", name, driver, config)
	}
	text := "job \"long\" {\n  type = \"batch\"\n" + task("mock", "mock_driver", fmt.Sprintf("start_error = %q", long+" the cause")) +
		task("exec", "raw_exec", fmt.Sprintf("command = %q", "/"+long[:50_000])) + task("well", "mock_driver", "run_for = \"1ms\"") + "}\n"
	if out, code := a.CLI("job", "run", "-detach", a.JobFile("long", text)); code != 0 {
		t.Fatalf("job run: exit %d\n%.2000s", code, out)
	}
	harness.Within(t, 30*time.Second, "the ends of all three being known", func(ctx context.Context) error {
		list, _, err := a.API.Allocations().List(ctx, nil)
		if err != nil {
			return err
		}
		ended := map[string]string{}
		for _, one := range list {
			ended[one.TaskGroup] = one.ClientStatus
			alloc, _, err := a.API.Allocations().Info(ctx, one.ID, nil)
			if err != nil {
				return err
			}
			for _, s := range alloc.TaskStates {
				for _, e := range s.Events {
					if len(e.DisplayMessage)+len(e.DriverError) > 3*structs.MaxTaskText {
						t.Errorf("group %s: event %q has %d bytes", one.TaskGroup, e.Type, len(e.DisplayMessage)+len(e.DriverError))
					}
				}
			}
		}
		if ended["mock"] != structs.AllocClientFailed || ended["exec"] != structs.AllocClientFailed || ended["well"] != structs.AllocClientComplete {
			return fmt.Errorf("they are %v", ended)
		}
		return nil
	})
}
