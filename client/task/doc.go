// Package task runs one task of an allocation: it starts it through its driver,
// waits for its end, starts it again as its restart policy requires, and ends it.
//
// A Runner has no goroutine of its own while nothing happens: whatever comes (an
// exit, a timer, a wish of the allocation) is a call made one at a time by the
// allocation that it belongs to, its Host. So ten thousand waiting tasks cost
// ten thousand small structs.
//
// What a later life of the agent must know is handed to the Host before the step
// that it describes is taken. The package must never decide which task of an
// allocation runs when, nor touch files or the network itself.
package task
