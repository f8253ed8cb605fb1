// Package jobparse parses untrusted job files in a process of its own, with limits.
//
// A job file is a program: for expressions, functions and dynamic blocks make much of little text, and no count of
// what a file holds bounds what it costs. [Pool] therefore starts this binary again for each file, with the hidden
// command that [Main] implements. That process limits its own CPU time and memory before it reads the file, has an
// empty environment and no descriptors but its pipes, and is killed when the caller's context ends.
//
// What is sent and answered: the file and the text of its variables go to standard input, with their sizes in the
// arguments. Standard output has two lines of JSON: the job or null, then an [answer]. The exit status states which
// limit was reached, if one was.
package jobparse
