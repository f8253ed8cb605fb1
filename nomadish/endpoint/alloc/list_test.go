package alloc

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// TestListsInOrder: allocations are listed as they were made, those of a prefix by ID.
func TestListsInOrder(t *testing.T) {
	s := newSite(t, testcluster.Node(endpointtest.ID(900), 1000))
	j := testcluster.Job("web", structs.JobTypeService, 1)
	s.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
	made := []string{endpointtest.ID(30), endpointtest.ID(10), endpointtest.ID(20)}
	var placed []string
	for i, id := range made {
		s.Put(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{testcluster.Eval(id, j, structs.EvalStatusComplete)}})
		seed := fmt.Sprint("seed", i)
		s.Put(testcluster.Place(id, 3, testcluster.Batch("web", endpointtest.ID(900), seed, 2)))
		two := []string{testcluster.AllocID(seed, 0), testcluster.AllocID(seed, 1)}
		slices.Sort(two)
		placed = append(placed, two...)
	}
	same := func(what string, got []string, err error, want []string) {
		t.Helper()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	for _, reverse := range []bool{false, true} {
		if reverse {
			slices.Reverse(placed)
		}
		for _, per := range []int{0, 1, 2} {
			var allocs []string
			opts := structs.QueryOptions{Reverse: reverse, PerPage: per}
			for more := true; more; {
				reply, err := s.list(t.Context(), &structs.ListRequest{QueryOptions: opts})
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range reply.Allocations {
					allocs = append(allocs, a.ID)
				}
				opts.NextToken = reply.NextToken
				more = opts.NextToken != "" && len(allocs) < 10
			}
			same(fmt.Sprintf("allocations, reverse %v, %d a page", reverse, per), allocs, nil, placed)
		}
	}
	if _, err := s.list(t.Context(), &structs.ListRequest{QueryOptions: structs.QueryOptions{NextToken: "x"}}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a token that is none: %v", err)
	}
}

// TestNetworkStatus: an allocation that shares its node's network has the node's address, once its client has heard of it.
func TestNetworkStatus(t *testing.T) {
	s := newSite(t, &structs.Node{ID: endpointtest.ID(900), Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{
		Networks: []*structs.NetworkResource{{IP: "10.0.0.7"}},
	}})
	for i, row := range []struct {
		mode, want string
		says       *structs.AllocNetworkStatus
	}{{"", "10.0.0.7", nil}, {"host", "10.0.0.7", nil}, {"none", "", nil}, {"bridge", "172.26.0.2", &structs.AllocNetworkStatus{Address: "172.26.0.2"}}, {"host", "10.9.9.9", &structs.AllocNetworkStatus{Address: "10.9.9.9"}}} {
		id := fmt.Sprint("job", i)
		j := &structs.Job{ID: id, TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
		if i > 0 {
			j.TaskGroups[0].Networks = []*structs.NetworkResource{{Mode: row.mode}}
		}
		j.Canonicalize()
		s.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
		s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 3, Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: id, Group: "g", Seed: id, Nodes: []structs.PlacedNode{{ID: endpointtest.ID(900)}}, Instances: []structs.Instance{{}},
		}}}}})
		address := func() string {
			reply, err := s.get(t.Context(), &structs.IDRequest{ID: structs.DeriveID(id, 0)})
			if err != nil || reply.Alloc == nil {
				t.Fatal(reply, err)
			}
			if reply.Alloc.NetworkStatus == nil {
				return ""
			}
			return reply.Alloc.NetworkStatus.Address
		}
		if got := address(); got != "" {
			t.Errorf("mode %q: %q before its client has heard of it", row.mode, got)
		}
		s.Put(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{
			ID: structs.DeriveID(id, 0), ClientStatus: structs.AllocClientRunning, NetworkStatus: row.says,
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning}},
		}}})
		if got := address(); got != row.want {
			t.Errorf("mode %q: %q, want %q", row.mode, got, row.want)
		}
	}
}
