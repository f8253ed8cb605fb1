// Package structs is the vocabulary of the project: the data that every other
// package passes around, and what can be known of it without calling anybody.
//
// There is ONE type for each noun. The same [Job] is what a person writes in
// HCL, what the HTTP API takes and returns as JSON, and what travels in the log
// and between machines as msgpack. A field's Go name is its JSON and msgpack
// name; its hcl tag is its name in files. There are no converters.
//
// # Unset values
//
// Fields are plain values. A field whose zero value means something, while its
// default is another value (a group's count, a task's kill timeout), is filled
// by its type's SetDefaults BEFORE anything is decoded, so that what a file or
// request leaves out, or states as JSON null, keeps the default. Optional
// blocks are pointers: nil is absent. Only the policies whose defaults depend
// on the job's type and on merging the job's block into the group's
// ([RestartPolicy], [ReschedulePolicy], [UpdateStrategy], [MigrateStrategy])
// hold pointers to their values; [Job.Canonicalize] fills every one of them.
//
// # The way of a job
//
// Decode, [Job.Canonicalize], [Job.Validate], and only then may it be stored.
// Whoever reads a stored job may rely on both having been called. A stored job
// is shared by many readers and never changed: [Job.Copy] first.
//
// # Never
//
// This package never does I/O, never reads the clock, the environment or chance,
// never logs, and imports nothing of ours. (Its subpackage wire does what
// server and client share of the network, and is imported by nobody below the
// server.)
package structs
