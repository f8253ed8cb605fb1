package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
	"github.com/nomadish/nomadish/structs"
)

// explainedLayouts are machines of four kinds: two racks of two with 8 GPUs each, one whose 4 GPUs sit alone under their
// switches, three small ones, and one that its test makes ineligible.
func explainedLayouts() string {
	small := strings.ReplaceAll(harness.PlainNodes("small", 3, 1000, 1000), "count = 3", "count = 3\n  class = \"small\"")
	off := strings.ReplaceAll(harness.PlainNodes("off", 1, 1000, 1000), "count = 1", "count = 1\n  class = \"off\"")
	flat := `shape "flat" {
  count  = 1
  cores  = 8
  mhz    = 1000
  memory = 10000
  disk   = 1000000
  class  = "flat"
  gpus "nvidia/gpu/T4" {
    count               = 4
    sockets             = 1
    switches_per_socket = 4
    memory              = 16384
  }
}
`
	return harness.DGXNodes("a", 2, "r1") + harness.DGXNodes("b", 2, "r2") + small + off + flat
}

// surveyed is a node as the API tells of it: what it is, and what it has free.
type surveyed struct {
	*structs.Node
	cpu, memory int64
	ports       map[int]bool // taken
	gpus        int          // free
	models      string
	rack        string
}

// survey looks at all nodes, allocations and GPUs.
func survey(a *harness.Agent) (out []*surveyed) {
	a.T.Helper()
	ctx := a.T.Context()
	nodes, _, err := a.API.Nodes().List(ctx, nil)
	if err != nil {
		a.T.Fatal(err)
	}
	gpus := a.GPUs().GPUs
	for _, stub := range nodes {
		n, _, err := a.API.Nodes().Info(ctx, stub.ID, nil)
		if err != nil {
			a.T.Fatal(err)
		}
		allocs, _, err := a.API.Nodes().Allocations(ctx, stub.ID, nil)
		if err != nil {
			a.T.Fatal(err)
		}
		s := &surveyed{Node: n, cpu: n.NodeResources.Cpu.CpuShares, memory: n.NodeResources.Memory.MemoryMB, ports: map[int]bool{}, rack: n.Meta["rack"]}
		for _, d := range n.NodeResources.Devices {
			s.models += d.Name
		}
		for _, alloc := range allocs {
			if alloc.Terminal() {
				continue
			}
			cpu, memory, _, _ := alloc.AllocatedResources.Total()
			s.cpu, s.memory = s.cpu-cpu, s.memory-memory
			for _, p := range alloc.AllocatedResources.Shared.Ports {
				s.ports[p.Value] = true
			}
		}
		for _, g := range gpus {
			if g.Node == n.Name && len(g.Owners) == 0 {
				s.gpus++
			}
		}
		out = append(out, s)
	}
	return out
}

// small is a volume for the small nodes, with room for it on each while they are empty.
func small(id string, count, cpu, memory int, group string) harness.MockJob {
	return harness.MockJob{ID: id, Priority: 50, Count: count, CPU: cpu, Memory: memory, Group: group, Job: onlyClass("small")}
}

func onlyClass(class string) string {
	return fmt.Sprintf("constraint {\n    attribute = \"${node.class}\"\n    value = %q\n  }", class)
}

// withGPUs puts a device block into a volume's job file.
func withGPUs(v harness.MockJob, count int, topology string) string {
	device := fmt.Sprintf("device \"nvidia/gpu\" {\n          count = %d\n          %s\n        }\n        cpu ", count, topology)
	return strings.Replace(v.Text(), "cpu ", device, 1)
}

