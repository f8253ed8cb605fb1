// Package rawexec is the driver raw_exec: it runs a task's command as a plain
// process, in its own session but without any isolation, as the agent's user or
// as one that the task names. Where the machine has control groups a task is
// limited to the memory and the processes that it may have (limits.go).
//
// The processes are the executor's children (package executor), so they outlive
// the agent. The package itself must never fork.
package rawexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/executor"
	"github.com/nomadish/nomadish/client/users"
)

// Name is the word that a job's task writes after "driver =".
const Name = "raw_exec"

// switchedOff specifies how to switch the driver on where it is off. The block stands
// on one line so that it can be taken over as it is.
const switchedOff = `switched off, as it is by default, since its tasks can do whatever the agent can; to have it, put ` +
	`plugin "raw_exec" { config = { enabled = true } } into the configuration of the node's agent and restart that`

// undoFor is how long a start that was given up is cleaned up after.
const undoFor = 5 * time.Second

// Options is the driver's plugin configuration.
type Options struct {
	// Enabled switches the driver on. It is off unless an operator enables it, since
	// its tasks can do whatever the agent can.
	Enabled bool
	// DeniedEnv are patterns (with * and ?) of environment variables' names that
	// no task gets.
	DeniedEnv []string
	// AllowNewPrivs lets tasks have no_new_privs = false.
	AllowNewPrivs bool
	// AllowCgroupOverride lets tasks have cgroup_v2_override, and so none of the node's limits.
	AllowCgroupOverride bool
	// DeniedUIDs and DeniedGIDs are those that no task runs with.
	DeniedUIDs, DeniedGIDs users.Set
	// Limits specifies how tasks are limited; the zero value: not at all.
	Limits Limits
}

// Driver is the raw_exec driver.
type Driver struct {
	opts   Options
	exec   *executor.Client
	limits *limiter
}

// New makes the driver; its tasks run in exec's executor.
func New(exec *executor.Client, opts Options) *Driver {
	return &Driver{opts: opts, exec: exec, limits: &limiter{Limits: opts.Limits}}
}

// Name is "raw_exec".
func (d *Driver) Name() string { return Name }

// Fingerprint reports whether the driver is switched on.
func (d *Driver) Fingerprint(context.Context) driver.Fingerprint {
	if !d.opts.Enabled {
		return driver.Fingerprint{Health: driver.HealthUndetected, Description: switchedOff}
	}
	f := driver.Fingerprint{
		Health: driver.HealthHealthy, Description: "Healthy",
		Attributes: d.attributes(),
	}
	if d.opts.AllowNewPrivs {
		f.Attributes["driver.raw_exec.allow_new_privs"] = "1"
	}
	if d.opts.AllowCgroupOverride {
		f.Attributes["driver.raw_exec.allow_cgroup_override"] = "1"
	}
	return f
}

// attributes are the node's, as long as the driver is switched on.
func (d *Driver) attributes() map[string]string {
	out := d.limits.attributes(d.exec)
	out["driver.raw_exec"] = "1"
	return out
}

// config is a task's config block.
type config struct {
	command     string
	args        []string
	workDir     string
	cgroupV2    string
	deniedEnv   []string
	oomScoreAdj int
	noNewPrivs  bool
	pidsLimit   int
}

