package command

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

var rewrite = flag.Bool("rewrite", false, "write what is into testdata, to be reviewed")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: have\n%s\nwant\n%s", file, got, want)
	}
}

// siteOf is an answer of nodes in racks, with its numbers.
func siteOf(nodes ...*structs.TopologyNode) *structs.Topology {
	t := &structs.Topology{Levels: []string{"gpu", "pcie", "socket", "node", "rack"}, Nodes: nodes}
	for _, n := range nodes {
		t.Add(n.Counts())
		for _, f := range n.FreeCells {
			t.AddFree(f)
		}
		for _, o := range n.Owners {
			t.AddOwner(o)
		}
		if n.Site == "" {
			continue
		}
		at := slices.IndexFunc(t.Sites, func(s *structs.TopologySite) bool { return s.ID == n.Site })
		if at < 0 {
			at, t.Sites = len(t.Sites), append(t.Sites, &structs.TopologySite{ID: n.Site, Level: "rack", Name: strings.TrimPrefix(n.Site, "rack=")})
		}
		t.Sites[at].Nodes++
		t.Sites[at].Add(n.Counts())
	}
	return t
}

// treeNode is a node of sockets × switches × GPUs, changed and then counted.
func treeNode(name, rack string, sockets, switches, gpus int, change func(gpus []*structs.DeviceView)) *structs.TopologyNode {
	n := &structs.TopologyNode{ID: "id-" + name, Name: name, Status: "ready", SchedulingEligibility: "eligible", Cells: &structs.CellView{ID: "id-" + name, Level: "node"}}
	if rack != "" {
		n.Site = "rack=" + rack
	}
	var all []*structs.DeviceView
	for s := range sockets {
		socket := &structs.CellView{ID: fmt.Sprintf("socket-%d", s), Level: "socket"}
		for w := range switches {
			sw := &structs.CellView{ID: fmt.Sprintf("pcie-%d", s*switches+w), Level: "pcie"}
			for range gpus {
				d := &structs.DeviceView{
					ID: fmt.Sprintf("%s-gpu-%d", name, len(all)), Device: "nvidia/gpu/H100", Level: "gpu", Healthy: true, FreeShare: 1000,
					PciBusID: fmt.Sprintf("0000:%02x:00.0", len(all)),
				}
				all, sw.Members = append(all, d), append(sw.Members, d)
			}
			socket.Cells = append(socket.Cells, sw)
		}
		n.Cells.Cells = append(n.Cells.Cells, socket)
	}
	if change != nil {
		change(all)
	}
	c := countCells(n.Cells)
	n.Devices, n.Used, n.Free, n.Unhealthy = c.Devices, c.Used, c.Free, c.Unhealthy
	return n
}

func countCells(c *structs.CellView) structs.DeviceCounts {
	for _, kid := range c.Cells {
		c.Add(countCells(kid))
	}
	for _, d := range c.Members {
		one := structs.DeviceCounts{Devices: 1}
		switch {
		case d.InUse():
			one.Used = 1
		case d.Healthy:
			one.Free = 1
		}
		if !d.Healthy {
			one.Unhealthy = 1
		}
		c.Add(one)
	}
	c.FreeCell = c.Devices > 0 && c.Free == c.Devices
	return c.DeviceCounts
}

// withhold has a node take no work.
func withhold(n *structs.TopologyNode) {
	var walk func(c *structs.CellView)
	walk = func(c *structs.CellView) {
		c.Withheld, c.Free, c.FreeCell = c.Free, 0, false
		for _, kid := range c.Cells {
			walk(kid)
		}
	}
	walk(n.Cells)
	n.Withheld, n.Free, n.FreeCells = n.Cells.Withheld, 0, nil
}

// inUse assigns a device to an allocation.
func inUse(d *structs.DeviceView, alloc, name string, share int) *structs.DeviceUsage {
	h := &structs.DeviceUsage{AllocID: alloc, Namespace: "default", Name: name, Task: "t", Share: share}
	d.Usages, d.FreeShare = append(d.Usages, h), d.FreeShare-share
	return h
}

