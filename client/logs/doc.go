// Package logs keeps a task's output in files and reads it back.
//
// Each stream ("stdout", "stderr") of a task is a row of files in the
// allocation's log directory, <task>.<stream>.<n> with n counting up from 0. The
// file with the highest number is being written; a file is complete once one
// with a higher number exists. The oldest are deleted, so the row may start
// above 0. What the files contain in order is what the task wrote: rotation neither
// loses, doubles nor adds a byte, and may cut a line in two.
//
// The package knows nothing of HTTP, of tasks' states or of who writes; it must
// never block the writer for a reader's sake.
package logs
