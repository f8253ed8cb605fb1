//go:build !linux

package scheduler_test

import "time"

var began = time.Now()

// threadTime is wall time, where the CPU time of a thread cannot be had.
func threadTime() time.Duration { return time.Since(began) }
