package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// spawnFor is how long a new executor may take until it serves.
const spawnFor = 10 * time.Second

// spawn starts an executor for the directory, if none serves it, and returns
// once one does.
func spawn(ctx context.Context, cfg *Config) error {
	ctx, cancel := context.WithTimeout(ctx, spawnFor)
	defer cancel()
	argv := cfg.Command
	if len(argv) == 0 {
		self, err := os.Executable()
		if err != nil || !exists(self) {
			self = "/proc/self/exe" // the file was replaced or removed since
		}
		argv = []string{self, "executor"}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start executor: %w", err)
	}
	defer func() { _ = r.Close() }()
	args := append(append([]string{}, argv[1:]...), "-dir", cfg.Dir, "-idle", cfg.IdleTimeout.String(), "-ready-fd", "3")
	cmd := exec.CommandContext(ctx, argv[0], args...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// It only starts the process in the background, so it is not waited for long.
	err = cmd.Run()
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	var word string
	if deadline, ok := ctx.Deadline(); ok && r.SetReadDeadline(deadline) == nil {
		stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
		data, rerr := io.ReadAll(io.LimitReader(r, 4096))
		word, err = strings.TrimSpace(string(data)), errors.Join(err, rerr)
	}
	switch {
	case word == readyOK && err == nil:
		return nil
	case word != "" && word != readyOK:
		return fmt.Errorf("start executor: %s (see %s)", word, filepath.Join(cfg.Dir, logName))
	case err == nil:
		err = errors.New("it ended without a message")
	}
	return fmt.Errorf("start executor: %w (see %s)", err, filepath.Join(cfg.Dir, logName))
}