// TestExplain: of a job that waits for each of many reasons, the explanation names the reason with as many nodes as a look at the
// nodes, their allocations and GPUs finds, and the smallest change, when made, places the job.
func TestExplain(t *testing.T) {
	t.Parallel()
	a := harness.StartSimulated(t, 9, harness.PatientServer, explainedLayouts())
	one := harness.MockJob{Priority: 50, Count: 1, CPU: 10, Memory: 10}
	like := func(id string, change func(*harness.MockJob)) harness.MockJob {
		v := one
		v.ID = id
		change(&v)
		return v
	}
	of := func(class string, what func(n *surveyed) bool) func(n *surveyed) bool {
		return func(n *surveyed) bool { return n.NodeClass == class && what(n) }
	}
	h100 := func(n *surveyed) bool { return strings.Contains(n.models, "H100") }
	for _, c := range []struct {
		kind   string
		before []harness.MockJob // what holds the room
		job    string            // its text
		holds  func(n *surveyed) bool
	}{
		{structs.ReasonConstraint, nil, like("constraint", func(v *harness.MockJob) {
			v.Job = "constraint {\n    attribute = \"${meta.rack}\"\n    value = \"r9\"\n  }"
		}).Text(), func(n *surveyed) bool { return n.rack != "r9" }},
		{structs.ReasonDatacenter, nil, like("datacenter", func(v *harness.MockJob) { v.Job = `datacenters = ["mars"]` }).Text(),
			func(n *surveyed) bool { return n.Datacenter != "mars" }},
		{structs.ReasonCandidates, nil, like("candidates", func(v *harness.MockJob) { v.Group = `candidates = ["nowhere"]` }).Text(),
			func(n *surveyed) bool { return n.Name != "nowhere" }},
		{structs.ReasonIneligible, nil, like("ineligible", func(v *harness.MockJob) { v.Job = onlyClass("off") }).Text(),
			func(n *surveyed) bool { return n.SchedulingEligibility == structs.NodeIneligible }},
		{structs.ReasonDistinctHosts, nil, like("distinct", func(v *harness.MockJob) {
			v.Count, v.Job = 4, onlyClass("small")+"\n  constraint {\n    operator = \"distinct_hosts\"\n  }"
		}).Text(), of("small", func(*surveyed) bool { return true })}, // each has one of the three that are placed
		{structs.ReasonCPU, []harness.MockJob{small("holds-cpu", 2, 600, 10, "")}, small("cpu", 2, 900, 10, "").Text(),
			of("small", func(n *surveyed) bool { return n.cpu < 900 })},
		{structs.ReasonMemory, []harness.MockJob{small("holds-memory", 1, 10, 300, "")}, small("memory", 4, 10, 701, "").Text(),
			of("small", func(n *surveyed) bool { return n.memory < 701 })},
		{structs.ReasonPort, []harness.MockJob{small("holds-port", 1, 10, 10, staticPort)}, small("port", 3, 10, 10, staticPort).Text(),
			of("small", func(n *surveyed) bool { return n.ports[8080] })},
		{structs.ReasonDevices, nil, withGPUs(like("devices", func(*harness.MockJob) {}), 9, ""),
			func(n *surveyed) bool { return n.models != "" && n.gpus < 9 }},
		{structs.ReasonDeviceKind, nil, strings.Replace(withGPUs(like("kind", func(*harness.MockJob) {}), 1, ""), `"nvidia/gpu"`, `"nvidia/gpu/B200"`, 1),
			func(n *surveyed) bool { return !strings.Contains(n.models, "B200") }},
		{structs.ReasonCell, nil, withGPUs(like("cell", func(v *harness.MockJob) { v.Job = onlyClass("flat") }), 2, "topology {\n            level    = \"pcie\"\n            required = true\n          }"),
			of("flat", func(n *surveyed) bool { return n.gpus >= 2 })},
		{structs.ReasonTopology, nil, withGPUs(like("rack", func(v *harness.MockJob) { v.Count, v.Group = 3, "gang {}\n    "+harness.OneRack }), 8, ""),
			func(n *surveyed) bool { return h100(n) && n.gpus >= 8 }},
	} {
		for _, v := range c.before {
			place(a, v)
		}
		id := strings.Split(c.job, `"`)[1]
		off := node(a, "off-0")
		if _, err := a.API.Nodes().SetEligibility(t.Context(), off, c.kind != structs.ReasonIneligible); err != nil {
			t.Fatal(err)
		}
		a.Submit(id, c.job)
		x := explained(a, id, c.kind)
		want := 0
		for _, n := range survey(a) {
			if c.holds(n) {
				want++
			}
		}
		reason := x.Groups[0].Reasons[slices.IndexFunc(x.Groups[0].Reasons, func(r structs.NodeReason) bool { return r.Kind == c.kind })]
		if reason.Nodes != want || want == 0 {
			t.Errorf("%s: %d nodes, %q; they are %d", c.kind, reason.Nodes, reason.Text, want)
		}
		n := x.Groups[0].Nodes
		if n.Known != 9 || n.Known != n.OtherPools+n.InPool || n.InPool != n.Refused+n.Holding+n.Lacking+n.Fitting {
			t.Errorf("%s: the nodes do not add up: %+v", c.kind, n)
		}
		if x.Queue == nil || x.Queue.Place != 1 || x.Queue.Priority.Declared != 50 {
			t.Errorf("%s: in the queue at %+v", c.kind, x.Queue)
		}
		if out, code := a.CLI("job", "explain", id); code != 0 || !strings.Contains(out, x.Groups[0].Smallest[0].Text) {
			t.Errorf("%s: job explain: exit %d, and it does not say %q\n%s", c.kind, code, x.Groups[0].Smallest[0].Text, out)
		}
		makeChange(a, id, x.Groups[0].Smallest[0])
		settled(a, id)
		for _, v := range append(c.before, harness.MockJob{ID: id}) {
			a.Stop(v.ID)
			a.WaitRunning(v.ID, 0, 20*time.Second)
		}
	}
	explainedWaits(a)
}

