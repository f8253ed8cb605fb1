// Package admit decides what owners may be given of the cells of a World (docs/design/semantics.md, part 2, "Admission"): it finds the chains and the
// cells that a request names, tries on copies of the World what an edit would leave of Invariant S, now and at times to come, and names what is
// short, and what there is instead. It must never change a World.
package admit
