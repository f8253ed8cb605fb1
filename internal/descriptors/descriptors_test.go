package descriptors

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCloseOnExec: what is open by accident does not get to a process, on any kernel.
func TestCloseOnExec(t *testing.T) {
	for name, mark := range map[string]func() error{"close_range": CloseOnExec, "one by one": closeOnExecEach} {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY, 0) // without O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		if err := mark(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 { // a descriptor
			t.Errorf("%s: descriptor %d stays open on exec: %v", name, fd, err)
		}
		_ = unix.Close(fd) // only read from
	}
}
