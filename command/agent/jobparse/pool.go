package jobparse

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/internal/descriptors"
	"github.com/nomadish/nomadish/structs"
)

// The limits of a Pool where none are stated.
const (
	DefaultProcesses = 2
	DefaultWaiting   = 16
	DefaultCPU       = time.Second
	DefaultMemory    = 100 << 20
	DefaultOutput    = 16 << 20
)

// giveUp ends a process that has not used its CPU time for so long: the machine has none to give.
const giveUp = 30 * time.Second

// Config is what a Pool is made of. Zero limits mean the defaults.
type Config struct {
	Processes int           // at once
	Waiting   int           // callers that wait for one of them; more are refused
	CPU       time.Duration // of a process
	Memory    int64         // of a process, in bytes
	Output    int64         // bytes of a parsed job
}

// Job is a parsed job.
type Job struct {
	JSON     json.RawMessage
	Warnings []string
}

// Pool parses job files, a few at a time. It is safe for use by many goroutines.
type Pool struct {
	cfg     Config
	slots   chan struct{}
	waiting atomic.Int64

	program string
	env     []string               // of a process
	started func(*exec.Cmd)        // nil, but in tests
	ended   func(*os.ProcessState) // nil, but in tests
}

// New returns a Pool. No process runs until a file is parsed.
func New(cfg Config) *Pool {
	cfg.Processes = cmp.Or(cfg.Processes, DefaultProcesses)
	cfg.Waiting = cmp.Or(cfg.Waiting, DefaultWaiting)
	cfg.CPU = cmp.Or(cfg.CPU, DefaultCPU)
	cfg.Memory = cmp.Or(cfg.Memory, DefaultMemory)
	cfg.Output = cmp.Or(cfg.Output, DefaultOutput)
	return &Pool{
		cfg: cfg, slots: make(chan struct{}, cfg.Processes),
		// It is the running program even after its file was replaced by another version.
		program: "/proc/self/exe",
		// Both only concern Go's runtime: one thread, and no stacks in what it prints at its end.
		env: []string{"GOMAXPROCS=1", "GOTRACEBACK=none"},
	}
}

// Parse parses a job file, with the text of its variables. What is wrong with the file, or with what it costs, is an error
// of CodeBadRequest; too many callers at once get one of CodeLimited. The process is killed when ctx ends.
func (p *Pool) Parse(ctx context.Context, source, variables string, canonicalize bool) (*Job, error) {
	release, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t := task{cpu: p.cfg.CPU, memory: p.cfg.Memory, source: len(source), variables: len(variables), canonicalize: canonicalize}
	return p.run(ctx, t, io.MultiReader(strings.NewReader(source), strings.NewReader(variables)))
}

// acquire waits until a process may be started.
func (p *Pool) acquire(ctx context.Context) (release func(), err error) {
	release = func() { <-p.slots }
	select {
	case p.slots <- struct{}{}:
		return release, nil
	default:
	}
	if p.waiting.Add(1) > int64(p.cfg.Waiting) {
		p.waiting.Add(-1)
		return nil, structs.Errorf(structs.CodeLimited, "%d job files are being parsed and %d wait for that", p.cfg.Processes, p.cfg.Waiting).
			WithHint("try again, or parse the file on your own machine: `nomadish job run` does")
	}
	defer p.waiting.Add(-1)
	select {
	case p.slots <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to parse a job file: %w", ctx.Err())
	}
}

