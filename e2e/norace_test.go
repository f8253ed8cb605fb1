//go:build !race

package e2e

// raced reports whether the race detector is on: then the agent is built with it too, and is slower.
const raced = false
