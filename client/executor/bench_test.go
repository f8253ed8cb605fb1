package executor

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/nomadish/nomadish/client/logs"
)

// BenchmarkProcess is one process from its start to its forgotten exit.
func BenchmarkProcess(b *testing.B) {
	f := newFixture(b)
	if _, err := f.Ensure(b.Context()); err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := strconv.FormatInt(n.Add(1), 10)
			s := f.spec(id, "/bin/true")
			s.Logs.Task = "t"
			_, err := f.Start(b.Context(), s)
			if err == nil {
				_, err = f.Wait(b.Context(), id)
			}
			if err == nil {
				err = f.Forget(b.Context(), id)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkOutput is a megabyte of output from the task's write to the file, with
// what the executor itself spends on it.
func BenchmarkOutput(b *testing.B) {
	f := newFixture(b)
	pid, err := f.Ensure(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	before, err := readStat(pid)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(1 << 20)
	b.ResetTimer()
	s := f.sh("a", fmt.Sprintf("head -c %d /dev/zero", b.N<<20))
	f.start(s)
	f.wait("a")
	b.StopTimer()
	after, err := readStat(pid)
	if err != nil {
		b.Fatal(err)
	}
	ticks := after.utime + after.stime - before.utime - before.stime
	b.ReportMetric(float64(ticks)*clockTick.Seconds()*1e6/float64(b.N), "executor-cpu-µs/op")
	if files, err := (logs.Source{Dir: f.logs, Task: "a", Stream: logs.Stdout}).Files(); err != nil || len(files) == 0 {
		b.Fatal(files, err)
	}
}

// BenchmarkIdleTask is what a task that only waits costs the executor in memory.
func BenchmarkIdleTask(b *testing.B) {
	f := newFixture(b)
	pid, err := f.Ensure(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	before, err := readStat(pid)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		f.start(f.spec(strconv.Itoa(i), "/bin/sleep", "1000"))
	}
	after, err := readStat(pid)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.rss-min(after.rss, before.rss))/float64(b.N), "executor-bytes/op")
	b.ReportMetric(float64(after.rss), "executor-rss")
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(fds))/float64(b.N), "fds/op")
}
