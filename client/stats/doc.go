// Package stats measures what tasks and the machine use. It asks the tasks' drivers
// and the kernel when it is asked itself; it keeps only the last measurement of
// each, to tell rates from it.
package stats
