package jobparse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/structs"
)

// The test binary also parses job files.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	// As if whoever started this process had left a file open.
	var err error
	if leftOpen, err = syscall.Open(leftFile, syscall.O_RDONLY, 0); err != nil {
		panic(err)
	}
	leaks.Main(m)
}

const leftFile = "/etc/passwd"

var leftOpen int

func newTestPool(cfg Config) *Pool {
	p := New(cfg)
	p.env = append(p.env, "GORACE=atexit_sleep_ms=0") // the race detector would keep each process for a second at its end
	return p
}

func jobOf(expr string) string {
	return "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        command = " + expr + "\n      }\n    }\n  }\n}\n"
}

// TestSameAnswer: parsing apart gives the bytes, problems and warnings that parsing in this process gives.
func TestSameAnswer(t *testing.T) {
	p := newTestPool(Config{})
	var files []string
	for _, pattern := range []string{"../../jobspec/testdata/*/*.hcl", "../../examples/*.hcl", "../../../examples/*.hcl", "../../../examples/*/*.hcl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 50 {
		t.Fatalf("only %d files found", len(files))
	}
	for i, file := range files {
		if i%4 > 0 && strings.Contains(file, "/bad/") {
			continue // a process takes its time
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(src, []byte("uuidv4")) {
			continue // another one each time
		}
		canonicalize := i%2 == 0
		wantJob, want := parse(src, nil, canonicalize)
		got, err := p.Parse(t.Context(), string(src), "", canonicalize)
		if err != nil {
			if err.Error() != want.Problem || structs.CodeOf(err) != structs.CodeBadRequest {
				t.Errorf("%s: %v, want %s", file, err, want.Problem)
			}
			continue
		}
		var raw bytes.Buffer
		enc := json.NewEncoder(&raw)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(shown(wantJob)); err != nil {
			t.Fatal(err)
		}
		if have := string(got.JSON) + "\n"; have != raw.String() || fmt.Sprint(got.Warnings) != fmt.Sprint(want.Warnings) {
			t.Errorf("%s: have\n%s%q\nwant\n%s%q", file, have, got.Warnings, raw.String(), want.Warnings)
		}
	}
}

// TestProblems: what is wrong with a file has the place that it has where it is parsed in this process.
func TestProblems(t *testing.T) {
	p := newTestPool(Config{})
	const wrong = "jbo \"a\" {}\n\nx = 1\n"
	_, _, want := jobspec.Parse(fileName, []byte(wrong), jobspec.Options{})
	if _, err := p.Parse(t.Context(), wrong, "", false); err == nil || want == nil || err.Error() != want.Error() {
		t.Errorf("%v, want %v", err, want)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "attribute_%d = 1\n", i)
	}
	_, err := p.Parse(t.Context(), many.String(), "", false)
	if err == nil || len(err.Error()) > structs.MaxErrorBytes || !strings.Contains(err.Error(), "job.nomad.hcl:1:1: ") || !strings.HasSuffix(err.Error(), " more errors") {
		t.Errorf("a hundred problems: %v", err)
	}
	got, err := p.Parse(t.Context(), `variable "n" {}`+"\n"+jobOf("var.n"), `n = "true"`, false)
	if err != nil || !strings.Contains(string(got.JSON), `"command":"true"`) {
		t.Errorf("with a variable: %v, %v", got, err)
	}
	if _, err := p.Parse(t.Context(), jobOf(`file("/etc/passwd")`), "", false); err == nil || !strings.Contains(err.Error(), "not allowed here") {
		t.Errorf("a function that reads files: %v", err)
	}
}

// costs are files that make much of little, and what is said of them.
var costs = []struct{ name, source, want string }{
	{"three loops", jobOf("[for x in range(1000) : [for y in range(1000) : [for z in range(1000) : x]]]"), ""},
	{"two loops in jsonencode", jobOf("jsonencode([for x in range(1000) : [for y in range(1000) : \"${x}${y}\"]])"), ""},
	{"an endless sum", jobOf("sum([for x in range(1000) : sum([for y in range(1000) : sum([for z in range(1000) : 1])])])"), "more than 200ms of CPU time"},
	{"YAML aliases", jobOf("yamldecode(<<Y\n" + yamlBomb() + "Y\n)"), "more than 100 MiB of memory"},
	{"digits", jobOf(`parseint("` + strings.Repeat("9", 3_000_000) + `", 10)`), ""},
	{"digits of a number", jobOf(strings.Repeat("9", 3_000_000)), ""},
	{"brackets", jobOf(strings.Repeat("[", 5_000_000)), "nested deeper than 200 levels"},
	{"closed brackets", jobOf(strings.Repeat("]", 5_000_000)), ""},
	{"minuses", jobOf(strings.Repeat("-", 5_000_000)), "nested deeper than 200 levels"},
	{"commas", jobOf("[" + strings.Repeat("1,", 4_500_000) + "]"), "more than 100 MiB of memory"},
	{"sums", jobOf(strings.Repeat("1+", 1_000_000) + "1"), ""},
	{"an exponent", jobOf("pow(9, 999999999)"), "cannot hold: +Inf"},
	{"exponents", jobOf("1e999999999"), ""},
	{"a large string", jobOf(`"${format("%9999s", "x")}` + strings.Repeat(`${format("%9999s", "x")}`, 10_000) + `"`), ""},
	{"dynamic blocks", `job "x" {
  dynamic "group" {
    for_each = range(1000)
    labels   = ["g${group.value}"]
    content {
      dynamic "task" {
        for_each = range(1000)
        labels   = ["t${task.value}"]
        content { driver = "raw_exec" }
      }
    }
  }
}`, ""},
}

func yamlBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

// TestCosts: whatever the file, its process takes at most the CPU time that is allowed and 100 MiB, as the kernel counts them.
func TestCosts(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			limit := 200 * time.Millisecond
			if strings.Contains(c.want, "memory") {
				limit = time.Second // a slow machine needs that long to fill the memory
			}
			p := newTestPool(Config{CPU: limit})
			var used syscall.Rusage
			p.ended = func(s *os.ProcessState) { used = *s.SysUsage().(*syscall.Rusage) } // on Linux it is
			runtime.GC()                                                                  // a child's peak begins with that of its parent, from which it is forked
			_, err := p.Parse(t.Context(), c.source, "", true)
			cpu, memory := time.Duration(used.Utime.Nano()+used.Stime.Nano()), used.Maxrss<<10
			t.Logf("%v, %d MiB: %.120v", cpu, memory>>20, err)
			if cpu == 0 || cpu > limit+200*time.Millisecond*raceFactor || memory > 100<<20*raceFactor { // the kernel's limit is of whole seconds, and the end of a process costs as well
				t.Errorf("it took %v of CPU time and %d MiB, want at most %v and 100 MiB", cpu, memory>>20, limit)
			}
			if err != nil && structs.CodeOf(err) != structs.CodeBadRequest || raceFactor == 1 && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it was answered with %v, want a bad request with %q", err, c.want)
			}
		})
	}
}

const endless = "sum([for x in range(1000) : sum([for y in range(1000) : sum([for z in range(1000) : 1])])])"

// TestHangUp: the process ends with its caller, who may be waiting for one as well; too many of these are refused.
func TestHangUp(t *testing.T) {
	p := newTestPool(Config{Processes: 2, Waiting: 3, CPU: 30 * time.Second})
	started, ended := make(chan *exec.Cmd, 10), make(chan *os.ProcessState, 10)
	p.started = func(c *exec.Cmd) { started <- c }
	p.ended = func(s *os.ProcessState) { ended <- s }
	ctx, hangUp := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			if _, err := p.Parse(ctx, jobOf(endless), "", false); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that the context was canceled", err)
			}
		})
	}
	one, other := <-started, <-started
	for range 3 {
		callers.Go(func() {
			if _, err := p.Parse(ctx, jobOf(`"true"`), "", false); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want that the context was canceled", err)
			}
		})
	}
	for p.waiting.Load() < 3 {
		runtime.Gosched()
	}
	if _, err := p.Parse(ctx, jobOf(`"true"`), "", false); !errors.Is(err, structs.ErrLimited) {
		t.Errorf("a caller too many: %v, want %v", err, structs.CodeLimited)
	}
	for _, c := range []*exec.Cmd{one, other} {
		checkBare(t, c.Process.Pid)
	}
	hangUp()
	callers.Wait()
	for range 2 {
		if s := <-ended; s.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { // on Linux it is
			t.Errorf("the process ended with %v, want that it was killed", s)
		}
	}
	if len(started) > 0 {
		t.Error("a process was started for a caller who had hung up")
	}
	if _, err := p.Parse(t.Context(), jobOf(`"true"`), "", false); err != nil {
		t.Errorf("a caller afterwards: %v", err)
	}
}

// checkBare: the process has no environment of its parent's, and no descriptors but its pipes and what Go's runtime opens.
func checkBare(t *testing.T, pid int) {
	t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.Trim(string(env), "\x00"), "\x00") {
		if !strings.HasPrefix(line, "GO") {
			t.Errorf("the environment has %q", line)
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		if to == leftFile || strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") != (e.Name() <= "2" && len(e.Name()) == 1) {
			t.Errorf("descriptor %s is %s", e.Name(), to)
		}
	}
}

// TestNoProcess: where none can be started, or it fails, the fault is not the caller's.
func TestNoProcess(t *testing.T) {
	f := func(p *Pool, want string) {
		t.Helper()
		_, err := p.Parse(t.Context(), jobOf(`"true"`), "", false)
		if err == nil || structs.CodeOf(err).HTTPStatus() != 500 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an internal error with %q", err, want)
		}
	}
	p := newTestPool(Config{})
	p.program = "/proc/self/nothing"
	f(p, "start a process to parse the job file: ")
	p.program = "/bin/false"
	f(p, "exit status 1")
	p.program = "/bin/true"
	f(p, "returned no result")
	f(newTestPool(Config{Memory: 1 << 20}), "bytes of memory are too few")
}

// TestLargeJob: a job of more bytes than a request may have is refused, and its process does not wait for ever.
func TestLargeJob(t *testing.T) {
	p := newTestPool(Config{Output: 1000, CPU: 10 * time.Second})
	_, err := p.Parse(t.Context(), jobOf(`"`+strings.Repeat("x", 1<<20)+`"`), "", false)
	if !errors.Is(err, structs.ErrBadRequest) || !strings.Contains(err.Error(), "makes a job of more than") {
		t.Errorf("%v, want a bad request", err)
	}
}

func BenchmarkParse(b *testing.B) {
	p := newTestPool(Config{})
	for b.Loop() {
		if _, err := p.Parse(b.Context(), jobOf(`"true"`), "", true); err != nil {
			b.Fatal(err)
		}
	}
}
