package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// rawNode is a ready node with raw_exec, and what it says of limits.
func rawNode(id, limits, reason string) *structs.Node {
	n := endpointtest.Node(id)
	n.Drivers[rawExec] = &structs.DriverInfo{Detected: true, Healthy: true}
	n.Attributes = map[string]string{"driver.raw_exec": "1"}
	if limits != "" {
		n.Attributes[structs.AttrRawExecLimits] = limits
	}
	if reason != "" {
		n.Attributes[structs.AttrRawExecLimitsReason] = reason
	}
	return n
}

// Who plans a job with tasks of raw_exec learns that nodes which could run it do not limit them.
func TestPlanWarnsOfNodesWithoutLimits(t *testing.T) {
	const all, none = "memory,pids,cpu", structs.NoLimits
	elsewhere := rawNode("n1", none, "no cgroups")
	elsewhere.Datacenter = "dc2"
	elsewhere.ComputeClass()
	down := rawNode("n1", none, "no cgroups")
	down.Status = structs.NodeStatusDown
	for _, c := range []struct {
		name   string
		driver string
		nodes  []*structs.Node
		want   string
	}{
		{"no node", rawExec, nil, ""},
		{"all limited", rawExec, []*structs.Node{rawNode("n1", all, ""), rawNode("n2", all, "")}, ""},
		{"another driver", "mock_driver", []*structs.Node{rawNode("n1", none, "no cgroups")}, ""},
		{"simulated nodes", rawExec, []*structs.Node{endpointtest.Node("n1")}, ""},
		{"another datacenter", rawExec, []*structs.Node{elsewhere, rawNode("n2", all, "")}, ""},
		{"down", rawExec, []*structs.Node{down}, ""},
		{"none", rawExec, []*structs.Node{rawNode("n1", all, ""), rawNode("n2", none, "no cgroups")},
			`job "web" > group "g": 1 of 2 nodes that could run it do not limit what its raw_exec tasks use ` +
				`(memory, the number of processes, CPU shares); node "n2": no cgroups`},
		{"some", rawExec, []*structs.Node{rawNode("n1", "pids,cpu", "memory: not enabled")},
			`job "web" > group "g": 1 of 1 nodes that could run it do not limit what its raw_exec tasks use (memory); node "n1": memory: not enabled`},
		{"an earlier agent", rawExec, []*structs.Node{rawNode("n1", "", "")},
			`job "web" > group "g": 1 of 1 nodes that could run it do not limit what its raw_exec tasks use ` +
				`(memory, the number of processes, CPU shares); node "n1": its agent is of a version without limits`},
		{"a long reason", rawExec, []*structs.Node{rawNode("n1", "pids,memory", strings.Repeat("x", 1000))},
			`job "web" > group "g": 1 of 1 nodes that could run it do not limit what its raw_exec tasks use (CPU shares); node "n1": ` +
				strings.Repeat("x", maxReason) + "…"},
	} {
		for _, n := range c.nodes {
			n.ComputeClass()
		}
		s := newSite(t, c.nodes...)
		ids := 0
		s.NewID = func() string { ids++; return fmt.Sprintf("id-%d", ids) }
		job := endpointtest.Job("web", 100)
		job.Datacenters = []string{"dc1"}
		job.TaskGroups[0].Tasks[0].Driver = c.driver
		reply, err := s.plan(t.Context(), &structs.JobPlanRequest{Job: job})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if reply.Warnings != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, reply.Warnings, c.want)
		}
		if warnings, err := s.admit(job, "default"); err != nil || warnings != "" {
			t.Errorf("%s: registering it: %q, %v", c.name, warnings, err)
		}
	}
}

// However many groups a job has, few of them are looked at.
func TestPlanLooksAtFewGroupsForLimits(t *testing.T) {
	job := endpointtest.Job("web", 100)
	job.TaskGroups[0].Tasks[0].Driver = rawExec
	for i := range 20 {
		g := *job.TaskGroups[0]
		g.Name = fmt.Sprint("g", i)
		job.TaskGroups = append(job.TaskGroups, &g)
	}
	s := newSite(t, rawNode("n1", structs.NoLimits, "no cgroups"))
	got := unlimitedNodes(s.Store.Snapshot().World(), job)
	if len(got) != maxUnlimitedNamed+1 || !strings.HasPrefix(got[maxUnlimitedNamed], "16 more groups") {
		t.Errorf("%d warnings: %q", len(got), got)
	}
}
