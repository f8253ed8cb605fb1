package harness

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Live returns the allocations of a job that are to run.
func (a *Agent) Live(ctx context.Context, job string) (out []*structs.AllocListStub, err error) {
	all, _, err := a.API.Jobs().Allocations(ctx, job, true, nil)
	for _, alloc := range all {
		if alloc.DesiredStatus == structs.AllocDesiredRun && alloc.ClientStatus != structs.AllocClientLost &&
			alloc.ClientStatus != structs.AllocClientFailed && alloc.ClientStatus != structs.AllocClientComplete {
			out = append(out, alloc)
		}
	}
	return out, err
}

// ReadAllocs reads allocations in full.
func (a *Agent) ReadAllocs(stubs []*structs.AllocListStub) (out []*structs.Allocation) {
	a.T.Helper()
	for _, stub := range stubs {
		alloc, _, err := a.API.Allocations().Info(a.T.Context(), stub.ID, nil)
		if err != nil {
			a.T.Fatal(err)
		}
		out = append(out, alloc)
	}
	return out
}

// AllocStates returns every allocation's statuses.
func AllocStates(t *testing.T, a *Agent) map[string]string {
	t.Helper()
	allocs, _, err := a.API.Allocations().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, alloc := range allocs {
		out[alloc.ID] = alloc.DesiredStatus + "/" + alloc.ClientStatus
	}
	return out
}

// WaitRunning waits until n allocations of a job run, and returns them.
func (a *Agent) WaitRunning(job string, n int, limit time.Duration) []*structs.AllocListStub {
	a.T.Helper()
	return a.WaitInStatus(job, structs.AllocClientRunning, n, limit)
}

// WaitInStatus waits until exactly n allocations of a job are in a client status.
func (a *Agent) WaitInStatus(job, status string, n int, limit time.Duration) []*structs.AllocListStub {
	a.T.Helper()
	var found []*structs.AllocListStub
	Within(a.T, limit, fmt.Sprintf("%d allocations of %s %s", n, job, status), func(ctx context.Context) error {
		allocs, _, err := a.API.Jobs().Allocations(ctx, job, true, nil)
		if err != nil {
			return err
		}
		found = nil
		states := map[string]int{}
		for _, alloc := range allocs {
			states[alloc.ClientStatus+"/"+alloc.DesiredStatus]++
			if alloc.ClientStatus == status {
				found = append(found, alloc)
			}
		}
		if len(found) != n {
			return fmt.Errorf("they are %v", states)
		}
		return nil
	})
	return found
}

// CheckGangRanks checks that the members of a gang have the ranks from 0 and know each other's true addresses.
func CheckGangRanks(t *testing.T, allocs []*structs.Allocation) {
	t.Helper()
	at := make([]string, len(allocs))
	for _, alloc := range allocs {
		g, r := alloc.Gang, alloc.AllocatedResources
		if g == nil || g.Size != len(allocs) || len(g.Hosts) != len(allocs) || g.Rank < 0 || g.Rank >= len(allocs) || at[g.Rank] != "" {
			t.Errorf("%s of a gang of %d has %+v", alloc.Name, len(allocs), g)
			return
		}
		at[g.Rank] = net.JoinHostPort(r.Shared.Ports[0].HostIP, strconv.Itoa(r.Shared.Ports[0].Value))
	}
	for _, alloc := range allocs {
		if !slices.Equal(alloc.Gang.Hosts, at) {
			t.Errorf("%s has them at %v; they are at %v", alloc.Name, alloc.Gang.Hosts, at)
		}
	}
}
