package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// TestGangLosesANode: when a node goes away with members of three gangs, one that wants so restarts as a whole elsewhere, one
// replaces the member alone, and one that has no room as a whole any more waits as a whole until there is. At no index is
// there half a gang, and all know where the others are.
func TestGangLosesANode(t *testing.T) {
	t.Parallel()
	a := harness.StartDev(t, "server {\n  enabled = true\n  min_heartbeat_ttl = \"1s\"\n  heartbeat_grace = \"3s\"\n}\n")
	first := a.AttachNodes(harness.DGXNodes("first", 1, "r1"))
	a.AttachNodes(harness.DGXNodes("second", 1, "r1"))
	a.WaitReady(3)
	watch := watchGangs(t, a, map[string]int{"all": 2, "stuck": 2})
	apart := "constraint {\n      operator = \"distinct_hosts\"\n    }"
	a.Submit("all", harness.GangJob("all", 2, 4, "", apart, ""))
	a.Submit("alone", harness.GangJob("alone", 2, 3, "on_loss = \"member\"", apart, ""))
	a.Submit("stuck", harness.GangJob("stuck", 2, 1, "", apart+"\n    "+harness.OneRack, ""))
	before := map[string][]*structs.Allocation{}
	for _, job := range []string{"all", "alone", "stuck"} {
		before[job] = a.ReadAllocs(a.WaitRunning(job, 2, 20*time.Second))
		harness.CheckGangRanks(t, before[job])
	}
	if v := a.GPUs(); v.Free != "" {
		t.Fatalf("free are %s: the gangs are not on both nodes", v.Free)
	}
	a.AttachNodes(harness.DGXNodes("third", 1, "r2"))
	a.WaitReady(4)
	first.Kill()

	// after waits until both members run on nodes that are there, and gives them.
	after := func(job string, nodes ...string) []*structs.Allocation {
		t.Helper()
		var stubs []*structs.AllocListStub
		harness.Within(t, 30*time.Second, job+" on "+strings.Join(nodes, " and "), func(ctx context.Context) error {
			var err error
			if stubs, err = a.Live(ctx, job); err != nil {
				return err
			}
			var at []string
			for _, alloc := range stubs {
				if alloc.ClientStatus == structs.AllocClientRunning {
					at = append(at, alloc.NodeName)
				}
			}
			if slices.Sort(at); !slices.Equal(at, nodes) {
				return fmt.Errorf("it runs on %v", at)
			}
			return nil
		})
		return a.ReadAllocs(stubs)
	}
	ids := func(list []*structs.Allocation) (out []string) {
		for _, alloc := range list {
			out = append(out, alloc.ID)
		}
		return out
	}
	all := after("all", "second-0", "third-0")
	harness.CheckGangRanks(t, all)
	for _, id := range ids(all) {
		if slices.Contains(ids(before["all"]), id) {
			t.Errorf("a member of the gang that restarts as one has stayed: %v, then %v", ids(before["all"]), ids(all))
		}
	}

	alone := after("alone", "second-0", "third-0")
	for _, alloc := range alone {
		for _, old := range before["alone"] {
			switch {
			case alloc.NodeName == "second-0" && old.NodeName == "second-0" && alloc.ID != old.ID:
				t.Errorf("the member that was not lost is %s, was %s", alloc.ID, old.ID)
			case alloc.NodeName == "third-0" && old.NodeName == "first-0" && (alloc.Gang.Rank != old.Gang.Rank || alloc.PreviousAllocation != old.ID):
				t.Errorf("the new member has rank %d and is after %q; the lost one %s had rank %d", alloc.Gang.Rank, alloc.PreviousAllocation, old.ID, old.Gang.Rank)
			case alloc.NodeName == "third-0":
				harness.CheckGangRanks(t, []*structs.Allocation{alloc, {
					Name: "the other, as the new one was told", Gang: &structs.AllocGang{Rank: 1 - alloc.Gang.Rank, Size: 2, Hosts: alloc.Gang.Hosts},
					AllocatedResources: alone[1-slices.Index(alone, alloc)].AllocatedResources,
				}})
			}
		}
	}

	after("stuck")
	a.WaitBlocked("stuck", "no rack fits 2 instances with 1 GPU: rack r1 has room for 1, rack r2 for 1")
	a.AttachNodes(harness.DGXNodes("fourth", 1, "r1"))
	stuck := after("stuck", "fourth-0", "second-0")
	harness.CheckGangRanks(t, stuck)
	watch.agrees(t, a)
}

// TestGPUsOutliveACrash: after kill -9 and a restart every GPU is held by whom it was held before, tasks run on, and what comes
// then gets others. So it is for an agent with its nodes, and for a server whose nodes stay.
func TestGPUsOutliveACrash(t *testing.T) {
	t.Parallel()
	f := func(name, config string, layouts ...string) {
		t.Run(name, func(t *testing.T) {
			a := harness.NewAgent(t, false, strings.Replace(harness.PatientServer, "{\n", "{\n  bootstrap_expect = 1\n", 1)+config)
			a.Start()
			a.WaitReady(0)
			for _, s := range layouts {
				harness.Within(t, 20*time.Second, "a leader", func(ctx context.Context) error { return a.API.Status().WaitLeader(ctx) })
				a.AttachNodes(s)
			}
			a.WaitReady(2)
			watch := watchGangs(t, a, map[string]int{"gang": 3})
			a.Submit("gang", harness.GangJob("gang", 3, 2, "", "", ""))
			a.Submit("four", harness.GangJob("four", 1, 4, "", "", ""))
			a.Submit("shares", harness.GangJob("shares", 3, 1, "", "", "share = 300"))
			for job, n := range map[string]int{"gang": 3, "four": 1, "shares": 3} {
				a.WaitRunning(job, n, 20*time.Second)
			}
			watch.agrees(t, a)
			before, statuses := a.GPUs().Owners(), harness.AllocStates(t, a)
			if len(before) != 11 {
				t.Fatalf("%d GPUs are held, want 6, 4 and the shared one: %v", len(before), before)
			}

			a.Kill()
			a.Start()
			a.WaitReady(2)
			if after := a.GPUs().Owners(); !maps.Equal(before, after) {
				t.Errorf("after the restart GPUs are held by\n%v\nand before by\n%v", after, before)
			}
			for job, n := range map[string]int{"gang": 3, "four": 1, "shares": 3} {
				a.WaitRunning(job, n, 20*time.Second)
			}
			a.Submit("rest", harness.GangJob("rest", 5, 1, "", "", ""))
			a.WaitRunning("rest", 5, 20*time.Second)
			v := a.GPUs()
			after := v.Owners()
			for id, who := range before {
				if after[id] != who {
					t.Errorf("GPU %s was held by %s, and is by %s", id, who, after[id])
				}
			}
			if len(after) != 16 || v.Free != "" {
				t.Errorf("%d of 16 GPUs are held, free: %s", len(after), v.Free)
			}
			now := harness.AllocStates(t, a)
			for id, status := range statuses {
				if now[id] != status {
					t.Errorf("allocation %s was %s, is %s", id, status, now[id])
				}
			}
			if len(now) != len(statuses)+5 {
				t.Errorf("%d allocations, want the %d of before and 5", len(now), len(statuses))
			}
			for _, job := range []string{"gang", "four", "shares", "rest"} {
				a.Stop(job)
			}
			a.WaitFree("2 node of 8")
		})
	}
	f("agent", harness.Simulate(t, harness.DGXNodes("n", 2, "r1")))
	f("server", "", harness.DGXNodes("n", 2, "r1"))
}
