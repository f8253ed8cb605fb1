// Package jobspec reads job files: HCL as people write them, and the JSON that
// the HTTP API takes.
//
// [Parse] answers with a job as written (not canonical), warnings, and problems
// that name file, line and column. What the file's language is made of stands in
// package hclfile; what a job may state, in package structs. Here the two
// meet, with what only job files have: the job block and its shorthands.
//
// It never talks to a server, and reads no files but those that functions of a
// job file name, when that is allowed.
package jobspec
