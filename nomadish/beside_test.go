package nomadish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/forecast"
	"github.com/nomadish/nomadish/nomadish/forecasts"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// besideJobs is how many jobs are registered in a window of BenchmarkBeside, 100 in a second.
const besideJobs = 500

// BenchmarkBeside registers small jobs, 100 in a second, at a server whose queue has 10,000 jobs that wait on 1,000 nodes of 8 GPUs, and has jobs that wait
// explained meanwhile: b.N times in a window without a forecast of that queue, and in one while a forecast of it is made all the time. jobs/s is until all
// are placed, and slower-% by how much it is less beside a forecast, placed-ms and explained-ms are medians of all windows. core-% is what the forecast
// worked in its windows.
func BenchmarkBeside(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Minute)
	defer cancel()
	s := longQueueServer(ctx, b, forecasts.Options{})
	alone, beside, worked := &besideFigures{}, &besideFigures{}, &atomic.Int64{}
	b.ResetTimer()
	for i := range 2 * b.N {
		if i%4 == 0 || i%4 == 3 { // what comes first in a pair alternates
			alone.window(ctx, b, s, i)
			continue
		}
		stop := forecasting(ctx, s, worked)
		beside.window(ctx, b, s, i)
		stop()
	}
	b.StopTimer()
	alone.report(b, "alone")
	beside.report(b, "beside")
	b.ReportMetric(100*(1-beside.rate()/alone.rate()), "slower-%")
	b.ReportMetric(100*time.Duration(worked.Load()).Seconds()/beside.took.Seconds(), "core-%")
}

// forecasting has forecasts of a server's queue made, as that does, until what it returns is called. It adds up how long they work.
func forecasting(ctx context.Context, s *Server, worked *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	service := forecasts.New(forecasts.Options{On: true, Make: func(ctx context.Context, store *state.Store, o forecast.Options) (*structs.Forecast, error) {
		begun, pace := time.Now(), o.Pace
		o.Pace = func(ctx context.Context) {
			worked.Add(int64(time.Since(begun)))
			pace(ctx)
			begun = time.Now()
		}
		return forecast.Run(ctx, store, o)
	}}, s.store)
	var wg sync.WaitGroup
	wg.Go(func() { service.Run(ctx) })
	wg.Go(func() { service.Lead(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// besideFigures is what was measured in windows of one kind.
type besideFigures struct {
	mu                sync.Mutex
	placed, explained []time.Duration
	jobs              int
	took              time.Duration
}

func (f *besideFigures) window(ctx context.Context, b *testing.B, s *Server, window int) {
	var wg sync.WaitGroup
	took := func(list *[]time.Duration, do func()) {
		wg.Go(func() {
			start := time.Now()
			do()
			f.mu.Lock()
			defer f.mu.Unlock()
			*list = append(*list, time.Since(start))
		})
	}
	start := time.Now()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for i := range besideJobs {
		<-every.C
		took(&f.placed, func() { benchPlaced(ctx, b, s, benchRegistered(ctx, b, s, fmt.Sprintf("small-%d-%d", window, i))) })
		if i%10 == 0 {
			took(&f.explained, func() {
				benchCall(ctx, b, s, wire.MethodJobExplain, &structs.JobExplainRequest{ID: fmt.Sprintf("long-%05d", 4000+i*37%7000)}, &structs.JobExplainReply{})
			})
		}
	}
	wg.Wait()
	f.jobs, f.took = f.jobs+besideJobs, f.took+time.Since(start)
}

// rate is how many jobs were placed in a second.
func (f *besideFigures) rate() float64 { return float64(f.jobs) / f.took.Seconds() }

func (f *besideFigures) report(b *testing.B, name string) {
	ms := func(list []time.Duration, part float64) float64 {
		slices.Sort(list)
		return float64(list[int(part*float64(len(list)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(f.rate(), name+"-jobs/s")
	b.ReportMetric(ms(f.placed, 0.5), name+"-placed-ms")
	b.ReportMetric(ms(f.placed, 0.95), name+"-placed95-ms")
	b.ReportMetric(ms(f.explained, 0.5), name+"-explained-ms")
	b.ReportMetric(ms(f.explained, 0.95), name+"-explained95-ms")
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
