// Package hclfile reads HCL files into structs by their tags, for job files and
// every other noun that people write.
//
// A file goes through four steps: [Parse] (syntax, limits), [Scope] (variables,
// locals and functions), the literal pass (references such as ${attr.cpu.arch}
// that only a node can fill in stay text), and [Decoder] (blocks and attributes
// into fields, by the tags that structs.Fields reads; dynamic blocks).
//
// Everything that is refused states where (file, line, column), what, and what is
// allowed; an unknown name is answered with the nearest known one. All problems
// of a step are collected, not only the first.
//
// The package never reads files by itself, except in the functions that
// [Options.AllowFS] turns on, never reads the environment, and never panics on
// input. What it costs is bounded by [Limits], but for nested for expressions,
// whose cost is the product of what they go through. Untrusted files are
// therefore parsed by package jobparse.
package hclfile
