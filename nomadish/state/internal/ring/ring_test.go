package ring

import "testing"

// TestDropFreesMemory: what is dropped is kept no longer, and what came after it is.
func TestDropFreesMemory(t *testing.T) {
	r := New[string](100)
	for i := range uint64(4) {
		r.Append([]Batch[string]{{Index: i + 1, Items: []string{"a", "b"}}})
	}
	r.Drop(3)
	if len(r.batches) != 1 || r.batches[0].Index != 4 || r.items != 2 {
		t.Errorf("%d batches are kept, of %d items: %+v", len(r.batches), r.items, r.batches)
	}
}
