// Package metric counts why a request found no node, or among how many it found one, in the form in which evaluations and allocations carry it. It
// must never decide anything.
package metric
