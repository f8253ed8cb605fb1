package e2e

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

var logsTo = flag.String("logs", "", "a directory for the agents' logs of tests that fail")

var bin = flag.String("bin", "", "the nomadish binary to test; built when empty")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if *bin == "" {
		dir, err := os.MkdirTemp("", "nomadish-e2e-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the system's own cleaning gets it
		*bin = filepath.Join(dir, "nomadish")
		args := []string{"build", "-trimpath", "-o", *bin}
		if raced { // the agent too
			args = append(args, "-race")
		}
		build := exec.Command("go", append(args, "..")...)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
	}
	code := m.Run()
	return max(code, tidyCgroups())
}

// cgroupParent is where the tasks of all agents of this process have their control groups.
var cgroupParent = "nomadish-e2e-" + strconv.Itoa(os.Getpid())

// tidyCgroups removes the control groups that agents have left which were killed with their tasks. It returns 1 if one stays.
func tidyCgroups() int {
	for deadline := time.Now().Add(scaled(10 * time.Second)); ; time.Sleep(10 * time.Millisecond) { // what was killed may be ending still
		var left []string
		for _, dir := range slices.Backward(cgroupsNamed(cgroupParent)) { // those below others first
			if err := syscall.Rmdir(dir); err != nil {
				left = append(left, fmt.Sprintf("%s: %v", dir, err))
			}
		}
		if len(left) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "control groups are left: %q\n", left)
			return 1
		}
	}
}

// agent is a real agent process.
type agent struct {
	t       testing.TB
	args    []string
	bin     string     // what it runs; empty: the binary to test
	netns   string     // the network namespace that it lives in, if any
	env     []string   // what is added to the environment
	files   []*os.File // what the process inherits beside its standard streams
	dir     string     // its data_dir, and where its tasks lie
	cwd     string     // where the command line runs; empty: where the test does
	http    string     // address
	rpc     string
	serf    string
	gossip  string // the clients'
	cmd     *exec.Cmd
	log     *logBuffer
	exited  chan error
	started time.Time
	api     *api.Client
	nomad   *nomad.Client // the official client
}

// logBuffer keeps an agent's output for when a test fails.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 8<<20 {
		l.b.Next(l.b.Len() / 2)
	}
	return l.b.Write(p)
}

func (l *logBuffer) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(l.b.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// portsGiven are those that this process has chosen: none is given twice, whoever listens on it by now.
var portsGiven sync.Map

// freePort returns a port that nobody listens on, of those that neither the system gives to
// who connects nor an agent to its tasks.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(10_000) // a test
		if _, given := portsGiven.LoadOrStore(port, true); given {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			_ = l.Close() // it never carried anything
			return port
		}
	}
	t.Fatal("no free port between 10,000 and 20,000")
	return 0
}

