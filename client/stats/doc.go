// Package stats measures what tasks and the machine use. It queries the tasks' drivers
// and the kernel when it is called; it keeps only the last measurement of
// each, to compute rates from it.
package stats
