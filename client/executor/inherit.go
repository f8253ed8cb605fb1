package executor

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// This file is about what a process inherits that the executor does not mean to give it: descriptors, and the right
// to gain privileges by executing a program that has more.

// firstOther is the first descriptor that is not a standard stream.
const firstOther = 3

// closeInherited closes every descriptor that this process got from the one that started it, except for the standard
// streams and keep (0: none). What was inherited lacks the close-on-exec flag, which the runtime sets on what it opens.
func closeInherited(keep int) error {
	return eachDescriptor(func(fd int) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 && fd != keep {
			_ = unix.Close(fd) // one that cannot be closed is closed on exec, see keepDescriptors
		}
	})
}

// keepDescriptors marks all descriptors but the standard streams as close-on-exec, so that no process that is started
// from now on gets one by accident.
func keepDescriptors() error {
	if unix.CloseRange(firstOther, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return eachDescriptor(unix.CloseOnExec) // Linux before 5.11, or a system call filter
}

// eachDescriptor calls fn for each descriptor of this process that is not a standard stream.
func eachDescriptor(fn func(fd int)) error {
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

// noNewPrivs has the children of the calling thread never gain privileges by executing a set-user-ID program or one with
// file capabilities. A thread cannot give that up again.
func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a task from new privileges: %w", err)
	}
	return nil
}