const staticPort = "network {\n      port \"p\" { static = 8080 }\n    }"

// explainedWaits is of what no node can help: evaluations paused, and nobody who may give way.
func explainedWaits(a *harness.Agent) {
	a.T.Helper()
	set(a, "-pause-eval-broker=true")
	a.Submit("paused", harness.MockJob{ID: "paused", Priority: 50, Count: 1, CPU: 10, Memory: 10}.Text())
	x := explained(a, "paused", structs.ReasonPaused)
	makeChange(a, "paused", x.Groups[0].Smallest[0])
	settled(a, "paused")

	low := small("low", 3, 900, 10, "")
	low.Priority = 10
	place(a, low)
	high := small("high", 1, 500, 10, "")
	high.Priority = 90
	a.Submit("high", high.Text())
	x = explained(a, "high", structs.ReasonPreemption)
	at := slices.IndexFunc(x.Groups[0].Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyPreemption && r.All })
	if at < 0 {
		a.T.Fatalf("nothing says that preemption would place it: %+v", x.Groups[0].Smallest)
	}
	makeChange(a, "high", x.Groups[0].Smallest[at])
	settled(a, "high")
	a.WaitRunning("low", 2, 20*time.Second)
	out, code := a.CLI("alloc", "status", a.WaitRunning("high", 1, time.Second)[0].ID)
	if code != 0 || !strings.Contains(out, "Why Here") {
		a.T.Errorf("alloc status: exit %d\n%s", code, out)
	}
}

// node is the ID of a node.
func node(a *harness.Agent, name string) string {
	a.T.Helper()
	nodes, _, err := a.API.Nodes().List(a.T.Context(), nil)
	at := slices.IndexFunc(nodes, func(n *structs.NodeListStub) bool { return n.Name == name })
	if err != nil || at < 0 {
		a.T.Fatalf("no node %s (%v)", name, err)
	}
	return nodes[at].ID
}

// explained waits until a job waits, was tried, and is explained with a kind of reason, and gives that.
func explained(a *harness.Agent, id, kind string) *structs.JobExplanation {
	a.T.Helper()
	var x *structs.JobExplanation
	harness.Within(a.T, 20*time.Second, id+" explained by "+kind, func(ctx context.Context) (err error) {
		x, _, err = a.API.Jobs().Explain(ctx, id, "", nil)
		if err != nil {
			return err
		}
		g := x.Groups[0]
		by := slices.ContainsFunc(g.Reasons, func(r structs.NodeReason) bool { return r.Kind == kind }) ||
			slices.ContainsFunc(g.Waits, func(w structs.Wait) bool { return w.Kind == kind })
		// What would place the rest is another while some of it is still to be placed, or starts.
		untried := g.PlacedNow > 0 && kind != structs.ReasonPaused
		starts := g.Running+g.Missing != g.Wanted
		if untried || x.Queue == nil || g.Missing == 0 || !by || len(g.Smallest) == 0 || !g.Smallest[0].All || starts {
			raw, _ := json.Marshal(x)
			return fmt.Errorf("it is %s", raw)
		}
		return nil
	})
	return x
}

// settled waits until nothing is missing of a job and all of it runs.
func settled(a *harness.Agent, id string) {
	a.T.Helper()
	harness.Within(a.T, 30*time.Second, id+" placed whole", func(ctx context.Context) error {
		x, _, err := a.API.Jobs().Explain(ctx, id, "", nil)
		if err != nil {
			return err
		}
		if g := x.Groups[0]; g.Missing > 0 || g.Running != g.Wanted {
			return fmt.Errorf("%d of %d run, %d are missing", g.Running, g.Wanted, g.Missing)
		}
		return nil
	})
}

