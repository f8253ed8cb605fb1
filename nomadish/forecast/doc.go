// Package forecast runs the future: the parts of a leader, which decide in earnest, on a private fork of the state in virtual time, with clients
// that are a model. What becomes of the queue there is when its requests start (docs/guides/when-and-what-if.md).
//
// Nothing of it is written to the log, and the fork is gone when a forecast is made. The same state, options and time give the same forecast: it
// looks at no clock but its own, and its IDs derive from the index of the state. It must never decide anything itself: where it needs a part of the
// leader, that part has a form that its caller moves on.
package forecast
