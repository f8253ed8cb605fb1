package structs

// PolicyLeastFragmentation is the policy that takes the node whose ability to take what
// is typically requested shrinks least.
const PolicyLeastFragmentation = "least-fragmentation"

// TypicalRequest is one of the requests that a cluster typically gets: what the policy
// least-fragmentation keeps room for. Requests that may use few of the devices of their pool only, by
// what Job and Group state, count as much more as these are scarce.
type TypicalRequest struct {
	// Job returns what all of it shares: constraints, datacenters, the pool. Group is one of its
	// groups, or a stand-in for one. Neither is changed.
	Job   *Job
	Group *TaskGroup
	// Weight is how often an instance of it is requested, beside the others. What has 0 or
	// less does not count.
	Weight int64
}
