// Package feasible says what nodes a group of a job may use at all, by what they are and not by what is
// free there: datacenters and pools, constraints ([Feasibility], target.go, version.go), drivers, kinds of
// devices ([DeviceRequest]) and the cell that a gang must stay under ([Domain]). What classes of nodes have in
// common is decided once a class, and [Fits] remembers it from one evaluation to the next. It also says
// what of a job is one [Gang], by what right instances hold what they get ([Terms]), and when what failed
// may run again (reschedule.go).
//
// The package must never look at what is used of a node; where other instances of a job are ([Census])
// counts only for distinct_hosts and distinct_property.
package feasible
