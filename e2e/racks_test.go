package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestGangWaitsForARack: two GPUs that must be under one switch are; a gang that no rack can hold waits and says so, of every
// rack and what it has room for; it comes by itself when one can hold it, and not before.
func TestGangWaitsForARack(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 4, patient, dgx("a", 2, "r1"), dgx("b", 2, "r2"))
	pcie := "topology {\n            level    = \"pcie\"\n            required = true\n          }"
	a.submit("pair", gangJob("pair", 1, 2, "", "", pcie))
	a.running("pair", 1, 20*time.Second)
	pair := a.look().of("pair")
	if len(pair) != 2 || pair[0].cell != pair[1].cell || pair[0].node != pair[1].node || pair[0].owners[0].Level != structs.LevelPCIe {
		t.Fatalf("the pair holds %+v, want two under one switch", pair)
	}
	out, code := a.cli("topology")
	for _, want := range []string{"32 devices on 4 nodes: 2 used, 30 free", pair[0].id + "  ", pair[1].id + "  ", "pair.g[0]"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("topology: exit %d, it does not say %q:\n%s", code, want, out)
		}
	}

	out, code = a.cli("job", "run", a.job("four", gangJob("four", 4, 8, "", oneRack, "")))
	if code != 2 {
		t.Errorf("four machines of one rack: exit %d, want 2\n%s", code, out)
	}
	reserved, free := strings.TrimPrefix(pair[0].rack, "rack="), "r1"
	if reserved == "r1" {
		free = "r2"
	}
	why := fmt.Sprintf("no rack fits 4 instances of 8 GPUs: rack %s has room for 2, rack %s for 1", free, reserved)
	if !strings.Contains(out, why) {
		t.Errorf("it does not say %q:\n%s", why, out)
	}
	a.waits("four", why)
	a.submit("two", gangJob("two", 2, 8, "", oneRack, ""))
	a.running("two", 2, 20*time.Second)
	if two := a.look().of("two"); len(two) != 16 || distinct(two, func(g gpu) string { return g.rack }) != 1 || two[0].rack != "rack="+free {
		t.Errorf("2 × 8 GPUs of one rack are %+v", two)
	}
	for _, alloc := range a.whole(a.running("two", 2, time.Second)) {
		if alloc.Gang == nil || alloc.Gang.Level != "rack" {
			t.Errorf("a member of a gang in one rack says %+v", alloc.Gang)
		}
	}

	a.stop("pair")
	a.waits("four", fmt.Sprintf("rack %s has room for 2, rack %s for 0", reserved, free))
	a.attach(dgx("c", 1, reserved))
	a.ready(5)
	a.waits("four", fmt.Sprintf("rack %s has room for 3", reserved))
	if n := len(a.look().of("four")); n != 0 {
		t.Errorf("a gang that waits holds %d GPUs", n)
	}
	a.attach(dgx("d", 1, reserved))
	a.running("four", 4, 20*time.Second)
	if four := a.look().of("four"); len(four) != 32 || distinct(four, func(g gpu) string { return g.rack }) != 1 || four[0].rack != "rack="+reserved {
		t.Errorf("4 × 8 GPUs of one rack are %+v", four)
	}
	a.stop("two")
	a.stop("four")
	a.freeOnly("6 node of 8")
}

// TestGangMembersKnowEachOther: each member learns its rank, how many they are, and every member's address and port by rank,
// before it starts.
func TestGangMembersKnowEachOther(t *testing.T) {
	t.Parallel()
	a := startDev(t, "")
	a.submit("peers", `job "peers" {
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
	for _, alloc := range a.running("peers", 4, 20*time.Second) {
		var rank, size int
		var all, own string
		within(t, 10*time.Second, "the log of "+alloc.ID, func(ctx context.Context) error {
			body, err := a.api.AllocFS().Cat(ctx, alloc.ID, "alloc/logs/t.stdout.0")
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

// ranksAreRight checks that the members of a gang have the ranks from 0 and know each other's true addresses.
func ranksAreRight(t *testing.T, allocs []*structs.Allocation) {
	t.Helper()
	at := make([]string, len(allocs))
	for _, alloc := range allocs {
		g, r := alloc.Gang, alloc.AllocatedResources
		if g == nil || g.Size != len(allocs) || len(g.Hosts) != len(allocs) || g.Rank < 0 || g.Rank >= len(allocs) || at[g.Rank] != "" {
			t.Errorf("%s of a gang of %d says %+v", alloc.Name, len(allocs), g)
			return
		}
		at[g.Rank] = net.JoinHostPort(r.Shared.Ports[0].HostIP, strconv.Itoa(r.Shared.Ports[0].Value))
	}
	for _, alloc := range allocs {
		if !slices.Equal(alloc.Gang.Hosts, at) {
			t.Errorf("%s was told that they are at %v; they are at %v", alloc.Name, alloc.Gang.Hosts, at)
		}
	}
}
