// Package forecasts keeps a server's forecast of the queue: when what waits there starts (package forecast).
//
// A [Service] makes one in the background when the state has moved and somebody could want it: while its server leads, which has the metrics and
// states what has moved, and on the others for a while after each question. It takes a bounded share of a core: after a forecast that took a time
// it rests for a multiple of that. Its last forecast is what is answered with; it states the index that it is of. What came after that is not yet
// part of it, and whoever answers must say so.
//
// It also makes forecasts of one job when requested, of the newest state or of one in which the job is registered: one at a time, bounded by time.
//
// It must never write to the log, and decides nothing.
package forecasts
