package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const (
	socketName = "executor.sock"
	lockName   = "lock"
	logName    = "executor.log"
	// maxSocketPath is what fits into a unix socket's address on every system.
	maxSocketPath = 100
)

// withSocket calls fn with a path of the directory's socket that is short enough
// for a socket address, which a data directory's may not be.
func withSocket[T any](dir string, fn func(path string) (T, error)) (T, error) {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return fn(path)
	}
	var none T
	d, err := os.Open(dir)
	if err != nil {
		return none, fmt.Errorf("executor's directory: %w", err)
	}
	v, err := fn(filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), socketName))
	return v, errors.Join(err, d.Close())
}

// dialSocket connects to the executor of a directory.
func dialSocket(ctx context.Context, dir string) (net.Conn, error) {
	return withSocket(dir, func(path string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	})
}

// removeSocket removes the directory's socket if it is still the one that was made: when somebody has emptied the directory
// meanwhile, another executor may serve there.
func removeSocket(dir string, own os.FileInfo) error {
	path := filepath.Join(dir, socketName)
	now, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("own socket: %w", err)
	case !os.SameFile(own, now):
		return nil
	}
	return os.Remove(path)
}

// listenSocket makes the directory's socket, for this user only. The caller
// holds the directory's lock, so a socket that is there is a dead executor's.
func listenSocket(dir string) (*net.UnixListener, error) {
	return withSocket(dir, func(path string) (*net.UnixListener, error) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("old socket: %w", err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		// The path may be one that is short-lived; Main removes the socket.
		l.SetUnlinkOnClose(false)
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
		}
		return l, nil
	})
}
