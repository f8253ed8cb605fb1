// Package taskenv makes a task's environment variables and fills in references
// (${NOMAD_ALLOC_ID}, ${attr.kernel.name}, ${meta.rack}, ${node.datacenter}) in
// what its job states.
//
// It is a function of the allocation, the node and the directories; it reads
// nothing of the agent's own environment but what it is given as Base. It must
// never give a task another task's secrets directory.
package taskenv
