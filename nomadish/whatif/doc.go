// Package whatif answers what would become of the queue if changes were made: it runs the state on in virtual time as it is, and a fork of it with
// the changes, and lays both futures side by side (docs/guides/when-and-what-if.md).
//
// Changes are made by the very endpoints that apply them in earnest, over a fork of the state instead of the log: what is refused there is refused here, in the
// same words. Nothing gets into the log. The same state, time, changes and seed give the same answer.
package whatif
