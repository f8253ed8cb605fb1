//go:build race

package state

// How much TestManyStepsOfVirtualClusters does under the race detector, which is many times slower.
const (
	machineWorlds = 10
	machineSteps  = 100
)
