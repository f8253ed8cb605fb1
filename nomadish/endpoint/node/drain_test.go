package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/structs"
)

// swift is a log of whose entries the workers end every evaluation before anybody looks.
type swift struct{ *endpointtest.Site }

func (s swift) Apply(ctx context.Context, t structs.LogType, payload any) (uint64, error) {
	at, err := s.Site.Apply(ctx, t, payload)
	if err != nil {
		return 0, err
	}
	var done []*structs.Evaluation
	for _, ev := range s.Store.Snapshot().PendingEvals() {
		c := ev.Copy()
		c.Status = structs.EvalStatusComplete
		done = append(done, c)
	}
	if len(done) > 0 {
		s.Put(&structs.EvalUpsertEntry{Evals: done})
	}
	return at, nil
}

// TestDrainNamesItsEvaluations: the answer to an operator names the evaluations that
// his word made, also when they are over before it is given.
func TestDrainNamesItsEvaluations(t *testing.T) {
	s := swift{endpointtest.New(t)}
	e := New(Config{}, Deps{
		Parts:      rpc.Parts{Router: s.Router, Applier: s, NewID: testcluster.IDs("00000000-0000-7000-8000-%012d"), Now: time.Now},
		Heartbeats: endpointtest.Alone{},
	})
	node := testcluster.Node("00000000-0000-7000-8000-0000000000ff", 1000)
	if _, err := s.Apply(t.Context(), structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: node}); err != nil {
		t.Fatal(err)
	}
	job := &structs.Job{Namespace: "default", ID: "everywhere", Type: structs.JobTypeSystem, NodePool: "all"}
	if _, err := s.Apply(t.Context(), structs.LogJobRegister, &structs.JobRegisterEntry{Job: job}); err != nil {
		t.Fatal(err)
	}
	named := func(reply *structs.NodeUpdateReply, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var made []string
		for ev := range s.Store.Snapshot().Evals(nil, "*", "", false) {
			if ev.CreateIndex == reply.EvalCreateIndex {
				made = append(made, ev.ID)
			}
		}
		slices.Sort(made)
		got := slices.Sorted(slices.Values(reply.EvalIDs))
		if len(made) != 1 || !slices.Equal(got, made) {
			t.Errorf("the answer names %v, made were %v", got, made)
		}
	}
	if _, err := e.drain(t.Context(), &structs.NodeDrainRequest{NodeID: node.ID, DrainSpec: &structs.DrainSpec{}}); err != nil {
		t.Fatal(err)
	}
	named(e.drain(t.Context(), &structs.NodeDrainRequest{NodeID: node.ID, MarkEligible: true}))
}

// TestDrainMetaIsBounded: what people may write with a drain is bounded.
func TestDrainMetaIsBounded(t *testing.T) {
	s := newSite(t, &structs.Node{ID: "00000000-0000-7000-8000-000000000000", SecretID: "s", Status: structs.NodeStatusReady})
	_, err := s.drain(t.Context(), &structs.NodeDrainRequest{NodeID: "00000000-0000-7000-8000-000000000000", Meta: map[string]string{"m": strings.Repeat("x", 6000)}})
	if !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), "Meta: must be at most 4096 bytes") {
		t.Errorf("meta of 6,000 bytes: %v, want a bad request", err)
	}
}
