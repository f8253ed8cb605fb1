// Package preempt plans how newcomers get room that others hold: who must give back what
// they hold, and how. All reclaiming uses it, whatever the right of the newcomers.
//
// # Problem
//
// Newcomers want room on nodes that are full. Some of those that run there may be taken
// from, in a given order. As little as possible is to be stopped, the least important
// first, and nothing in vain.
//
// # Words
//
// A room is a node or a cell; newcomers are instances that are to be in it. An [Allocated] is
// the instances of one job's group, or of one gang, that may be taken from; its
// [Standing] orders it among the others. Walked are the requests that were reached before
// the newcomers fitted. The second remainder is what is then left over; it goes back.
//
// # How
//
// [Plan] walks request by request, the lowest first, and counts as free all that they hold,
// until the newcomers fit. Then it gives back, the highest first, as many instances of
// each as fit beside the newcomers. With KeepWhole those requests come first that fit whole.
// Nothing is decided before all of it is known: what is given back was never touched.
// A gang is taken down to its Min one by one, and whole where that is not enough, over
// all rooms.
//
// # Invariants
//
// The tests prove them against every subset of up to twelve instances:
//
//   - the newcomers that the result names fit;
//   - nobody of the newcomers' band or above is taken from;
//   - none of those taken could be put back beside the others and the newcomers;
//   - what is given back is the most in the stated order;
//   - no gang is left with less than its Min;
//   - the rooms are as the result says: nothing is lost or made.
//
// # Complexity
//
// For w walked instances: 2w changes of rooms and as many questions whether newcomers
// fit, and once more as many for each pass that gives something back.
//
// # Example
//
// A node of (cpu 100, memory 100). A holds 20 × (1,1) at priority 3, B 20 × (3,2) at
// priority 2, C 10 × (2,1) at priority 1; (0,30) is free. E asks for 30 × (1,1) at
// priority 4; each priority is a band. C is walked: (20,40) would be free, not enough.
// B is walked: (80,80), enough. E takes 30, (50,50) is left over. B gets 16 of its 20
// back, (2,18) is left; C gets 1 of its 10 back; (0,17) stays free. So 4 instances of B
// and 9 of C give back. With KeepWhole C keeps its 10 and B gets 10 back.
//
// # Never
//
// This package knows no nodes, jobs or bands of a configuration; it asks [Rooms]. It
// asks neither clock nor chance, takes no lock, and gives the same answer for the same
// rooms and asks, in whatever order the requests come.
//
// Source: semantics part 3.
package preempt
