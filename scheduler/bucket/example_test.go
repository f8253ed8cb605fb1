package bucket_test

import (
	"fmt"

	"github.com/nomadish/nomadish/scheduler/bucket"
)

// The dimensions of the example, in the order that makes the coordinates.
const (
	vcores = iota
	gib
)

func Example() {
	index := bucket.New[string](bucket.Config{Order: []int{vcores, gib}})
	token := bucket.NewToken()
	bucket.Add(token, &index, "a", bucket.Vector{vcores: 4, gib: 4}, "rack 1")
	bucket.Add(token, &index, "b", bucket.Vector{vcores: 4, gib: 2}, "rack 1")
	bucket.Add(token, &index, "c", bucket.Vector{vcores: 3, gib: 5}, "rack 2")
	snapshot := index

	demand := bucket.Vector{vcores: 1, gib: 2}
	cursor := bucket.Search(&index, bucket.Query[string]{Need: demand, Policy: bucket.BestFit})
	token = bucket.NewToken() // the snapshot is kept: its pages must not change
	for range 2 {
		node, _ := cursor.Next(&index)
		fmt.Println("take from", node.ID, "in", node.Value)
		left := node.At
		left[vcores] -= demand[vcores]
		left[gib] -= demand[gib]
		bucket.Update(token, &index, node.ID, node.At, left, node.Value)
	}
	now, before := index.Max(), snapshot.Max()
	fmt.Println("most left:", now[:2], "before:", before[:2])
	// Output:
	// take from c in rack 2
	// take from b in rack 1
	// most left: [4 4] before: [4 5]
}
