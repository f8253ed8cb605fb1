// Package explain explains to users why a job or an allocation is as it is: [Job] returns everything that
// keeps a job from being placed and the smallest changes that would place it (smallest*.go), each of which is
// tried on a copy before it is reported; [Alloc] returns why an allocation runs where it does, or was stopped.
//
// The package must never change anything, nor report a remedy that was not tried. What it reports must follow
// from how package decide decides; it has no rules of its own.
package explain
