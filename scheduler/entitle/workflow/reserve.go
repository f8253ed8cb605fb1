package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Reserve is the rule by which a workflow reserves: per resource the largest stage, which is the zero value, or as stated.
type Reserve struct {
	Sum      bool      // the sum of all stages
	Stated   Amounts   // per resource a number instead; 0 states none. That of CPU is beside the MHz of whole cores
	PerCore  int64     // MHz of a whole core, which are in the CPU of all other amounts
	Licenses []License // the same for licenses, in the order of their names
}

// License is a number of one license, a counter of the whole cluster. Lists of them are in the order of their names, each once.
type License struct {
	Name  string
	Count int64
}

// BelowStageError reports that a workflow states a number to be reserved that is less than what one of its stages needs.
type BelowStageError struct {
	Resource string // as users write it; of a license its name
	License  bool
	Stated   int64
	Largest  int64 // what the largest stage needs
}

func (e *BelowStageError) Error() string {
	what := e.Resource
	if e.License {
		what = fmt.Sprintf("license %q", e.Resource)
	}
	return fmt.Sprintf("reserve: %s: %d is below the %d that the largest stage needs: state %d or more", what, e.Stated, e.Largest, e.Largest)
}

// NotPackedError reports that a number to be reserved does not suffice, since the stages do not pack into it on the nodes.
type NotPackedError struct {
	Resource string // as users write it
	Stated   int64
	Packed   int64 // what the stages take where they are packed
}

func (e *NotPackedError) Error() string {
	return fmt.Sprintf("reserve: %s: the stages do not pack into %d on the nodes that there are: state %d or more", e.Resource, e.Stated, e.Packed)
}

// Amounts returns how much is reserved for stages that need these totals. It returns a BelowStageError for each number that
// is stated and less than the largest stage needs.
func (r Reserve) Amounts(stages []Amounts) (Amounts, error) {
	var largest, sum Amounts
	for _, s := range stages {
		largest, sum = largest.Max(s), sum.Plus(s)
	}
	var errs []error
	number := func(i int) int64 {
		stated, most := r.Stated.of(i), largest.of(i)
		switch {
		case stated != 0 && stated < most:
			errs = append(errs, &BelowStageError{Resource: names[i], Stated: stated, Largest: most})
			return most
		case stated != 0:
			return stated
		case r.Sum:
			return sum.of(i)
		default:
			return most
		}
	}
	reserved := Amounts{MemoryMB: number(1), DiskMB: number(2), Cores: number(3), Devices: number(4)}
	var beside int64 // what the largest stage needs beside the MHz of its whole cores
	for _, s := range stages {
		beside = max(beside, s.CPU-s.Cores*r.PerCore)
	}
	switch stated := r.Stated.CPU; {
	case stated != 0 && stated < beside:
		errs = append(errs, &BelowStageError{Resource: names[0], Stated: stated, Largest: beside})
		reserved.CPU = largest.CPU
	case stated != 0:
		reserved.CPU = max(largest.CPU, stated+reserved.Cores*r.PerCore)
	case r.Sum:
		reserved.CPU = sum.CPU
	default: // the cores that no stage needs have their MHz, too
		reserved.CPU = largest.CPU + max(0, reserved.Cores-largest.Cores)*r.PerCore
	}
	return reserved, errors.Join(errs...)
}

// Check returns a NotPackedError for each number that is stated and by which a packing had to be enlarged (see [Packing]). The
// other resources may be enlarged.
func (r Reserve) Check(enlarged Amounts) error {
	enlarged.CPU -= enlarged.Cores * r.PerCore
	var errs []error
	for i := range resources {
		if stated, more := r.Stated.of(i), enlarged.of(i); stated != 0 && more > 0 {
			errs = append(errs, &NotPackedError{Resource: names[i], Stated: stated, Packed: stated + more})
		}
	}
	return errors.Join(errs...)
}

// Counts returns how many licenses are reserved for stages that need these, by the same rule. It returns a BelowStageError for each
// number that is stated and less than the largest stage needs. Licenses that no stage needs are reserved only if they are stated.
func (r Reserve) Counts(stages [][]License) ([]License, error) {
	var largest, sum []License
	for _, s := range stages {
		largest = merge(largest, s, func(a, b int64) int64 { return max(a, b) })
		sum = merge(sum, s, func(a, b int64) int64 { return a + b })
	}
	rule := largest
	if r.Sum {
		rule = sum
	}
	var errs []error
	reserved := merge(rule, r.Licenses, func(by, stated int64) int64 {
		if stated != 0 {
			return stated
		}
		return by
	})
	for i := range reserved {
		at, found := find(largest, reserved[i].Name)
		if l := &reserved[i]; found && l.Count < largest[at].Count {
			errs = append(errs, &BelowStageError{Resource: l.Name, License: true, Stated: l.Count, Largest: largest[at].Count})
			l.Count = largest[at].Count
		}
	}
	return reserved, errors.Join(errs...)
}

// find returns where a license is in a list, or would be.
func find(list []License, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(l License, name string) int { return cmp.Compare(l.Name, name) })
}

// merge returns the licenses of two lists, those of one name counted by with. One that a list has not counts as 0 there.
func merge(a, b []License, with func(a, b int64) int64) []License {
	out := make([]License, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			out, a = append(out, License{a[0].Name, with(a[0].Count, 0)}), a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			out, b = append(out, License{b[0].Name, with(0, b[0].Count)}), b[1:]
		default:
			out, a, b = append(out, License{a[0].Name, with(a[0].Count, b[0].Count)}), a[1:], b[1:]
		}
	}
	return out
}
