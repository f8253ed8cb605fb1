package bench

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
)

// memory is how much memory a process holds, and has held at most, in MiB.
func memory(b *testing.B, a *harness.Agent) (now, most float64) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.Cmd.Process.Pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	of := func(name string) float64 {
		_, rest, ok := bytes.Cut(text, []byte(name+":"))
		f := strings.Fields(string(rest))
		if !ok || len(f) == 0 {
			b.Fatalf("no %s in the process's status", name)
		}
		kib, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		return kib / 1024
	}
	return of("VmRSS"), of("VmHWM")
}

// BenchmarkWholeMemory is what a server with 1,000 nodes and 10,000 allocations that run needs.
func BenchmarkWholeMemory(b *testing.B) {
	a := benchWorld(b, 1000, smallNodes)
	for i := range b.N {
		id := "big-" + strconv.Itoa(i)
		register(b, a, pretendJob(id, 10_000))
		summed(b, a, id, 10_000, areRunning)
		now, most := memory(b, a)
		b.ReportMetric(now, "MiB")
		b.ReportMetric(most, "MiB-at-most")
	}
}

// heap is what the process says of its memory: TotalAlloc, Mallocs and so on.
func heap(b *testing.B, a *harness.Agent) map[string]float64 {
	b.Helper()
	body, err := a.API.Raw(b.Context(), "/debug/pprof/heap", &api.Query{Params: map[string]string{"debug": "1"}})
	if err != nil {
		b.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // read only
	out := map[string]float64{}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "# "), " = ")
		if v, err := strconv.ParseFloat(text, 64); ok && err == nil {
			out[name] = v
		}
	}
	if out["TotalAlloc"] == 0 {
		b.Fatalf("no TotalAlloc in the profile: %v, %v", out, lines.Err())
	}
	return out
}

// processorTime is the time that a process has computed for.
func processorTime(b *testing.B, a *harness.Agent) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.Cmd.Process.Pid), "stat"))
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range f[11:13] { // in user mode and in the kernel
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// sockets counts the open sockets of the process.
func sockets(a *harness.Agent) (n int) {
	dir := filepath.Join("/proc", strconv.Itoa(a.Cmd.Process.Pid), "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
