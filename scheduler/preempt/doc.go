// Package preempt plans preemption: which allocated instances must release their resources for
// newcomers, and how. All preemption uses it, by whatever right the newcomers preempt.
//
// # Problem
//
// Newcomers need room on nodes that are full. Some of the instances there may be preempted,
// in a given order. As few as possible are to be stopped, the least important first, and none
// needlessly.
//
// # Words
//
// A room is a node or a cell; newcomers are instances that are to be in it. An [Allocated] is
// the instances of one job's group, or of one gang, that may be preempted; its
// [Standing] orders it among the others. Walked are the requests that were reached before
// the newcomers fitted. The second remainder is what is then left over; it is returned.
//
// # How
//
// [Plan] walks request by request, the lowest first, and counts all that they use as free,
// until the newcomers fit. Then it returns, to the highest first, as many instances of
// each as fit beside the newcomers. With KeepWhole those requests come first that fit whole.
// Nothing is decided before all of it is known: a returned instance was never stopped.
// A gang is reduced to its Min one by one, and preempted whole where that is not enough, over
// all rooms.
//
// # Invariants
//
// The tests prove them against every subset of up to twelve instances:
//
//   - the newcomers that the result names fit;
//   - no instance of the newcomers' band or above is preempted;
//   - no preempted instance could be returned beside the others and the newcomers;
//   - what is returned is the most in the stated order;
//   - no gang is left with less than its Min;
//   - the rooms are as the result states: nothing is lost or added.
//
// # Complexity
//
// For w walked instances: 2w changes of rooms and as many checks whether newcomers
// fit, and once more as many for each pass that returns an instance.
//
// # Example
//
// A node of (cpu 100, memory 100). A uses 20 × (1,1) at priority 3, B 20 × (3,2) at
// priority 2, C 10 × (2,1) at priority 1; (0,30) is free. E requests 30 × (1,1) at
// priority 4; each priority is a band. C is walked: (20,40) would be free, not enough.
// B is walked: (80,80), enough. E takes 30, (50,50) is left over. B gets 16 of its 20
// back, (2,18) is left; C gets 1 of its 10 back; (0,17) stays free. So 4 instances of B
// and 9 of C are preempted. With KeepWhole C keeps its 10 and B gets 10 back.
//
// # Never
//
// This package knows no nodes, jobs or bands of a configuration; it calls [Rooms]. It
// uses neither clock nor randomness, takes no lock, and returns the same result for the same
// rooms and requests, in whatever order the requests come.
//
// Source: semantics part 3.
package preempt
