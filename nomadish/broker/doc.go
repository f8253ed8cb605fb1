// Package broker hands evaluations to workers: by priority, one at a time for each
// job, each until a worker has answered it. Those that wait for room (blocked) it
// wakes when room of a kind that can help them comes free.
//
// It runs on the leader and is memory only: a cache of the state that is filled
// from a snapshot and kept by the state's feed, so that becoming leader, falling
// behind and running are one code path. It must never decide a placement, and
// never change an evaluation but through the Applier.
package broker