func parse(values map[string]any) (*config, error) {
	c := driver.ReadConfig(values)
	cfg := &config{
		command:     c.Required("command"),
		args:        c.Strings("args"),
		workDir:     c.String("work_dir"),
		cgroupV2:    c.String("cgroup_v2_override"),
		deniedEnv:   c.Strings("denied_envvars"),
		oomScoreAdj: c.Int("oom_score_adj"),
		noNewPrivs:  true,
		pidsLimit:   c.Int("pids_limit"),
	}
	if _, stated := values["no_new_privs"]; stated {
		cfg.noNewPrivs = c.Bool("no_new_privs")
	} else {
		c.Ignore("no_new_privs")
	}
	// Only hosts that still have the first cgroup hierarchies have a use for it.
	c.Ignore("cgroup_v1_override")
	if cfg.workDir != "" && !filepath.IsAbs(cfg.workDir) && !strings.Contains(cfg.workDir, "${") {
		c.Fail("work_dir", "must be an absolute path, not %q", cfg.workDir)
	}
	if cfg.oomScoreAdj < 0 || cfg.oomScoreAdj > 1000 {
		c.Fail("oom_score_adj", "must be 0 to 1000, not %d", cfg.oomScoreAdj)
	}
	if cfg.pidsLimit < 0 {
		c.Fail("pids_limit", "must be at least 1, or 0 for the node's own limit, not %d", cfg.pidsLimit)
	}
	if strings.Contains(cfg.cgroupV2, "..") {
		c.Fail("cgroup_v2_override", "must not contain %q", "..")
	}
	for _, p := range cfg.deniedEnv {
		if _, err := path.Match(p, ""); err != nil {
			c.Fail("denied_envvars", "%q is not a pattern: use names with * and ?", p)
		}
	}
	return cfg, c.Err()
}

// Validate checks a task's config block.
func (d *Driver) Validate(values map[string]any) error {
	_, err := parse(values)
	return err
}

// Start runs the task's command.
func (d *Driver) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	if !d.opts.Enabled {
		return nil, errors.New("on this node the driver raw_exec is " + switchedOff)
	}
	cfg, err := parse(task.Config)
	if err != nil {
		return nil, err
	}
	if err := d.permits(task, cfg); err != nil {
		return nil, err
	}
	spec, err := d.spec(task, cfg)
	if err != nil {
		return nil, err
	}
	if err := d.begin(ctx, spec); err != nil {
		if ctx.Err() != nil {
			d.undo(ctx, spec.ID)
			return nil, driver.Recoverable(err)
		}
		if errors.Is(err, executor.ErrStart) || errors.Is(err, executor.ErrInvalid) {
			return nil, err
		}
		return nil, driver.Recoverable(err)
	}
	h, err := d.handle(spec.ID)
	if err != nil {
		return nil, err
	}
	h.notes = d.limits.notes(spec.Cgroup, cfg)
	return h, nil
}

// permits returns an error if the driver's configuration on this node rules out how a task wants to run.
func (d *Driver) permits(task *driver.TaskConfig, cfg *config) error {
	if !cfg.noNewPrivs && !d.opts.AllowNewPrivs {
		return errors.New(`config: no_new_privs = false: this node does not let tasks gain privileges; leave it out, or place the job ` +
			`on nodes that do, by a constraint that ${attr.driver.raw_exec.allow_new_privs} is 1; ` +
			`a node does with plugin "raw_exec" { config = { allow_new_privs = true } }`)
	}
	if cfg.cgroupV2 != "" && !d.opts.AllowCgroupOverride {
		return fmt.Errorf(`config: cgroup_v2_override = %q: this node does not let tasks choose their control group, since the node's limits `+
			`do not apply there; leave it out, or place the job on nodes that do, `+
			`by a constraint that ${attr.driver.raw_exec.allow_cgroup_override} is 1; `+
			`a node does with plugin "raw_exec" { config = { allow_cgroup_override = true } }`, cfg.cgroupV2)
	}
	if d.opts.DeniedUIDs.Empty() && d.opts.DeniedGIDs.Empty() {
		return nil
	}
	u, err := users.Lookup(task.User)
	if err != nil {
		return err
	}
	if d.opts.DeniedUIDs.HasID(u.UID) {
		return fmt.Errorf("task user %q: its ID %d is among the denied_host_uids of this node's raw_exec; set user to another one", u.Name, u.UID)
	}
	if i := slices.IndexFunc(u.Groups, d.opts.DeniedGIDs.HasID); i >= 0 {
		return fmt.Errorf("task user %q: its group %d is among the denied_host_gids of this node's raw_exec; set user to another one", u.Name, u.Groups[i])
	}
	return nil
}

