//go:build race

package bucket_test

// How much the tests do under the race detector, which is many times slower.
const (
	machineSteps = 25_000
	boundedNodes = 10_000
)
