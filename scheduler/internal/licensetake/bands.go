package licensetake

import (
	"cmp"
	"slices"

	"github.com/nomadish/nomadish/scheduler/internal/alike"
	"github.com/nomadish/nomadish/scheduler/internal/together"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// FromBands returns who of those that may be taken from leaves for some licenses, if they lack any; nil: all of them are too few. They are walked
// from the lowest priority up, the latest submitted first within one, until nothing is lacking; then those have theirs back that could stay beside the
// rest, the highest priority first (part 3). Of a gang those leave first without whom it runs on, and then all others together.
func FromBands(e *world.Edit, of []structs.RequestedLicense, lacks func() bool, may func(*world.Usage) bool) (leave []*world.Usage) {
	edit := world.LicenseEdit{E: e}
	count := func(c *candidate, sign int64) {
		for _, u := range c.members {
			if !u.IsSuspended {
				edit.Reserve("", u.Owner.Job, &u.Owner.Terms, sign)
			}
		}
	}
	var walked []*candidate
	for _, c := range candidates(e, of, may) {
		if !lacks() {
			break
		}
		count(c, -1)
		walked = append(walked, c)
	}
	enough, whole := !lacks(), map[world.GangName]bool{}
	for _, c := range slices.Backward(walked) {
		g, gang := c.members[0].Owner.Gang()
		if gang && whole[g] && enough { // the rest of its gang leaves
			leave = append(leave, c.members...)
			continue
		}
		if count(c, 1); enough && lacks() {
			count(c, -1)
			leave = append(leave, c.members...)
			whole[g] = gang && c.rest
		}
	}
	for _, u := range leave { // the edit is as it was
		count(&candidate{members: []*world.Usage{u}}, 1)
	}
	slices.Reverse(leave)
	return leave
}

// candidate is one that may be taken from, or the members of a gang that are left when all have left without whom it runs on.
type candidate struct {
	members []*world.Usage
	rest    bool // of a gang
}

// compare orders those that may be taken from as they are walked.
func (c *candidate) compare(o *candidate) int {
	a, b := c.members[0], o.members[0]
	x, y := &a.Owner.Terms, &b.Owner.Terms
	rest := func(c *candidate) int {
		if c.rest {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Submitted, x.Submitted), cmp.Compare(rest(c), rest(o)), alike.TakenFirst(a, b))
}

// candidates lists those that use what is requested and may be taken from, in the order in which they are walked.
func candidates(e *world.Edit, of []structs.RequestedLicense, may func(*world.Usage) bool) (list []*candidate) {
	w := world.Base(e)
	seen, gangs := map[string]bool{}, map[world.GangName]bool{}
	for _, r := range of {
		for id := range w.Licenses().Users(r.Name) {
			u, counts := world.Usages(w).Get(id)
			if !counts || seen[id] {
				continue
			}
			seen[id] = true
			if g, some := u.Owner.Gang(); some && !gangs[g] {
				gangs[g] = true
				list = append(list, ofGang(world.GangMembers(e, g), of, may)...)
			} else if !some && may(u) {
				list = append(list, &candidate{members: []*world.Usage{u}})
			}
		}
	}
	slices.SortFunc(list, (*candidate).compare)
	return list
}

// ofGang lists the members of a gang that may be taken from: one by one those with licenses that are requested, as many as it does without, the latest
// first, and the rest of it if all may be taken from.
func ofGang(members []*world.Usage, of []structs.RequestedLicense, may func(*world.Usage) bool) (list []*candidate) {
	var rest []*world.Usage
	all, spare := true, together.Spare(members)
	slices.SortFunc(members, alike.TakenFirst)
	for _, u := range members {
		mayLeave := may(u)
		all = all && mayLeave
		if mayLeave && !u.IsSuspended && spare[u.Owner.Group] > 0 && slices.ContainsFunc(of, func(r structs.RequestedLicense) bool { return usesOf(u, r.Name) > 0 }) {
			spare[u.Owner.Group]--
			list = append(list, &candidate{members: []*world.Usage{u}})
			continue
		}
		rest = append(rest, u)
	}
	if all && len(rest) > 0 {
		list = append(list, &candidate{members: rest, rest: true})
	}
	return list
}
