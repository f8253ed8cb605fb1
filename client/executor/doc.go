// Package executor runs the processes of a node's tasks in one helper process
// that outlives the agent.
//
// The agent must be able to die and come back without a task noticing, and must
// learn exactly how the tasks ended that ended meanwhile. So the tasks are
// children of a helper, `nomadish executor`, one per data directory, which waits
// for them and moves their output into log files. The agent talks to it through
// a Client over a unix socket; a Client starts the helper when there is none.
//
//	agent ── Client ──unix socket── executor ──fork── task
//	                                    ▲               │ stdout, stderr
//	                                    └──── FIFOs ────┘──▶ <alloc>/logs/<task>.stdout.<n>
//
// What the helper runs is written down, a directory per task below the helper's
// own, so that a helper started after the death of another one finds the
// processes again. A task's output goes through two FIFOs that the task itself
// (and the agent) keep open too, so neither a byte nor the task is lost while
// there is no helper; the bytes move from pipe to file inside the kernel, so
// none is in the helper's memory when it dies.
//
// A task's process has three descriptors and, unless it is allowed otherwise, no way to gain privileges (inherit.go).
//
// The helper must never restart a task, decide anything, write outside its
// directory and the log directories that it is given, or block a task because
// its output cannot be written.
//
// docs/adr/0002-one-executor-per-node.md explains why it is made like this.
package executor