// newAgent prepares an agent: dev, or with a data_dir that outlives it. config is
// HCL that is added.
func newAgent(t testing.TB, dev bool, config string) *agent {
	t.Helper()
	a := &agent{t: t, dir: t.TempDir()}
	http, rpc, serf, clients := freePort(t), freePort(t), freePort(t), freePort(t)
	a.serf, a.gossip = fmt.Sprintf("127.0.0.1:%d", serf), fmt.Sprintf("127.0.0.1:%d", clients)
	a.http, a.rpc = fmt.Sprintf("http://127.0.0.1:%d", http), fmt.Sprintf("127.0.0.1:%d", rpc)
	text := fmt.Sprintf("bind_addr = \"127.0.0.1\"\nlog_level = \"DEBUG\"\nports {\n  http = %d\n  rpc = %d\n  serf = %d\n  client_gossip = %d\n}\n",
		http, rpc, serf, clients)
	if !strings.Contains(config, "name = ") {
		text += "name = \"e2e\"\n"
	}
	text += fmt.Sprintf("client {\n  cgroup_parent = %q\n}\n", cgroupParent)
	if !dev {
		text += fmt.Sprintf("data_dir = %q\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n", filepath.Join(a.dir, "data"))
	}
	file := filepath.Join(a.dir, "agent.hcl")
	more := filepath.Join(a.dir, "more.hcl") // laid over the first, so that it may say the same things anew
	for path, text := range map[string]string{file: text, more: config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.args = []string{"agent"}
	if dev {
		a.args = append(a.args, "-dev")
	}
	a.args = append(a.args, "-config", file, "-config", more)
	var err error
	if a.api, err = api.New(api.Config{Address: a.http}); err != nil {
		t.Fatal(err)
	}
	conf := nomad.DefaultConfig()
	conf.Address = a.http
	if a.nomad, err = nomad.NewClient(conf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.cleanup)
	return a
}

// serverAndClient is the configuration of an agent that is both.
const serverAndClient = "server {\n  enabled = true\n  bootstrap_expect = 1\n}\nclient {\n  enabled = true\n}\n"

// startDev starts a development agent and waits for its leader and its node.
func startDev(t *testing.T, config string) *agent {
	t.Helper()
	a := newAgent(t, true, config)
	a.start()
	a.ready(1)
	return a
}

// command is the binary with arguments, to be run where the agent lives.
func (a *agent) command(ctx context.Context, args ...string) *exec.Cmd {
	program := cmp.Or(a.bin, *bin)
	if a.netns == "" {
		return exec.CommandContext(ctx, program, args...)
	}
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", a.netns, program}, args...)...)
}

func (a *agent) start() {
	a.t.Helper()
	a.log = &logBuffer{}
	a.cmd = a.command(context.Background(), a.args...)
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	a.cmd.Env = append(append(os.Environ(), "TMPDIR="+a.dir), a.env...)
	a.cmd.ExtraFiles = a.files
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	a.started = time.Now()
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	cmd, exited := a.cmd, make(chan error, 1)
	a.exited = exited
	go func() { exited <- cmd.Wait() }()
}

// ready waits for a leader and for n ready nodes.
func (a *agent) ready(n int) {
	a.t.Helper()
	within(a.t, 30*time.Second, "leader and nodes", func(ctx context.Context) error {
		select {
		case err := <-a.exited:
			a.exited <- err // for cleanup
			a.t.Fatalf("the agent ended: %v\n%s", err, a.log.tail(30))
		default:
		}
		nodes, _, err := a.api.Nodes().List(ctx, nil)
		if err != nil {
			return err
		}
		up := 0
		for _, node := range nodes {
			if node.Status == structs.NodeStatusReady {
				up++
			}
		}
		if up < n {
			return fmt.Errorf("%d of %d nodes are ready", up, n)
		}
		return nil
	})
}

// wait waits for the process's end and says how it ended.
func (a *agent) wait() error { return <-a.exited }

// kill ends the agent as a crash does.
func (a *agent) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	a.exited <- a.wait() // for cleanup
}

// inOrder has a server check its state. One that does not answer has been ended, or is a
// client.
func (a *agent) inOrder() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), scaled(30*time.Second))
	defer cancel()
	report, err := a.api.Operator().Check(ctx, &api.Query{Stale: true})
	if err != nil || report == nil {
		return
	}
	for _, f := range report.Faults {
		a.t.Errorf("the state at index %d is not in order: %s: %s %s: %s", report.StateIndex, f.Rule, f.Kind, f.ID, f.What)
	}
}

// endsWithin is how long an agent gives its parts to end.
const endsWithin = 15 * time.Second

func (a *agent) cleanup() {
	if a.cmd != nil && a.cmd.Process != nil {
		a.inOrder()
		_ = a.cmd.Process.Signal(os.Interrupt)
		select {
		case err := <-a.exited:
			a.exited <- err
		case <-time.After(scaled(endsWithin)):
			_ = a.cmd.Process.Signal(syscall.SIGQUIT) // it prints what its goroutines do
			a.exited <- a.wait()
			a.t.Errorf("the agent does not end when interrupted; its goroutines:\n%s", a.log.tail(2000))
		}
	}
	if a.t.Failed() && a.log != nil {
		a.t.Logf("the agent's log, its end:\n%s", a.log.tail(60))
		if *logsTo != "" {
			name := filepath.Join(*logsTo, strings.ReplaceAll(a.t.Name(), "/", "_")+"-"+filepath.Base(a.dir)+".log")
			if err := os.WriteFile(name, []byte(a.log.tail(1<<20)), 0o600); err != nil {
				a.t.Log(err)
			}
		}
	}
	within(a.t, 10*time.Second, "the end of what outlived the agent", func(context.Context) error {
		pids := processesOf(a.dir) // tasks and executors
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) > 0 {
			return fmt.Errorf("processes %v", pids)
		}
		return nil
	})
}

