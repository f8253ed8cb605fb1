// Package slots is the account of a project's slots in the current week (docs/design/semantics.md, part 4): which row of its calendar holds which of
// its running instances, how many more it could hold, and whether a job is recognised at all.
//
// An instance takes the most specific row that matches it and has room. Which row that is depends on all that run, in order of their start: it
// is counted anew whenever that could change, and never stored.
//
// The package knows nodes only as numbers of slots, and no resources: what an instance costs is given. It must never look at a clock, nor know
// what else there is in a cluster. It imports the standard library only.
package slots
