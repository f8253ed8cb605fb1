package rawexec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/executor"
	"github.com/nomadish/nomadish/client/logs"
	"github.com/nomadish/nomadish/client/users"
	"github.com/nomadish/nomadish/internal/leaks"
)

const asExecutor = "RAWEXEC_TEST_EXECUTOR"

func TestMain(m *testing.M) {
	if os.Getenv(asExecutor) != "" {
		os.Exit(executor.Main(context.Background(), os.Args[1:], os.Stderr))
	}
	leaks.Main(m)
}

func newClient(t *testing.T, dir string) *executor.Client {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := executor.NewClient(executor.Config{Dir: dir, Command: []string{
		// The race detector would keep the executor for a second at its end.
		"/usr/bin/env", asExecutor + "=1", "GORACE=atexit_sleep_ms=0", self,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// node is a driver with an executor; the executor is ended with the test.
func node(t *testing.T) (*Driver, string) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		c := newClient(t, dir)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		all, err := c.List(ctx)
		for _, s := range all {
			_, serr := c.Stop(ctx, s.ID, unix.SIGKILL, 0)
			err = errors.Join(err, serr)
		}
		if err := errors.Join(err, c.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	})
	return New(newClient(t, dir), Options{Enabled: true, DeniedEnv: []string{"AWS_*"}}), dir
}

func task(t *testing.T, config map[string]any) *driver.TaskConfig {
	t.Helper()
	alloc := t.TempDir()
	tc := &driver.TaskConfig{
		ID: "alloc/" + filepath.Base(alloc) + "/web", Name: "web", AllocID: "alloc",
		Env:      map[string]string{"PATH": "/usr/bin:/bin", "GREETING": "hello", "AWS_KEY": "secret", "OTHER": "x"},
		Config:   config,
		AllocDir: alloc, TaskDir: filepath.Join(alloc, "web"), LogDir: filepath.Join(alloc, "logs"),
	}
	for _, d := range []string{filepath.Join(tc.TaskDir, "local"), tc.LogDir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tc
}

func wait(t *testing.T, h driver.Handle) driver.ExitResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := h.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func output(t *testing.T, tc *driver.TaskConfig) string {
	t.Helper()
	data, err := os.ReadFile(logs.Source{Dir: tc.LogDir, Task: tc.Name, Stream: logs.Stdout}.Path(0))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRun(t *testing.T) {
	d, _ := node(t)
	tc := task(t, map[string]any{
		"command": "sh", "args": []any{"-c", "pwd; env | sort | grep -v PWD; exit 3"}, "denied_envvars": []any{"OTH?R"},
	})
	h, err := d.Start(t.Context(), tc)
	if err != nil {
		t.Fatal(err)
	}
	if r := wait(t, h); r.ExitCode != 3 || r.Successful() {
		t.Fatalf("%+v", r)
	}
	got := output(t, tc)
	if !strings.HasPrefix(got, tc.TaskDir+"\nGREETING=hello\n") || strings.Contains(got, "AWS") || strings.Contains(got, "OTHER") {
		t.Fatalf("%s", got)
	}
	if _, err := h.Stats(t.Context()); !errors.Is(err, driver.ErrTaskNotRunning) {
		t.Fatal(err)
	}
	if err := h.Signal(t.Context(), "SIGHUP"); !errors.Is(err, driver.ErrTaskNotRunning) {
		t.Fatal(err)
	}
	if err := h.Stop(t.Context(), 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := driver.Release(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Recover(t.Context(), h.State()); !errors.Is(err, driver.ErrTaskNotFound) {
		t.Fatal(err)
	}
	if r := wait(t, h); r.ExitCode != 3 {
		t.Fatalf("after its release: %+v", r)
	}
}

// A new agent finds a task that runs and one that has ended.
func TestRecover(t *testing.T) {
	d, dir := node(t)
	a, err := d.Start(t.Context(), task(t, map[string]any{"command": "/bin/sleep", "args": []any{"1000"}}))
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Start(t.Context(), task(t, map[string]any{"command": "/bin/sh", "args": []any{"-c", "exit 9"}}))
	if err != nil {
		t.Fatal(err)
	}
	before, err := a.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait(t, b)
	_ = d.exec.Close()
	if _, err := a.Wait(t.Context()); err == nil {
		t.Fatal("waited through a closed client")
	}

	d = New(newClient(t, dir), Options{})
	b, err = d.Recover(t.Context(), b.State())
	if err != nil {
		t.Fatal(err)
	}
	if r := wait(t, b); r.ExitCode != 9 {
		t.Fatalf("%+v", r)
	}
	a, err = d.Recover(t.Context(), a.State())
	if err != nil {
		t.Fatal(err)
	}
	if after, err := a.Stats(t.Context()); err != nil || after.Pids[0] != before.Pids[0] {
		t.Fatalf("%+v, was %+v, %v", after, before, err)
	}
	if err := a.Stop(t.Context(), time.Minute, "term"); err != nil {
		t.Fatal(err)
	}
	if r := wait(t, a); r.Signal != int(unix.SIGTERM) || r.ExitCode != 128+int(unix.SIGTERM) {
		t.Fatalf("%+v", r)
	}
	for _, bad := range []string{"", "{}", `{"Version":2,"ID":"x"}`, `{"Version":1,"ID":"none"}`} {
		if _, err := d.Recover(t.Context(), []byte(bad)); !errors.Is(err, driver.ErrTaskNotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestStartFails(t *testing.T) {
	d, _ := node(t)
	f := func(config map[string]any, word string) {
		t.Helper()
		_, err := d.Start(t.Context(), task(t, config))
		if err == nil || !strings.Contains(err.Error(), word) || driver.IsRecoverable(err) {
			t.Errorf("%v: got %v, want %q", config, err, word)
		}
	}
	f(nil, "command")
	f(map[string]any{"command": "none-such"}, "PATH")
	f(map[string]any{"command": "/none/such"}, "no such file")
	f(map[string]any{"command": "/bin/true", "work_dir": "/none/such"}, "working directory")
	_, err := New(d.exec, Options{}).Start(t.Context(), task(t, map[string]any{"command": "/bin/true"}))
	if err == nil || !strings.Contains(err.Error(), "switched off") {
		t.Error(err)
	}
}

// TestPermits: what the node's configuration of the driver lets a task have.
func TestPermits(t *testing.T) {
	d, _ := node(t)
	set := func(text string) users.Set {
		t.Helper()
		s, err := users.ParseSet([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	own, group := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	plain := map[string]any{"command": "/bin/grep", "args": []any{"NoNewPrivs", "/proc/self/status"}}
	open := map[string]any{"command": plain["command"], "args": plain["args"], "no_new_privs": false}
	elsewhere := func(group string) map[string]any {
		return map[string]any{"command": plain["command"], "args": plain["args"], "cgroup_v2_override": group}
	}
	for _, row := range []struct {
		name   string
		opts   Options
		config map[string]any
		want   string // an error, or output
	}{
		{"default", Options{}, plain, "NoNewPrivs:\t1\n"},
		{"default where the node allows more", Options{AllowNewPrivs: true}, plain, "NoNewPrivs:\t1\n"},
		{"allowed", Options{AllowNewPrivs: true}, open, "NoNewPrivs:\t0\n"},
		{"not allowed", Options{}, open, "driver.raw_exec.allow_new_privs"},
		{"cgroup not allowed", Options{}, elsewhere("unified"), "allow_cgroup_override = true"},
		{"root cgroup not allowed", Options{AllowNewPrivs: true}, elsewhere("/"), "driver.raw_exec.allow_cgroup_override"},
		{"cgroup allowed", Options{AllowCgroupOverride: true}, elsewhere("no-such-group"), "/sys/fs/cgroup/no-such-group"},
		{"denied user", Options{DeniedUIDs: set(own)}, plain, "denied_host_uids"},
		{"denied group", Options{DeniedGIDs: set(group)}, plain, "denied_host_gids"},
		{"others denied", Options{DeniedUIDs: set("4000000-4000001"), DeniedGIDs: set("4000000")}, plain, "NoNewPrivs:\t1\n"},
	} {
		row.opts.Enabled = true
		with := New(d.exec, row.opts)
		reported := with.Fingerprint(t.Context()).Attributes
		for name, allowed := range map[string]bool{"allow_new_privs": row.opts.AllowNewPrivs, "allow_cgroup_override": row.opts.AllowCgroupOverride} {
			if got := reported["driver.raw_exec."+name]; (got == "1") != allowed {
				t.Errorf("%s: the node's attribute %s is %q", row.name, name, got)
			}
		}
		tc := task(t, row.config)
		h, err := with.Start(t.Context(), tc)
		if err != nil {
			if !strings.Contains(err.Error(), row.want) || driver.IsRecoverable(err) {
				t.Errorf("%s: %v, want %q", row.name, err, row.want)
			}
			continue
		}
		wait(t, h)
		if got := output(t, tc); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if ok, err := d.AddsGroups(t.Context()); !ok || err != nil {
		t.Errorf("adds groups: %v, %v", ok, err)
	}
	if err := d.Validate(map[string]any{"command": "x", "no_new_privs": "maybe"}); err == nil || !strings.Contains(err.Error(), "no_new_privs") {
		t.Error(err)
	}
}

// A start that nobody waits for leaves nothing running.
func TestStartGivenUp(t *testing.T) {
	d, _ := node(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Start(ctx, task(t, map[string]any{"command": "/bin/sleep", "args": []any{"1000"}}))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if all, err := d.exec.List(t.Context()); err != nil || len(all) != 0 {
		t.Fatalf("%+v %v", all, err)
	}
}

// Nor does one that is given up while it is on its way: it has come to nothing, or is notified of, whatever of the two was first.
func TestStartGivenUpOnItsWay(t *testing.T) {
	d, _ := node(t)
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*20*time.Microsecond, cancel)
		tc := task(t, map[string]any{"command": "/bin/sleep", "args": []any{"1000"}})
		h, err := d.Start(ctx, tc)
		<-ctx.Done()
		if err == nil {
			if err := h.Stop(t.Context(), 0, "SIGKILL"); err != nil {
				t.Fatal(err)
			}
			wait(t, h)
		}
	}
	all, err := d.exec.List(t.Context())
	if err != nil || slices.ContainsFunc(all, func(s executor.Status) bool { return s.State != executor.StateExited }) {
		t.Fatalf("%+v %v", all, err)
	}
}

func TestValidate(t *testing.T) {
	d := New(nil, Options{})
	f := func(config map[string]any, want string) {
		t.Helper()
		err := d.Validate(config)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: got %v, want %q", config, err, want)
		}
	}
	f(map[string]any{"command": "x"}, "")
	f(map[string]any{"command": "${NOMAD_TASK_DIR}/x", "args": []any{"a", 1, true}, "work_dir": "${NOMAD_ALLOC_DIR}",
		"cgroup_v2_override": "a/b", "cgroup_v1_override": []any{map[string]any{"pids": "x"}}, "oom_score_adj": 5}, "")
	f(map[string]any{}, "command: must be given")
	f(map[string]any{"command": "x", "args": "y"}, "args: must be a list")
	f(map[string]any{"command": "x", "image": "y"}, `"image" is not a field`)
	f(map[string]any{"command": "x", "work_dir": "y"}, "work_dir: must be an absolute path")
	f(map[string]any{"command": "x", "oom_score_adj": -1}, "oom_score_adj: must be 0 to 1000")
	f(map[string]any{"command": "x", "cgroup_v2_override": "../x"}, "cgroup_v2_override")
	f(map[string]any{"command": "x", "denied_envvars": []any{"[x"}}, "denied_envvars")
}

func TestLookup(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "local"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{filepath.Join(dir, "local", "a"), filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(bin, "b"), filepath.Join(bin, "c")} {
		if err := os.WriteFile(f, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(command, want string) {
		t.Helper()
		got, err := lookup(command, dir, "rel:"+bin)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v, want %q", command, got, err, want)
		}
	}
	f("/x/y", "/x/y")
	f("a", filepath.Join(dir, "local", "a"))
	f("b", filepath.Join(dir, "b"))
	f("local/a", filepath.Join(dir, "local/a"))
	f("c", filepath.Join(bin, "c"))
	f("plain", "")
	f("none", "")
}

func TestFingerprint(t *testing.T) {
	on := New(nil, Options{Enabled: true}).Fingerprint(t.Context())
	if !on.Detected() || on.Attributes["driver.raw_exec"] != "1" {
		t.Errorf("%+v", on)
	}
	if off := New(nil, Options{}).Fingerprint(t.Context()); off.Detected() || len(off.Attributes) != 0 {
		t.Errorf("%+v", off)
	}
}
