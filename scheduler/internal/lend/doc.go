// Package lend finds where instances of a workflow use its reservation, and where others borrow from one (docs/design/semantics.md, part 5): who may
// borrow, for how long, and who leaves when a stage needs what was lent. It places nothing and changes nothing.
package lend
