// Package telemetry holds what the agent's metrics are: a table of all families with their labels and units, and the ways in
// which their values come to /v1/metrics.
//
// There are three. Rare or few values are pushed to go-metrics, as everywhere. What happens with every call is counted and
// timed by a [Count] or a [Timer], which cost a fraction of what go-metrics does. What the state of the agent contains at any
// time, such as the allocations of ten thousand jobs, is derived when somebody requests the metrics, by a [Source], and costs
// nothing otherwise. Series of jobs, allocations and nodes are of this third kind: they are gone when those are.
package telemetry
