//go:build !race

package scheduler_test

// How much TestPacking does: what the table of decisions asks for.
const (
	packedNodes  = 1000
	packingSeeds = 2
	churnEvents  = 10_000
)