// smallSite is one node of four GPUs in a rack, of which one is held.
func smallSite() *structs.Topology {
	n := treeNode("gpu-1", "r1", 1, 2, 2, func(gpus []*structs.DeviceView) { inUse(gpus[0], allocA, "web.front[0]", 1000) })
	n.FreeCells = []structs.FreeCells{{Device: "nvidia/gpu/H100", Level: "pcie", Size: 2, Count: 1}, {Device: "nvidia/gpu/H100", Level: "gpu", Size: 1, Count: 1}}
	return siteOf(n)
}

// twoRacks has everything that there is to draw.
func twoRacks() *structs.Topology {
	free := func(level string, size, count int) structs.FreeCells {
		return structs.FreeCells{Device: "nvidia/gpu/H100", Level: level, Size: size, Count: count}
	}
	taken := treeNode("dgx-0", "r1", 2, 2, 2, func(gpus []*structs.DeviceView) {
		for _, i := range []int{0, 1} {
			h := inUse(gpus[i], allocA, "train.workers[0]", 1000)
			h.GangRank, h.GangSize = 0, 4
		}
		inUse(gpus[2], allocB, "infer.serve[3]", 500)
		inUse(gpus[2], allocA, "infer.serve[4]", 300).Namespace = "team"
		gpus[3].Healthy, gpus[3].HealthDescription = false, "Xid 79"
		inUse(gpus[3], allocB, "old.job[0]", 1000)
	})
	taken.FreeCells = []structs.FreeCells{free("socket", 4, 1)}
	taken.Links = []*structs.DeviceLink{{A: "dgx-0-gpu-0", B: "dgx-0-gpu-1", Kind: "nvlink", Lanes: 18}, {A: "dgx-0-gpu-1", B: "dgx-0-gpu-2", Kind: "nvlink", Lanes: 2}}
	whole := treeNode("dgx-10", "r1", 2, 2, 2, nil)
	whole.FreeCells = []structs.FreeCells{free("node", 8, 1)}
	second := treeNode("dgx-2", "r1", 2, 2, 2, nil)
	second.FreeCells = []structs.FreeCells{free("node", 8, 1)}
	drained := treeNode("dgx-3", "r2", 1, 1, 2, func(gpus []*structs.DeviceView) { gpus[1].Healthy = false })
	drained.Drain = true
	withhold(drained)
	emptying := treeNode("dgx-5", "r2", 2, 2, 2, func(gpus []*structs.DeviceView) { inUse(gpus[0], allocA, "train.workers[2]", 1000) })
	emptying.SchedulingEligibility = "ineligible"
	withhold(emptying)
	mixed := treeNode("odd", "", 1, 1, 2, func(gpus []*structs.DeviceView) {
		gpus[1].Device = "amd/gpu/MI300"
		inUse(gpus[0], allocA, "train.workers[1]", 1000)
	})
	mixed.Cells.Cells[0].ID = "numa0"
	mixed.FreeCells = []structs.FreeCells{{Device: "amd/gpu/MI300", Level: "node", Size: 1, Count: 1}}
	down := treeNode("dgx-4", "r2", 0, 0, 0, nil)
	down.Status = "down"
	return siteOf(taken, whole, second, drained, emptying, mixed, down, treeNode("cpu", "", 0, 0, 0, nil))
}

func TestTopologyIsDrawn(t *testing.T) {
	f := newFake(t).on("GET /v1/topology", twoRacks()).on("GET /v1/topology/node/"+nodeA, siteOf(twoRacks().Nodes[0])).
		on("GET /v1/nodes", []*structs.NodeListStub{{ID: nodeA, Name: "dgx-0"}})
	for name, args := range map[string][]string{
		"topology.want": nil, "topology_verbose.want": {"-verbose"}, "topology_node.want": {"-node", "dgx-0"},
		"topology_json.want": {"-json", "-node", "dgx-0"}, "topology_template.want": {"-t", "{{range .Sites}}{{.Name}} {{.Free}}\n{{end}}"},
	} {
		got := f.run(t, append([]string{"topology"}, args...)...)
		if got.code != exitDone || got.err != "" {
			t.Fatalf("%q: %d %s", args, got.code, got.err)
		}
		golden(t, name, got.out)
	}
	for what, top := range map[string]*structs.Topology{
		"topology_none.want": {}, "topology_cpu.want": siteOf(treeNode("cpu-0", "r1", 0, 0, 0, nil), treeNode("cpu-1", "r1", 0, 0, 0, nil)),
		"topology_full.want": siteOf(treeNode("a", "", 1, 1, 1, func(gpus []*structs.DeviceView) { inUse(gpus[0], allocA, "x.y[0]", 1000) })),
	} {
		golden(t, what, newFake(t).on("GET /v1/topology", top).run(t, "topology").out)
	}
	got := f.run(t, "topology", "dgx-0")
	if got.code != exitFailed || !strings.Contains(got.err, "a node is named by -node") {
		t.Errorf("an argument: %d %q", got.code, got.err)
	}
	if got = f.run(t, "topology", "-node", "nobody"); got.code != exitFailed || !strings.Contains(got.err, `"nobody"`) {
		t.Errorf("an unknown node: %d %q", got.code, got.err)
	}
}

