package e2e

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
	"github.com/nomadish/nomadish/structs"
)

// explainedLayouts are machines of four kinds: two racks of two with 8 GPUs each, one whose 4 GPUs sit alone under their
// switches, three small ones, and one that its test makes ineligible.
func explainedLayouts() string {
	small := strings.ReplaceAll(plainNodes("small", 3, 1000, 1000), "count = 3", "count = 3\n  class = \"small\"")
	off := strings.ReplaceAll(plainNodes("off", 1, 1000, 1000), "count = 1", "count = 1\n  class = \"off\"")
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
	return dgx("a", 2, "r1") + dgx("b", 2, "r2") + small + off + flat
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
func (a *agent) survey() (out []*surveyed) {
	a.t.Helper()
	ctx := a.t.Context()
	nodes, _, err := a.api.Nodes().List(ctx, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	gpus := a.look().gpus
	for _, stub := range nodes {
		n, _, err := a.api.Nodes().Info(ctx, stub.ID, nil)
		if err != nil {
			a.t.Fatal(err)
		}
		allocs, _, err := a.api.Nodes().Allocations(ctx, stub.ID, nil)
		if err != nil {
			a.t.Fatal(err)
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
			if g.node == n.Name && len(g.owners) == 0 {
				s.gpus++
			}
		}
		out = append(out, s)
	}
	return out
}

// small is a volume for the small nodes, with room for it on each while they are empty.
func small(id string, count, cpu, memory int, group string) volume {
	return volume{id: id, priority: 50, count: count, cpu: cpu, memory: memory, group: group, job: onlyClass("small")}
}

func onlyClass(class string) string {
	return fmt.Sprintf("constraint {\n    attribute = \"${node.class}\"\n    value = %q\n  }", class)
}

// withGPUs puts a device block into a volume's job file.
func withGPUs(v volume, count int, topology string) string {
	device := fmt.Sprintf("device \"nvidia/gpu\" {\n          count = %d\n          %s\n        }\n        cpu ", count, topology)
	return strings.Replace(v.text(), "cpu ", device, 1)
}

// TestExplain: of a job that waits for each of many reasons, the explanation names the reason with as many nodes as a look at the
// nodes, their allocations and GPUs finds, and the smallest change, when made, places the job.
func TestExplain(t *testing.T) {
	t.Parallel()
	a := startLayouts(t, 9, patient, explainedLayouts())
	one := volume{priority: 50, count: 1, cpu: 10, memory: 10}
	like := func(id string, change func(*volume)) volume {
		v := one
		v.id = id
		change(&v)
		return v
	}
	of := func(class string, what func(n *surveyed) bool) func(n *surveyed) bool {
		return func(n *surveyed) bool { return n.NodeClass == class && what(n) }
	}
	h100 := func(n *surveyed) bool { return strings.Contains(n.models, "H100") }
	for _, c := range []struct {
		kind   string
		before []volume // what holds the room
		job    string   // its text
		holds  func(n *surveyed) bool
	}{
		{structs.ReasonConstraint, nil, like("constraint", func(v *volume) {
			v.job = "constraint {\n    attribute = \"${meta.rack}\"\n    value = \"r9\"\n  }"
		}).text(), func(n *surveyed) bool { return n.rack != "r9" }},
		{structs.ReasonDatacenter, nil, like("datacenter", func(v *volume) { v.job = `datacenters = ["mars"]` }).text(),
			func(n *surveyed) bool { return n.Datacenter != "mars" }},
		{structs.ReasonCandidates, nil, like("candidates", func(v *volume) { v.group = `candidates = ["nowhere"]` }).text(),
			func(n *surveyed) bool { return n.Name != "nowhere" }},
		{structs.ReasonIneligible, nil, like("ineligible", func(v *volume) { v.job = onlyClass("off") }).text(),
			func(n *surveyed) bool { return n.SchedulingEligibility == structs.NodeIneligible }},
		{structs.ReasonDistinctHosts, nil, like("distinct", func(v *volume) {
			v.count, v.job = 4, onlyClass("small")+"\n  constraint {\n    operator = \"distinct_hosts\"\n  }"
		}).text(), of("small", func(*surveyed) bool { return true })}, // each has one of the three that are placed
		{structs.ReasonCPU, []volume{small("holds-cpu", 2, 600, 10, "")}, small("cpu", 2, 900, 10, "").text(),
			of("small", func(n *surveyed) bool { return n.cpu < 900 })},
		{structs.ReasonMemory, []volume{small("holds-memory", 1, 10, 300, "")}, small("memory", 4, 10, 701, "").text(),
			of("small", func(n *surveyed) bool { return n.memory < 701 })},
		{structs.ReasonPort, []volume{small("holds-port", 1, 10, 10, staticPort)}, small("port", 3, 10, 10, staticPort).text(),
			of("small", func(n *surveyed) bool { return n.ports[8080] })},
		{structs.ReasonDevices, nil, withGPUs(like("devices", func(*volume) {}), 9, ""),
			func(n *surveyed) bool { return n.models != "" && n.gpus < 9 }},
		{structs.ReasonDeviceKind, nil, strings.Replace(withGPUs(like("kind", func(*volume) {}), 1, ""), `"nvidia/gpu"`, `"nvidia/gpu/B200"`, 1),
			func(n *surveyed) bool { return !strings.Contains(n.models, "B200") }},
		{structs.ReasonCell, nil, withGPUs(like("cell", func(v *volume) { v.job = onlyClass("flat") }), 2, "topology {\n            level    = \"pcie\"\n            required = true\n          }"),
			of("flat", func(n *surveyed) bool { return n.gpus >= 2 })},
		{structs.ReasonTopology, nil, withGPUs(like("rack", func(v *volume) { v.count, v.group = 3, "gang {}\n    "+oneRack }), 8, ""),
			func(n *surveyed) bool { return h100(n) && n.gpus >= 8 }},
	} {
		for _, v := range c.before {
			a.place(v)
		}
		id := strings.Split(c.job, `"`)[1]
		off := a.node("off-0")
		if _, err := a.api.Nodes().SetEligibility(t.Context(), off, c.kind != structs.ReasonIneligible); err != nil {
			t.Fatal(err)
		}
		a.submit(id, c.job)
		x := a.explained(id, c.kind)
		want := 0
		for _, n := range a.survey() {
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
		if out, code := a.cli("job", "explain", id); code != 0 || !strings.Contains(out, x.Groups[0].Smallest[0].Text) {
			t.Errorf("%s: job explain: exit %d, and it does not say %q\n%s", c.kind, code, x.Groups[0].Smallest[0].Text, out)
		}
		a.make(id, x.Groups[0].Smallest[0])
		a.settled(id)
		for _, v := range append(c.before, volume{id: id}) {
			a.stop(v.id)
			a.running(v.id, 0, 20*time.Second)
		}
	}
	a.explainedWaits()
}

const staticPort = "network {\n      port \"p\" { static = 8080 }\n    }"

// explainedWaits is of what no node can help: evaluations paused, and nobody who may give way.
func (a *agent) explainedWaits() {
	a.t.Helper()
	a.set("-pause-eval-broker=true")
	a.submit("paused", volume{id: "paused", priority: 50, count: 1, cpu: 10, memory: 10}.text())
	x := a.explained("paused", structs.ReasonPaused)
	a.make("paused", x.Groups[0].Smallest[0])
	a.settled("paused")

	low := small("low", 3, 900, 10, "")
	low.priority = 10
	a.place(low)
	high := small("high", 1, 500, 10, "")
	high.priority = 90
	a.submit("high", high.text())
	x = a.explained("high", structs.ReasonPreemption)
	at := slices.IndexFunc(x.Groups[0].Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyPreemption && r.All })
	if at < 0 {
		a.t.Fatalf("nothing says that preemption would place it: %+v", x.Groups[0].Smallest)
	}
	a.make("high", x.Groups[0].Smallest[at])
	a.settled("high")
	a.running("low", 2, 20*time.Second)
	out, code := a.cli("alloc", "status", a.running("high", 1, time.Second)[0].ID)
	if code != 0 || !strings.Contains(out, "Why Here") {
		a.t.Errorf("alloc status: exit %d\n%s", code, out)
	}
}

// node is the ID of a node.
func (a *agent) node(name string) string {
	a.t.Helper()
	nodes, _, err := a.api.Nodes().List(a.t.Context(), nil)
	at := slices.IndexFunc(nodes, func(n *structs.NodeListStub) bool { return n.Name == name })
	if err != nil || at < 0 {
		a.t.Fatalf("no node %s (%v)", name, err)
	}
	return nodes[at].ID
}

// explained waits until a job waits, was tried, and is explained with a kind of reason, and gives that.
func (a *agent) explained(id, kind string) *structs.JobExplanation {
	a.t.Helper()
	var x *structs.JobExplanation
	within(a.t, 20*time.Second, id+" explained by "+kind, func(ctx context.Context) (err error) {
		x, _, err = a.api.Jobs().Explain(ctx, id, "", nil)
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
func (a *agent) settled(id string) {
	a.t.Helper()
	within(a.t, 30*time.Second, id+" placed whole", func(ctx context.Context) error {
		x, _, err := a.api.Jobs().Explain(ctx, id, "", nil)
		if err != nil {
			return err
		}
		if g := x.Groups[0]; g.Missing > 0 || g.Running != g.Wanted {
			return fmt.Errorf("%d of %d run, %d are missing", g.Running, g.Wanted, g.Missing)
		}
		return nil
	})
}

// make makes a change that an explanation names.
func (a *agent) make(job string, r structs.Remedy) {
	a.t.Helper()
	ctx := a.t.Context()
	must := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatalf("%s: %s: %v", job, r.Text, err)
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
			_, err := a.api.Nodes().SetEligibility(ctx, e.ID, true)
			must(err)
		case e.On == structs.EditNode && e.Op == structs.EditNew:
			a.attachLike(e)
		default:
			a.t.Fatalf("%s: %s: this test cannot make %+v", job, r.Text, e)
		}
	}
	for path, edits := range patches {
		var was, patched map[string]any
		_, err := a.api.Get(ctx, path, nil, &was)
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
		_, err = a.api.Put(ctx, path, &api.Query{}, body, nil)
		must(err)
	}
}

// attachLike adds simulated nodes for an edit that says new ones like a node, or like its value.
func (a *agent) attachLike(e structs.Edit) {
	a.t.Helper()
	var count int
	if err := json.Unmarshal(e.Value, &count); err != nil || e.ID == "" {
		count = 1
	}
	var n structs.Node
	if e.ID == "" {
		if err := json.Unmarshal(e.Value, &n); err != nil {
			a.t.Fatal(err)
		}
	} else {
		known, _, err := a.api.Nodes().Info(a.t.Context(), e.ID, nil)
		if err != nil {
			a.t.Fatal(err)
		}
		n = *known
	}
	gpus := ""
	for _, d := range n.NodeResources.Devices {
		gpus += fmt.Sprintf("  gpus \"%s/%s/%s\" {\n    count = %d\n  }\n", d.Vendor, d.Type, d.Name, len(d.Instances))
	}
	a.attach(fmt.Sprintf("shape \"new\" {\n  count = %d\n  cores = 1\n  mhz = %d\n  memory = %d\n  disk = 1000000\n  class = %q\n  meta = { rack = %q }\n%s}\n",
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