// begin starts a task, and waits for that also when ctx ends meanwhile, within limits: a start that was sent and is given up could
// come after what undoes it, and what it started would belong to nobody.
func (d *Driver) begin(ctx context.Context, spec *executor.Spec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		limit := time.AfterFunc(undoFor, cancel)
		context.AfterFunc(patient, func() { limit.Stop() })
	})()
	_, err := d.exec.Start(patient, spec)
	return err
}

// undo ends what may have been started by a request whose answer nobody awaited.
func (d *Driver) undo(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
	defer cancel()
	if _, err := d.exec.Stop(ctx, id, unix.SIGKILL, 0); err == nil {
		// What cannot be forgotten now only takes a little room on disk.
		_ = d.exec.Forget(ctx, id)
	}
}

// spec translates the task for the executor.
func (d *Driver) spec(task *driver.TaskConfig, cfg *config) (*executor.Spec, error) {
	dir := task.TaskDir
	if cfg.workDir != "" {
		dir = cfg.workDir
	}
	command, err := lookup(cfg.command, task.TaskDir, task.Env["PATH"])
	if err != nil {
		return nil, err
	}
	spec := &executor.Spec{
		ID: task.ID, Command: command, Args: cfg.args, Dir: dir, User: task.User,
		OOMScoreAdj: cfg.oomScoreAdj, Groups: task.Groups, AllowNewPrivs: !cfg.noNewPrivs,
		Logs: executor.LogSpec{Disabled: task.Logs.Disabled, Dir: task.LogDir, Task: task.Name, MaxFiles: task.Logs.MaxFiles},
	}
	spec.Cgroup = d.limits.forTask(task, cfg)
	if cfg.cgroupV2 != "" {
		spec.CgroupV2 = filepath.Join("/sys/fs/cgroup", cfg.cgroupV2)
	}
	if spec.Logs.MaxFiles <= 0 {
		spec.Logs.MaxFiles = driver.DefaultMaxFiles
	}
	size := task.Logs.MaxFileSizeMB
	if size <= 0 {
		size = driver.DefaultMaxFileSizeMB
	}
	spec.Logs.MaxFileBytes = int64(size) << 20
	denied := append(slices.Clone(d.opts.DeniedEnv), cfg.deniedEnv...)
	for name, value := range task.Env {
		if !matchAny(denied, name) {
			spec.Env = append(spec.Env, name+"="+value)
		}
	}
	slices.Sort(spec.Env)
	return spec, nil
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// lookup finds the program: an absolute path as it is; any other below the
// task's local directory, then below the task's directory; and a bare name in
// the task's PATH, or the agent's if the task has none.
func lookup(command, taskDir, pathEnv string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	places := []string{filepath.Join(taskDir, "local"), taskDir}
	if !strings.Contains(command, "/") {
		if pathEnv == "" {
			pathEnv = os.Getenv("PATH")
		}
		places = append(places, filepath.SplitList(pathEnv)...)
	}
	for _, dir := range places {
		file := filepath.Join(dir, command)
		if !filepath.IsAbs(file) {
			continue // an element of PATH relative to who knows what
		}
		info, err := os.Stat(file)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %q: no such executable file in the task's directory (local/%[1]s, %[1]s) or in PATH", command)
}

// state is what Recover needs.
type state struct {
	Version int
	ID      string
}

func (d *Driver) handle(id string) (*handle, error) {
	data, err := json.Marshal(state{Version: 1, ID: id})
	if err != nil {
		return nil, fmt.Errorf("state of task %q: %w", id, err)
	}
	return &handle{exec: d.exec, id: id, state: data}, nil
}

// Recover finds a task again, also if the driver was switched off meanwhile.
func (d *Driver) Recover(ctx context.Context, data []byte) (driver.Handle, error) {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%w: state: %w", driver.ErrTaskNotFound, err)
	}
	if s.Version != 1 || s.ID == "" {
		return nil, fmt.Errorf("%w: state of version %d, this agent knows version 1", driver.ErrTaskNotFound, s.Version)
	}
	if _, err := d.exec.Status(ctx, s.ID); err != nil {
		if errors.Is(err, executor.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", driver.ErrTaskNotFound, err)
		}
		return nil, err
	}
	return d.handle(s.ID)
}

// handle is one task. What is known of it is the executor's; only its end is
// kept here too.
type handle struct {
	exec  *executor.Client
	id    string
	state []byte
	notes []string // of its start
	ended atomic.Pointer[driver.ExitResult]
}

// Notes implements driver.Noter.
func (h *handle) Notes() []string { return h.notes }

func (h *handle) State() []byte { return slices.Clone(h.state) }

func (h *handle) Wait(ctx context.Context) (driver.ExitResult, error) {
	if r := h.ended.Load(); r != nil {
		return *r, nil
	}
	st, err := h.exec.Wait(ctx, h.id)
	if errors.Is(err, executor.ErrNotFound) {
		return h.end(driver.ExitResult{Unknown: true, FinishedAt: time.Now(), Err: errors.New("the executor has no record of the task: its directory was emptied")}), nil
	}
	if err != nil {
		return driver.ExitResult{}, err
	}
	return h.end(result(st.Exit)), nil
}

// end keeps the first result.
func (h *handle) end(r driver.ExitResult) driver.ExitResult {
	h.ended.CompareAndSwap(nil, &r)
	return *h.ended.Load()
}

func result(e *executor.Exit) driver.ExitResult {
	r := driver.ExitResult{
		ExitCode: e.Code, Signal: e.Signal, OOMKilled: e.OOMKilled, Unknown: e.Unknown, Message: e.Message, FinishedAt: e.FinishedAt,
	}
	if e.Signal != 0 {
		r.ExitCode = 128 + e.Signal
	}
	if e.Unknown {
		r.Err = fmt.Errorf("exit code not known: %s", e.Reason)
	}
	return r
}

func (h *handle) Signal(ctx context.Context, name string) error {
	sig, err := driver.ParseSignal(name)
	if err != nil {
		return err
	}
	err = h.exec.Signal(ctx, h.id, sig)
	if errors.Is(err, executor.ErrNotRunning) || errors.Is(err, executor.ErrNotFound) {
		return driver.ErrTaskNotRunning
	}
	return err
}

func (h *handle) Stop(ctx context.Context, timeout time.Duration, name string) error {
	if h.ended.Load() != nil {
		return nil
	}
	sig, err := driver.ParseSignal(name)
	if err != nil {
		return err
	}
	_, err = h.exec.Stop(ctx, h.id, sig, timeout)
	if errors.Is(err, executor.ErrNotFound) {
		return nil
	}
	return err
}

func (h *handle) Stats(ctx context.Context) (driver.Stats, error) {
	s, err := h.exec.Stats(ctx, h.id)
	if errors.Is(err, executor.ErrNotRunning) || errors.Is(err, executor.ErrNotFound) {
		return driver.Stats{}, driver.ErrTaskNotRunning
	}
	if err != nil {
		return driver.Stats{}, err
	}
	return driver.Stats{Timestamp: s.At, Pids: s.Pids, CPUUser: s.CPUUser, CPUSystem: s.CPUSystem, MemoryRSS: s.RSS, MemorySwap: s.Swap}, nil
}

// Release drops the executor's record of the task.
func (h *handle) Release(ctx context.Context) error { return h.exec.Forget(ctx, h.id) }

// AddsGroups reports whether tasks get TaskConfig.Groups (driver.GroupAdder).
func (d *Driver) AddsGroups(ctx context.Context) (bool, error) { return d.exec.AddsGroups(ctx) }

// CanSuspend is true (driver.SuspendCapable): what has no cgroup to itself is stopped by signals.
func (d *Driver) CanSuspend() bool { return true }

// Suspend stops the task's processes (driver.Suspender).
func (h *handle) Suspend(ctx context.Context) error { return notRunning(h.exec.Suspend(ctx, h.id)) }

// Resume lets them go on.
func (h *handle) Resume(ctx context.Context) error { return notRunning(h.exec.Resume(ctx, h.id)) }

func notRunning(err error) error {
	if errors.Is(err, executor.ErrNotRunning) || errors.Is(err, executor.ErrNotFound) {
		return driver.ErrTaskNotRunning
	}
	return err
}