// What is suspended is shown where it was and goes on, and marked: it keeps its devices.
func TestSuspendedAreMarked(t *testing.T) {
	suspended := func(d *structs.DeviceView, alloc, name string) {
		inUse(d, alloc, name, 1000).Suspended = true
	}
	n := treeNode("dgx-0", "r1", 2, 2, 2, func(gpus []*structs.DeviceView) {
		inUse(gpus[0], allocB, "urgent.g[0]", 1000)
		for _, i := range []int{0, 2, 4} {
			suspended(gpus[i], allocA, "night.g[0]")
		}
	})
	f := newFake(t).on("GET /v1/topology", siteOf(n))
	wants(t, f.run(t, "topology").out, "8 devices on 1 node: 3 used, 5 free", "dgx-0-gpu-0  5f3a9c02 urgent.g[0], 5f3a9c01 night.g[0] (suspended)\n",
		"dgx-0-gpu-2  5f3a9c01 night.g[0] (suspended)\n", "dgx-0-gpu-4  5f3a9c01 night.g[0] (suspended)\n", "pcie-3  free cell of 2\n")
	n = treeNode("dgx-1", "", 1, 1, 2, func(gpus []*structs.DeviceView) { suspended(gpus[1], allocA, "night.g[0]") })
	wants(t, newFake(t).on("GET /v1/topology", siteOf(n)).run(t, "topology").out, "dgx-1  2 × nvidia/gpu/H100: 1 used, 1 free\n", "dgx-1-gpu-1  5f3a9c01 night.g[0] (suspended)\n")
}

