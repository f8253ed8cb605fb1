// Package frag measures how much of a node is usable by the typical requests of its cluster, and how
// much of that a placement costs.
//
// # Problem
//
// Free devices may be unusable: too little of each is left for the typical shares, too few are
// free together, or the node has no CPU or memory left to go with them. A placement that leaves
// such remainders is worse than one that does not, though both use as much.
//
// # Words
//
// A [Request] is one typical instance: some of the devices of a node, or a share of one,
// with CPU and memory, and a weight: how often it is requested. A [Measure] is all typical requests
// for one kind of devices. A [Room] is what a node has left. Shares are thousandths of a
// device.
//
// The ability of a room is its value to the typical requests, in thousandths of devices: for
// each request the geometric mean of what is idle and of what that request could use of it if
// the room were filled with nothing else; and of these the mean weighted by how often they are
// requested. The fragmentation of a room is what is idle less its ability. A request's loss is the
// ability that its room loses beyond what the request uses itself: the growth of fragmentation.
//
// # Why not the published measure
//
// The published measure of fragmentation (FGD) counts all that is idle as usable by a request that
// fits once. It does not see that the CPU left beside eight free GPUs is enough for one of them
// only. What the room would hold, were it filled with the request, sees that, but takes it for
// worse than it is, because a cluster chooses who comes there. The geometric mean of both is better
// than either on every list of the trace that the published figures are of: docs/policies.md has
// the table.
//
// # Invariants
//
// An ability is at least 0 and at most what is idle; it does not shrink when there is more of
// anything. Requests that a room cannot take once add nothing. Numbers are floating point, but
// products are rounded before they are added, so that every machine finds the same.
//
// # Complexity
//
// [Measure.Ability] is one pass over the requests, with one square root each.
//
// # Example
//
// A node has two devices, of which 1000 and 300 are idle, and CPU without end. The typical requests
// are one whole device and a share of 300, equally often. A whole device could use 1000 of the 1300
// that are idle: √(1300 × 1000) = 1140. Shares of 300 could use 3 × 300 of the first and 300 of the
// second: √(1300 × 1200) = 1249. The ability is 1195, the fragmentation 105.
//
// # Never
//
// This package knows no names, nodes or jobs. It uses neither clock nor randomness, takes no
// lock, keeps nothing between calls and panics on no input.
package frag
