package gpu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/gpu/nvml"
)

// How long a snapshot may take. The first includes the driver's start, which without
// persistence mode wakes up each GPU in turn.
const (
	lookLimit  = 10 * time.Second
	firstLimit = time.Minute
	closeLimit = 2 * time.Second
	maxWords   = 2 << 10 // kept of what a probe writes to standard error
)

// ErrSilent reports that the driver did not answer in time.
var ErrSilent = errors.New("the NVIDIA driver does not answer")

// Probe is the probe program, started by the first Look and again after it
// ended. There is never more than one. Its methods are called by one goroutine.
type Probe struct {
	// Program returns the program's bytes; nil: the embedded one.
	Program func() ([]byte, error)
	// Libraries are where the driver's library is looked for; empty: the usual places.
	Libraries []string
	// Limit and FirstLimit bound a snapshot, and the first of a program. 0: 10 s, 1 min.
	Limit, FirstLimit time.Duration

	run  *process // nil: none that answers
	last *process // the one started last; it may hang in the driver after it was killed
}

// process is a running probe.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan []byte   // closed when there will be no more
	ended   chan struct{} // closed when it has ended
	words   words
	queried bool
}

// words is the beginning of what a program writes.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write keeps what there is room for.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p[:min(len(p), maxWords-w.b.Len())])
	return len(p), nil
}

func (w *words) first() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(w.b.String()), "\n")
	return line
}

// Look takes a snapshot. The error ErrSilent means that the driver hangs; another
// that it could not be queried. The next Look starts a new program then.
func (p *Probe) Look(ctx context.Context) (*nvml.Snapshot, error) {
	if p.run == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	limit := or(p.Limit, lookLimit)
	if !p.run.queried {
		limit, p.run.queried = or(p.FirstLimit, firstLimit), true
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := p.run.query(bound)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %v", ErrSilent, limit)
	}
	if err != nil || s.Error != "" || s.Absent {
		p.drop()
	}
	return s, err
}

func or(v, unset time.Duration) time.Duration {
	if v == 0 {
		return unset
	}
	return v
}

// start starts a program, once the last one has ended.
func (p *Probe) start(ctx context.Context) error {
	if p.last != nil && !p.last.gone(ctx) {
		return fmt.Errorf("%w: the last probe still hangs in it", ErrSilent)
	}
	get := p.Program
	if get == nil {
		get = Program
	}
	program, err := get()
	if err != nil {
		return err
	}
	run, err := launch(program, p.Libraries)
	if err != nil {
		return err
	}
	p.run, p.last = run, run
	return nil
}

// launch runs a program from memory: nothing of it lies on a disk, where it could be
// old, changed, or on a file system that runs no programs.
func launch(program []byte, libraries []string) (*process, error) {
	fd, err := unix.MemfdCreate("nomadish-gpus", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate("nomadish-gpus", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("GPU probe: a file in memory: %w; is the sysctl vm.memfd_noexec 2?", err)
	}
	file := os.NewFile(uintptr(fd), "nomadish-gpus") // a descriptor is not negative
	defer file.Close()                               //nolint:errcheck // the program has it open
	if _, err := file.Write(program); err != nil {
		return nil, fmt.Errorf("GPU probe: write it to memory: %w", err)
	}
	r := &process{answers: make(chan []byte, 1), ended: make(chan struct{})}
	r.cmd = exec.Command("/proc/self/fd/"+strconv.Itoa(fd), libraries...)
	r.cmd.Args[0] = "nomadish-gpus"
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	r.cmd.Stderr = &r.words
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the agent
	r.cmd.WaitDelay = closeLimit
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("GPU probe: %w", err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("GPU probe: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the GPU probe: %w; it needs this system's C library (glibc)", err)
	}
	go r.listen(out) // ends with the program
	return r, nil
}

// listen takes the program's answers until it ends.
func (r *process) listen(out io.Reader) {
	defer close(r.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, nvml.MaxLine)
	for lines.Scan() {
		select {
		case r.answers <- bytes.Clone(lines.Bytes()):
		default: // an answer without a request
		}
	}
	_ = r.cmd.Process.Kill() // its output is closed, or no line
	_ = r.cmd.Wait()         // the error reports how it ended; words explain it better
	close(r.answers)
}

// query requests one snapshot.
func (r *process) query(ctx context.Context) (*nvml.Snapshot, error) {
	if _, err := io.WriteString(r.in, nvml.Request+"\n"); err != nil {
		return nil, r.died()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case line, ok := <-r.answers:
		if !ok {
			return nil, r.died()
		}
		return decode(line)
	}
}

// died returns why a program ended.
func (r *process) died() error {
	<-r.ended
	return fmt.Errorf("the GPU probe ended (%v): %s", r.cmd.ProcessState, r.words.first())
}

// decode reads a line of the probe's.
func decode(line []byte) (*nvml.Snapshot, error) {
	var s nvml.Snapshot
	if err := json.Unmarshal(line, &s); err != nil {
		return nil, fmt.Errorf("the GPU probe's answer: %w", err)
	}
	if s.Protocol != nvml.Protocol {
		return nil, fmt.Errorf("the GPU probe speaks version %d, the agent %d; build both anew with `make build`", s.Protocol, nvml.Protocol)
	}
	return &s, nil
}

// drop ends the program and does not wait for it.
func (p *Probe) drop() {
	if p.run != nil {
		_ = p.run.in.Close()
		_ = p.run.cmd.Process.Kill()
		p.run = nil
	}
}

// Close ends the program. One that hangs in the driver is left behind: the kernel
// ends it when it can.
func (p *Probe) Close() {
	p.drop()
	if p.last != nil {
		p.last.gone(context.Background())
	}
}

// gone waits a moment for a program's end and reports whether it came.
func (r *process) gone(ctx context.Context) bool {
	t := time.NewTimer(closeLimit)
	defer t.Stop()
	select {
	case <-r.ended:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}
