// Package licensetake chooses who returns licenses that others need (docs/design/semantics.md, parts 3 and 5): borrowers to the workflow that lent them, lower
// bands to a higher one; never more of them than it takes. It places nothing, and leaves the edit as it was.
package licensetake
