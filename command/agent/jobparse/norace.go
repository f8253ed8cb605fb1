//go:build !race

package jobparse

// raceFactor is how much more memory than otherwise a process may have: the race detector needs several times as much.
const raceFactor = 1
