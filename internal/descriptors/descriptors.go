// Package descriptors keeps a process's open descriptors from the processes that it starts. Go sets the close-on-exec flag on
// what it opens itself, but does not know of descriptors that whoever started this process left open.
//
// The package must never open anything that stays open.
package descriptors

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstOther is the first descriptor that is not a standard stream.
const firstOther = 3

// CloseOnExec marks all descriptors but the standard streams as close-on-exec, so that no process that is started
// from now on gets one by accident.
func CloseOnExec() error {
	if unix.CloseRange(firstOther, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return closeOnExecEach() // Linux before 5.11, or a system call filter
}

func closeOnExecEach() error { return Each(unix.CloseOnExec) }

// Each calls fn for each descriptor of this process that is not a standard stream.
func Each(fn func(fd int)) error {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // only read from
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= firstOther {
			fn(fd)
		}
	}
	return nil
}
