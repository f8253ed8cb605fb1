// Package driver is the contract between the task runner and whatever runs a
// task: a process, a container, or nothing at all (mock).
//
// A Driver is one per kind and node; a Handle is one per started task. The
// package has the two interfaces, the values that cross them, the registry of
// a node's drivers and the decoder of a task's config block.
//
// A driver must never restart a task by itself, never write to a task's log
// files while another driver's logs are there, and never keep a task from
// outliving the agent: stopping a task is the task runner's decision alone.
package driver
