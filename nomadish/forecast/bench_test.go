package forecast

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// BenchmarkForecast is a forecast of 10,000 jobs that wait on 1,000 nodes of 8 GPUs.
func BenchmarkForecast(b *testing.B) {
	r := newReality(b)
	r.nodes(1000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 12_000 {
		gpus := []int{1, 2, 4, 8}[rng.IntN(4)]
		j := gpuJob(fmt.Sprintf("job-%05d", i), []int{20, 50, 80}[rng.IntN(3)], 1, gpus, time.Duration(600+600*rng.IntN(20))*time.Second)
		j.Namespace = structs.DefaultNamespace
		r.submit(j)
		if i%2000 == 0 {
			r.until(r.now.Add(time.Second))
		}
	}
	r.until(r.now.Add(time.Second))
	b.Log(r.now)
	for b.Loop() {
		before := live()
		f := r.forecast(Options{})
		b.ReportMetric(float64(live()-before)/(1<<20), "MiB-kept")
		unknown := 0
		for _, q := range f.Requests {
			if q.Latest.All == 0 {
				unknown++
			}
		}
		b.ReportMetric(float64(len(f.Requests)), "requests")
		b.ReportMetric(float64(unknown), "unknown")
		b.ReportMetric(last(f).Sub(r.now).Hours(), "hours")
	}
}

// live is how much memory is in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
