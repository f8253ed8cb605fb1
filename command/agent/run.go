package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

// shutdownTimeout is when what waits for others gives up, in a clean end; shutdownGrace is for what a server does after that: handing
// over, leaving the gossip and the list of servers each have bounds of their own.
const (
	shutdownTimeout = 15 * time.Second
	shutdownGrace   = 30 * time.Second
)

// Run is the agent command. It returns when ctx ends, or on SIGINT or SIGTERM
// (a second one ends it at once); SIGHUP reloads. The result is the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return run(ctx, args, stdout, stderr, realParts(), signals)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, p parts, signals <-chan os.Signal) int {
	f, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, Usage)
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "==> %s (nomadish agent -h lists the options)\n", err)
		return 1
	}
	cfg, warnings, err := f.load()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			_, _ = fmt.Fprintf(stderr, "==> %s\n", line)
		}
		return 1
	}
	out := stdout
	if cfg.Logging.LogJSON {
		out = stderr // so that stdout is JSON only
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintf(out, "==> WARNING: %s\n", w)
	}
	if len(cfg.Sources.Files) > 0 {
		_, _ = fmt.Fprintf(out, "==> Loaded configuration from %s\n", strings.Join(cfg.Sources.Files, ", "))
	} else {
		_, _ = fmt.Fprintln(out, "==> No configuration files loaded")
	}
	_, _ = fmt.Fprintln(out, "==> Starting Nomadish agent...")
	reserved := &holdback{to: stdout}
	logger := newLogger(cfg, reserved)
	a, err := start(cfg, p, logger, f.load)
	if err != nil {
		reserved.open()
		_, _ = fmt.Fprintf(stderr, "==> Error starting agent: %s\n", err)
		return 1
	}
	a.banner(out)
	if !cfg.Dev && !cfg.BindAddrStated() {
		_, _ = fmt.Fprintf(out, "==> Only this machine can reach the agent, at %s, as bind_addr (-bind) is not set\n\n", cfg.BindAddr)
	}
	a.warnExposed(out)
	_, _ = fmt.Fprintf(out, "==> Nomadish agent started! Log data will stream in below:\n\n")
	reserved.open()
	return a.wait(ctx, signals, out, stderr)
}

// wait holds until the agent shall end, and ends it.
func (a *Agent) wait(ctx context.Context, signals <-chan os.Signal, out, stderr io.Writer) int {
	leave := false
	var failed <-chan error
	if a.server != nil {
		failed = a.server.failed
	}
	code := 0
	for over := false; !over; {
		select {
		case err := <-failed:
			_, _ = fmt.Fprintf(stderr, "==> The server cannot go on: %s\n", err)
			over, code = true, 1
		case <-ctx.Done():
			over = true
		case sig := <-signals:
			_, _ = fmt.Fprintf(out, "==> Caught signal: %v\n", sig)
			if sig == syscall.SIGHUP {
				_ = a.Reload() // it logs what is wrong
				continue
			}
			leave = (sig == syscall.SIGINT && a.cfg.Leaving.LeaveOnInterrupt) || (sig == syscall.SIGTERM && a.cfg.Leaving.LeaveOnTerminate)
			over = true
		}
	}
	_, _ = fmt.Fprintln(out, "==> Ending the agent...")
	ended := func(stop context.Context) error { return a.Shutdown(stop, leave) }
	return end(context.WithoutCancel(ctx), ended, code, signals, stderr)
}

// end shuts an agent down, and returns its exit code: code if all goes well. What does not end in shutdownTimeout and a little more
// is logged with all that goes on, and ends with the process.
func end(ctx context.Context, shutdown func(context.Context) error, code int, signals <-chan os.Signal, stderr io.Writer) int {
	stop, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- shutdown(stop) }() // it ends, or the process does
	late := time.NewTimer(shutdownTimeout + shutdownGrace)
	defer late.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				_, _ = fmt.Fprintf(stderr, "==> The agent did not end cleanly: %s\n", err)
				return 1
			}
			return code
		case <-late.C:
			_, _ = fmt.Fprintf(stderr, "==> The agent did not end cleanly within %v. What it does, for a report of this fault:\n", shutdownTimeout+shutdownGrace)
			_ = pprof.Lookup("goroutine").WriteTo(stderr, 1)
			return 1
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				continue
			}
			_, _ = fmt.Fprintln(stderr, "==> Second signal: ending at once")
			return 1
		}
	}
}
