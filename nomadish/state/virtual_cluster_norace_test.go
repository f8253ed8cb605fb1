//go:build !race

package state

// How much TestManyStepsOfVirtualClusters does: 50,000 steps.
const (
	machineWorlds = 500
	machineSteps  = 100
)
