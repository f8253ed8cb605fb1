package structs

import (
	"cmp"
	"slices"
	"strings"
)

// Quota returns the cells of a claim as a quota whose chain is found.
func (c *CellClaim) Quota() CellQuota {
	return CellQuota{NodePool: c.NodePool, Kind: c.Kind() + "/" + c.Tree, Chain: c.Chain, Level: c.Level, Size: c.Size, Count: c.Count}
}

// Waits reports whether an edit, or cells that are due, wait until they can be admitted.
func (v *VirtualCluster) Waits() bool { return v.Pending != nil || v.CellsWait() }

// CellsWait reports whether cells that are due are not given yet.
func (v *VirtualCluster) CellsWait() bool {
	return slices.ContainsFunc(v.Claims, func(c CellClaim) bool { return c.Waits })
}

// WithGiven returns the claims when some cells of one that waits are given, at an index of the log: after all that was admitted before.
func (v *VirtualCluster) WithGiven(at, count int, index uint64) []CellClaim {
	claims := slices.Clone(v.Claims)
	given := claims[at]
	given.Count, given.Waits, given.Order = count, false, index<<16|1<<15|uint64(at)
	claims[at].Count -= count
	claims[at].Pins = nil
	claims = slices.DeleteFunc(append(claims, given), func(c CellClaim) bool { return c.Count == 0 })
	sortClaims(claims)
	return claims
}

// AllGiven returns the claims as if nothing waited.
func (v *VirtualCluster) AllGiven() []CellClaim {
	claims := slices.Clone(v.Claims)
	for i := range claims {
		claims[i].Waits = false
	}
	return claims
}

// DueCells is cells of a virtual cluster that are due and not given yet: one of its claims.
type DueCells struct {
	Owner string
	Claim CellClaim
}

// Due returns the cells that virtual clusters wait for, in the order in which they became due.
func Due(all []*VirtualCluster) (list []DueCells) {
	for _, v := range all {
		for _, c := range v.Claims {
			if c.Waits {
				list = append(list, DueCells{v.Name, c})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b DueCells) int {
		return cmp.Or(cmp.Compare(a.Claim.Order, b.Claim.Order), strings.Compare(a.Owner, b.Owner))
	})
	return list
}

// Waiter is what waits, and of which cells.
type Waiter struct {
	What string
	More []CellQuota
}

// WaitingEdit returns the edit of a virtual cluster that waits for more of some cells.
func WaitingEdit(v *VirtualCluster, more []CellQuota) Waiter {
	return Waiter{"the pending edit of " + v.Name, more}
}

// WaitingCells returns cells that are due and wait.
func WaitingCells(d DueCells) Waiter {
	return Waiter{"what " + d.Owner + " is to own by now", []CellQuota{d.Claim.Quota()}}
}

// Behind returns an error of CodeConflict if a virtual cluster needs more cells of a level of which others, before it, wait for some.
func Behind(before []Waiter, name string, more []CellQuota) error {
	if w, level := behind(before, more); w != nil {
		return Errorf(CodeConflict, "virtual cluster %q: %w", name, Errorf(CodeConflict, "it waits behind %s, which needs cells of level %s, too", w.What, level).
			WithHint("repeat it with -when-free to wait in order"))
	}
	return nil
}

// behind returns the first of some that wait that needs cells of a level of which there is to be more, and that level.
func behind(before []Waiter, more []CellQuota) (first *Waiter, level string) {
	for at := range before {
		for i := range more {
			if slices.ContainsFunc(before[at].More, func(o CellQuota) bool { return o.SameLevel(&more[i]) }) {
				return &before[at], more[i].Level
			}
		}
	}
	return nil, ""
}

// BehindSlots returns an error of CodeConflict if slots that are cells need more of a level of which virtual clusters wait for some.
func BehindSlots(before []Waiter, more []CellQuota) error {
	if w, level := behind(before, more); w != nil {
		return Errorf(CodeConflict, "level %s: %s needs such cells, too, and goes first", level, w.What)
	}
	return nil
}

// AddWaiting adds to what is shown what waits, and why. What is won comes last.
func (s *VirtualClusterStatus) AddWaiting(v *VirtualCluster, why string) {
	for i := range v.Claims {
		c := &v.Claims[i]
		if !c.Waits {
			continue
		}
		at := slices.IndexFunc(s.Cells, func(l *CellStatus) bool {
			return l.Kind == c.Kind() && l.NodePool == c.NodePool && l.Level == c.Level && l.Size == c.Size
		})
		if at < 0 {
			at = len(s.Cells)
			s.Cells = append(s.Cells, &CellStatus{Kind: c.Kind(), NodePool: c.NodePool, Level: c.Level, Size: c.Size})
		}
		l := s.Cells[at]
		l.Waiting += c.Count
		late := min(l.Won, max(0, -l.Given))
		l.Won, l.Given = l.Won-late, l.Given+late
		s.Waits = why
	}
}
