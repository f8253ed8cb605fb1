package view

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// owns has a namespace own cells.
func (s *site) owns(name string, cells ...*structs.CellQuota) {
	s.T.Helper()
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: name, Cells: cells}, EvalSeed: "seed-" + name})
}

// use has an allocation of a namespace with GPUs on a node, by its claim on cells of a level and size, or without a claim.
func (s *site) use(ns, node, level string, size int, numbers ...int) {
	s.T.Helper()
	job := &structs.Job{ID: "train", Namespace: ns, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	job.Canonicalize()
	s.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	terms := &structs.AllocTerms{CellLevel: level, CellSize: size}
	if level != "" {
		terms.Claim = structs.ClaimCells
	}
	devices := &structs.AllocatedDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
	for _, i := range numbers {
		devices.DeviceIDs = append(devices.DeviceIDs, fmt.Sprintf("%s-gpu-%d", node, i))
	}
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 1, JudgedAt: s.Index(), Place: []*structs.PlacementBatch{{
		Namespace: ns, JobID: "train", Group: "g", Seed: fmt.Sprint(ns, node, numbers),
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {}}, Shared: structs.AllocatedSharedResources{Terms: terms}},
		Nodes:     []structs.PlacedNode{{ID: node, Name: node}},
		Instances: []structs.Instance{{Devices: map[string][]*structs.AllocatedDeviceResource{"t": {devices}}}},
	}}}}})
}

// ownersText lists what a topology shows of owners: sites, cells and devices in use, then the numbers.
func ownersText(top *structs.Topology) string {
	var out []string
	owner := func(what string, o structs.CellOwner) {
		if o.Owner != "" {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s: %s%s%s", what, o.Owner, map[bool]string{true: " pinned"}[o.Pinned], map[bool]string{true: " away"}[o.Away])))
		}
	}
	var walk func(c *structs.CellView)
	walk = func(c *structs.CellView) {
		owner(c.ID, c.CellOwner)
		for _, kid := range c.Cells {
			walk(kid)
		}
		for _, d := range c.Members {
			for _, u := range d.Usages {
				out = append(out, strings.TrimSpace(fmt.Sprintf("%s of %q: %s %s%s", d.ID, d.Owner, u.Namespace, u.Class, map[bool]string{true: " lent"}[d.Lent])))
			}
		}
	}
	for _, s := range top.Sites {
		owner(s.ID, s.CellOwner)
	}
	for _, n := range top.Nodes {
		walk(n.Cells)
	}
	for _, o := range top.Owners {
		out = append(out, fmt.Sprintf("%s owned %d bound %d guaranteed %d lent %d", o.Owner, o.Owned, o.Bound, o.Guaranteed, o.Lent))
	}
	return strings.Join(out, "\n")
}

// ownedSite is two racks of two nodes: speech owns a rack, vision a node, students a socket of node c, which is pinned.
func ownedSite(t *testing.T) *site {
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"), endpointtest.DGX("c", "r2"), endpointtest.DGX("d", "r2"))
	s.owns("students", &structs.CellQuota{Level: "socket", Count: 1, Pin: []string{"c/socket-1"}})
	s.owns("speech", &structs.CellQuota{Level: "rack", Size: 2, Count: 1})
	s.owns("vision", &structs.CellQuota{Level: "node", Count: 1})
	return s
}

// Owners, classes and what is lent are shown cell by cell and device by device. A cell is marked if all of it is bound.
func TestTopologyShowsOwners(t *testing.T) {
	s := ownedSite(t)
	s.use("vision", "d", "node", 0, 0, 1)
	s.use("students", "d", "", 0, 2)
	s.use("vision", "d", "", 0, 3)
	s.use("speech", "a", "rack", 2, 7)
	s.use("default", "c", "", 0, 0)
	f := func(what string, args structs.TopologyRequest, want string) {
		t.Helper()
		if got := ownersText(s.request(args).Topology); got != strings.TrimSpace(strings.ReplaceAll(want, "\t", "")) {
			t.Errorf("%s:\n%s\nwant%s", what, got, want)
		}
	}
	f("all", structs.TopologyRequest{Details: true}, `
		rack=r1: speech
		a: speech
		a-gpu-7 of "speech": speech guaranteed
		b: speech
		c-gpu-0 of "": default opportunistic
		socket-1: students pinned
		d: vision
		d-gpu-0 of "vision": vision guaranteed
		d-gpu-1 of "vision": vision guaranteed
		d-gpu-2 of "vision": students opportunistic lent
		d-gpu-3 of "vision": vision opportunistic
		speech owned 16 bound 16 guaranteed 1 lent 0
		students owned 4 bound 4 guaranteed 0 lent 0
		vision owned 8 bound 8 guaranteed 2 lent 1`)
	f("one node", structs.TopologyRequest{NodeID: "b"}, `
		rack=r1: speech
		b: speech
		speech owned 16 bound 8 guaranteed 0 lent 0`)
	top := s.request(structs.TopologyRequest{}).Topology
	if n := top.Nodes[3]; n.Cells != nil || len(n.Owners) != 1 || (n.Owners[0] != structs.OwnerCounts{Owner: "vision", Bound: 8, Guaranteed: 2, Lent: 1}) {
		t.Errorf("numbers of node d: %+v", n)
	}

	// What is away is nobody's until it is back; what uses it stays guaranteed.
	for _, id := range []string{"b", "c", "d"} {
		s.Put(&structs.NodeStatusEntry{NodeIDs: []string{id}, Status: structs.NodeStatusDown, Time: 2})
	}
	f("one that is away", structs.TopologyRequest{Details: true}, `
		rack=r1: speech away
		a: speech away
		a-gpu-7 of "speech": speech guaranteed
		b: speech away
		c-gpu-0 of "": default opportunistic
		socket-1: students pinned away
		d: vision away
		d-gpu-0 of "vision": vision guaranteed
		d-gpu-1 of "vision": vision guaranteed
		d-gpu-2 of "vision": students opportunistic
		d-gpu-3 of "vision": vision opportunistic
		speech owned 16 bound 0 guaranteed 1 lent 0
		students owned 4 bound 0 guaranteed 0 lent 0
		vision owned 8 bound 0 guaranteed 2 lent 0`)
}

