package workflow

import "math/bits"

// Shares divides a total in proportion to shares by largest remainder: each gets its quotient rounded down, and what is left
// over goes one by one to the largest remainders, of equal ones to the first named. Where no share is stated, which is all
// 0, the first gets all of it. Negative totals and shares count as 0; the sum of the shares has to be less than 2^63.
func Shares(total int64, shares []int64) []int64 {
	parts := make([]int64, len(shares))
	divide(max(total, 0), shares, parts, make([]bool, len(shares)))
	return parts
}

// divide writes into parts how a total is shared among those that are not fixed, and leaves the others' as they are.
func divide(total int64, shares, parts []int64, fixed []bool) {
	var sum, divided uint64
	first := -1
	for i, s := range shares {
		if !fixed[i] {
			sum += uint64(max(s, 0))
			parts[i] = 0
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return
	}
	if sum == 0 {
		parts[first] = total
		return
	}
	remainders := make([]uint64, len(shares))
	for i, s := range shares {
		if !fixed[i] {
			high, low := bits.Mul64(uint64(total), uint64(max(s, 0)))
			quotient, remainder := bits.Div64(high, low, sum)
			parts[i], remainders[i] = int64(quotient), remainder
			divided += quotient
		}
	}
	for rest := uint64(total) - divided; rest > 0; rest-- {
		most := -1
		for i := range shares {
			if remainders[i] > 0 && (most < 0 || remainders[i] > remainders[most]) {
				most = i
			}
		}
		parts[most]++
		remainders[most] = 0
	}
}

// Lend is one of those to whom a workflow lends, and what it wants, all in the unit that is divided.
type Lend struct {
	Share int64 // in proportion to the others'; 0: stated by none, or it gets only what the others leave
	Used  int64 // what its borrowers use
	Wants int64 // what they would use in all; less than Used counts as Used
}

// Due returns how much of a total each may use in all: its share, or, where no share is stated, in order what each wants. What
// one does not want goes to the others, by their shares. Nobody gets less than it uses, since what was lent is not taken
// back for another's sake. The sum is at most the total if what is used is.
func Due(total int64, lends []Lend) []int64 {
	due, shares, fixed := make([]int64, len(lends)), make([]int64, len(lends)), make([]bool, len(lends))
	stated := false
	for i, l := range lends {
		due[i], shares[i] = max(l.Used, 0), max(l.Share, 0)
		stated = stated || l.Share > 0
	}
	if !stated {
		inOrder(total, lends, due)
		return due
	}
	inProportion(total, lends, due, shares, fixed)
	inOrder(total, lends, due) // what those with a share leave
	return due
}

// inOrder adds to what is due, in order, what each wants of the rest of a total.
func inOrder(total int64, lends []Lend, due []int64) {
	for _, d := range due {
		total -= d
	}
	for i, l := range lends {
		more := max(min(l.Wants-due[i], total), 0)
		due[i] += more
		total -= more
	}
}

// inProportion divides a total among those that have a share, none of whom gets less than it uses or more than it wants. Those whose
// bounds are exceeded are fixed at them and the others divide the rest: first those that exceed the bounds by more in sum, lower or
// upper, so that what is fixed stays right (as flexible lengths are resolved in CSS).
func inProportion(total int64, lends []Lend, due, shares []int64, fixed []bool) {
	for i := range shares {
		fixed[i] = shares[i] == 0
	}
	for parts := make([]int64, len(lends)); ; {
		rest := max(total, 0)
		for i := range fixed {
			if fixed[i] {
				rest = max(rest-due[i], 0)
			}
		}
		divide(rest, shares, parts, fixed)
		var excess int64
		for i, l := range lends {
			if !fixed[i] {
				excess += bounded(parts[i], l) - parts[i]
			}
		}
		done := true
		for i, l := range lends {
			if fixed[i] {
				continue
			}
			due[i] = bounded(parts[i], l)
			if diff := due[i] - parts[i]; diff > 0 && excess >= 0 || diff < 0 && excess <= 0 {
				fixed[i], done = true, false
			}
		}
		if done {
			return
		}
	}
}

// bounded returns a part within what a lend uses and wants.
func bounded(part int64, l Lend) int64 {
	used := max(l.Used, 0)
	return max(min(part, max(l.Wants, used)), used)
}
