package executor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/client/logs"
)

const (
	// tries is how often a request is made again after the connection was lost.
	tries = 5
	// The pause before a new try grows between these.
	minPause = 10 * time.Millisecond
	maxPause = 2 * time.Second
)

// ErrClosed is returned by a Client that was closed.
var ErrClosed = errors.New("executor client is closed")

// Config specifies where the executor is and how to start it.
type Config struct {
	// Dir is the executor's directory, absolute, below the agent's data directory;
	// it is made if need be. One executor serves it.
	Dir string
	// Command starts Main with the arguments that are added to it. Empty means
	// this program's subcommand "executor".
	Command []string
	// IdleTimeout is how long an executor stays without running tasks and
	// connections; 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// Logger may be nil.
	Logger hclog.Logger
}

// Client is the agent's side: it talks to the directory's executor, and starts
// it when there is none. If the executor dies, the next request (and a Wait is
// one that a running task always has open) starts another one, which takes over
// the tasks. All methods may be called from many goroutines at once.
type Client struct {
	cfg Config
	log hclog.Logger

	// connecting has room for one: who is in it may start executors.
	connecting chan struct{}

	mu     sync.Mutex
	link   *link
	closed bool
	// fifos are the open reading ends of running tasks' FIFOs. They are never read here;
	// they keep the pipes and what is in them while no executor is there.
	fifos map[string][]int
}

// NewClient makes a client; nothing is started or connected yet.
func NewClient(cfg Config) (*Client, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("executor's directory %q: must be an absolute path", cfg.Dir)
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = DefaultIdleTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Client{cfg: cfg, log: cfg.Logger, connecting: make(chan struct{}, 1), fifos: map[string][]int{}}, nil
}

// Close lets go of the executor, which goes on with its tasks. Requests that are
// open fail with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	l := c.link
	c.link = nil
	fifos := c.fifos
	c.fifos = map[string][]int{}
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
	for _, fds := range fifos {
		closeAll(fds)
	}
	return nil
}

// Ensure returns once an executor serves, with its process ID. Calling it early
// takes the start of the executor out of the start of the first task.
func (c *Client) Ensure(ctx context.Context) (pid int, err error) {
	resp, err := c.call(ctx, request{Op: opPing}, retrySome)
	if err != nil {
		return 0, err
	}
	return resp.Pid, nil
}

// AddsGroups reports whether the executor starts processes with Spec.Groups. One of an earlier version, which stays
// for as long as its tasks run, does not.
func (c *Client) AddsGroups(ctx context.Context) (bool, error) {
	version, err := c.renew(ctx)
	return version >= versionGroups, err
}

// renew ends an executor of an earlier version that runs no task, so that a new one takes its place, and returns the
// version of the protocol that the executor speaks which is there then.
func (c *Client) renew(ctx context.Context) (version int, err error) {
	for range tries {
		if version = c.linked(); version >= Version {
			return version, nil
		}
		if _, err := c.Ensure(ctx); err != nil {
			return 0, err
		}
		if version = c.linked(); version == 0 || version >= Version {
			continue
		}
		if err := c.Shutdown(ctx); err != nil {
			return version, ctx.Err() // it runs tasks, or another call was first: the start finds out
		}
		c.log.Info("an executor of an earlier version has ended; a new one takes its place", "version", version)
	}
	return version, nil
}

// linked returns the version of the protocol that is spoken on the connection, 0 if there is none.
func (c *Client) linked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || !c.link.alive() {
		return 0
	}
	return c.link.version
}

// Limits reports whether the executor can limit its tasks (Spec.Cgroup). One that an earlier version of the agent has
// started cannot. As long as there is no connection it can, since a new one will be started.
func (c *Client) Limits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link == nil || c.link.version >= versionLimits
}

