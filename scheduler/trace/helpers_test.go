package trace

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// machines makes nodes that are alike.
func machines(n, cpu, memory, gpus int) []*structs.Node {
	return modelMachines("m", n, cpu, memory, gpus, "A")
}

func modelMachines(prefix string, n, cpu, memory, gpus int, model string) (out []*structs.Node) {
	for i := range n {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		node := &structs.Node{
			ID: name, Name: name, Datacenter: "dc1", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady,
			SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{}, Meta: map[string]string{},
			Drivers: map[string]*structs.DriverInfo{DriverName: {Detected: true, Healthy: true}},
			NodeResources: &structs.NodeResources{
				Cpu: structs.NodeCpuResources{CpuShares: int64(cpu)}, Memory: structs.NodeMemoryResources{MemoryMB: int64(memory)},
			},
		}
		if gpus > 0 {
			d := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: model}
			for g := range gpus {
				d.Instances = append(d.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%s-gpu-%d", name, g), Healthy: true})
			}
			node.NodeResources.Devices = []*structs.NodeDeviceResource{d}
		}
		node.ComputeClass()
		out = append(out, node)
	}
	return out
}

// gpuRow asks GPUs for a time; times are seconds.
func gpuRow(arrival, duration, gpus int) Row {
	return Row{Arrival: sec(arrival), Duration: sec(duration), Count: 1, GPUs: gpus}
}

func sec(n int) time.Duration { return time.Duration(n) * time.Second }

func (r Row) with(change func(*Row)) Row {
	change(&r)
	return r
}

// given returns rows one by one, as a reader would.
func given(rows ...Row) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, row := range rows {
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// config is a replay with what it placed and when, by the rows' names.
type placed struct {
	c  Config
	at map[string]int // seconds
}

func replayOf(nodes []*structs.Node, rows ...Row) *placed {
	p := &placed{at: map[string]int{}}
	p.c = Config{Nodes: nodes, Rows: given(rows...), Scheduler: structs.DefaultSchedulerConfiguration(), Seed: 1}
	p.c.Placed = func(row *Row, at time.Duration) {
		if _, twice := p.at[row.Name]; twice && row.Name != "" {
			p.at[row.Name] = -1
			return
		}
		p.at[row.Name] = int(at.Seconds())
	}
	return p
}

func (p *placed) run(t tester) *Figures {
	t.Helper()
	f, _, err := Run(p.c)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	return f
}

// starts checks when rows were placed: "a 0, b 10".
func (p *placed) starts(t tester, want map[string]int) {
	t.Helper()
	for name, at := range want {
		got, was := p.at[name]
		if !was || got != at {
			t.Errorf("%s was placed at %d (%t), want %d", name, got, was, at)
		}
	}
}

func named(name string) func(*Row) { return func(r *Row) { r.Name = name } }

func asJSON(t tester, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(b)
}

// load is a stream of small requests that are a little more than machines can hold.
func load(n int, every time.Duration, seed uint64, change func(*Row, uint64)) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		state := seed
		next := func() uint64 {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
			return z ^ (z >> 27)
		}
		for i := range n {
			row := Row{Arrival: time.Duration(i) * every, Count: 1, GPUs: 1}
			change(&row, next())
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// merged returns rows of two sources in the order of their arrival.
func merged(t *testing.T, a iter.Seq2[*Row, error], more ...Row) iter.Seq2[*Row, error] {
	t.Helper()
	var all []Row
	for row, err := range a {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *row)
	}
	all = append(all, more...)
	slices.SortStableFunc(all, func(a, b Row) int { return int(min(1, max(-1, a.Arrival-b.Arrival))) })
	return given(all...)
}
