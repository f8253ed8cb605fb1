package view

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// usages returns an allocation that uses devices of a node, share thousandths of each.
func usages(id string, share int, devices ...string) *structs.Allocation {
	return &structs.Allocation{
		ID: id, Namespace: "team", Name: "train.g[0]", JobID: "train", TaskGroup: "g",
		DesiredStatus: structs.AllocDesiredRun, ClientStatus: structs.AllocClientRunning,
		AllocatedResources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
			Devices: []*structs.AllocatedDeviceResource{{
				Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: devices, Share: share, Level: "pcie",
			}},
		}}},
	}
}

// gpus names GPUs of node n by their numbers.
func gpus(numbers ...int) []string {
	var out []string
	for _, i := range numbers {
		out = append(out, fmt.Sprintf("n-gpu-%d", i))
	}
	return out
}

// freeText is free cells as "2×pcie/2".
func freeText(cells []structs.FreeCells) string {
	var out []string
	for _, f := range cells {
		out = append(out, fmt.Sprintf("%d×%s/%d", f.Count, f.Level, f.Size))
	}
	return strings.Join(out, " ")
}

// The free cells of one node, as the golden example of semantics part 2 has them.
func TestFreeCells(t *testing.T) {
	f := func(what string, change func(*structs.Node), reserved []string, want string) {
		t.Helper()
		n := endpointtest.DGX("n", "r1")
		if change != nil {
			change(n)
		}
		var allocs []*structs.Allocation
		if len(reserved) > 0 {
			allocs = append(allocs, usages("a", 0, reserved...))
		}
		if got := freeText(viewNode(n, allocs).FreeCells); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	bad := func(i int) func(*structs.Node) {
		return func(n *structs.Node) { n.NodeResources.Devices[0].Instances[i].Healthy = false }
	}
	f("all free", nil, nil, "1×node/8")
	f("GPUs 1 and 2 taken", nil, gpus(0, 1), "1×socket/4 1×pcie/2")
	f("one of each switch", nil, gpus(0, 2, 4, 6), "4×gpu/1")
	f("one taken", nil, gpus(7), "1×socket/4 1×pcie/2 1×gpu/1")
	f("all taken", nil, gpus(0, 1, 2, 3, 4, 5, 6, 7), "")
	f("one bad", bad(0), nil, "1×socket/4 1×pcie/2 1×gpu/1")
	f("ineligible", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible }, nil, "")
	f("down", func(n *structs.Node) { n.Status = structs.NodeStatusDown }, nil, "")
	f("no places", func(n *structs.Node) {
		for _, d := range n.NodeResources.Devices[0].Instances {
			d.Locality = nil
		}
	}, gpus(0), "7×gpu/1")
	f("two kinds", func(n *structs.Node) {
		r := n.NodeResources
		r.Devices = []*structs.NodeDeviceResource{
			{Vendor: "nvidia", Type: "gpu", Name: "A", Instances: r.Devices[0].Instances[:2]},
			{Vendor: "nvidia", Type: "gpu", Name: "B", Instances: r.Devices[0].Instances[2:]},
		}
	}, gpus(7), "1×node/2 1×socket/2 1×pcie/2 1×gpu/1")
	f("reported cells", func(n *structs.Node) {
		n.NodeResources.Topology = &structs.NodeTopology{Cells: []*structs.TopologyCell{
			{ID: "tray-0", Level: "tray", Devices: gpus(0, 1, 2)}, {ID: "tray-1", Level: "tray", Devices: gpus(3, 4, 5)},
		}}
	}, gpus(0), "1×tray/3 4×gpu/1")
	f("a topology that is no tree counts for nothing", func(n *structs.Node) {
		n.NodeResources.Topology = &structs.NodeTopology{Cells: []*structs.TopologyCell{
			{ID: "x", Level: "tray", Parent: "y"}, {ID: "y", Level: "tray", Parent: "x"},
		}}
	}, nil, "1×node/8")
}

