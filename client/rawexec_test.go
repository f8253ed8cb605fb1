package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/client/driver/rawexec"
	"github.com/nomadish/nomadish/client/executor"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/internal/leaks"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// The test binary is also the executor, and an agent to be killed.
const (
	asExecutor = "CLIENT_TEST_EXECUTOR"
	asAgent    = "CLIENT_TEST_AGENT" // "server address|directory"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asAgent) != "":
		os.Exit(agentMain(os.Getenv(asAgent)))
	case os.Getenv(asExecutor) != "":
		os.Exit(executor.Main(context.Background(), os.Args[1:], os.Stderr))
	}
	// The race detector would keep the executor for a second at its end.
	for k, v := range map[string]string{asExecutor: "1", "GORACE": "atexit_sleep_ms=0"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	leaks.Main(m)
}

// agentMain runs an agent until it is killed.
func agentMain(arg string) int {
	server, dir, _ := strings.Cut(arg, "|")
	err := errors.Join(os.Unsetenv(asAgent), os.Setenv(asExecutor, "1"))
	if err == nil {
		var x *executor.Client
		if x, err = executorOf(dir); err == nil {
			_, err = New(realConfig(server, dir, x))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

func executorOf(dir string) (*executor.Client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return executor.NewClient(executor.Config{Dir: filepath.Join(dir, "executor"), Command: []string{self}})
}

func realConfig(server, dir string, x *executor.Client) Config {
	return Config{
		Servers: []string{server}, StateDir: filepath.Join(dir, "state"), AllocDir: filepath.Join(dir, "allocs"), Node: NodeConfig{Name: "real"},
		Drivers: []driver.Driver{rawexec.New(x, rawexec.Options{Enabled: true}), mock.New(nil)},
	}
}

// endProcesses ends what is left of the tasks of dir, and their executor with them.
func endProcesses(t *testing.T, dir string) {
	t.Helper()
	x, err := executorOf(dir)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	all, err := x.List(ctx)
	for _, s := range all {
		_, serr := x.Stop(ctx, s.ID, unix.SIGKILL, 0)
		for _, e := range []error{serr, x.Forget(ctx, s.ID)} {
			if !errors.Is(e, executor.ErrNotFound) { // the agent has released it meanwhile
				err = errors.Join(err, e)
			}
		}
	}
	if err = errors.Join(err, x.Close()); err != nil {
		t.Error(err)
	}
}

func shell(name, script string) *structs.Task {
	return &structs.Task{
		Name: name, Driver: rawexec.Name, KillTimeout: 5 * time.Second,
		Config: map[string]any{"command": "/bin/sh", "args": []any{"-c", script}},
	}
}

// realNode is a client with real processes in this process.
func realNode(t *testing.T) (*fakeServer, *Client) {
	t.Helper()
	s, dir := newFakeServer(t), t.TempDir()
	t.Cleanup(func() { endProcesses(t, dir) })
	x, err := executorOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	c, err := New(realConfig(s.addr, dir, x))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.until("the node says hello", func() bool { return s.sessions[c.NodeID()] != nil })
	return s, c
}

func TestProcessRunsAndIsRead(t *testing.T) {
	s, c := realNode(t)
	script := `echo "$NOMAD_ALLOC_INDEX of $NOMAD_JOB_NAME in $PWD"; echo oops >&2; echo data > $NOMAD_ALLOC_DIR/data/out; exit 3`
	begun := time.Now()
	a := s.place(c.NodeID(), job("j", structs.JobTypeBatch, shell("main", script)), 7, nil)
	s.untilStatus(a.ID, structs.AllocClientFailed)
	t.Logf("placed to ended: %v", time.Since(begun))
	if code, ok := s.alloc(a.ID).TaskStates["main"].ExitCode(); !ok || code != 3 {
		t.Errorf("exit code %d, %v", code, ok)
	}
	f := func(req structs.FSRequest, want string) {
		t.Helper()
		req.AllocID = a.ID
		s.mu.Lock()
		session := s.sessions[c.NodeID()]
		s.mu.Unlock()
		st, err := session.Stream(t.Context(), wire.MethodClientFSRead, &req)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		var got strings.Builder
		for {
			var frame structs.StreamFrame
			if err := st.Recv(&frame); err != nil {
				break
			}
			got.Write(frame.Data)
		}
		if got.String() != want {
			t.Errorf("%+v: %q, want %q", req, got.String(), want)
		}
	}
	out := "7 of j in " + filepath.Join(c.config.AllocDir, a.ID, "main") + "\n"
	f(structs.FSRequest{Task: "main", LogType: "stdout"}, out)
	f(structs.FSRequest{Task: "main", LogType: "stdout", Follow: true}, out)
	f(structs.FSRequest{Task: "main", LogType: "stdout", Limit: 4}, out[:4])
	f(structs.FSRequest{Task: "main", LogType: "stdout", Origin: "end", Offset: 3}, out[len(out)-3:])
	f(structs.FSRequest{Task: "main", LogType: "stderr"}, "oops\n")
	f(structs.FSRequest{Path: "alloc/data/out"}, "data\n")
	f(structs.FSRequest{Path: "../../state/client.db"}, "")
}

func TestKilledAgentFindsItsTasksAgain(t *testing.T) {
	s, dir := newFakeServer(t), t.TempDir()
	t.Cleanup(func() { endProcesses(t, dir) })
	launch := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, asExecutor) })
		cmd.Env = append(cmd.Env, asAgent+"="+s.addr+"|"+dir)
		cmd.Stderr = os.Stderr
		s.change(func() { clear(s.sessions) })
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.until("the agent registers", func() bool { return len(s.sessions) == 1 })
		return cmd
	}
	kill := func(cmd *exec.Cmd) {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // "signal: killed"
	}
	agent := launch()
	var node string
	s.until("a node", func() bool {
		for id := range s.nodes {
			node = id
		}
		return node != ""
	})
	stay := s.place(node, job("stay", structs.JobTypeService, shell("main", `echo $$ >> $NOMAD_TASK_DIR/pid; exec sleep 600`)), 0, nil)
	end := s.place(node, job("end", structs.JobTypeBatch, shell("main", `until [ -e $NOMAD_TASK_DIR/go ]; do sleep 0.05; done; exit 42`)), 0, nil)
	s.untilStatus(stay.ID, structs.AllocClientRunning)
	s.untilStatus(end.ID, structs.AllocClientRunning)
	pidFile := filepath.Join(dir, "allocs", stay.ID, "main/local/pid")
	var pids string
	eventually(t, "the task has written its PID", func() bool {
		b, err := os.ReadFile(pidFile)
		pids = strings.TrimSpace(string(b))
		return err == nil && pids != ""
	})
	// The second waits for a word: it is given while no agent is there.
	kill(agent)
	fifo := filepath.Join(dir, "allocs", end.ID, "main/local/go")
	if err := os.WriteFile(fifo, []byte("now\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(pids)
	if err != nil {
		t.Fatal(err)
	}
	agent = launch()
	s.untilStatus(end.ID, structs.AllocClientFailed)
	s.until("the running task is found", func() bool {
		for _, e := range s.allocs[stay.ID].TaskStates["main"].Events {
			if e.Type == structs.TaskReattached {
				return true
			}
		}
		return false
	})
	if err := unix.Kill(pid, 0); err != nil {
		t.Errorf("process %d: %v", pid, err)
	}
	if now, err := os.ReadFile(pidFile); err != nil || strings.TrimSpace(string(now)) != pids {
		t.Errorf("started again: PIDs %q, %v", now, err)
	}
	s.edit(stay.ID, func(a *structs.Allocation) { a.DesiredStatus = structs.AllocDesiredStop })
	s.untilStatus(stay.ID, structs.AllocClientComplete)
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("process %d after its end: %v", pid, err)
	}
	kill(agent)
}

func TestManySimulatedNodesWithMockTasks(t *testing.T) {
	s := newFakeServer(t)
	s.ttl = 10 * time.Second
	layouts, err := sim.Parse([]byte(`shape "n" { count = 100 }`), "shapes.hcl")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Servers: []string{s.addr}, Drivers: []driver.Driver{mock.New(nil)}, Simulate: layouts})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	s.until("all say hello", func() bool { return len(s.sessions) == 100 })
	j := job("j", structs.JobTypeService, &structs.Task{Name: "main", Driver: MockDriver, KillTimeout: time.Second, Config: map[string]any{"run_for": "1h"}})
	s.change(func() {
		for i, id := range c.NodeIDs() {
			s.add(id, j, i, nil)
		}
	})
	s.untilAll(structs.AllocClientRunning)
	s.change(func() {
		for id, a := range s.allocs {
			b := a.Copy()
			b.DesiredStatus, b.AllocModifyIndex = structs.AllocDesiredStop, s.index
			s.allocs[id] = b
		}
	})
	s.untilAll(structs.AllocClientComplete)
}
