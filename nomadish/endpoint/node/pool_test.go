package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// poolSite is a site whose writes go to its state.
func poolSite(t *testing.T) *site {
	s := newSite(t)
	s.Applier, s.Heartbeats, s.NewID = s, endpointtest.Alone{}, func() string { return fmt.Sprint("id-", s.Index()) }
	s.registering = make(chan struct{}, 1)
	return s
}

// pools lists node pools by name.
func (s *site) pools(q structs.QueryOptions) (names string, meta structs.QueryMeta) {
	s.T.Helper()
	reply, err := s.poolList(s.T.Context(), &structs.ListRequest{QueryOptions: q})
	if err != nil {
		s.T.Fatal(err)
	}
	for _, p := range reply.NodePools {
		names += p.Name + " "
	}
	return strings.TrimSpace(names), reply.QueryMeta
}

func pooledNode(id, pool string) *structs.Node {
	return &structs.Node{
		ID: id, SecretID: "s", Name: id, NodePool: pool, Status: structs.NodeStatusReady,
		NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 1000}},
	}
}

// TestNodeMakesItsPool: a node that names a pool which is not there makes it, and changes nothing of one that is.
func TestNodeMakesItsPool(t *testing.T) {
	s := poolSite(t)
	register := func(id, pool string) error {
		_, err := s.register(t.Context(), &structs.NodeRegisterRequest{Node: pooledNode(id, pool)})
		return err
	}
	if _, err := s.poolUpsert(t.Context(), &structs.NodePoolUpsertRequest{NodePool: &structs.NodePool{Name: "kept", Description: "own"}}); err != nil {
		t.Fatal(err)
	}
	for id, pool := range map[string]string{"n1": "gpu", "n2": "gpu", "n3": "", "n4": "kept"} {
		if err := register(id, pool); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if names, _ := s.pools(structs.QueryOptions{}); names != "all default gpu kept" {
		t.Errorf("the pools are %q", names)
	}
	if got := s.Store.Snapshot().NodePools().Get(nil, "kept"); got.Description != "own" {
		t.Errorf("a node changed %+v", got)
	}
	for _, bad := range []string{"all", "a b", strings.Repeat("x", 129)} {
		if err := register("n5", bad); structs.CodeOf(err) != structs.CodeBadRequest {
			t.Errorf("pool %.20q: %v", bad, err)
		}
	}
}

// TestNodePoolLists: pages, filters, and what is in a pool.
func TestNodePoolLists(t *testing.T) {
	s := poolSite(t)
	if names, meta := s.pools(structs.QueryOptions{}); names != "all default" || meta.Index != 1 {
		t.Errorf("at first %q, index %d", names, meta.Index)
	}
	for _, p := range []*structs.NodePool{{Name: "gpu", Meta: map[string]string{"owner": "sre"}}, {Name: "dev"}} {
		if _, err := s.poolUpsert(t.Context(), &structs.NodePoolUpsertRequest{NodePool: p}); err != nil {
			t.Fatal(err)
		}
	}
	f := func(want, token string, q structs.QueryOptions) {
		t.Helper()
		if names, meta := s.pools(q); names != want || meta.NextToken != token || meta.Index != 2 {
			t.Errorf("%+v: %q, token %q, index %d", q, names, meta.NextToken, meta.Index)
		}
	}
	f("all default", "dev", structs.QueryOptions{PerPage: 2})
	f("dev gpu", "", structs.QueryOptions{PerPage: 2, NextToken: "dev"})
	f("default dev", "gpu", structs.QueryOptions{PerPage: 2, NextToken: "b"}) // names none: from the next one on
	f("default all", "", structs.QueryOptions{PerPage: 2, NextToken: "den", Reverse: true})
	f("", "", structs.QueryOptions{PerPage: 2, NextToken: "zzzz"}) // nothing follows, which is no error
	f("", "", structs.QueryOptions{PerPage: 2, NextToken: "A", Reverse: true})
	f("gpu dev default all", "", structs.QueryOptions{Reverse: true})
	f("default dev", "", structs.QueryOptions{Prefix: "de"})
	f("gpu", "", structs.QueryOptions{Filter: `Meta.owner == "sre"`})

	s.Put(&structs.NodeRegisterEntry{Node: pooledNode("n", "gpu"), EvalSeed: "x"})
	s.Put(&structs.NodeRegisterEntry{Node: pooledNode("m", "default"), EvalSeed: "y"})
	for id, pool := range map[string]string{"one": "gpu", "two": "all"} {
		s.Put(&structs.JobRegisterEntry{Job: &structs.Job{ID: id, Name: id, Namespace: "default", NodePool: pool, Type: "batch", TaskGroups: []*structs.TaskGroup{{Name: "g"}}}})
	}
	for pool, want := range map[string]string{"gpu": "n one", "all": "m n two", "default": "m", "dev": ""} {
		args := &structs.NodePoolListRequest{Name: pool}
		nodes, err := s.poolNodes(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := s.poolJobs(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range nodes.Nodes {
			got = append(got, n.ID)
		}
		for _, j := range jobs.Jobs {
			got = append(got, j.ID)
		}
		if have := strings.Join(got, " "); have != want {
			t.Errorf("in %s: %q, want %q", pool, have, want)
		}
	}
	_, nodesErr := s.poolNodes(t.Context(), &structs.NodePoolListRequest{Name: "none"})
	_, jobsErr := s.poolJobs(t.Context(), &structs.NodePoolListRequest{Name: "none"})
	for _, err := range []error{nodesErr, jobsErr} {
		if structs.CodeOf(err) != structs.CodeNotFound {
			t.Errorf("of no pool: %v", err)
		}
	}
}

// TestNodePoolsOwnSchedulerIsRefused: there is one configuration of the scheduler, and a request for another one in a pool must not
// be taken for done.
func TestNodePoolsOwnSchedulerIsRefused(t *testing.T) {
	s := poolSite(t)
	on := true
	f := func(c *structs.NodePoolSchedulerConfiguration, refused bool) {
		t.Helper()
		_, err := s.poolUpsert(t.Context(), &structs.NodePoolUpsertRequest{NodePool: &structs.NodePool{Name: "gpu", SchedulerConfiguration: c}})
		if refused && (structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), "scheduler_config")) || !refused && err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	f(&structs.NodePoolSchedulerConfiguration{SchedulerAlgorithm: "spread"}, true)
	f(&structs.NodePoolSchedulerConfiguration{MemoryOversubscriptionEnabled: &on}, true)
	f(&structs.NodePoolSchedulerConfiguration{}, false)
	f(nil, false)
}
