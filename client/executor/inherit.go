package executor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/internal/descriptors"
)

// This file is about what a process inherits that the executor does not mean to give it: descriptors, and the right
// to gain privileges by executing a program that has more.

// closeInherited closes every descriptor that this process got from the one that started it, except for the standard
// streams and keep (0: none). What was inherited lacks the close-on-exec flag, which the runtime sets on what it opens.
func closeInherited(keep int) error {
	return descriptors.Each(func(fd int) {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 && fd != keep {
			_ = unix.Close(fd) // one that cannot be closed is closed on exec, see forkExec
		}
	})
}

// noNewPrivs has the children of the calling thread never gain privileges by executing a set-user-ID program or one with
// file capabilities. A thread cannot give that up again.
func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep a task from new privileges: %w", err)
	}
	return nil
}