// Who reads the topology sees what is kept for whom, also where there are no devices.
func TestReservationsAreShown(t *testing.T) {
	until := present.Add(time.Hour).UnixNano()
	keep := func(n *structs.TopologyNode, ns string) *structs.TopologyNode {
		n.Reservation = &structs.Reservation{NodeID: n.ID, Namespace: ns, JobID: "train", Group: "workers", ExpiresAt: until}
		return n
	}
	f := newFake(t).on("GET /v1/topology", siteOf(keep(treeNode("dgx-0", "r1", 1, 1, 2, nil), "default"), keep(treeNode("cpu-0", "r2", 0, 0, 0, nil), "team"),
		treeNode("cpu-1", "r2", 0, 0, 0, nil)))
	wants(t, f.run(t, "topology").out, "2 devices on 1 node: 0 used, 2 free",
		"node dgx-0  2 × nvidia/gpu/H100: 0 used, 2 free  reserved for train.workers until "+ui.Time(until),
		"node cpu-0  no devices  reserved for team/train.workers until "+ui.Time(until), "└─ 1 node without devices")
	wants(t, f.run(t, "topology", "-json").out, `"Reservation": {`, `"Group": "workers"`)
	cpu := treeNode("cpu-0", "r2", 0, 0, 0, nil)
	amount := func(cores int64) structs.WorkflowResources { return structs.WorkflowResources{Cores: cores} }
	cpu.Workflows = []*structs.ReservedPart{
		{Namespace: "default", Workflow: "chip", Reserved: amount(8), Used: amount(5), Lent: amount(2), Idle: amount(1)},
		{Namespace: "default", Workflow: "disk", Reserved: structs.WorkflowResources{Cores: 1, DiskMB: 300}, Idle: amount(1)},
		{Namespace: "team", Workflow: "next", Pending: true, Reserved: amount(4), Idle: amount(4)},
	}
	wants(t, newFake(t).on("GET /v1/topology", siteOf(cpu)).run(t, "topology").out,
		"reserved by workflow chip: 8 cores   used 5 cores  lent 2 cores  idle 1 core", "reserved by workflow disk: 1 core, 300 MiB of disk   used 0", "kept for workflow team/next: 4 cores")
	gpus := treeNode("dgx-1", "r1", 1, 3, 2, func(gpus []*structs.DeviceView) {
		gpus[0].Usages = []*structs.DeviceUsage{{AllocID: "a", JobID: "j", Name: "j.g[0]", Share: structs.DeviceShareWhole}}
	})
	gpus.Workflows = []*structs.ReservedPart{
		{Namespace: "default", Workflow: "chip", DeviceIDs: []string{"dgx-1-gpu-1", "dgx-1-gpu-2", "dgx-1-gpu-3", "dgx-1-gpu-4"}},
		{Namespace: "team", Workflow: "next", Pending: true, DeviceIDs: []string{"dgx-1-gpu-5"}},
	}
	gpus.FreeCells = []structs.FreeCells{{Device: "nvidia/gpu/H100", Level: "pcie", Size: 2, Count: 2}, {Device: "nvidia/gpu/H100", Level: "gpu", Size: 1, Count: 1}}
	drawn := newFake(t).on("GET /v1/topology", siteOf(gpus)).run(t, "topology").out
	wants(t, drawn, "pcie-1  free cell of 2  reserved by workflow chip\n", "pcie-2  free cell of 2  1 of them reserved by workflow chip\n", "dgx-1-gpu-1  reserved by workflow chip\n", "Reserved by Workflows")
	if got := strings.Join(strings.Fields(drawn), " "); !strings.Contains(got, "pcie 2 2 nvidia/gpu/H100 2 gpu 1 1 nvidia/gpu/H100 1") {
		t.Errorf("which free cells are reserved is not counted: %s", drawn)
	}
	var nodes []*structs.TopologyNode
	for i := range topologyLines + 1 {
		n := treeNode(fmt.Sprintf("n-%d", i), "", 1, 1, 1, nil)
		if i%500 == 0 {
			keep(n, "default")
		}
		nodes = append(nodes, n)
	}
	wants(t, newFake(t).on("GET /v1/topology", siteOf(nodes...)).run(t, "topology").out, "1001 nodes with devices\n3 nodes reserved for pending requests")
}

// Colours only where they are wanted.
func TestTopologyColours(t *testing.T) {
	var b strings.Builder
	e := &env{printer: printer{out: ui.NewWriter(&b)}}
	newTopologyPrinter(e, twoRacks(), false, false).print()
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colours without a terminal")
	}
	b.Reset()
	e.style = ui.Coloured()
	newTopologyPrinter(e, twoRacks(), false, false).print()
	wants(t, b.String(), "\x1b[31mbad: Xid 79\x1b[0m", "\x1b[1mrack r1\x1b[0m", "\x1b[32mfree cell of 4\x1b[0m", "\x1b[33mdraining\x1b[0m")
}

// Clusters that do not fit one answer are read in pages and shown shorter.
func TestTopologyOfManyNodes(t *testing.T) {
	many := func(n int) *structs.Topology {
		var nodes []*structs.TopologyNode
		for i := range n {
			node := treeNode(fmt.Sprintf("n-%d", i), "r1", 1, 1, 2, nil)
			node.FreeCells = []structs.FreeCells{{Device: "nvidia/gpu/H100", Level: "node", Size: 2, Count: 1}}
			nodes = append(nodes, node)
		}
		return siteOf(nodes...)
	}
	f := func(nodes int, want ...string) string {
		t.Helper()
		fk := newFake(t)
		fk.pages = map[string]int{"/v1/topology": 100}
		fk.on("GET /v1/topology", many(nodes))
		got := fk.run(t, "topology")
		if got.code != exitDone || got.err != "" {
			t.Fatalf("%d %s", got.code, got.err)
		}
		wants(t, got.out, want...)
		return got.out
	}
	out := f(200, "400 devices on 200 nodes: 0 used, 400 free", "rack r1  200 nodes, 400 devices", "node n-199  2 × nvidia/gpu/H100: 0 used, 2 free", "node   2        200    nvidia/gpu/H100")
	if strings.Contains(out, "pcie-0") {
		t.Errorf("trees of 200 nodes:\n%s", out)
	}
	if out = f(1100, "2200 devices on 1100 nodes", "1100 nodes with devices"); strings.Contains(out, "n-7 ") || strings.Count(out, "\n") > 10 {
		t.Errorf("lines of 1100 nodes:\n%s", out)
	}
}

