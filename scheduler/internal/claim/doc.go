// Package claim finds the cells in which an instance may use what its namespace owns (semantics part 2, "Choice"): the free cells
// of what is bound already, the smallest first; then those that may be bound, without loss before others, the exact size before a
// larger one, then those of least loss; and at last several cells of one node, for devices that need not lie under one.
//
// A [Finder] is for the instances of one group and for one evaluation. It only reads the edit of that evaluation: whether an instance fits
// in a cell that it names, and what has to make room there, is for the caller to try.
//
// The package must never place, bind or reclaim anything.
package claim