// makeChange makes a change that an explanation names.
func makeChange(a *harness.Agent, job string, r structs.Remedy) {
	a.T.Helper()
	ctx := a.T.Context()
	must := func(err error) {
		a.T.Helper()
		if err != nil {
			a.T.Fatalf("%s: %s: %v", job, r.Text, err)
		}
	}
	patches := map[string][]structs.Edit{} // by path of the API
	for _, e := range r.Edits {
		switch {
		case e.On == structs.EditJob:
			patches["/v1/job/"+e.ID] = append(patches["/v1/job/"+e.ID], e)
		case e.On == structs.EditConfig:
			patches["/v1/operator/scheduler/configuration"] = append(patches["/v1/operator/scheduler/configuration"], e)
		case e.On == structs.EditNode && e.Path == "/SchedulingEligibility":
			_, err := a.API.Nodes().SetEligibility(ctx, e.ID, true)
			must(err)
		case e.On == structs.EditNode && e.Op == structs.EditNew:
			attachLike(a, e)
		default:
			a.T.Fatalf("%s: %s: this test cannot make %+v", job, r.Text, e)
		}
	}
	for path, edits := range patches {
		var was, patched map[string]any
		_, err := a.API.Get(ctx, path, nil, &was)
		must(err)
		inner, isConfig := was["SchedulerConfig"].(map[string]any)
		if isConfig {
			was = inner
		}
		patched = was
		for _, e := range edits {
			must(patch(patched, e))
		}
		var body any = patched
		if !isConfig {
			path, body = "/v1/jobs", map[string]any{"Job": patched}
		}
		_, err = a.API.Put(ctx, path, &api.Query{}, body, nil)
		must(err)
	}
}

// attachLike adds simulated nodes for an edit that says new ones like a node, or like its value.
func attachLike(a *harness.Agent, e structs.Edit) {
	a.T.Helper()
	var count int
	if err := json.Unmarshal(e.Value, &count); err != nil || e.ID == "" {
		count = 1
	}
	var n structs.Node
	if e.ID == "" {
		if err := json.Unmarshal(e.Value, &n); err != nil {
			a.T.Fatal(err)
		}
	} else {
		known, _, err := a.API.Nodes().Info(a.T.Context(), e.ID, nil)
		if err != nil {
			a.T.Fatal(err)
		}
		n = *known
	}
	gpus := ""
	for _, d := range n.NodeResources.Devices {
		gpus += fmt.Sprintf("  gpus \"%s/%s/%s\" {\n    count = %d\n  }\n", d.Vendor, d.Type, d.Name, len(d.Instances))
	}
	a.AttachNodes(fmt.Sprintf("shape \"new\" {\n  count = %d\n  cores = 1\n  mhz = %d\n  memory = %d\n  disk = 1000000\n  class = %q\n  meta = { rack = %q }\n%s}\n",
		count, n.NodeResources.Cpu.CpuShares, n.NodeResources.Memory.MemoryMB, n.NodeClass, n.Meta["rack"], gpus))
}

// patch makes one step of JSON Patch.
func patch(in any, e structs.Edit) error {
	var value any
	if len(e.Value) > 0 {
		if err := json.Unmarshal(e.Value, &value); err != nil {
			return err
		}
	}
	words := strings.Split(strings.TrimPrefix(e.Path, "/"), "/")
	_, err := patchAt(in, words, e.Op, value)
	if err != nil {
		return fmt.Errorf("%s %s: %w", e.Op, e.Path, err)
	}
	return nil
}

// patchAt returns what becomes of a value.
func patchAt(in any, path []string, op string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	word := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch in := in.(type) {
	case map[string]any:
		if len(path) == 1 && op == structs.EditRemove {
			delete(in, word)
			return in, nil
		}
		inner, err := patchAt(in[word], path[1:], op, value)
		in[word] = inner
		return in, err
	case []any:
		if word == "-" && op == structs.EditAdd && len(path) == 1 {
			return append(in, value), nil
		}
		at, err := strconv.Atoi(word)
		switch {
		case err != nil || at < 0 || at > len(in) || (at == len(in) && op != structs.EditAdd):
			return in, fmt.Errorf("no element %q of %d", word, len(in))
		case len(path) == 1 && op == structs.EditRemove:
			return slices.Delete(in, at, at+1), nil
		case len(path) == 1 && op == structs.EditAdd:
			return slices.Insert(in, at, value), nil
		}
		in[at], err = patchAt(in[at], path[1:], op, value)
		return in, err
	case nil:
		if len(path) == 1 && op == structs.EditAdd && word == "-" {
			return []any{value}, nil
		}
	}
	return in, fmt.Errorf("there is no %q", word)
}
