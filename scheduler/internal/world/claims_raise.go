package world

import (
	"cmp"
	"slices"
	"strings"
)

// raiseKey orders what may be raised: by its namespace, the oldest first.
type raiseKey struct {
	namespace string
	created   int64
	id        string
}

func compareRaiseKeys(a, b raiseKey) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), cmp.Compare(a.created, b.created), strings.Compare(a.id, b.id))
}

func raiseKeyOf(u *Usage) raiseKey { return raiseKey{u.Owner.Namespace, u.Created, u.ID} }

// raisable reports whether a usage could use a claim on cells and does not: its devices are whole ones.
func (u *Usage) raisable() bool {
	return len(u.Devices) > 0 && !u.Guaranteed() && !u.PerNode() && !slices.ContainsFunc(u.Devices, func(d DeviceUsage) bool { return d.Share < WholeDevice })
}

// Raisable calls yield for the usages of a namespace that could use a claim on cells and do not, the oldest first, until it returns
// false; for none while nobody owns anything.
func Raisable(w *World, namespace string, yield func(*Usage) bool) {
	if w.claims == nil {
		return
	}
	w.claims.raisable.Ascend(raiseKey{namespace: namespace}, func(k raiseKey, u *Usage) bool {
		return k.namespace == namespace && yield(u)
	})
}

// MayRaise reports whether an owner has cells free, and anything that might use them as it runs.
func (w *World) MayRaise(owner string) (may bool) {
	Raisable(w, owner, func(*Usage) bool {
		may = slices.ContainsFunc(w.LargestFree(owner), func(level int) bool { return level > 0 })
		return false
	})
	return may
}
