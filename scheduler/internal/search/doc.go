// Package search finds nodes for the instances of one group, one after another, and decides which resources
// of the node each instance gets.
//
// [Input] is the input of an evaluation. [Request] is what one instance needs; a [Search] iterates over
// the sets of nodes that a group may use, in the order of a policy: in the order of the indexes (set.go,
// and phases.go from the smallest free cell upwards), by ID (ids.go), by affinities and spreads
// (rank.go), or by how much fragmentation a placement adds to a node (leastfrag.go, typical.go; supply.go: how
// scarce what typical requests may use is).
// [Request.Grant] assigns the ports, cores and devices that an instance gets on a node (grant.go, ports.go).
//
// The package must never use resources that others use, and must place no more than one instance at a
// time: package decide handles instances that must be placed together.
package search