// The tree of a GPU that is cut into slices.
func TestSlices(t *testing.T) {
	n := endpointtest.DGX("n", "")
	n.NodeResources.Devices[0].Instances = n.NodeResources.Devices[0].Instances[:3]
	n.NodeResources.Topology = &structs.NodeTopology{Cells: []*structs.TopologyCell{
		{ID: "s0", Level: "socket"}, {ID: "GPU-1", Level: "gpu", Parent: "s0", Devices: gpus(0, 1)}, {ID: "p", Level: "pcie", Parent: "s0", Devices: gpus(2)},
	}}
	sum := newTopologySum(nil)
	sum.add(viewNode(n, []*structs.Allocation{usages("a", 0, gpus(0)...)}), nil, nil)
	top := sum.finish(true)
	if want := []string{"mig", "gpu", "pcie", "socket", "node"}; !slices.Equal(top.Levels, want) {
		t.Errorf("levels %q", top.Levels)
	}
	if got := freeText(top.FreeCells); got != "1×pcie/1 1×mig/1" {
		t.Errorf("free %q", got)
	}
}

// Who uses what: shares, ends, devices that the node lost.
func TestOwners(t *testing.T) {
	half, third := usages("a", 500, gpus(1)...), usages("b", 300, gpus(1)...)
	half.Gang = &structs.AllocGang{Rank: 2, Size: 4}
	over, stopped := usages("c", 0, gpus(2)...), usages("d", 0, gpus(3)...)
	over.ClientStatus, stopped.DesiredStatus = structs.AllocClientComplete, structs.AllocDesiredStop
	view := viewNode(endpointtest.DGX("n", ""), []*structs.Allocation{third, half, over, stopped, usages("e", 0, "n-gpu-9")})
	if view.Used != 2 || view.Devices != 9 || view.Free != 7 || view.Unhealthy != 1 {
		t.Errorf("counts %+v", view.Counts())
	}
	sw := view.Cells.Cells[0].Cells[0]
	if sw.ID != "pcie-0" || sw.FreeCell || sw.Free != 1 || sw.Used != 1 || !view.Cells.Cells[1].FreeCell {
		t.Errorf("switch %+v", sw)
	}
	d := sw.Members[1]
	want := structs.DeviceUsage{
		AllocID: "a", Namespace: "team", Name: "train.g[0]", JobID: "train", Group: "g", Task: "t", Share: 500, Level: "pcie", GangRank: 2, GangSize: 4,
	}
	if d.FreeShare != 200 || len(d.Usages) != 2 || *d.Usages[0] != want || d.Usages[1].AllocID != "b" {
		t.Errorf("device %+v", d)
	}
	lost := view.Cells.Members[0]
	if lost.ID != "n-gpu-9" || lost.Healthy || lost.Usages[0].AllocID != "e" || !strings.Contains(lost.HealthDescription, "not report it") {
		t.Errorf("lost %+v", lost)
	}
}

// What is suspended keeps its devices, as in the scheduler, and is listed last.
func TestSuspendedOwnersKeepDevices(t *testing.T) {
	suspended, quarter := usages("a", 0, gpus(0, 1)...), usages("b", 250, gpus(0)...)
	suspended.DesiredStatus, suspended.ClientStatus = structs.AllocDesiredSuspend, structs.AllocClientSuspended
	view := viewNode(endpointtest.DGX("n", ""), []*structs.Allocation{suspended, quarter})
	if got := freeText(view.FreeCells); got != "1×socket/4 1×pcie/2" || view.Used != 2 || view.Free != 6 {
		t.Errorf("free %q, counts %+v", got, view.Counts())
	}
	d := view.Cells.Cells[0].Cells[0].Members[0]
	if d.FreeShare != 0 || !d.InUse() || len(d.Usages) != 2 || d.Usages[0].Suspended || !d.Usages[1].Suspended || d.Usages[1].AllocID != "a" {
		t.Errorf("shared: %+v", d)
	}
	if d = view.Cells.Cells[0].Cells[0].Members[1]; d.FreeShare != 0 || !d.InUse() || !d.Usages[0].Suspended {
		t.Errorf("alone: %+v", d)
	}
}

