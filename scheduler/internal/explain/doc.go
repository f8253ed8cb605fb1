// Package explain tells people why a job or an allocation is as it is: [Job] says all that holds a job and
// the smallest changes that would place it (smallest*.go), which are tried on copies before they are told;
// [Alloc] says why an allocation is where it is, or was stopped.
//
// The package must never change anything, nor tell a remedy that was not tried. What it tells must follow
// from how package decide decides; it decides nothing by rules of its own.
package explain
