// Package raise lets running allocations use what their namespace owns (semantics part 2, "Raise"): where an owner has free room, its
// opportunistic allocations become guaranteed in place, the oldest first, if the cells over the devices that they use are its own or may
// be bound. They keep their IDs and run on. A gang is raised whole, or not at all.
//
// The package must never stop, move or place anything.
package raise