// Whatever is used or sick: free cells are disjoint, contain exactly the free devices, and
// no two of them make up a whole cell.
func TestFreeCellsCoverWhatIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := endpointtest.DGX("n", "")
		var reserved []string
		for i, d := range n.NodeResources.Devices[0].Instances {
			d.Healthy = rapid.IntRange(0, 4).Draw(t, "health") > 0
			if rapid.Bool().Draw(t, "held") {
				reserved = append(reserved, gpus(i)...)
			}
		}
		v := viewNode(n, []*structs.Allocation{usages("a", 0, reserved...)})
		free := 0
		for _, d := range n.NodeResources.Devices[0].Instances {
			if d.Healthy && !slices.Contains(reserved, d.ID) {
				free++
			}
		}
		sum := map[string]int{}
		for _, c := range v.FreeCells {
			sum[c.Level] += c.Count
			free -= c.Count * c.Size
		}
		both := 0
		for _, d := range n.NodeResources.Devices[0].Instances {
			if !d.Healthy && slices.Contains(reserved, d.ID) {
				both++
			}
		}
		shut := *n
		shut.SchedulingEligibility = structs.NodeIneligible
		for _, view := range []*structs.TopologyNode{v, viewNode(&shut, []*structs.Allocation{usages("a", 0, reserved...)})} {
			if view.Used+view.Free+view.Withheld+view.Unhealthy-both != view.Devices {
				t.Fatalf("%+v does not add up", view.Counts())
			}
		}
		if shutView := viewNode(&shut, nil); shutView.Free != 0 || v.Withheld != 0 {
			t.Fatalf("%d free on a node that takes no work, %d withheld on one that does", shutView.Free, v.Withheld)
		}
		if free != 0 || v.Free != freeIn(v.FreeCells) {
			t.Fatalf("free cells %s do not hold the %d free devices", freeText(v.FreeCells), v.Free)
		}
		var count func(c *structs.CellView, above bool) map[string]int
		count = func(c *structs.CellView, above bool) map[string]int {
			out := map[string]int{}
			if c.FreeCell && !above {
				out[c.Level]++
			}
			for _, kid := range c.Cells {
				for level, k := range count(kid, above || c.FreeCell) {
					out[level] += k
				}
			}
			for _, d := range c.Members {
				if !above && !c.FreeCell && d.Healthy && len(d.Usages) == 0 {
					out[d.Level]++
				}
			}
			return out
		}
		if want := count(v.Cells, false); !reflect.DeepEqual(want, sum) {
			t.Fatalf("free cells %v, want %v", sum, want)
		}
	})
}

func freeIn(cells []structs.FreeCells) int {
	n := 0
	for _, c := range cells {
		n += c.Count * c.Size
	}
	return n
}

// place has the allocation with GPUs on a node.
func (s *site) place(node string, devices ...string) {
	s.T.Helper()
	job := &structs.Job{ID: "train", TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	job.Canonicalize()
	s.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	alloc := usages("", 0, devices...)
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 1, Place: []*structs.PlacementBatch{{
		Namespace: job.Namespace, JobID: job.ID, Group: "g", Seed: "seed",
		Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {}}},
		Nodes:     []structs.PlacedNode{{ID: node, Name: node}},
		Instances: []structs.Instance{{Devices: map[string][]*structs.AllocatedDeviceResource{"t": alloc.AllocatedResources.Tasks["t"].Devices}}},
	}}}}})
}

func (s *site) request(args structs.TopologyRequest) *structs.TopologyReply {
	s.T.Helper()
	reply, err := s.topology(s.T.Context(), &args)
	if err != nil {
		s.T.Fatal(err)
	}
	return reply
}

