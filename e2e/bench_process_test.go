package e2e

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
)

// memory is how much memory a process holds, and has held at most, in MiB.
func (a *agent) memory(b *testing.B) (now, most float64) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.cmd.Process.Pid), "status"))
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
		a.summed(b, id, 10_000, areRunning)
		now, most := a.memory(b)
		b.ReportMetric(now, "MiB")
		b.ReportMetric(most, "MiB-at-most")
	}
}

// heap is what the process says of its memory: TotalAlloc, Mallocs and so on.
func (a *agent) heap(b *testing.B) map[string]float64 {
	b.Helper()
	body, err := a.api.Raw(b.Context(), "/debug/pprof/heap", &api.Query{Params: map[string]string{"debug": "1"}})
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

// cpu is the time that a process has computed for.
func (a *agent) cpu(b *testing.B) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(a.cmd.Process.Pid), "stat"))
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
func (a *agent) sockets() (n int) {
	dir := filepath.Join("/proc", strconv.Itoa(a.cmd.Process.Pid), "fd")
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
