package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/structs"
)

// TestChronologicalPages: pages of any size, forwards and backwards, are the whole list in the order in which things were made, and a token
// that is none is refused.
func TestChronologicalPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []created
		index, n := uint64(8), 0
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			index += rapid.Uint64Range(0, 2).Draw(t, "step") // past 9 and 10, which texts order otherwise
			n++
			all = append(all, created{index, idOf(rapid.IntRange(0, 1000).Draw(t, "id")*100 + n)})
		}
		shuffled := rapid.Permutation(all).Draw(t, "order")
		slices.SortFunc(all, func(a, b created) int {
			if a.index != b.index {
				return int(a.index) - int(b.index) //nolint:gosec // small
			}
			return strings.Compare(a.id, b.id)
		})
		opts := &structs.QueryOptions{PerPage: rapid.IntRange(0, 5).Draw(t, "page"), Reverse: rapid.Bool().Draw(t, "reverse")}
		if opts.Reverse {
			slices.Reverse(all)
		}
		var got []created
		for range len(all) + 2 {
			items, err := chronological(opts, slices.Values(shuffled), func(c created) created { return c }, created.compare)
			if err != nil {
				t.Fatal(err)
			}
			meta := &structs.QueryMeta{}
			part, err := take(opts, meta, items, created.token)
			if err != nil || opts.PerPage > 0 && len(part) > opts.PerPage {
				t.Fatal(part, err)
			}
			got = append(got, part...)
			if opts.NextToken = meta.NextToken; opts.NextToken == "" {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("got %v, want %v", got, all)
		}
	})
	for _, bad := range []string{"x", "12", ".", "x.y", "-1.a", idOf(1)} {
		if _, err := chronological(&structs.QueryOptions{NextToken: bad}, slices.Values([]created(nil)), nil, nil); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("token %q: %v", bad, err)
		}
	}
}

// TestListsInOrder: evaluations and allocations are listed as they were made, those of a prefix by ID.
func TestListsInOrder(t *testing.T) {
	s := newSite(t, &structs.Node{ID: idOf(900), Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{}})
	j := &structs.Job{ID: "web", TaskGroups: []*structs.TaskGroup{{Name: "g", Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	j.Canonicalize()
	s.put(&structs.JobRegisterEntry{Job: j, Time: 1})
	made := []string{idOf(30), idOf(10), idOf(20)}
	var placed []string
	for i, id := range made {
		if _, err := s.Apply(t.Context(), structs.LogEvalUpsert, &structs.EvalUpsertEntry{Evals: []*structs.Evaluation{{
			ID: id, Namespace: "default", JobID: "web", Status: structs.EvalStatusComplete,
		}}}); err != nil {
			t.Fatal(err)
		}
		seed := fmt.Sprint("seed", i)
		s.put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: id, Time: 3, Place: []*structs.PlacementBatch{{
			Namespace: "default", EvalID: id, JobID: "web", Group: "g", Seed: seed, Nodes: []structs.PlacedNode{{ID: idOf(900)}}, Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}},
		}}}}})
		two := []string{structs.DeriveID(seed, 0), structs.DeriveID(seed, 1)}
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
			slices.Reverse(made)
			slices.Reverse(placed)
		}
		for _, per := range []int{0, 1, 2} {
			var evals, allocs []string
			opts := structs.QueryOptions{Reverse: reverse, PerPage: per}
			for more := true; more; {
				reply, err := s.evalList(t.Context(), &structs.EvalListRequest{QueryOptions: opts})
				if err != nil {
					t.Fatal(err)
				}
				for _, ev := range reply.Evaluations {
					evals = append(evals, ev.ID)
				}
				opts.NextToken = reply.NextToken
				more = opts.NextToken != "" && len(evals) < 10
			}
			same(fmt.Sprintf("evaluations, reverse %v, %d a page", reverse, per), evals, nil, made)
			for more := true; more; {
				reply, err := s.allocList(t.Context(), &structs.ListRequest{QueryOptions: opts})
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
	reply, err := s.evalList(t.Context(), &structs.EvalListRequest{QueryOptions: structs.QueryOptions{Prefix: "0000", NextToken: idOf(20)}})
	if err != nil || len(reply.Evaluations) != 2 || reply.Evaluations[0].ID != idOf(20) || reply.Evaluations[1].ID != idOf(30) {
		t.Errorf("by prefix: %+v, %v", reply, err)
	}
	if _, err := s.allocList(t.Context(), &structs.ListRequest{QueryOptions: structs.QueryOptions{NextToken: "x"}}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a token that is none: %v", err)
	}
}

// TestNetworkStatus: an allocation that shares its node's network has the node's address, once its client has heard of it.
func TestNetworkStatus(t *testing.T) {
	s := newSite(t, &structs.Node{ID: idOf(900), Name: "n1", Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{
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
		s.put(&structs.JobRegisterEntry{Job: j, Time: 1})
		s.put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 3, Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: id, Group: "g", Seed: id, Nodes: []structs.PlacedNode{{ID: idOf(900)}}, Instances: []structs.Instance{{}},
		}}}}})
		address := func() string {
			reply, err := s.allocGet(t.Context(), &structs.IDRequest{ID: structs.DeriveID(id, 0)})
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
		if _, err := s.Apply(t.Context(), structs.LogAllocClient, &structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{{
			ID: structs.DeriveID(id, 0), ClientStatus: structs.AllocClientRunning, NetworkStatus: row.says,
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning}},
		}}}); err != nil {
			t.Fatal(err)
		}
		if got := address(); got != row.want {
			t.Errorf("mode %q: %q, want %q", row.mode, got, row.want)
		}
	}
}