// connect returns the connection, making one and an executor as needed.
func (c *Client) connect(ctx context.Context) (*link, error) {
	select {
	case c.connecting <- struct{}{}:
		defer func() { <-c.connecting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	old, closed := c.link, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case old != nil && old.alive():
		return old, nil
	case old != nil:
		old.close()
	}
	conn, err := dialSocket(ctx, c.cfg.Dir)
	if err != nil {
		if err := spawn(ctx, &c.cfg); err != nil {
			return nil, err
		}
		if conn, err = dialSocket(ctx, c.cfg.Dir); err != nil {
			return nil, fmt.Errorf("connect to executor: %w", err)
		}
	}
	l, err := newLink(ctx, conn)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	closed = c.closed
	if !closed {
		c.link = l
	}
	c.mu.Unlock()
	if closed {
		l.close()
		return nil, ErrClosed
	}
	return l, nil
}

// retry is what to do about a lost connection.
type retry int

const (
	retryUnsent retry = iota // again only if the executor cannot have got it
	retrySome                // again a few times: a repetition does no harm
	retryEver                // again until the context ends
)

// call makes one request.
func (c *Client) call(ctx context.Context, req request, how retry) (*response, error) {
	pause := minPause
	for try := 1; ; try++ {
		l, err := c.connect(ctx)
		sent := false
		if err == nil {
			var resp *response
			if resp, sent, err = l.roundTrip(ctx, req); err == nil {
				if err = resp.err(); !errors.Is(err, ErrBusy) {
					return resp, err
				}
				sent = false
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case c.isClosed():
			return nil, ErrClosed
		case errors.Is(err, ErrInvalid),
			how == retryUnsent && sent,
			how != retryEver && (try >= tries || errors.Is(err, ErrVersion)):
			return nil, fmt.Errorf("executor: %s: %w", req.Op, err)
		}
		c.log.Warn("executor's answer missing, trying again", "operation", req.Op, "task", req.ID, "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Start starts a task's process and returns its status. A task of that ID that was
// started before and is not forgotten is left alone and its status returned.
// ErrStart and ErrInvalid will not get better by trying again.
func (c *Client) Start(ctx context.Context, spec *Spec) (Status, error) {
	if _, err := c.renew(ctx); err != nil {
		return Status{}, err
	}
	resp, err := c.call(ctx, request{Op: opStart, Spec: spec}, retrySome)
	return c.status(resp, err)
}

// Status returns what is known of a task. ErrNotFound if nothing is.
func (c *Client) Status(ctx context.Context, id string) (Status, error) {
	resp, err := c.call(ctx, request{Op: opStatus, ID: id}, retrySome)
	return c.status(resp, err)
}

// Wait returns the task's status once it has ended; its Exit is set then. It
// waits on while executors die and are replaced. Errors are ctx's, ErrClosed and
// ErrNotFound.
func (c *Client) Wait(ctx context.Context, id string) (Status, error) {
	resp, err := c.call(ctx, request{Op: opWait, ID: id}, retryEver)
	return c.status(resp, err)
}

// Stop sends a signal to the task's process group, has the group killed after
// timeout, and returns the status once the task has ended. If ctx ends first,
// the task is killed at its time all the same.
func (c *Client) Stop(ctx context.Context, id string, sig unix.Signal, timeout time.Duration) (Status, error) {
	resp, err := c.call(ctx, request{Op: opStop, ID: id, Signal: int(sig), Timeout: timeout}, retrySome)
	return c.status(resp, err)
}

// status takes a task's status out of an answer, and keeps the FIFOs of the task open
// while it runs.
func (c *Client) status(resp *response, err error) (Status, error) {
	if err != nil {
		return Status{}, err
	}
	if resp.Status == nil {
		return Status{}, errors.New("executor: an answer without a status")
	}
	if resp.Status.State == StateRunning {
		c.openFIFOs(resp.Status.ID)
	} else {
		c.closeFIFOs(resp.Status.ID)
	}
	return *resp.Status, nil
}

// Signal sends a signal to the task's process group. ErrNotRunning if it has
// ended.
func (c *Client) Signal(ctx context.Context, id string, sig unix.Signal) error {
	_, err := c.call(ctx, request{Op: opSignal, ID: id, Signal: int(sig)}, retryUnsent)
	return err
}

// Suspend stops all processes of a task where they are, and returns once none runs.
// ErrNotRunning if it has ended; an executor that is too old for this stops
// the task's process group instead.
func (c *Client) Suspend(ctx context.Context, id string) error {
	return c.suspendOrResume(ctx, id, opSuspend, unix.SIGSTOP)
}

// Resume lets them go on.
func (c *Client) Resume(ctx context.Context, id string) error {
	return c.suspendOrResume(ctx, id, opResume, unix.SIGCONT)
}

func (c *Client) suspendOrResume(ctx context.Context, id, op string, instead unix.Signal) error {
	_, err := c.call(ctx, request{Op: op, ID: id}, retrySome)
	if errors.Is(err, ErrInvalid) {
		return c.Signal(ctx, id, instead)
	}
	return err
}

// Stats measures a running task; the figures may be half a second old.
func (c *Client) Stats(ctx context.Context, id string) (Stats, error) {
	resp, err := c.call(ctx, request{Op: opStats, ID: id}, retrySome)
	if err != nil {
		return Stats{}, err
	}
	if resp.Stats == nil {
		return Stats{}, errors.New("executor: an answer without measurements")
	}
	return *resp.Stats, nil
}

// List returns the status of all tasks not forgotten, by ID.
func (c *Client) List(ctx context.Context) ([]Status, error) {
	resp, err := c.call(ctx, request{Op: opList}, retrySome)
	if err != nil {
		return nil, err
	}
	return resp.List, nil
}

// Forget drops what is kept of an ended task: its exit must be safe elsewhere.
// ErrRunning if it has not ended; an unknown one is no error.
func (c *Client) Forget(ctx context.Context, id string) error {
	_, err := c.call(ctx, request{Op: opForget, ID: id}, retrySome)
	if err == nil {
		c.closeFIFOs(id)
	}
	return err
}

// Shutdown ends the executor. ErrRunning if a task still runs.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := c.call(ctx, request{Op: opShutdown}, retryUnsent)
	return err
}

// openFIFOs opens the reading ends of a task's FIFOs.
func (c *Client) openFIFOs(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.fifos[id]; ok || c.closed {
		return
	}
	var fds []int
	for _, stream := range []string{logs.Stdout, logs.Stderr} {
		fd, err := unix.Open(fifoPath(c.cfg.Dir, id, stream), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil { // a task without logs has none
			fds = append(fds, fd)
		}
	}
	c.fifos[id] = fds
}

func (c *Client) closeFIFOs(id string) {
	c.mu.Lock()
	fds := c.fifos[id]
	delete(c.fifos, id)
	c.mu.Unlock()
	closeAll(fds)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
