//go:build !race

package bucket_test

// How much the tests do.
const (
	machineSteps = 100_000
	boundedNodes = 100_000
)
