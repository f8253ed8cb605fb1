package forecast

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// BenchmarkForecast is a forecast of 10,000 jobs that wait on 1,000 nodes of 8 GPUs, of which it is known how long those of the same users took. It
// reports the processor's time of both runs together, and the most memory beyond the state that was on the heap, and that was in use on it.
func BenchmarkForecast(b *testing.B) {
	r := longQueue(b)
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // what a server's heap of this size is given between two collections (command/agent)
	for b.Loop() {
		b.StopTimer()
		before, cpu := live(), processorTime(b)
		stop := watchHeap()
		b.StartTimer()
		f := r.forecast(Options{})
		b.StopTimer()
		b.ReportMetric(float64(before)/(1<<20), "MiB-base")
		b.ReportMetric((processorTime(b) - cpu).Seconds(), "cpu-s")
		most, used := stop()
		b.ReportMetric(float64(int64(most)-int64(before))/(1<<20), "MiB-peak")
		b.ReportMetric(float64(int64(used)-int64(before))/(1<<20), "MiB-used")
		b.ReportMetric(float64(int64(live())-int64(before))/(1<<20), "MiB-kept")
		unknown := 0
		for _, q := range f.Requests {
			if q.Latest.All == 0 || q.Expected.All == 0 {
				unknown++
			}
		}
		b.ReportMetric(float64(len(f.Requests)), "requests")
		b.ReportMetric(float64(unknown), "unknown")
		b.ReportMetric(last(f).Sub(r.now).Hours(), "hours")
		b.StartTimer()
	}
}

// longQueue is a cluster of 1,000 nodes of 8 GPUs that 12,000 jobs of 20 users were submitted to, about 2,500 of which run; 400 others have ended.
func longQueue(t testing.TB) *reality {
	r := newReality(t)
	r.nodes(1000)
	rng := rand.New(rand.NewPCG(1, 1))
	submit := func(name string, limit time.Duration) {
		j := gpuJob(name, []int{20, 50, 80}[rng.IntN(3)], 1, []int{1, 2, 4, 8}[rng.IntN(4)], limit)
		j.Namespace, j.Submitter = structs.DefaultNamespace, &structs.Submitter{User: fmt.Sprintf("user-%02d", rng.IntN(20))}
		r.submit(j)
	}
	for i := range 400 {
		submit(fmt.Sprintf("was-%03d", i), time.Duration(600+300*rng.IntN(20))*time.Second)
	}
	r.until(r.now.Add(2 * time.Hour))
	for i := range 12_000 {
		submit(fmt.Sprintf("job-%05d", i), time.Duration(600+600*rng.IntN(20))*time.Second)
		if i%2000 == 0 {
			r.until(r.now.Add(time.Second))
		}
	}
	r.until(r.now.Add(time.Second))
	return r
}

// live is how much memory is in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watchHeap samples how much of the heap objects occupy, garbage included, and how much of it was in use when garbage was collected last, until what it
// returns is called, which returns the most there was.
func watchHeap() (stop func() (most, used uint64)) {
	done, tops := make(chan struct{}), make(chan [2]uint64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
		every := time.NewTicker(time.Millisecond)
		defer every.Stop()
		var top [2]uint64
		for {
			metrics.Read(sample)
			for i := range top {
				top[i] = max(top[i], sample[i].Value.Uint64())
			}
			select {
			case <-every.C:
			case <-done:
				tops <- top
				return
			}
		}
	}()
	return func() (most, used uint64) {
		close(done)
		top := <-tops
		return top[0], top[1]
	}
}

// processorTime is the processor's time of this process until now.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
