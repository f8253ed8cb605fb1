// Package judge says what of a plan holds on a World: the plan applier's check of what was decided on an
// earlier one. [Judge] uses the same fit check as deciding does; placements and what is taken back for
// them hold together or not at all (reclaim.go).
//
// The package must never place anything elsewhere or mend a plan: what does not hold is left out. It knows
// package world alone, so that no mistake in deciding is made again in judging.
package judge
