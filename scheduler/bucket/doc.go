// Package bucket finds a node for a volume without scanning the nodes.
//
// # Problem
//
// A job requests a vector of resources (cpu, memory, disk, GPUs, …), and wants of
// all nodes that have so much the one with the least or the most left, or the
// next by ID, or a random one. There are 100,000 nodes, each placement changes
// one, and many schedulers look at different moments of the same cluster.
//
// # Words
//
// An entry is a node: an ID, its exact availability and a value of the caller's.
// A coordinate is an availability divided by its granularity and rounded up; the
// coordinates of the dimensions in Config.Order, then the ID, order the entries.
// A vertex is a distinct prefix of coordinates, a leaf of that tree a distinct set
// of them ([Index.Vertices]). Coordinates decide order only: whether a request fits
// is always decided on exact values. The suitable region is where all coordinates
// are at least the request's. A policy is the order in which suitable entries are
// offered. A page holds up to 32 entries, or 32 pages with the maxima below each.
//
// # Invariants
//
// [Index.Check] proves them:
//
//   - entries are in order, each ID with its coordinates once;
//   - a separator is above all keys to its left, and at most those to its right;
//   - for each child page, its size and its maxima in every dimension are exact;
//   - no page is empty, and all leaf pages are at one depth.
//
// A copy of an [Index] never changes, whatever is done to the other. A search
// visits a page only if each dimension's maximum below it is enough, so none
// outside the suitable region. What [Cursor.Next] returns fits exactly.
//
// # Complexity
//
// For n entries of D dimensions: a snapshot is O(1); Add, Remove and Update are
// O(D log n), and copy one page a level and only those that the token does not
// own. A search in the index's own order is O(D log n) where maxima lead it. Where
// they do not (half the nodes short of memory, the others of disk) it is one pass
// over packed columns; the next search of the same cursor goes on where that ended.
// A job's own order of dimensions costs few pages for LeastFit, and up to one such
// pass for each entry under BestFit. FirstFit and NextFit want an index without
// Order: in any other each entry costs a pass.
//
// # Example
//
// Dimensions (vcore, memory GiB), nodes a(4,4) b(4,2) c(3,5) e(6,1), request (1,2). In
// order: c, b, a, e. BestFit offers c, b, a; e has too little memory. LeastFit
// offers a, b, c. With granularity (2,3), the coordinates are a(2,2) b(2,1) c(2,2)
// e(3,1): LeastFit offers a, c, b. e stands first, and the exact check refuses it.
//
// # Never
//
// This package uses neither clock nor chance (Random is a function of its seed),
// takes no lock, and panics on no input. An Index is for one goroutine while it
// is edited; snapshots may be read by any number.
//
// Source: semantics part 1.
package bucket
