package nomadish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/structs"
)

// BenchmarkBeside registers b.N small jobs, 100 in a second, at a server whose queue has 10,000 jobs that wait on 1,000 nodes of 8 GPUs, without forecasts
// of that queue and beside them, and has jobs that wait explained meanwhile. jobs/s is until all are placed, placed-ms and explained-ms are medians.
func BenchmarkBeside(b *testing.B) {
	for _, share := range []float64{0, 5, 100} {
		b.Run(fmt.Sprintf("forecast=%g%%", share), func(b *testing.B) { besideForecasts(b, share) })
	}
}

func besideForecasts(b *testing.B, share float64) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	s := longQueueServer(ctx, b, forecasts.Options{On: share > 0, CPUPercent: share})
	var mu sync.Mutex
	var placed, explained []time.Duration
	var wg sync.WaitGroup
	took := func(list *[]time.Duration, f func()) {
		wg.Go(func() {
			start := time.Now()
			f()
			mu.Lock()
			defer mu.Unlock()
			*list = append(*list, time.Since(start))
		})
	}
	b.ResetTimer()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for i := range b.N {
		<-every.C
		took(&placed, func() { benchPlaced(ctx, b, s, benchRegistered(ctx, b, s, fmt.Sprint("small-", i))) })
		if i%10 == 0 {
			took(&explained, func() {
				benchCall(ctx, b, s, wire.MethodJobExplain, &structs.JobExplainRequest{ID: fmt.Sprintf("long-%05d", 4000+i*37%7000)}, &structs.JobExplainReply{})
			})
		}
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(placed)
	slices.Sort(explained)
	ms := func(list []time.Duration, part float64) float64 {
		return float64(list[int(part*float64(len(list)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(ms(placed, 0.5), "placed-ms")
	b.ReportMetric(ms(placed, 0.95), "placed95-ms")
	b.ReportMetric(ms(explained, 0.5), "explained-ms")
	b.ReportMetric(ms(explained, 0.95), "explained95-ms")
}

// longQueueServer returns a leader of 1,000 nodes of 8 GPUs, at which about 10,000 jobs wait.
func longQueueServer(ctx context.Context, b *testing.B, o forecasts.Options) *Server {
	cfg := quickTestConfig()
	cfg.DataDir, cfg.Forecasts = b.TempDir(), o
	cfg.Heartbeats.MinTTL = time.Hour // nobody plays the nodes
	s, err := NewServer(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
	})
	wait := func(what string, done func() bool) {
		for !done() {
			if ctx.Err() != nil {
				b.Fatal(what)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait("no leader", s.IsLeader)
	for i := range 1000 {
		n := benchNode(i)
		group := &structs.NodeDeviceResource{Vendor: "nvidia", Type: "gpu", Name: "H100"}
		for g := range 8 {
			group.Instances = append(group.Instances, &structs.NodeDevice{ID: fmt.Sprintf("%d-%d", i, g), Healthy: true})
		}
		n.NodeResources.Devices = []*structs.NodeDeviceResource{group}
		benchCall(ctx, b, s, wire.MethodNodeRegister, &structs.NodeRegisterRequest{Node: n}, &structs.NodeUpdateReply{})
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range work {
				job := benchJob(fmt.Sprintf("long-%05d", i))
				job.TaskGroups[0].MaxRunDuration = time.Duration(600+i%20*600) * time.Second
				job.TaskGroups[0].Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: 1 << (i % 4)}}
				job.Canonicalize()
				benchCall(ctx, b, s, wire.MethodJobRegister, &structs.JobRegisterRequest{Job: job}, &structs.JobRegisterReply{})
			}
		})
	}
	for i := range 12_000 {
		work <- i
	}
	close(work)
	wg.Wait()
	wait("the queue is not settled", func() bool {
		pending := 0
		for e := range s.store.Snapshot().Evals(nil, structs.AllNamespaces, "", false) {
			if e.Status == structs.EvalStatusPending {
				pending++
			}
		}
		return pending == 0
	})
	return s
}
