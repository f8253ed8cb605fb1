package snapshot

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/check"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

var (
	benchAllocs = flag.Int("snapshot.allocs", 20_000, "allocations of BenchmarkSnapshot")
	benchNodes  = flag.Int("snapshot.nodes", 1_000, "nodes of BenchmarkSnapshot")
)

// fileSink is what Raft writes its snapshots to.
type fileSink struct{ *os.File }

func (fileSink) ID() string    { return "s" }
func (fileSink) Cancel() error { return nil }

// BenchmarkSnapshot saves a state to a file and restores it, as a server does, and checks
// it. With -snapshot.allocs=1000000 -snapshot.nodes=50000 it is the largest cluster that is
// promised, for which each must take at most 60 s.
func BenchmarkSnapshot(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		l := testcluster.New(0, state.Options{EventBuffer: 1})
		benchFill(b, l)
		took := func(what string, f func()) {
			from := time.Now()
			f()
			b.ReportMetric(time.Since(from).Seconds(), "s/"+what)
		}
		must := func(err error) {
			b.Helper()
			if err != nil {
				b.Fatal(err)
			}
		}
		raw, err := os.Create(filepath.Join(dir, "state.bin"))
		must(err)
		archive, err := os.Create(filepath.Join(dir, "a.snap"))
		must(err)
		var size int64
		took("save", func() {
			snap, err := l.FSM.Snapshot()
			must(err)
			must(snap.Persist(fileSink{raw}))
			in, err := os.Open(raw.Name())
			must(err)
			about, err := in.Stat()
			must(err)
			must(Write(archive, &structs.SnapshotMeta{Index: l.Store.LatestIndex(), StateBytes: about.Size()}, in))
			must(in.Close())
			_, size, err = Digest(archive)
			must(err)
			b.ReportMetric(float64(about.Size())/(1<<20), "MiB-of-state")
			b.ReportMetric(float64(size)/(1<<20), "MiB-of-archive")
		})
		hash := ""
		took("hash", func() { hash = l.Store.Snapshot().Hash() })
		took("check", func() {
			report, err := check.Run(context.Background(), l.Store.Snapshot(), check.Options{Now: time.Now()})
			must(err)
			if !report.Healthy() {
				b.Fatalf("%+v", report.Faults[0])
			}
		})
		other := testcluster.New(0, state.Options{EventBuffer: 1})
		took("restore", func() {
			var info *structs.SnapshotInfo
			took("restore-verify", func() {
				info, err = Read(context.Background(), archive, size)
				must(err)
			})
			from, err := State(archive, size)
			must(err)
			moved, _, err := fsm.Move(from, info.Meta.StateBytes, 1<<40)
			must(err)
			copied, err := os.Create(filepath.Join(dir, "copied.bin")) // as Raft does
			must(err)
			_, err = io.Copy(copied, moved)
			must(err)
			_, err = copied.Seek(0, io.SeekStart)
			must(err)
			other.Restore(b, copied)
		})
		if other.Store.Snapshot().Hash() != hash {
			b.Fatal("what was restored is something else")
		}
		runtime.KeepAlive(other)
	}
}

func benchFill(b *testing.B, l *testcluster.Log) {
	b.Helper()
	nodeID := func(i int) string { return structs.DeriveID("node", uint64(i%*benchNodes)) } // not negative
	for i := range *benchNodes {
		l.Put(b, &structs.NodeRegisterEntry{EvalSeed: "e", Time: 1, Node: &structs.Node{
			ID: nodeID(i), SecretID: "s", Name: fmt.Sprint("n", i), Status: structs.NodeStatusReady, Datacenter: "dc1", NodePool: "default",
			Attributes: map[string]string{"kernel.name": "linux", "cpu.arch": "amd64"},
			NodeResources: &structs.NodeResources{
				Cpu: structs.NodeCpuResources{CpuShares: 64000, TotalCpuCores: 32}, Memory: structs.NodeMemoryResources{MemoryMB: 256_000},
				Disk: structs.NodeDiskResources{DiskMB: 1_000_000}, MinDynamicPort: 20000, MaxDynamicPort: 32000,
			},
		}})
	}
	const size = 1_000
	for i := range *benchAllocs / size {
		id := fmt.Sprint("job", i/10)
		if i%10 == 0 {
			l.Put(b, &structs.JobRegisterEntry{Time: 1, Job: &structs.Job{
				ID: id, Namespace: "default", Type: structs.JobTypeBatch, Priority: 50,
				TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 10 * size, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver"}}}},
			}})
		}
		p := &structs.PlacementBatch{
			Namespace: "default", JobID: id, Group: "g", EvalID: fmt.Sprint("e", i), Seed: fmt.Sprint("seed", i), CreateTime: 1,
			Resources: &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: 64},
			}}, Shared: structs.AllocatedSharedResources{DiskMB: 10}},
			Metrics: &structs.AllocMetric{NodesEvaluated: 1},
		}
		report := &structs.AllocClientEntry{Time: 2}
		for k := range size {
			p.Nodes = append(p.Nodes, structs.PlacedNode{ID: nodeID(i*size + k), Name: "n"})
			p.Instances = append(p.Instances, structs.Instance{Ordinal: uint32(k), Index: i%10*size + k, Node: k}) // small
			report.Updates = append(report.Updates, &structs.AllocClientUpdate{
				ID: structs.DeriveID(p.Seed, uint64(k)), ClientStatus: structs.AllocClientRunning, ModifyTime: 2, // small
				TaskStates: map[string]*structs.TaskState{"t": benchRunning(int64(i*size + k))},
			})
		}
		l.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{EvalID: p.EvalID, Place: []*structs.PlacementBatch{p}, Time: 1}}})
		l.Put(b, report)
	}
}

// benchRunning is what clients say of a task that runs.
func benchRunning(at int64) *structs.TaskState {
	event := func(kind, text string, at int64) *structs.TaskEvent {
		return &structs.TaskEvent{Type: kind, Time: at, DisplayMessage: text, Details: map[string]string{}}
	}
	return &structs.TaskState{State: structs.TaskStateRunning, StartedAt: time.Unix(1_700_000_000, at).UTC(), Events: []*structs.TaskEvent{
		event(structs.TaskReceived, "Task received by client", 1_700_000_000_000_000_000+at),
		event(structs.TaskSetup, "Building Task Directory", 1_700_000_000_000_050_000+at),
		event(structs.TaskStarted, "Task started by client", 1_700_000_000_000_090_000+at),
	}}
}
