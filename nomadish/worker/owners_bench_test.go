package worker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkEntitledInAFlood: 5,000 identical one-GPU jobs of B wait for 8 nodes of 8 GPUs that others of B hold. Each round a job of A, which
// owns a node, is registered, and what is measured is until it is placed; then it is stopped.
func BenchmarkEntitledInAFlood(b *testing.B) {
	c := tenantCluster(b, 8, cells("node", 1))
	defer c.run(b.Context(), 4)()
	for i := range 5064 {
		c.register(b, gpuJob("b", fmt.Sprint("flood-", i), 90, 1))
	}
	c.quiet(b)
	var waits []time.Duration
	b.ResetTimer()
	for i := range b.N {
		mine := gpuJob("a", fmt.Sprint("mine-", i), 10, 1)
		start := time.Now()
		c.register(b, mine)
		for g, _ := c.classes(mine); g == 0; g, _ = c.classes(mine) {
			if time.Since(start) > 10*time.Second {
				b.Fatal("it is not placed")
			}
			time.Sleep(100 * time.Microsecond)
		}
		waits = append(waits, time.Since(start))
		c.deregister(b, mine)
		c.quiet(b)
	}
	b.ReportMetric(float64(slices.Max(waits).Microseconds())/1000, "ms/max")
	if n := c.broker.Stats().Blocked; n < 4990 {
		b.Errorf("%d wait", n)
	}
}
