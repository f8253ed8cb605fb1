package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/structs"
)

// Agent is a real agent process.
type Agent struct {
	T       testing.TB
	Args    []string
	Bin     string     // what it runs; empty: the binary to test
	NetNS   string     // the network namespace that it lives in, if any
	Env     []string   // what is added to the environment
	Files   []*os.File // what the process inherits beside its standard streams
	Dir     string     // its data_dir, and where its tasks lie
	WorkDir string     // where the command line runs; empty: where the test does
	HTTP    string     // address
	RPC     string
	Serf    string
	Gossip  string // the clients'
	Cmd     *exec.Cmd
	Log     *LogBuffer
	Exited  chan error
	API     *api.Client
	Nomad   *nomad.Client // the official client
}

// NewAgent prepares an agent: dev, or with a data_dir that outlives it. config is
// HCL that is added.
func NewAgent(t testing.TB, dev bool, config string) *Agent {
	t.Helper()
	slots.take(t)
	a := &Agent{T: t, Dir: t.TempDir()}
	http, rpc, serf, clients := FreePort(t), FreePort(t), FreePort(t), FreePort(t)
	a.Serf, a.Gossip = fmt.Sprintf("127.0.0.1:%d", serf), fmt.Sprintf("127.0.0.1:%d", clients)
	a.HTTP, a.RPC = fmt.Sprintf("http://127.0.0.1:%d", http), fmt.Sprintf("127.0.0.1:%d", rpc)
	text := fmt.Sprintf("bind_addr = \"127.0.0.1\"\nlog_level = \"DEBUG\"\nports {\n  http = %d\n  rpc = %d\n  serf = %d\n  client_gossip = %d\n}\n",
		http, rpc, serf, clients)
	if !strings.Contains(config, "name = ") {
		text += "name = \"e2e\"\n"
	}
	text += fmt.Sprintf("client {\n  cgroup_parent = %q\n}\n", CgroupParent)
	if !dev {
		text += fmt.Sprintf("data_dir = %q\nplugin \"raw_exec\" {\n  config {\n    enabled = true\n  }\n}\n", filepath.Join(a.Dir, "data"))
	}
	file := filepath.Join(a.Dir, "agent.hcl")
	more := filepath.Join(a.Dir, "more.hcl") // laid over the first, so that it may say the same things anew
	for path, text := range map[string]string{file: text, more: config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.Args = []string{"agent"}
	if dev {
		a.Args = append(a.Args, "-dev")
	}
	a.Args = append(a.Args, "-config", file, "-config", more)
	var err error
	if a.API, err = api.New(api.Config{Address: a.HTTP}); err != nil {
		t.Fatal(err)
	}
	conf := nomad.DefaultConfig()
	conf.Address = a.HTTP
	if a.Nomad, err = nomad.NewClient(conf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.cleanup)
	return a
}

// ServerAndClient is the configuration of an agent that is both.
const ServerAndClient = "server {\n  enabled = true\n  bootstrap_expect = 1\n}\nclient {\n  enabled = true\n}\n"

// StartDev starts a development agent and waits for its leader and its node.
func StartDev(t *testing.T, config string) *Agent {
	t.Helper()
	a := NewAgent(t, true, config)
	a.Start()
	a.WaitReady(1)
	return a
}

// Command is the binary with arguments, to be run where the agent lives.
func (a *Agent) Command(ctx context.Context, args ...string) *exec.Cmd {
	program := cmp.Or(a.Bin, Bin)
	if a.NetNS == "" {
		return exec.CommandContext(ctx, program, args...)
	}
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", a.NetNS, program}, args...)...)
}

// Start starts the process.
func (a *Agent) Start() {
	a.T.Helper()
	a.Log = &LogBuffer{}
	a.Cmd = a.Command(context.Background(), a.Args...)
	a.Cmd.Stdout, a.Cmd.Stderr = a.Log, a.Log
	a.Cmd.Env = append(append(os.Environ(), "TMPDIR="+a.Dir), a.Env...)
	a.Cmd.ExtraFiles = a.Files
	a.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.Cmd.Start(); err != nil {
		a.T.Fatal(err)
	}
	cmd, exited := a.Cmd, make(chan error, 1)
	a.Exited = exited
	go func() { exited <- cmd.Wait() }()
}

// WaitReady waits for a leader and for n ready nodes.
func (a *Agent) WaitReady(n int) {
	a.T.Helper()
	Within(a.T, 30*time.Second, "leader and nodes", func(ctx context.Context) error {
		select {
		case err := <-a.Exited:
			a.Exited <- err // for cleanup
			a.T.Fatalf("the agent ended: %v\n%s", err, a.Log.Tail(30))
		default:
		}
		nodes, _, err := a.API.Nodes().List(ctx, nil)
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

// Wait waits for the process's end and returns how it ended.
func (a *Agent) Wait() error { return <-a.Exited }

// Kill ends the agent as a crash does.
func (a *Agent) Kill() {
	a.T.Helper()
	if err := a.Cmd.Process.Kill(); err != nil {
		a.T.Fatal(err)
	}
	a.Exited <- a.Wait() // for cleanup
}

// CheckState has a server check its state. One that does not answer has been ended, or is a
// client.
func (a *Agent) CheckState() {
	a.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Scaled(30*time.Second))
	defer cancel()
	report, err := a.API.Operator().Check(ctx, &api.Query{Stale: true})
	if err != nil || report == nil {
		return
	}
	for _, f := range report.Faults {
		a.T.Errorf("the state at index %d is not in order: %s: %s %s: %s", report.StateIndex, f.Rule, f.Kind, f.ID, f.What)
	}
}

// EndsWithin is how long an agent gives its parts to end.
const EndsWithin = 15 * time.Second

func (a *Agent) cleanup() {
	if a.Cmd != nil && a.Cmd.Process != nil {
		a.CheckState()
		_ = a.Cmd.Process.Signal(os.Interrupt)
		select {
		case err := <-a.Exited:
			a.Exited <- err
		case <-time.After(Scaled(EndsWithin)):
			_ = a.Cmd.Process.Signal(syscall.SIGQUIT) // it prints what its goroutines do
			a.Exited <- a.Wait()
			a.T.Errorf("the agent does not end when interrupted; its goroutines:\n%s", a.Log.Tail(2000))
		}
	}
	if a.T.Failed() && a.Log != nil {
		a.T.Logf("the agent's log, its end:\n%s", a.Log.Tail(60))
		if logsTo != "" {
			name := filepath.Join(logsTo, strings.ReplaceAll(a.T.Name(), "/", "_")+"-"+filepath.Base(a.Dir)+".log")
			if err := os.WriteFile(name, []byte(a.Log.Tail(1<<20)), 0o600); err != nil {
				a.T.Log(err)
			}
		}
	}
	Within(a.T, 10*time.Second, "the end of what outlived the agent", func(context.Context) error {
		pids := ProcessesOf(a.Dir) // tasks and executors
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) > 0 {
			return fmt.Errorf("processes %v", pids)
		}
		return nil
	})
}