func TestTopologySumsUpTheSite(t *testing.T) {
	plain := endpointtest.DGX("cpu", "r2")
	plain.NodeResources.Devices = nil
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"), endpointtest.DGX("c", "r2"), endpointtest.DGX("d", ""), plain)
	s.place("a", "a-gpu-0", "a-gpu-1")
	top := s.request(structs.TopologyRequest{}).Topology
	if want := []string{"gpu", "pcie", "socket", "node", "rack"}; !slices.Equal(top.Levels, want) {
		t.Errorf("levels %q", top.Levels)
	}
	if got := freeText(top.FreeCells); got != "3×node/8 1×socket/4 1×pcie/2" {
		t.Errorf("free %q", got)
	}
	if (top.DeviceCounts != structs.DeviceCounts{Devices: 32, Used: 2, Free: 30}) || len(top.Nodes) != 5 || len(top.Sites) != 2 {
		t.Errorf("%+v", top)
	}
	if r := top.Sites[0]; r.ID != "rack=r1" || r.Level != "rack" || r.Name != "r1" || r.Nodes != 2 || r.Free != 14 || r.Parent != "" {
		t.Errorf("rack %+v", r)
	}
	for _, n := range top.Nodes {
		want := map[string]string{"a": "rack=r1", "b": "rack=r1", "c": "rack=r2", "d": "", "cpu": "rack=r2"}[n.ID]
		if n.Site != want || n.Cells != nil {
			t.Errorf("node %+v", n)
		}
	}

	config := structs.DefaultSchedulerConfiguration()
	config.Levels = []structs.TopologyLevel{{Name: "rack", Meta: "rack"}, {Name: "hall", Meta: "hall"}}
	s.Put(&structs.SchedulerConfigEntry{Config: config})
	inHall := endpointtest.DGX("a", "r/1")
	inHall.Meta["hall"] = "h"
	s.Put(&structs.NodeRegisterEntry{Node: inHall, EvalSeed: "f"})
	top = s.request(structs.TopologyRequest{Details: true}).Topology
	if h, r := top.Sites[0], top.Sites[1]; h.ID != "hall=h" || r.ID != "hall=h/rack=r%2F1" || r.Parent != h.ID || h.Nodes != 1 || h.Used != 2 {
		t.Errorf("sites %+v %+v", h, r)
	}
	if n := top.Nodes[0]; n.Site != "hall=h/rack=r%2F1" || n.Cells.Cells[0].Cells[0].Members[0].Usages[0].JobID != "train" {
		t.Errorf("node %+v", n)
	}
}

// Pages are of bounded length, do not overlap, and add up.
func TestTopologyPages(t *testing.T) {
	var nodes []*structs.Node
	for i := range maxTopologyDetails + 5 {
		nodes = append(nodes, endpointtest.DGX(fmt.Sprintf("n%04d", i), "r1"))
	}
	s := newSite(t, nodes...)
	f := func(args structs.TopologyRequest, want ...int) {
		t.Helper()
		seen := map[string]bool{}
		for i, n := range want {
			reply := s.request(args)
			if len(reply.Topology.Nodes) != n || reply.Topology.Devices != 8*n || reply.Topology.Sites[0].Nodes != n {
				t.Errorf("page %d: %d nodes, want %d", i, len(reply.Topology.Nodes), n)
			}
			for _, node := range reply.Topology.Nodes {
				if seen[node.ID] {
					t.Errorf("page %d: %s again", i, node.ID)
				}
				seen[node.ID] = true
			}
			if last := i == len(want)-1; (reply.NextToken == "") != last {
				t.Errorf("page %d: next %q", i, reply.NextToken)
			}
			args.NextToken = reply.NextToken
		}
	}
	f(structs.TopologyRequest{}, maxTopologyDetails+5)
	f(structs.TopologyRequest{Details: true}, maxTopologyDetails, 5)
	f(structs.TopologyRequest{QueryOptions: structs.QueryOptions{PerPage: 100}}, 100, 33)
	f(structs.TopologyRequest{QueryOptions: structs.QueryOptions{PerPage: 100, Reverse: true}}, 100, 33)
	f(structs.TopologyRequest{Details: true, QueryOptions: structs.QueryOptions{PerPage: 1 << 30, Prefix: "n000"}}, 10)
	f(structs.TopologyRequest{QueryOptions: structs.QueryOptions{Filter: `Name == "n0007" and Devices != 0`}}, 1)
	if _, err := s.topology(t.Context(), &structs.TopologyRequest{QueryOptions: structs.QueryOptions{Filter: "Name =="}}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a bad filter: %v", err)
	}
}

