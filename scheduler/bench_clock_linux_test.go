package scheduler_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time that this thread has used so far. What other processes and
// the collector of garbage do beside it does not count.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux has had this clock since 2.6
	}
	return time.Duration(t.Nano())
}
