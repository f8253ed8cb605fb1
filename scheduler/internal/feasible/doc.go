// Package feasible computes which nodes a group of a job may use at all, by what the nodes are and not by
// what is free on them: datacenters and pools, constraints ([Feasibility], target.go, version.go), drivers,
// kinds of devices ([DeviceRequest]) and the cell that a gang must stay under ([Domain]). What classes of
// nodes have in common is decided once for each class, and [Fits] keeps it from one evaluation to the next.
// The package also defines which part of a job is one [Gang], by what right instances use their resources
// ([Terms]), and when a failed instance may run again (reschedule.go).
//
// The package must never read the usage of a node; where other instances of a job are ([Census]) counts
// only for distinct_hosts and distinct_property.
package feasible
