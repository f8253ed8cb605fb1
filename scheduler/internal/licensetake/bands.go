package licensetake

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// FromBands returns who of those that may be taken from leaves for one more instance of these terms; nil: all of them are too few. They are walked
// from the lowest priority up, the latest submitted first within one, until the instance has its licenses; then those have theirs back that could
// stay beside the rest, the highest priority first (part 3).
func FromBands(e *world.Edit, t *structs.AllocTerms, recognised bool, may func(*world.Usage) bool) (victims []*world.Usage) {
	edit := world.LicenseEdit{E: e}
	lacks := func() bool { return edit.LacksFor(t, 1, recognised) != "" }
	count := func(u *world.Usage, sign int64) { edit.Reserve("", u.Owner.Job, &u.Owner.Terms, sign) }
	for _, u := range candidates(e, t, may) {
		if !lacks() {
			break
		}
		count(u, -1)
		victims = append(victims, u)
	}
	enough := !lacks()
	var leave []*world.Usage
	for _, u := range slices.Backward(victims) {
		if count(u, 1); enough && lacks() {
			count(u, -1)
			leave = append(leave, u)
		}
	}
	for _, u := range leave { // the edit is as it was
		count(u, 1)
	}
	slices.Reverse(leave)
	return leave
}

// candidates lists those that use what is requested and may be taken from, in the order in which they are walked.
func candidates(e *world.Edit, t *structs.AllocTerms, may func(*world.Usage) bool) (list []*world.Usage) {
	w := world.Base(e)
	seen := map[string]bool{}
	for _, r := range t.Licenses.List() {
		for id := range w.Licenses().Users(r.Name) {
			if u, counts := world.Usages(w).Get(id); counts && !seen[id] && may(u) {
				list = append(list, u)
			}
			seen[id] = true
		}
	}
	slices.SortFunc(list, func(a, b *world.Usage) int {
		x, y := &a.Owner.Terms, &b.Owner.Terms
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Submitted, x.Submitted), cmp.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
	})
	return list
}
