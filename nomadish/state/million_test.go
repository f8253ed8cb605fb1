//go:build linux

package state

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

var (
	benchAllocs = flag.Int("state.allocs", 100_000, "allocations of BenchmarkState")
	benchNodes  = flag.Int("state.nodes", 5_000, "nodes of BenchmarkState")
)

// BenchmarkState fills a state in plans of 1,000 placements each, ten to a job, and
// says what that costs, at work and at rest. With -state.allocs=1000000
// -state.nodes=50000 it is the largest cluster that is promised.
func BenchmarkState(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		f := &filled{b: b}
		f.fill()
		f.rest()
		f.read()
		f.stream()
	}
}

type filled struct {
	b      *testing.B
	w      *world
	before uint64 // heap without the state
	nodes  uint64 // heap with the nodes
	batch  int
}

// cpu is the processor time that this thread has used: other work on the machine
// does not count. Most of the garbage collector's work does not either.
func cpu(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (f *filled) apply(entry any) {
	f.b.Helper()
	f.w.index++
	if err := f.w.w.Apply(f.w.index, 0, entry); err != nil {
		f.b.Fatal(err)
	}
}

func (f *filled) nodeID(i int) string { return structs.DeriveID("node", uint64(i%*benchNodes)) } // not negative

// decoded returns a log entry as it comes from the log: shared with nobody.
func decoded[T any](b *testing.B, entry *T) *T {
	b.Helper()
	data, err := codec.Encode(entry)
	if err != nil {
		b.Fatal(err)
	}
	out := new(T)
	if err := codec.Decode(data, out); err != nil {
		b.Fatal(err)
	}
	return out
}

func (f *filled) fill() {
	f.before = heap()
	f.w = newWorld(f.b, Options{EventBuffer: 1})
	for i := range *benchNodes {
		f.apply(decoded(f.b, &structs.NodeRegisterEntry{Node: node(f.nodeID(i))}))
	}
	f.nodes = heap()
	const size = 1_000
	var spent, inWorld time.Duration
	other := f.w.store.Snapshot().World()
	for ; f.batch < *benchAllocs/size; f.batch++ {
		id := fmt.Sprint("job", f.batch/10)
		if f.batch%10 == 0 {
			f.apply(decoded(f.b, &structs.JobRegisterEntry{Job: job(id)}))
		}
		p := batch(id, 0, "", fmt.Sprint("seed", f.batch), size)
		p.Nodes = nil
		for i := range p.Instances {
			id := f.nodeID(f.batch*size + i)
			p.Nodes = append(p.Nodes, structs.PlacedNode{ID: id, Name: "node-" + id})
			p.Instances[i].Node, p.Instances[i].Index = i, f.batch%10*size+i
		}
		plan := decoded(f.b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: "e", Place: []*structs.PlacementBatch{p}, Time: 1}}})
		from := cpu(f.b)
		f.apply(plan)
		spent += cpu(f.b) - from
		// The same once more on the World alone, to tell its share.
		from = cpu(f.b)
		edit := other.Edit()
		last, _, err := f.w.store.Feed(f.w.index - 1).Poll()
		if err != nil {
			f.b.Fatal(err)
		}
		for _, c := range last.Items {
			if a, ok := c.New.(*AllocRow); ok {
				edit.UpsertAlloc(a.Whole())
			}
		}
		other = edit.World()
		inWorld += cpu(f.b) - from
	}
	f.b.ReportMetric(float64(spent.Nanoseconds())/float64(*benchAllocs), "ns/placement")
	f.b.ReportMetric(float64(inWorld.Nanoseconds())/float64(*benchAllocs), "ns/placement-in-World")
}

// rest measures what the state keeps when nothing happens, and how much of it the
// World is, by filling another one.
func (f *filled) rest() {
	all := heap()
	rows := float64(*benchAllocs)
	other := scheduler.NewWorld().Edit()
	for n := range rowsOf(f.w) {
		other.UpsertNode(n)
	}
	bare := heap()
	for r := range f.w.store.Snapshot().v.allocs.All {
		other.UpsertAlloc(r.Whole())
	}
	world := float64(heap() - bare)
	f.b.ReportMetric(float64(all-f.nodes-uint64(world))/rows, "B/row")
	f.b.ReportMetric(world/rows, "B/row-in-World")
	f.b.ReportMetric(float64(f.nodes-f.before)/float64(*benchNodes), "B/node")
	f.b.ReportMetric(float64(all-f.before)/(1<<20), "MiB-in-all")
	runtime.KeepAlive(other)
}

func rowsOf(w *world) func(func(*structs.Node) bool) { return w.store.Snapshot().World().Nodes() }

func (f *filled) read() {
	snap := f.w.store.Snapshot()
	from := cpu(f.b)
	n := len(snap.AllocsByJob(nil, "default", "job0", false))
	f.b.ReportMetric(float64((cpu(f.b)-from).Microseconds())*10_000/float64(n)/1000, "ms/read-of-10,000")
	from = cpu(f.b)
	const reads = 1_000
	for i := range reads {
		n += len(snap.AllocsByNode(nil, f.nodeID(i*7)))
	}
	f.b.ReportMetric(float64((cpu(f.b)-from).Microseconds())/reads, "us/read-of-a-node")
	entry := &structs.AllocClientEntry{}
	for i := range 640 {
		entry.Updates = append(entry.Updates, &structs.AllocClientUpdate{
			ID: structs.DeriveID(fmt.Sprint("seed", i*997%f.batch), uint64(i)), ClientStatus: structs.AllocClientRunning, // not negative
			TaskStates: map[string]*structs.TaskState{"t": {State: structs.TaskStateRunning}},
		})
	}
	from = cpu(f.b)
	f.apply(entry)
	f.b.ReportMetric(float64((cpu(f.b)-from).Nanoseconds())/640, "ns/report")
}

// stream writes a snapshot's rows and reads them, as the FSM does.
func (f *filled) stream() {
	type encoded struct {
		table string
		data  []byte
	}
	var all []encoded
	from := cpu(f.b)
	err := f.w.store.Snapshot().Export(func(table string, row any) error {
		data, err := codec.Encode(row)
		all = append(all, encoded{table, data})
		return err
	})
	if err != nil {
		f.b.Fatal(err)
	}
	f.b.ReportMetric((cpu(f.b) - from).Seconds(), "s/export")
	hash := f.w.store.Snapshot().Hash()
	other := newWorld(f.b, Options{EventBuffer: 1})
	f.w = nil
	from = cpu(f.b)
	in := other.w.Import()
	for _, e := range all {
		row, err := NewRow(e.table)
		if err == nil {
			err = codec.Decode(e.data, row)
		}
		if err == nil {
			err = in.Add(e.table, row)
		}
		if err != nil {
			f.b.Fatal(err)
		}
	}
	other.w.Commit(in, 1)
	f.b.ReportMetric((cpu(f.b) - from).Seconds(), "s/import")
	all, in = nil, nil
	f.b.ReportMetric(float64(heap()-f.before)/(1<<20), "MiB-in-all-imported")
	check(f.b, "hash", other.store.Snapshot().Hash(), hash)
}
