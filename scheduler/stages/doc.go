// Package stages moves the runs of workflows on, stage by stage (docs/design/semantics.md, part 5): which entry follows from how far the jobs of a run
// are, what a run is after an entry, and what a run reserves. These are functions of a run and of a World alone, so that every leader, a simulation
// and a replay of a trace come to the same.
package stages
