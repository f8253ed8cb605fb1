package users

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of users or of groups: names, numbers, and ranges of numbers.
type Set struct {
	names  []string
	ranges [][2]int
}

// ParseSet reads entries such as "alice", "1000" and "2000-2999". Blanks around them do not count.
func ParseSet(entries []string) (Set, error) {
	var s Set
	for _, e := range entries {
		e = strings.TrimSpace(e)
		first, last, isRange := strings.Cut(e, "-")
		lo, lerr := strconv.Atoi(strings.TrimSpace(first))
		if lerr != nil || e == "" {
			// A name may contain a dash, as well as begin with a digit.
			if e == "" || e[0] == '-' || strings.ContainsAny(e, " \t\n:,/") {
				return Set{}, fmt.Errorf("%q: must be a name, a number, or a range of numbers such as 1000-1999", e)
			}
			s.names = append(s.names, e)
			continue
		}
		hi := lo
		if isRange {
			var err error
			if hi, err = strconv.Atoi(strings.TrimSpace(last)); err != nil {
				return Set{}, fmt.Errorf("%q: must be a range of numbers such as 1000-1999", e)
			}
		}
		if lo < 0 || hi < lo || hi > math.MaxUint32 {
			return Set{}, fmt.Errorf("%q: must be a range of numbers from 0 to %d, the smaller one first", e, uint32(math.MaxUint32))
		}
		s.ranges = append(s.ranges, [2]int{lo, hi})
	}
	return s, nil
}

// Empty reports whether nobody is in the set.
func (s Set) Empty() bool { return len(s.names)+len(s.ranges) == 0 }

// Named reports whether a name is in the set.
func (s Set) Named() bool { return len(s.names) > 0 }

// HasID reports whether a number is in the set.
func (s Set) HasID(id int) bool {
	return slices.ContainsFunc(s.ranges, func(r [2]int) bool { return r[0] <= id && id <= r[1] })
}

// Has reports whether a user is in the set, by its name or its number. A name stands for its number: another name of
// the same user is in the set too.
func (s Set) Has(u User) bool {
	if s.HasID(u.UID) || slices.Contains(s.names, u.Name) {
		return true
	}
	return slices.ContainsFunc(s.names, func(name string) bool {
		other, err := Lookup(name)
		return err == nil && other.UID == u.UID
	})
}

// Policy specifies as whom tasks may run. The zero Policy allows everybody.
type Policy struct {
	// Allowed are the only users that may, unless it is empty; Denied may not in any case.
	Allowed, Denied Set
	// DeniedBy are more that tasks of some drivers may not run as, by the driver's name: of Nomad's client options.
	DeniedBy map[string]Set
}

// Check returns an error if a task of a driver may not run as a user.
func (p Policy) Check(driver string, u User) error {
	switch by := p.DeniedBy[driver]; {
	case p.Denied.Has(u):
		return fmt.Errorf("task user %q: this node runs no tasks as that user (client { users { denied } }); set user to another one", u.Name)
	case !by.Empty() && by.Has(u):
		return fmt.Errorf("task user %q: this node runs no tasks of driver %s as that user (client option user.denylist); set user to another one", u.Name, driver)
	case !p.Allowed.Empty() && !p.Allowed.Has(u):
		return fmt.Errorf("task user %q: is not among the users that this node runs tasks as (client { users { allowed } }); set user to one of them", u.Name)
	}
	return nil
}
