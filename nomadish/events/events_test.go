package events

import (
	"context"
	"fmt"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// The topic Queue reports when requests begin to wait, are placed, taken back and withdrawn.
func TestQueueTopic(t *testing.T) {
	l := testcluster.New(0, state.Options{})
	apply := func(entry any) { t.Helper(); l.Put(t, entry) }
	told := func(filter *Filter, entry any) (out string) {
		t.Helper()
		feed := l.Store.Feed(l.Index())
		apply(entry)
		changes, err := feed.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range filter.Events(changes).Events {
			request := ev.Payload["Request"].(*structs.PendingRequest)
			out += fmt.Sprintf("%s %s %s/%s %d;", ev.Topic, ev.Type, ev.Namespace, ev.Key, request.Missing)
		}
		return out
	}
	f := func(topics map[string][]string, ns string, entry any, want string) {
		t.Helper()
		filter, err := NewFilter(topics, ns)
		if err != nil {
			t.Fatal(err)
		}
		if got := told(filter, entry); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	const second = int64(1e9)
	plan := func(at int64, missing int) *structs.PlanCommit {
		return &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: at * second, Requests: []*structs.RequestUpdate{{
			Namespace: "default", JobID: "web", Group: "g", Missing: missing, Since: at * second,
		}}}}}
	}
	queue := map[string][]string{structs.TopicQueue: {"*"}}
	apply(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n", Status: structs.NodeStatusReady}})
	apply(&structs.JobRegisterEntry{Job: &structs.Job{ID: "web", Namespace: "default", Type: "service", TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 4}}}})
	f(queue, "", plan(100, 4), "Queue RequestWaiting default/web 4;")
	f(map[string][]string{structs.TopicQueue: {"web"}}, "*", plan(101, 3), "Queue RequestWaiting default/web 3;")
	f(map[string][]string{structs.TopicQueue: {"db"}}, "", plan(102, 2), "")
	f(queue, "team", plan(103, 1), "")
	f(map[string][]string{"*": {"web"}}, "default", plan(104, 0), "Queue RequestPlaced default/web 0;")
	b := &structs.PlacementBatch{Namespace: "default", JobID: "web", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: "n"}}, Instances: []structs.Instance{{}}}
	apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{b}}}})
	f(queue, "", &structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 105 * second, Stop: []*structs.AllocStop{{
		AllocID: structs.DeriveID("s", 0), DesiredStatus: structs.AllocDesiredEvict, Reclaim: structs.ReclaimRequeue,
	}}}}}, "Queue RequestReclaimed default/web 1;")
	f(queue, "", &structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Purge: true, Time: 106 * second}, "Queue RequestWithdrawn default/web 0;")
}

// TestNodePoolTopic: the topic NodePool reports what is made, changed and deleted, by the names of pools.
func TestNodePoolTopic(t *testing.T) {
	l := testcluster.New(0, state.Options{})
	for _, e := range []any{
		&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "gpu"}, {Name: "dev"}}},
		&structs.NodePoolUpsertEntry{Pools: []*structs.NodePool{{Name: "gpu", Description: "H100"}}},
		&structs.NodePoolDeleteEntry{Name: "gpu"},
	} {
		l.Put(t, e)
	}
	filter, err := NewFilter(map[string][]string{structs.TopicNodePool: {"gpu"}}, "team")
	if err != nil {
		t.Fatal(err)
	}
	told, feed := "", l.Store.Feed(0)
	for range 3 {
		changes, err := feed.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range filter.Events(changes).Events {
			p := ev.Payload["NodePool"].(*structs.NodePool)
			told += fmt.Sprintf("%d %s %s %s %s;", ev.Index, ev.Topic, ev.Type, ev.Key, p.Description)
		}
	}
	const want = "1 NodePool NodePoolUpserted gpu ;2 NodePool NodePoolUpserted gpu H100;3 NodePool NodePoolDeleted gpu H100;"
	if told != want {
		t.Errorf("told %q, want %q", told, want)
	}
}
