package nomadish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkJobs registers b.N jobs of one instance from 64 sides at a server that
// stores its log on disk, with two workers and 1,000 nodes, until all are placed.
// jobs/s is of the whole; ms/one is a registration alone until its placement.
func BenchmarkJobs(b *testing.B) {
	cfg := quickTestConfig()
	cfg.DataDir = b.TempDir()
	cfg.Heartbeats.MinTTL = time.Hour // nobody plays the nodes
	s, err := NewServer(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for !s.IsLeader() {
		if ctx.Err() != nil {
			b.Fatal("no leader")
		}
		time.Sleep(time.Millisecond)
	}
	for i := range 1000 {
		benchCall(ctx, b, s, wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: benchNode(i)}, &structs.NodeUpdateReply{})
	}
	var alone []time.Duration
	for i := range 50 {
		start := time.Now()
		benchPlaced(ctx, b, s, benchRegistered(ctx, b, s, fmt.Sprint("alone-", i)))
		alone = append(alone, time.Since(start))
	}
	slices.Sort(alone)

	b.ResetTimer()
	var wg sync.WaitGroup
	work := make(chan int)
	evals := make([]string, b.N)
	for range 64 {
		wg.Go(func() {
			for i := range work {
				evals[i] = benchRegistered(ctx, b, s, fmt.Sprint("job-", i))
			}
		})
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	wg.Wait()
	at := b.Elapsed()
	for _, id := range evals {
		benchPlaced(ctx, b, s, id)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(b.N)/at.Seconds(), "registered/s")
	b.ReportMetric(float64(alone[len(alone)/2].Microseconds())/1000, "ms/one")
}

func benchCall(ctx context.Context, b *testing.B, s *Server, method string, args, reply any) {
	if err := s.Call(ctx, method, args, reply); err != nil {
		b.Errorf("%s: %v", method, err)
	}
}

func benchJob(id string) *structs.Job {
	return &structs.Job{ID: id, Type: structs.JobTypeBatch, Priority: 50, TaskGroups: []*structs.TaskGroup{{
		Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: 20, MemoryMB: 10}}},
	}}}
}

func benchRegistered(ctx context.Context, b *testing.B, s *Server, id string) string {
	job := benchJob(id)
	job.Canonicalize()
	reply := &structs.JobRegisterReply{}
	benchCall(ctx, b, s, wire.MethodJobRegister, &structs.JobRegisterRequest{Job: job}, reply)
	return reply.EvalID
}

// benchPlaced waits until an evaluation is complete.
func benchPlaced(ctx context.Context, b *testing.B, s *Server, id string) {
	index := uint64(0)
	for !b.Failed() {
		reply := &structs.EvalReply{}
		benchCall(ctx, b, s, wire.MethodEvalGet, &structs.EvalGetRequest{ID: id, QueryOptions: structs.QueryOptions{
			AllowStale: true, MinQueryIndex: index, MaxQueryTime: time.Minute,
		}}, reply)
		if e := reply.Eval; e != nil && e.Status != structs.EvalStatusPending {
			if e.Status != structs.EvalStatusComplete || len(e.FailedTGAllocs) > 0 {
				b.Errorf("evaluation of %s: %s %s %v", e.JobID, e.Status, e.StatusDescription, e.FailedTGAllocs)
			}
			return
		}
		index = reply.Index
	}
}

func benchNode(i int) *structs.Node {
	return &structs.Node{
		ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", i), SecretID: "s", Name: fmt.Sprintf("n%d", i), Datacenter: "dc1",
		Status: structs.NodeStatusReady, NodePool: structs.NodePoolDefault, Attributes: map[string]string{"kernel.name": "linux"},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4},
			Memory: structs.NodeMemoryResources{MemoryMB: 8192}, Disk: structs.NodeDiskResources{DiskMB: 100000},
			MinDynamicPort: 20000, MaxDynamicPort: 32000,
		},
	}
}
