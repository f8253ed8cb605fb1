// Package cell decides which devices of one node a request gets, so that large groups of close
// devices stay whole.
//
// # Words
//
// A [Layout] is the tree of a node's devices: node, socket, switch, GPU, slice of a GPU, or
// whatever levels there are; any depth, even or not. A device is a leaf and has a number. A cell is
// the devices under one vertex. It is free if all of them are healthy and nobody holds any part of
// them; a free cell is maximal if it lies in no other. A [State] records what is healthy and taken in
// one tree. A [Request] is what one instance wants, a [Choice] what it would get.
//
// # Invariants
//
// The maximal free cells are disjoint and hold every free device. Cells split and
// merge by themselves: they follow from which devices are free, and nothing else is
// kept. So releases in any order end in the same State, which [State.Check] and
// [State.Equal] can prove. A Find changes nothing, and equal questions have equal
// answers.
//
// # Cost
//
// Up to 64 devices a State is a few machine words, and all ways to cut a free cell are made once,
// with the Layout: Find, Take and Give take tens to hundreds of nanoseconds. Above, a State keeps a
// count for each vertex: Take and Give cost the depth of the tree, Find the number of its vertices.
// DESIGN.md has more.
//
// # Example
//
// A node of 2 sockets, each with 2 switches of 2 GPUs, all free, is one cell of 8. A request for 2
// takes devices 0 and 1 and leaves cells of 2 (2, 3) and of 4 (4 to 7). When they are released
// there is one cell of 8 again.
//
// # Never
//
// This package knows no names, tenants or priorities, and no other node. It does not
// panic on input, uses neither clock nor randomness, takes no lock and starts no goroutine.
//
// Source: semantics part 2, "Buddy allocation", "topology", "Shares", "Bad GPUs". The
// cells of a cluster, and whose they are, are decided elsewhere.
package cell
