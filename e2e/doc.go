// Package e2e tests nomadish from outside: the built binary as real processes, its
// command line and its HTTP API, called by our own client and by Nomad's official one.
// Its tests are in a folder for each feature, and must never import what is inside.
//
//	harness    what the tests share: the binary, agents and servers, the command line, waiting
//	jobs       jobs, tasks and their files, as users and Nomad's clients see them
//	guides     the commands and files of README.md, docs/guides and examples
//	gpu        GPUs, their health, the topology of nodes and racks
//	queue      the queue, explanations and forecasts, gangs, preemption
//	tenants    namespaces, node pools, virtual clusters and their cells
//	projects   projects, their calendars and slots
//	workflows  workflows, what they reserve and lend, licenses
//	cluster    servers and clients: forming a cluster, gossip, TLS, roles, limits, snapshots, upgrades, metrics
//	net        faults of the network and of disks, in network namespaces (-tags netns, as root)
//	fields     every field of jobs and of answers, held against Nomad's
//	bench      how fast a real server is
//	walls      the rules of ARCHITECTURE.md, held against the source
package e2e
