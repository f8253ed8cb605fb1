// Package gc selects the ended allocations of a node that are removed: the oldest, when
// there are too many allocations or the disk is too full. It is a function; the
// client measures and removes. It stands apart so that the rule knows no client, and is tried without one.
package gc

import (
	"cmp"
	"slices"
	"time"
)

// Limits is how much may be kept.
type Limits struct {
	// MaxAllocs bounds all allocations on the node, running ones too.
	MaxAllocs int
	// DiskPercent is the use of the disk above which ended allocations go.
	DiskPercent float64
}

// Ended is an allocation that may be removed.
type Ended struct {
	ID string
	At time.Time // when it ended
}

// Pick returns the allocations to remove now, the oldest first: as many as exceed the
// count, and at least one while the disk is too full (it is measured again after).
func Pick(ended []Ended, running int, diskPercent float64, limits Limits) []string {
	n := len(ended) + running - limits.MaxAllocs
	if diskPercent > limits.DiskPercent {
		n = max(n, 1)
	}
	n = min(n, len(ended))
	if n <= 0 {
		return nil
	}
	oldest := slices.SortedFunc(slices.Values(ended), func(a, b Ended) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	ids := make([]string, n)
	for i := range ids {
		ids[i] = oldest[i].ID
	}
	return ids
}
