// Package persist holds persistent (copy-on-write) structures: an ordered map, [Tree],
// and a vector, [Vector].
//
// # Problem
//
// A state of a million rows changes some thousand times a second, and many readers
// look at different moments of it. A snapshot must cost nothing to take, and must stay
// as it is for as long as somebody reads it; a change must not cost more than what it
// changes.
//
// # Words
//
// A snapshot is a copy of the struct: the pages below it are shared. A page holds up to
// 32 entries (a leaf) or 32 pages (an inner page). A [Token] states who may change a page
// in place: the edit that made it. A page of another token is copied before it is
// changed, once for each edit. An edit takes a new token, works on a copy of the
// struct, and is done when it hands that copy to readers; it must not use the token
// afterwards. In an inner page of a Tree keys[i] separates the children i-1 and i, and
// keys[0] has no meaning.
//
// # Invariants
//
// [Tree.Check] proves those of a Tree:
//
//   - keys are in order, each once;
//   - a separator is above all keys to its left, and at most those to its right;
//   - no page is empty, none has more than 32 entries, a root that is an inner page has
//     two children at least;
//   - all leaves are at one depth, and Len counts their entries.
//
// [Vector.Check] those of a Vector: a page counts its entries that are not nil, and has one at least; leaves
// are at the depth that the vector states.
//
// And of both: what is done with one token changes no page of another one.
//
// # Complexity
//
// For n keys: a snapshot is O(1); Get, Put and Delete of a Tree are O(log n)
// comparisons, and a change copies one page a level, and only those that its token does
// not own. Keys that only grow fill their pages; random ones fill two thirds of them. A
// walk is O(log n) to its first entry, then O(1) for each. Get and Set of a Vector are
// one step for each five bits of the highest index so far.
//
// # Example
//
// Keys 1 to 32 fill one leaf. Put of 33 cuts it: as 33 stands at the end, the left page
// stays full, and the right one has 33 alone; a new root has both. A snapshot is taken,
// and a new token deletes 33: it copies the root and the right page, finds that page
// empty and drops it, and as the root has one child then, that is the new root: the
// very leaf of the snapshot, which is still what it was, as nothing in it has changed.
//
// # Never
//
// This package uses neither clock nor chance, takes no lock, and knows nothing of what
// it holds but the order of keys. A structure is for one goroutine while it is edited;
// snapshots may be read by any number.
//
// Source: B+-trees and radix trees with path copying, and the transients of Clojure's
// vectors, whose owner is the token here.
package persist
