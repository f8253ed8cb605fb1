package world

import "github.com/nomadish/nomadish/scheduler/internal/tree"

// Tree is an ordered map of which a World and its Edits share what they have in common.
type Tree[K, V any] = tree.Tree[K, V]

// Token identifies an edit: it may change the pages and nodes that it owns.
type Token = tree.Token

func newTree[K, V any](compare func(a, b K) int) Tree[K, V] { return tree.New[K, V](compare) }

// PutInto sets an entry of a map that is made with the first one: most of those of a decision
// stay empty.
func PutInto[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
