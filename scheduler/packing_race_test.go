//go:build race

package scheduler_test

// How much TestPacking does under the race detector, which is many times slower.
const (
	packedNodes  = 200
	packingSeeds = 2
	churnEvents  = 2000
)
