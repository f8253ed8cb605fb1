package eval

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// TestListsInOrder: evaluations are listed as they were made, those of a prefix by ID.
func TestListsInOrder(t *testing.T) {
	s := newSite(t, testcluster.Node(endpointtest.ID(900), 1000))
	j := testcluster.Job("web", structs.JobTypeService, 1)
	s.Put(&structs.JobRegisterEntry{Job: j, Time: 1})
	made := []string{endpointtest.ID(30), endpointtest.ID(10), endpointtest.ID(20)}
	for _, id := range made {
		s.Put(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{testcluster.Eval(id, j, structs.EvalStatusComplete)}})
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
		}
		for _, per := range []int{0, 1, 2} {
			var evals []string
			opts := structs.QueryOptions{Reverse: reverse, PerPage: per}
			for more := true; more; {
				reply, err := s.list(t.Context(), &structs.EvalListRequest{QueryOptions: opts})
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
		}
	}
	reply, err := s.list(t.Context(), &structs.EvalListRequest{QueryOptions: structs.QueryOptions{Prefix: "0000", NextToken: endpointtest.ID(20)}})
	if err != nil || len(reply.Evaluations) != 2 || reply.Evaluations[0].ID != endpointtest.ID(20) || reply.Evaluations[1].ID != endpointtest.ID(30) {
		t.Errorf("by prefix: %+v, %v", reply, err)
	}
}