// A few nodes with devices among many without are drawn whole.
func TestTopologyOfFewAmongMany(t *testing.T) {
	var nodes []*structs.TopologyNode
	for i := range 150 {
		nodes = append(nodes, treeNode(fmt.Sprintf("cpu-%d", i), "r1", 0, 0, 0, nil))
	}
	nodes = append(nodes, smallSite().Nodes...)
	fk := newFake(t).on("GET /v1/topology", siteOf(nodes...))
	fk.pages = map[string]int{"/v1/topology": 100}
	got := fk.run(t, "topology")
	wants(t, got.out, "4 devices on 1 node: 1 used, 3 free", "gpu-1-gpu-0  5f3a9c01 web.front[0]", "150 nodes without devices", "rack r1  151 nodes, 4 devices")
	if got = fk.run(t, "topology", "-verbose"); !strings.Contains(got.out, "gpu-1-gpu-3") {
		t.Errorf("-verbose:\n%s", got.out)
	}
}

func TestNatural(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-b]{0,2}-?[0-9]{0,3}[a-b]?`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if natural(a, b) != -natural(b, a) || (natural(a, b) == 0) != (a == b) {
			t.Fatalf("%q %q: %d and %d", a, b, natural(a, b), natural(b, a))
		}
		if natural(a, b) <= 0 && natural(b, c) <= 0 && natural(a, c) > 0 {
			t.Fatalf("%q %q %q are not in an order", a, b, c)
		}
	})
	names := []string{"dgx-10", "dgx-2", "a", "dgx-1", "dgx-02", ""}
	slices.SortFunc(names, natural)
	if want := []string{"", "a", "dgx-1", "dgx-2", "dgx-02", "dgx-10"}; !slices.Equal(names, want) {
		t.Errorf("have %q", names)
	}
}

func TestPlacementSettings(t *testing.T) {
	f := newFake(t).on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{
		SchedulerConfig: (&structs.SchedulerConfiguration{SchedulerAlgorithm: "spread", Policy: "random", ModifyIndex: 9}).Effective(),
	}).on("PUT /v1/operator/scheduler/configuration", &structs.SchedulerSetReply{Updated: true})
	golden(t, "scheduler_config.want", f.run(t, "operator", "scheduler", "get-config").out)
	set := func(args []string, want ...string) {
		t.Helper()
		got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if got.code != exitDone {
			t.Fatalf("%q: %d %s", args, got.code, got.err)
		}
		wants(t, f.lastBody(), want...)
	}
	set([]string{"-policy", "next-fit", "-dimensions", "cpu, gpus", "-granularity", "cpu=250"},
		`"Policy":"next-fit"`, `"SchedulerAlgorithm":"spread"`, `"Dimensions":["cpu","gpus"]`, `"Granularity":{"cpu":250,"gpus":1,"memory":1024}`)
	set([]string{"-granularity", "default"}, `"Granularity":{}`)
	set([]string{"-policy", "binpack"}, `"Policy":"binpack"`, `"SchedulerAlgorithm":"binpack"`)
	set([]string{"-policy", "default"}, `"Policy":""`, `"SchedulerAlgorithm":"spread"`)
	set([]string{"-scheduler-algorithm", "binpack"}, `"Policy":""`, `"SchedulerAlgorithm":"binpack"`)
	set([]string{"-levels", "rack=r,pod", "-preferred-cells", "2,8"},
		`"Levels":[{"Name":"rack","Meta":"r"},{"Name":"pod","Meta":"pod"}]`, `"PreferredCells":[2,8]`, `"Policy":"random"`)
	set([]string{"-levels", "none", "-preferred-cells", "none"}, `"Levels":[]`, `"PreferredCells":null`)
	set([]string{"-levels", ""}, `"Levels":null`)
	set([]string{"-reservation-after", "never", "-reservation-ttl", "30m"}, `"ReservationAfter":-1`, `"ReservationTTL":1800000000000`)
	set([]string{"-reservation-after", "default"}, `"ReservationAfter":0`)
	set([]string{"-preempt-batch-scheduler=true", "-preempt-system-scheduler=false"}, `"BatchSchedulerEnabled":true`, `"SystemSchedulerEnabled":false`)
	set([]string{"-bands", "1-4, 5-7,8-10", "-keep-whole", "-cycle", "1m", "-aging", "0"},
		`"Bands":[{"Low":1,"High":4},{"Low":5,"High":7},{"Low":8,"High":10}]`, `"KeepWhole":true`, `"Cycle":60000000000`, `"Aging":0`, `"Policy":"random"`)
	set([]string{"-keep-whole=false", "-aging", "true"}, `"KeepWhole":false`, `"Aging":1`)
	set([]string{"-calendar-time-zone", "Europe/Berlin"}, `"Calendar":{"TimeZone":"Europe/Berlin","WeekStarts":"mon 00:00"}`)
	set([]string{"-calendar-week-starts", "sun 22:00"}, `"WeekStarts":"sun 22:00"`)
	set([]string{"-bands", "default", "-cycle", "default", "-aging", "default"}, `"Bands":null`, `"Cycle":0`, `"Aging":null`)
	// Priorities that no band names are told, with the band that they belong to.
	for bands, want := range map[string]string{
		"10-20,30-40,41-90": "which belong: 1-9 to 10-20, 21-29 to 10-20, 91-100 to 41-90\n",
		"1-4,6-100":         "which belong: 5 to 1-4\n",
		"50-60":             "which belong: 1-49 to 50-60, 61-100 to 50-60\n",
	} {
		if got := f.run(t, "operator", "scheduler", "set-config", "-bands", bands); got.code != exitDone || !strings.HasSuffix(got.out, want) {
			t.Errorf("%s: %d %q, want %q", bands, got.code, got.out, want)
		}
	}
	for _, args := range [][]string{{"-bands", "1-100"}, {"-bands", "default"}, {"-aging", "true"}} {
		if got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...); strings.Contains(got.out, "belong") {
			t.Errorf("%q: %q", args, got.out)
		}
	}
	set([]string{"-policy", "spread", "-scheduler-algorithm", "spread"}, `"Policy":""`, `"SchedulerAlgorithm":"spread"`)
	bad := func(want string, args ...string) {
		t.Helper()
		puts := len(f.requests("PUT"))
		got := f.run(t, append([]string{"operator", "scheduler", "set-config"}, args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, want) || len(f.requests("PUT")) != puts {
			t.Errorf("%q: %d %q, want %q", args, got.code, got.err, want)
		}
	}
	bad(`-policy "nextfit": must be "binpack"`, "-policy", "nextfit")
	bad(`-bands: [40, 100] overlaps or goes before [1, 40]; state them lowest first`, "-bands", "1-40,40-100")
	bad(`-bands: [41, 100] overlaps or goes before [50, 100]`, "-bands", "1-40,50-100,41-100")
	bad(`-bands: [40, 1]: a band goes from a lower to a higher priority, of 1 to 100`, "-bands", "40-1")
	bad(`-bands: [0, 40]: a band goes`, "-bands", "0-40")
	bad(`-bands: [1, 101]: a band goes`, "-bands", "1-101")
	for _, text := range []string{"low-high", "1-40,", "40", "1-40;41-100", "1--40x", "1-2-3", "0x1-9"} {
		bad("write ranges of priorities from 1 to 100, as 1-40,41-70,71-100", "-bands", text)
	}
	bad("-scheduler-algorithm spread and -policy binpack contradict each other", "-scheduler-algorithm", "spread", "-policy", "binpack")
	bad("-scheduler-algorithm spread and -policy random contradict each other", "-policy", "random", "-scheduler-algorithm", "spread")
	bad(`-aging "often": write true or false`, "-aging", "often")
	bad(`-cycle "0s": write a duration`, "-cycle", "0s")
	bad(`-cycle "-5s": write a duration`, "-cycle", "-5s")
	bad(`-scheduler-algorithm "best": allowed are`, "-scheduler-algorithm", "best")
	bad("write it as cpu=500,memory=1024", "-granularity", "cpu")
	bad("write sizes in GPUs", "-preferred-cells", "two")
	bad("write a duration", "-reservation-ttl", "0s")
	for _, text := range []string{"-5m", "0s", "soon"} {
		bad(`or "never" to reserve no room`, "-reservation-after", text)
	}
	bad(`-levels: "socket" is a level within nodes`, "-levels", "socket=s")
	bad("stated twice", "-dimensions", "cpu,cpu")
}