// run starts a process for a task and returns what it answers.
func (p *Pool) run(caller context.Context, t task, in io.Reader) (*Job, error) {
	ctx, cancel := context.WithTimeout(caller, giveUp)
	defer cancel()
	keepDescriptors()
	cmd := exec.CommandContext(ctx, p.program, t.args()...)
	out := &boundedBuffer{most: p.cfg.Output + (maxWarnings+2)*6*maxWarning, over: cancel} // six bytes for one in JSON at worst
	stderr := &boundedBuffer{most: 4096, over: func() {}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, stderr
	cmd.Env, cmd.Dir = p.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C at the agent's terminal is not meant for it
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "start a process to parse the job file: %w", err).
			WithHint("the agent's user must be allowed one more process and its memory: see `ulimit -u` and the limits of the agent's service")
	}
	if p.started != nil {
		p.started(cmd)
	}
	err := cmd.Wait()
	if p.ended != nil {
		p.ended(cmd.ProcessState)
	}
	switch {
	case caller.Err() != nil:
		return nil, fmt.Errorf("parse a job file: %w", caller.Err())
	case out.full:
		return nil, structs.Errorf(structs.CodeBadRequest, "the job file makes a job of more than %s as JSON", size(p.cfg.Output)).
			WithHint("make it smaller: no request to register it could be that large")
	case err == nil:
		return read(out.kept.Bytes())
	case ctx.Err() != nil:
		return nil, structs.Errorf(structs.CodeLimited, "the job file was not parsed within %s: the machine is too busy", giveUp).WithHint("try again")
	}
	return nil, p.refusal(cmd.ProcessState, stderr.kept.String(), err)
}

// read takes an answer apart.
func read(out []byte) (*Job, error) {
	job, rest, ok := bytes.Cut(out, []byte("\n"))
	var a answer
	if !ok || json.Unmarshal(rest, &a) != nil {
		return nil, structs.Errorf(structs.CodeInternal, "parse a job file: the parser process returned no result")
	}
	if a.Problem != "" {
		return nil, structs.Errorf(structs.CodeBadRequest, "%s", a.Problem)
	}
	return &Job{JSON: job, Warnings: a.Warnings}, nil
}

// refusal returns why a process ended without an answer.
func (p *Pool) refusal(state *os.ProcessState, stderr string, err error) error {
	const smaller = "make it smaller; nested for expressions and dynamic blocks, if it has any, multiply what they go through"
	used := state.UserTime() + state.SystemTime()
	status, _ := state.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && (status.Signal() == unix.SIGKILL || status.Signal() == unix.SIGXCPU)
	switch {
	case state.ExitCode() == exitCPU, killed && used >= p.cfg.CPU/2: // the kernel counts for its limit in ticks, which are coarse
		return structs.Errorf(structs.CodeBadRequest, "the job file takes more than %s of CPU time to parse", p.cfg.CPU).
			WithHint("%s; an operator can allow more with limits { job_parse_cpu_time }", smaller)
	case state.ExitCode() == exitRuntime && strings.Contains(stderr, "stack exceeds"):
		return structs.Errorf(structs.CodeBadRequest, "the job file is nested too deep to be parsed")
	case state.ExitCode() == exitRuntime && !strings.HasPrefix(stderr, "panic:"):
		// Go's runtime ends in many ways when the kernel refuses it memory; a panic is the only fault of ours.
		return structs.Errorf(structs.CodeBadRequest, "the job file takes more than %s of memory to parse", size(p.cfg.Memory)).
			WithHint("%s; an operator can allow more with limits { job_parse_memory_bytes }", smaller)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return structs.Errorf(structs.CodeInternal, "parse a job file: the process failed: %w: %s", err, cmp.Or(line, "it printed nothing"))
}

func size(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// boundedBuffer keeps what is written to it, up to a size. It calls over when there is more.
type boundedBuffer struct {
	kept bytes.Buffer
	most int64
	full bool
	over func()
}

// Write implements io.Writer. It takes what is too much as well, so that the writer does not wait.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	room := int(b.most) - b.kept.Len()
	if len(data) > room {
		b.full = true
		b.over()
	}
	b.kept.Write(data[:min(len(data), room)])
	return len(data), nil
}

// keepDescriptors keeps from new processes what whoever started this one left open. It tries once, and does without where it cannot.
var keepDescriptors = sync.OnceFunc(func() { _ = descriptors.CloseOnExec() })
