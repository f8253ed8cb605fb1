// Package printable escapes text that others wrote: names, messages and errors that hold control characters,
// invisible ones or ones that change the direction of writing must neither command a terminal nor look like something else.
//
// The package must never write anything: it returns text.
package printable