// Reservations are shown with the node that keeps them, and wake who waits for changes.
func TestTopologyShowsReservations(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"))
	before := s.request(structs.TopologyRequest{NodeID: "b"}).Index
	job := &structs.Job{ID: "big", TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d"}}}}}
	job.Canonicalize()
	s.Put(&structs.JobRegisterEntry{Job: job, Time: 1})
	s.Put(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: 1, Reserve: []*structs.Reservation{
		{NodeID: "b", Namespace: "default", JobID: "big", Group: "g", Devices: 8, ExpiresAt: 9},
	}}}})
	for _, args := range []structs.TopologyRequest{{}, {NodeID: "b"}} {
		reply := s.request(args)
		n := reply.Topology.Nodes[len(reply.Topology.Nodes)-1]
		if n.ID != "b" || n.Reservation == nil || n.Reservation.JobID != "big" || n.Reservation.ExpiresAt != 9 || reply.Index <= before {
			t.Errorf("%+v: %+v at %d", args, n.Reservation, reply.Index)
		}
	}
	if n := s.request(structs.TopologyRequest{}).Topology.Nodes[0]; n.Reservation != nil {
		t.Errorf("node a keeps %+v", n.Reservation)
	}
}

func TestTopologyOfOneNode(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"))
	reply := s.request(structs.TopologyRequest{NodeID: "b"})
	if top := reply.Topology; len(top.Nodes) != 1 || top.Nodes[0].Cells == nil || top.Sites[0].Nodes != 1 || reply.Index != 2 {
		t.Errorf("%+v at %d", top, reply.Index)
	}
	if reply := s.request(structs.TopologyRequest{NodeID: "none"}); reply.Topology != nil {
		t.Errorf("a node from nowhere: %+v", reply.Topology)
	}
	if _, err := s.topology(t.Context(), &structs.TopologyRequest{NodeID: strings.Repeat("x", 65)}); structs.CodeOf(err) != structs.CodeBadRequest {
		t.Errorf("a long ID: %v", err)
	}
}

// A blocking query answers when somebody takes a device of the node, and not before.
func TestTopologyBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, args := range []structs.TopologyRequest{{NodeID: "a"}, {}} {
			s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.DGX("b", "r1"))
			args.MinQueryIndex = 2
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			var reply *structs.TopologyReply
			var err error
			done := make(chan struct{})
			go func() {
				defer close(done)
				reply, err = s.topology(ctx, &args)
			}()
			synctest.Wait()
			select {
			case <-done:
				t.Fatalf("answered before anything changed: %+v %v", reply, err)
			default:
			}
			s.place("a", "a-gpu-3")
			<-done
			if err != nil || reply.Topology.Used != 1 || reply.Index <= 2 {
				t.Errorf("%+v %v", reply, err)
			}
			cancel()
		}
	})
}

// BenchmarkTopology reads the largest pages: 1,000 nodes of 8 GPUs by their numbers, 128
// with details; half of the GPUs are in use.
func BenchmarkTopology(b *testing.B) {
	var nodes []*structs.Node
	reserved := map[string][]*structs.Allocation{}
	for i := range maxTopologyNodes {
		n := endpointtest.DGX(fmt.Sprintf("n%04d", i), fmt.Sprintf("r%d", i/8))
		nodes = append(nodes, n)
		for k := range 4 {
			reserved[n.ID] = append(reserved[n.ID], usages(fmt.Sprint(k), 0, fmt.Sprintf("%s-gpu-%d", n.ID, k)))
		}
	}
	for name, count := range map[string]int{"numbers": maxTopologyNodes, "details": maxTopologyDetails} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sum := newTopologySum([]structs.TopologyLevel{{Name: "rack", Meta: "rack"}})
				for _, n := range nodes[:count] {
					sum.add(viewNode(n, reserved[n.ID]), sum.site(n), nil)
				}
				if t := sum.finish(name == "details"); t.Used != 4*count {
					b.Fatalf("%d used", t.Used)
				}
			}
		})
	}
}
