package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// distinct counts the different words that of gives.
func distinct(list []harness.GPU, of func(harness.GPU) string) int {
	words := map[string]bool{}
	for _, g := range list {
		words[of(g)] = true
	}
	return len(words)
}

// TestGangWaitsForARack: two GPUs that must be under one switch are; a gang that no rack can hold waits and says so, of every
// rack and what it has room for; it comes by itself when one can hold it, and not before.
func TestGangWaitsForARack(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 4, harness.PatientServer, harness.DGXNodes("a", 2, "r1"), harness.DGXNodes("b", 2, "r2"))
	pcie := "topology {\n            level    = \"pcie\"\n            required = true\n          }"
	a.Submit("pair", harness.GangJob("pair", 1, 2, "", "", pcie))
	a.WaitRunning("pair", 1, 20*time.Second)
	pair := a.GPUs().OfJob("pair")
	if len(pair) != 2 || pair[0].Cell != pair[1].Cell || pair[0].Node != pair[1].Node || pair[0].Owners[0].Level != structs.LevelPCIe {
		t.Fatalf("the pair holds %+v, want two under one switch", pair)
	}
	out, code := a.CLI("topology")
	for _, want := range []string{"32 devices on 4 nodes: 2 used, 30 free", pair[0].ID + "  ", pair[1].ID + "  ", "pair.g[0]"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("topology: exit %d, it does not say %q:\n%s", code, want, out)
		}
	}

	out, code = a.CLI("job", "run", a.JobFile("four", harness.GangJob("four", 4, 8, "", harness.OneRack, "")))
	if code != 2 {
		t.Errorf("four machines of one rack: exit %d, want 2\n%s", code, out)
	}
	reserved, free := strings.TrimPrefix(pair[0].Rack, "rack="), "r1"
	if reserved == "r1" {
		free = "r2"
	}
	why := fmt.Sprintf("no rack fits 4 instances of 8 GPUs: rack %s has room for 2, rack %s for 1", free, reserved)
	if !strings.Contains(out, why) {
		t.Errorf("it does not say %q:\n%s", why, out)
	}
	a.WaitBlocked("four", why)
	a.Submit("two", harness.GangJob("two", 2, 8, "", harness.OneRack, ""))
	a.WaitRunning("two", 2, 20*time.Second)
	if two := a.GPUs().OfJob("two"); len(two) != 16 || distinct(two, func(g harness.GPU) string { return g.Rack }) != 1 || two[0].Rack != "rack="+free {
		t.Errorf("2 × 8 GPUs of one rack are %+v", two)
	}
	for _, alloc := range a.ReadAllocs(a.WaitRunning("two", 2, time.Second)) {
		if alloc.Gang == nil || alloc.Gang.Level != "rack" {
			t.Errorf("a member of a gang in one rack says %+v", alloc.Gang)
		}
	}

	a.Stop("pair")
	a.WaitBlocked("four", fmt.Sprintf("rack %s has room for 2, rack %s for 0", reserved, free))
	a.AttachNodes(harness.DGXNodes("c", 1, reserved))
	a.WaitReady(5)
	a.WaitBlocked("four", fmt.Sprintf("rack %s has room for 3", reserved))
	if n := len(a.GPUs().OfJob("four")); n != 0 {
		t.Errorf("a gang that waits holds %d GPUs", n)
	}
	a.AttachNodes(harness.DGXNodes("d", 1, reserved))
	a.WaitRunning("four", 4, 20*time.Second)
	if four := a.GPUs().OfJob("four"); len(four) != 32 || distinct(four, func(g harness.GPU) string { return g.Rack }) != 1 || four[0].Rack != "rack="+reserved {
		t.Errorf("4 × 8 GPUs of one rack are %+v", four)
	}
	a.Stop("two")
	a.Stop("four")
	a.WaitFree("6 node of 8")
}

// TestGangMembersKnowEachOther: each member learns its rank, how many they are, and every member's address and port by rank,
// before it starts.
func TestGangMembersKnowEachOther(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "")
	a.Submit("peers", `job "peers" {
  group "lead" {
    gang { groups = ["work"] }
    ephemeral_disk { size = 10 }
    network {
      port "p" {}
    }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 1
        max_file_size = 1
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "echo $NOMADISH_GANG_RANK $NOMADISH_GANG_SIZE $NOMADISH_GANG_HOSTS $NOMAD_ADDR_p; exec sleep 1000"]
      }
      resources {
        cpu    = 20
        memory = 10
      }
    }
  }
  group "work" {
    count = 3
    ephemeral_disk { size = 10 }
    network {
      port "p" {}
    }
    task "t" {
      driver = "raw_exec"
      logs {
        max_files     = 1
        max_file_size = 1
      }
      config {
        command = "/bin/sh"
        args    = ["-c", "echo $NOMADISH_GANG_RANK $NOMADISH_GANG_SIZE $NOMADISH_GANG_HOSTS $NOMAD_ADDR_p; exec sleep 1000"]
      }
      resources {
        cpu    = 20
        memory = 10
      }
    }
  }
}`)
	hosts := make([]string, 4)    // by rank, as each member knows its own
	reported := map[string]bool{} // what they say of all
	for _, alloc := range a.WaitRunning("peers", 4, 20*time.Second) {
		var rank, size int
		var all, own string
		harness.Within(t, 10*time.Second, "the log of "+alloc.ID, func(ctx context.Context) error {
			body, err := a.API.AllocFS().Cat(ctx, alloc.ID, "alloc/logs/t.stdout.0")
			if err != nil {
				return err
			}
			defer body.Close() //nolint:errcheck // read only
			_, err = fmt.Fscan(body, &rank, &size, &all, &own)
			return err
		})
		if size != 4 || rank < 0 || rank > 3 || hosts[rank] != "" {
			t.Fatalf("%s is rank %d of %d; ranks taken before: %q", alloc.Name, rank, size, hosts)
		}
		hosts[rank], reported[all] = own, true
	}
	if want := strings.Join(hosts, ","); len(reported) != 1 || !reported[want] {
		t.Errorf("members say that they are at %v; they are at %s", reported, want)
	}
	if slices.Sort(hosts); len(slices.Compact(hosts)) != 4 {
		t.Errorf("two are at one address: %v", hosts)
	}
}