// processesOf finds the processes whose command line or environment names dir.
func processesOf(dir string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			if text, err := os.ReadFile(filepath.Join("/proc", e.Name(), file)); err == nil && bytes.Contains(text, []byte(dir)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// cli runs the command line against the agent and gives its output and exit code.
func (a *agent) cli(args ...string) (out string, code int) {
	a.t.Helper()
	limit := scaled(time.Minute)
	ctx, cancel := context.WithTimeout(a.t.Context(), limit)
	defer cancel()
	cmd := a.command(ctx, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), "NOMADISH_ADDR="+a.http), a.cwd
	raw, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		a.t.Fatalf("nomadish %s: not done within %s\n%s", strings.Join(args, " "), limit, raw)
	}
	if err != nil && cmd.ProcessState == nil {
		a.t.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// job writes a job file and gives its path.
func (a *agent) job(name, text string) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name+".nomad.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// within tries f until it succeeds, for as long as scaled says of the stated limit. That is the product's own guarantee where there is
// one, and else what the thing takes, with some room, where nothing else runs.
func within(t testing.TB, stated time.Duration, what string, f func(ctx context.Context) error) {
	t.Helper()
	limit := scaled(stated)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // it serves cleaning up as well
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var err error
	for {
		now := f(ctx)
		if now == nil {
			return
		}
		if err == nil || ctx.Err() == nil { // a call that only our own limit broke off tells nothing
			err = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s, which is %s times %v for a slow machine: %v", what, limit, stated, slowness(), err)
		}
	}
}

// slow is how many times slower than stated the machine may be on which tests run: other tests run beside each, and the machine of
// the checks has two processors. Nothing but scaled looks at it, so that a limit means the same in all tests, and -slow=1 tells on
// a machine at rest whether the stated limits are true.
var slow = flag.Float64("slow", 4, "how many times longer than stated a test waits, as the machine may be slow or busy (doubled under the race detector)")

// raceCost is by how much the race detector, with which the agent is built too then, makes everything slower.
const raceCost = 2

// slowness is what stated limits are multiplied by.
func slowness() float64 {
	if raced {
		return *slow * raceCost
	}
	return *slow
}

// scaled returns how long to wait for what takes d at most on a machine that does nothing else, without the race detector.
func scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * slowness()) }

// lostWithin is the product's guaranteed time until a client that is dead is known to be, and its work runs elsewhere (docs/guides/clients.md):
// it is missed after 6 s by its heartbeats alone, and after 5 s where it gossips; the rest is for placing and starting the work.
// A client that gossip alone hears is disconnected by then too.
const lostWithin = 10 * time.Second

// running waits until n allocations of a job run, and gives them.
func (a *agent) running(job string, n int, limit time.Duration) []*structs.AllocListStub {
	a.t.Helper()
	return a.inStatus(job, structs.AllocClientRunning, n, limit)
}

// inStatus waits until exactly n allocations of a job are in a client status.
func (a *agent) inStatus(job, status string, n int, limit time.Duration) []*structs.AllocListStub {
	a.t.Helper()
	var found []*structs.AllocListStub
	within(a.t, limit, fmt.Sprintf("%d allocations of %s %s", n, job, status), func(ctx context.Context) error {
		allocs, _, err := a.api.Jobs().Allocations(ctx, job, true, nil)
		if err != nil {
			return err
		}
		found = nil
		states := map[string]int{}
		for _, alloc := range allocs {
			states[alloc.ClientStatus+"/"+alloc.DesiredStatus]++
			if alloc.ClientStatus == status {
				found = append(found, alloc)
			}
		}
		if len(found) != n {
			return fmt.Errorf("they are %v", states)
		}
		return nil
	})
	return found
}
