package executor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

const (
	// DefaultIdleTimeout is how long an executor without a running task or a
	// connection stays.
	DefaultIdleTimeout = 30 * time.Second
	// lockFor is how long a new executor waits for an old one that is ending.
	lockFor  = 5 * time.Second
	lockStep = 10 * time.Millisecond
	// maxLogBytes is when executor.log is put aside, as executor.log.1.
	maxLogBytes = 1 << 20

	readyOK = "ok"
)

// options are the arguments of the hidden subcommand.
type options struct {
	dir      string
	idle     time.Duration
	readyFD  int
	detached bool
}

// Main is the hidden subcommand `nomadish executor`. It serves in the foreground
// until it is no longer needed, and returns the process's exit code. A Client
// starts it with -ready-fd: then it moves into the background, reports on that
// descriptor "ok" or what went wrong, and logs to executor.log in its directory.
//
// It must be called on a process that does nothing else: it takes over the
// process's children, signals and working directory. When ctx ends, or on
// SIGTERM, it ends as soon as no task runs any more, and not before: whoever
// wants it gone at once kills it, and loses nothing but exact exit codes.
func Main(ctx context.Context, args []string, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("executor", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.dir, "dir", "", "directory of the executor's socket and records (needed)")
	fs.DurationVar(&o.idle, "idle", DefaultIdleTimeout, "how long to stay without tasks and connections")
	fs.IntVar(&o.readyFD, "ready-fd", 0, "go into the background, and report on this descriptor")
	fs.BoolVar(&o.detached, "detached", false, "this is the background process")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if !filepath.IsAbs(o.dir) || o.idle <= 0 || fs.NArg() > 0 {
		_, _ = fmt.Fprintln(stderr, "executor: -dir must be an absolute path, -idle positive, and there are no other arguments")
		return 2
	}
	if err := closeInherited(o.readyFD); err != nil {
		return report(stderr, nil, err)
	}
	var ready *os.File
	if o.readyFD > 0 {
		unix.CloseOnExec(o.readyFD)
		ready = os.NewFile(uintptr(o.readyFD), "ready")
		if !o.detached {
			return report(stderr, ready, detach(&o, ready))
		}
	}
	return report(stderr, ready, run(ctx, &o, ready, stderr))
}

// report reports to the process that started this one what went wrong, if anything did.
func report(stderr io.Writer, ready *os.File, err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(stderr, "executor: %v\n", err)
	if ready != nil {
		// Whoever does not listen any more misses nothing that is not in the log.
		_, _ = fmt.Fprint(ready, err)
		_ = ready.Close()
	}
	return 1
}

// detach starts the background process: in a session of its own, the child of
// nobody, with the log as its output.
func detach(o *options, ready *os.File) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("executor's directory: %w", err)
	}
	path := filepath.Join(o.dir, logName)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return fmt.Errorf("executor's log: %w", err)
		}
	}
	logFile, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("executor's log: %w", err)
	}
	defer func() { _ = logFile.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	argv := append([]string{}, os.Args...)
	argv = append(argv, "-detached")
	files := []uintptr{null.Fd(), null.Fd(), logFile.Fd()}
	for len(files) < o.readyFD {
		files = append(files, null.Fd())
	}
	files = append(files, ready.Fd())
	_, err = syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	return nil
}

// run is the executor's life.
func run(ctx context.Context, o *options, ready *os.File, stderr io.Writer) error {
	log := hclog.New(&hclog.LoggerOptions{Name: "executor", Output: stderr, Level: hclog.Info})
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("executor's directory: %w", err)
	}
	lock, err := takeLock(ctx, o.dir)
	if err != nil {
		return err
	}
	if lock == nil {
		return reportReady(ready) // another one serves this directory
	}
	defer func() { _ = lock.Close() }()
	s, err := newServer(o.dir, o.idle, log)
	if err != nil {
		return err
	}
	defer s.idle.Stop()
	if err := become(); err != nil {
		return err
	}
	// Before there can be a child. Signals are caught rather than ignored, since
	// tasks would inherit the ignoring.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(signals)
	defer signal.Stop(children)

	if err := s.adoptAll(); err != nil {
		return err
	}
	l, err := listenSocket(o.dir)
	if err != nil {
		return err
	}
	own, err := os.Lstat(filepath.Join(o.dir, socketName))
	if err != nil {
		return errors.Join(fmt.Errorf("own socket: %w", err), l.Close())
	}
	if err := reportReady(ready); err != nil {
		log.Warn("the process that started the executor does not listen", "error", err)
	}
	log.Info("serving", "dir", o.dir, "pid", os.Getpid(), "protocol", Version)
	s.loop(ctx, l, signals, children)
	s.groups.close()
	return removeSocket(o.dir, own)
}

// loop serves until nobody needs the executor.
func (s *server) loop(ctx context.Context, l net.Listener, signals, children <-chan os.Signal) {
	serveCtx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(serveCtx, l)
	}()
	ended := ctx.Done()
	for {
		select {
		case <-children:
			s.reap()
		case sig := <-signals:
			if sig == unix.SIGTERM {
				s.log.Info("received a request to end; it will, once no task runs")
				s.drain()
			}
		case <-ended:
			ended = nil
			s.drain()
		case <-s.quit:
			cancel()
			_ = l.Close()
			<-served
			return
		}
	}
}

// become makes the process fit to be the parent of the tasks' processes.
func become() error {
	// Orphans of the tasks come to this process, where they can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the reaper of the tasks' orphans: %w", err)
	}
	unix.Umask(0o022)
	return os.Chdir("/")
}

// takeLock makes this the only executor of the directory; nil and no error mean
// that another one is serving it.
func takeLock(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("executor's lock: %w", err)
	}
	for deadline := time.Now().Add(lockFor); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("executor's lock: %w", err), f.Close())
		}
		if conn, err := dialSocket(ctx, dir); err == nil {
			return nil, errors.Join(conn.Close(), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("executor's lock %s: a process that does not serve has it; end that process", f.Name()), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(lockStep):
		}
	}
}

// reportReady reports that the directory is served.
func reportReady(ready *os.File) error {
	if ready == nil {
		return nil
	}
	_, err := io.WriteString(ready, readyOK)
	return errors.Join(err, ready.Close())
}
