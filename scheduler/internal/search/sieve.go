package search

import (
	"slices"

	"github.com/nomadish/nomadish/scheduler/bucket"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
)

// SetOf names the set that a node is in; "": it is in none.
func (s *Search) SetOf(n *world.NodeState) string {
	if s.ByClass {
		return n.Indexed.Class
	}
	return n.Indexed.Family
}

// Tests are what the index can decide of what a node lacks, and what it is called, in the
// order in which grant finds it out. What passes them may lack something all the same.
func (a *Request) Tests() (tests []bucket.Test, lacking []string) {
	add := func(t bucket.Test, what string) { tests, lacking = append(tests, t), append(lacking, what) }
	add(bucket.Test{Dim: world.DimCPU, Min: a.Need[world.DimCPU]}, world.LacksCPU)
	add(bucket.Test{Dim: world.DimMemory, Min: a.Need[world.DimMemory]}, world.LacksMemory)
	add(bucket.Test{Dim: world.DimDisk, Min: a.Need[world.DimDisk]}, world.LacksDisk)
	if n := a.Need[world.DimCores]; n > 0 {
		add(bucket.Test{Dim: world.DimCores, Min: n}, world.LacksCores)
		return tests, lacking // the MHz of cores differ by node, and are looked at next
	}
	required := slices.ContainsFunc(a.Devices, func(d feasible.DeviceRequest) bool { return d.Find.Required })
	if required && len(a.Devices) > 1 {
		return tests, lacking // a grant may find no cell for one before too few for another
	}
	whole, part := a.Need[world.DimGPUs], int64(0)
	for i := range a.Devices {
		if a.Devices[i].Whole() == 0 {
			part = max(part, int64(a.Devices[i].Share))
		}
	}
	if whole > 0 {
		add(bucket.Test{Dim: world.DimGPUs, Min: whole}, world.LacksDevices)
	}
	if part > 0 { // of one that is free beside the whole ones, or of one of which others have parts
		add(bucket.Test{Dim: world.DimGPUs, Min: whole + 1, OrDim: world.DimShare, OrMin: part}, world.LacksDevices)
	}
	return tests, lacking
}
