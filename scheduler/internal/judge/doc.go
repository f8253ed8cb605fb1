// Package judge checks a plan on a World: it is the plan applier's check of what was decided on an earlier
// World. [Judge] uses the same fit check as package decide. A placement and the preemptions that make room
// for it are accepted together or not at all (reclaim.go).
//
// The package must never place anything elsewhere or repair a plan: it leaves out what is no longer valid.
// It imports package world alone, so that an error in deciding is not repeated here.
package judge