// A cell above nodes with devices of another kind is not marked as a whole; the nodes are, and single devices where a node has
// two kinds.
func TestTopologyOfPartsThatAreOwned(t *testing.T) {
	other, both := endpointtest.DGX("b", "r1"), endpointtest.DGX("c", "r2")
	other.NodeResources.Devices[0].Name = "A100"
	second := *both.NodeResources.Devices[0]
	second.Type, second.Instances = "fpga", second.Instances[6:]
	both.NodeResources.Devices[0].Instances = both.NodeResources.Devices[0].Instances[:6]
	both.NodeResources.Devices = append(both.NodeResources.Devices, &second)
	s := newSite(t, endpointtest.DGX("a", "r1"), other, both)
	s.owns("speech", &structs.CellQuota{Level: "rack", Size: 1, Count: 1, Kind: "nvidia/gpu/H100/2x2x2", Pin: []string{"rack:r1"}})
	s.owns("vision", &structs.CellQuota{Level: "node", Count: 1, Kind: "nvidia/fpga/H100", Pin: []string{"c"}})
	s.use("default", "c", "", 0, 5, 7)
	if got, want := ownersText(s.request(structs.TopologyRequest{Details: true}).Topology), `a: speech pinned
c-gpu-5 of "": default opportunistic
c-gpu-7 of "vision": default opportunistic lent
speech owned 8 bound 8 guaranteed 0 lent 0
vision owned 2 bound 2 guaranteed 0 lent 1`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// While nobody owns anything, nothing of owners is in the answer.
func TestTopologyWithoutOwners(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"))
	s.place("a", "a-gpu-0")
	raw, err := json.Marshal(s.request(structs.TopologyRequest{Details: true}).Topology)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"Owner", "Class\":\"o", "Pinned", "Away", "Lent"} {
		if strings.Contains(string(raw), field) {
			t.Errorf("%s in %s", field, raw)
		}
	}
}

// A blocking query answers when something is owned, or a cell is bound that the node is in, and when what is owned goes.
func TestTopologyBlocksForOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"), endpointtest.DGX("c", "r2"))
		for _, row := range []struct {
			what   string
			change func()
			want   string // in the answers
		}{
			{"owning a rack", func() { s.owns("speech", &structs.CellQuota{Level: "rack", Size: 2, Count: 1}) }, ""},
			{"binding it on another node", func() { s.use("speech", "a", "rack", 2, 0) }, "b: speech\n"},
			{"giving it up", func() { s.owns("speech") }, ""},
			{"owning a node", func() { s.owns("speech", &structs.CellQuota{Level: "node", Count: 1, Pin: []string{"b"}}) }, "b: speech pinned\n"},
		} {
			var all []chan *structs.TopologyReply
			for _, args := range []structs.TopologyRequest{{NodeID: "b"}, {Details: true}} {
				args.MinQueryIndex = s.request(args).Index
				reply := make(chan *structs.TopologyReply, 1)
				all = append(all, reply)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					got, _ := s.topology(ctx, &args)
					reply <- got
				}()
			}
			synctest.Wait()
			begun := time.Now()
			row.change()
			for i, reply := range all {
				if got := <-reply; got == nil || time.Since(begun) > time.Second || !strings.Contains(ownersText(got.Topology), row.want) {
					t.Errorf("%s: query %d after %s: %+v", row.what, i, time.Since(begun), got)
				}
			}
		}
	})
}
