// Package slot finds where instances of a project may use its slots (docs/design/semantics.md, part 4): on nodes that have enough of their type left for
// what they cost and the guards that they need, and where they have room. Where others must leave for that, it says in which order they may be
// taken from. It must never change anything, nor say who is to leave: that is for package decide.
package slot
