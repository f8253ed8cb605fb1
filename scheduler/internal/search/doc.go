// Package search finds nodes for the instances of one group, one after another, and says what an instance
// gets there.
//
// [Input] is what an evaluation is decided with. [Request] is what one instance takes; a [Search]
// goes through the sets of nodes that a group may use, in the order of a policy: in the indexes'
// order (set.go, and phases.go from the smallest free cell upwards), by ID (ids.go), by affinities
// and spreads (rank.go), or by what a node loses for what is typically asked for (leastfrag.go,
// typical.go). [Ask.Grant] names the ports, cores and devices that an instance gets of a node
// (grant.go, ports.go).
//
// The package must never take what others hold, and must place no more than one instance at a time: what
// must stand together is package decide's matter.
package search
