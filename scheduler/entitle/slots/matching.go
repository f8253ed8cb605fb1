package slots

import (
	"cmp"
	"slices"
	"strings"
)

// JobUse is how many slots the instances of a job use.
type JobUse struct {
	Job   string
	Slots int
}

// Free returns how many slots the row has left that has most of those that match what is submitted: an instance uses slots of one row alone.
func (a *Account) Free(s *Submission) (n int) {
	for i := range a.rows {
		if a.rows[i].matches(s) {
			n = max(n, a.rows[i].Count-a.used[i])
		}
	}
	return n
}

// Matching returns how many slots the rows have that match what is submitted, and who uses them: the jobs that use most first.
func (a *Account) Matching(s *Submission) (given int, by []JobUse) {
	rows, jobs := map[int]bool{}, map[string]int{}
	for i := range a.rows {
		if a.rows[i].matches(s) {
			rows[i] = true
			given += a.rows[i].Count
		}
	}
	for _, h := range a.list {
		if rows[h.row] {
			jobs[h.of.Job] += h.of.Cost
		}
	}
	for job, n := range jobs { // sorted below
		by = append(by, JobUse{job, n})
	}
	slices.SortFunc(by, func(x, y JobUse) int {
		return cmp.Or(cmp.Compare(y.Slots, x.Slots), strings.Compare(x.Job, y.Job))
	})
	return given, by
}
