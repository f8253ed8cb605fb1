// Package trace replays a workload in virtual time on the real scheduler.
//
// [Run] takes nodes and the rows of a trace in the order of their arrival. Each row
// becomes a job as a job file would state it, and is decided by [scheduler.Pass] on
// one [scheduler.World] that moves on with every placement and every end. What it
// returns is [Figures]: utilisation over time, waits by size and tenant, and counts.
//
// # Rules
//
// They are those of the queue (semantics part 7), with one worker, so that nothing overtakes. Time
// goes from moment to moment: at each, what ends is released, what arrives joins the queue, and one
// pass goes over all requests that were not tried since the last release, by
// [structs.SchedulerConfiguration.Rank]. What does not fit is tried, and smaller ones may pass it.
// Requests of one request key are alike to the scheduler: once one of them has found no room, those
// ranked behind it are not tried before the next release. A request that has waited longer than the
// configuration's ReservationAfter reserves room, the first of each request key before the second.
// Instances that are taken back go to the queue and run again from their beginning, or, if they are
// suspended, go on where they were.
//
// In the mode Drop nobody leaves, and what does not fit when it arrives is dropped:
// the way in which packing is measured.
//
// # Units
//
// Processor is in MHz as in a job file; traces that count cores are read with 1000
// MHz a core. Memory is in MiB, parts of a GPU are thousandths. Times are durations
// since the trace's start.
//
// # Never
//
// This package uses no clock and no chance: decisions are timed by a function that is
// handed in, and what it measures stays out of what is compared. The same rows and the
// same seed give the same figures. It holds what waits and what runs, never what has
// ended, so that a trace of any length is replayed in bounded memory.
package trace
