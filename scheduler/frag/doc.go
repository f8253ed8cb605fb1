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
// with CPU and memory, a weight: how often it is requested, and a scarcity: all devices divided by
// those that it may use. A [Measure] is all typical requests for one kind of devices. A [Room] is
// what a node has left. Shares are thousandths of a device.
//
// The ability of a room is its value to the typical requests, in thousandths of devices: for
// each request the geometric mean of what is idle and of what that request could use of it if
// the room were filled with nothing else; and of these the mean weighted by how often they are
// requested, each times its scarcity. The fragmentation of a room is what is idle less its ability.
// A request's loss is the ability that its room loses beyond what the request uses itself: the
// growth of fragmentation.
//
// # Why not the published measure
//
// The published measure of fragmentation (FGD) counts all that is idle as usable by a request that
// fits once. It does not see that the CPU left beside eight free GPUs is enough for one of them
// only. What the room would hold, were it filled with the request, sees that, but takes it for
// worse than it is, because a cluster chooses who comes there. The geometric mean of both is better
// than either on every list of the trace that the published figures are of: docs/guides/policies.md has
// the table.
//
// # Why scarcity
//
// Some requests may use few devices only, as those that name a model. Weighted by how often they come, they count no
// more on these devices than requests that may go anywhere. If the nodes of these devices have little CPU, most other
// requests can use little of them: then losing them costs less than losing any others, and they are given away first,
// to requests that could go elsewhere. But what may only go to a tenth of the devices puts ten times as much load on each of
// them; so it counts ten times there. Summed over all devices of a cluster, a request counts as much as it did, and
// where no request is limited, nothing changes.
//
// # Invariants
//
// An ability is at least 0, and at most what is idle times the weighted mean of the scarcities: at most what is idle
// where nothing is scarce. It does not shrink when there is more of anything. Requests that a room cannot take once
// add nothing. Numbers are floating point, but products are rounded before they are added, so that every machine finds
// the same.
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
// If the whole device has to be of a model that a quarter of all devices are of, and these two are, the scarcity of that
// request is 4, and the ability is (4 × 1140 + 1249) ÷ 2 = 2905. If they are of another model, it is 1249 ÷ 2 = 624.
//
// # Never
//
// This package knows no names, nodes or jobs. It uses neither clock nor randomness, takes no
// lock, keeps nothing between calls and panics on no input.
package frag
