package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// BenchmarkWholeMillion fills 50,000 nodes with 1,000,000 instances of 100 jobs: what the server needs for that, and how long it
// takes to save a snapshot of it and to restore that into another server. With -short, a twentieth of it.
func BenchmarkWholeMillion(b *testing.B) {
	nodes, jobs := 50_000, 100
	if testing.Short() {
		nodes, jobs = nodes/20, jobs/20
	}
	b.Run(fmt.Sprintf("nodes=%gk", float64(nodes)/1000), func(b *testing.B) {
		for range b.N {
			million(b, nodes, jobs)
		}
	})
}

func million(b *testing.B, nodes, jobs int) {
	const each = 10_000
	a := benchServer(b)
	sim := populate(b, a, nodes, smallNodes)
	start := time.Now()
	for i := range jobs {
		register(b, a, pretendJob(fmt.Sprintf("big-%d", i), each))
		summed(b, a, fmt.Sprintf("big-%d", i), each, committed)
	}
	took := time.Since(start)
	b.Logf("%d instances are committed after %v", jobs*each, took.Round(time.Millisecond))
	b.ReportMetric(float64(jobs*each)/took.Seconds(), "instances/s")
	for i := range jobs {
		summed(b, a, fmt.Sprintf("big-%d", i), each, areRunning)
	}
	b.Logf("and run after %v", time.Since(start).Round(time.Millisecond))
	calm(b, a)
	b.Logf("and the servers have taken in that they are well after %v", time.Since(start).Round(time.Millisecond))
	now, most := memory(b, a)
	b.ReportMetric(now/1024, "GiB")
	b.ReportMetric(most/1024, "GiB-at-most")

	file := filepath.Join(b.TempDir(), "state.snap")
	start = time.Now()
	size := saveTo(b, a, file)
	b.ReportMetric(time.Since(start).Seconds(), "s-save")
	b.ReportMetric(float64(size)/(1<<20), "MiB-snapshot")
	_, most = memory(b, a)
	b.ReportMetric(most/1024, "GiB-when-saved")
	a.Kill()   // so that two servers of that size need not stand beside each other, nor
	sim.Kill() // 50,000 nodes look for one
	fresh := benchServer(b)
	start = time.Now()
	restoreFrom(b, fresh, file, size)
	b.ReportMetric(time.Since(start).Seconds(), "s-restore")
	sum, _, err := fresh.Nomad.Jobs().Summary("big-0", nil)
	if err != nil || committed(sum.Summary["g"]) != each {
		b.Fatalf("after the restore: %+v, %v", sum, err)
	}
}

func saveTo(b *testing.B, a *harness.Agent, file string) int64 {
	b.Helper()
	archive, _, err := a.API.Operator().SnapshotSave(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer archive.Close() //nolint:errcheck // read only
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	size, err := io.Copy(out, archive)
	if err == nil {
		err = out.Sync()
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return size
}

func restoreFrom(b *testing.B, a *harness.Agent, file string, size int64) {
	b.Helper()
	in, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // read only
	if _, err := a.API.Operator().SnapshotRestore(b.Context(), in, size); err != nil {
		b.Fatal(err)
	}
}

// calm waits until the server has applied nothing for five seconds.
func calm(b *testing.B, a *harness.Agent) {
	b.Helper()
	last, since := "", time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(since) < 5*time.Second; <-tick.C {
		self, err := a.Nomad.Agent().Self()
		if err != nil {
			b.Fatal(err)
		}
		if now := self.Stats["raft"]["applied_index"]; now != last {
			last, since = now, time.Now()
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatalf("the server applies entries still, index %s", last)
		}
	}
}
