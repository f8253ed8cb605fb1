//go:build race

package harness

// Raced reports whether the race detector is on: then the agent is built with it too, and is slower.
const Raced = true
