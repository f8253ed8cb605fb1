// Package alloctable keeps the allocations of a cluster in memory: a million of them in
// some hundred megabytes, where whole values in a table of memdb would take gigabytes.
//
// A [Table] is the allocations at one index: an immutable value, of which a copy is a
// snapshot. An [Edit] is a private form of it that can be changed; what [Edit.Commit]
// returns shares all that was not changed. A [Row] is one allocation as it is kept: 80
// bytes, immutable, and [Row.Whole] makes the whole value anew. What allocations share
// that were placed together stands once, in a [Batch]; so does what clients report about their
// tasks, but for the times. An [Import] finds again, in the whole allocations of a
// snapshot's stream, what they share.
//
// Rows are found by ID and by what they belong to: a node, a job, an evaluation.
//
// The package is for nomadish/state alone, which decides what changes. It must never
// decide anything itself, read a clock or chance, or let the order of a map or of row
// numbers show: they differ between replicas that are equal. It must never change a row
// that is there, nor give out whole allocations with their jobs, which it does not know.
package alloctable
