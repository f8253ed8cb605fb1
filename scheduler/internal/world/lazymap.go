package world

// PutInto sets an entry of a map that is made with the first one: most of those of a decision
// stay empty.
func PutInto[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
