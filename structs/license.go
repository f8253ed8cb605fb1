package structs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// What a license may be at most.
const (
	// MaxLicenses bounds the licenses of a region.
	MaxLicenses = 10_000
	// MaxLicenseCount bounds the count of one of them.
	MaxLicenseCount = 1_000_000_000
	// MaxLicenseDescription is in characters.
	MaxLicenseDescription = 256
	// MaxLicenseMeta is in bytes of names and values.
	MaxLicenseMeta = 16 << 10
)

// License is a counter of a region: so many instances of a license may be used at once, on whatever nodes (semantics part 5).
type License struct {
	Name        string            `hcl:"name,label"`                         // the name of the license, as jobs state it
	Count       int64             `hcl:"count" check:"min=0,max=1000000000"` // how many there are
	Description string            `hcl:"description"`                        // for people
	Meta        map[string]string `hcl:"meta,block"`                         // metadata, for people and programs
	CreateIndex uint64
	ModifyIndex uint64
}

// ValidLicense reports whether a license may have this name.
func ValidLicense(name string) bool { return isWord(name, true) }

// Copy returns a copy that shares nothing with l.
func (l *License) Copy() *License {
	if l == nil {
		return nil
	}
	out := *l
	out.Meta = maps.Clone(l.Meta)
	return &out
}

// Validate returns an error of CodeBadRequest if there can be no such license.
func (l *License) Validate() error {
	switch {
	case l == nil || l.Name == "":
		return Errorf(CodeBadRequest, "missing license name")
	case !ValidLicense(l.Name):
		return Errorf(CodeBadRequest, "license %q: its name must be 1 to 128 letters, digits, dashes or underscores", clip(l.Name))
	case l.Count < 0 || l.Count > MaxLicenseCount:
		return Errorf(CodeBadRequest, "license %q: count: must be 0 to %d, not %d", l.Name, MaxLicenseCount, l.Count)
	case utf8.RuneCountInString(l.Description) > MaxLicenseDescription:
		return Errorf(CodeBadRequest, "license %q: description: must be at most %d characters, not %d", l.Name, MaxLicenseDescription,
			utf8.RuneCountInString(l.Description))
	}
	if n := pairBytesOf(l.Meta); n > MaxLicenseMeta {
		return Errorf(CodeBadRequest, "license %q: meta: the names and values have %d bytes in all, at most %d are allowed", l.Name, n, MaxLicenseMeta)
	}
	return nil
}

// RequestedLicense is how many of a license an instance requests.
type RequestedLicense struct {
	Name  string
	Count int64
}

// LicenseTerms is the licenses that an instance uses while it runs, in the order of their names, each once. It is never changed.
type LicenseTerms struct{ Requests []RequestedLicense }

// Equal reports whether both are the same licenses; nil is none.
func (t *LicenseTerms) Equal(o *LicenseTerms) bool { return t == o || slices.Equal(t.List(), o.List()) }

// List returns the requests; of nil none.
func (t *LicenseTerms) List() []RequestedLicense {
	if t == nil {
		return nil
	}
	return t.Requests
}

// Licenses returns what one instance of the group requests of licenses; nil: none.
func (g *TaskGroup) Licenses() *LicenseTerms {
	var sum map[string]int64
	for _, t := range g.Tasks {
		if t.Resources == nil {
			continue
		}
		for name, n := range t.Resources.Licenses { // order does not matter: each by itself
			if sum == nil {
				sum = map[string]int64{}
			}
			sum[name] += int64(n)
		}
	}
	if len(sum) == 0 {
		return nil
	}
	terms := &LicenseTerms{}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		terms.Requests = append(terms.Requests, RequestedLicense{name, sum[name]})
	}
	return terms
}

// UnknownLicenses returns an error that names the places of a job where it requests a license that is not known, and the nearest one that is.
// known are all licenses of the region, in order.
func (j *Job) UnknownLicenses(known []string) error {
	var problems Problems
	for _, g := range j.TaskGroups {
		group := ChildPath(ChildPath("", "job", j.ID, -1), "group", g.Name, -1)
		for _, t := range g.Tasks {
			if t.Resources == nil {
				continue
			}
			for _, name := range sortedKeys(t.Resources.Licenses) {
				if _, found := slices.BinarySearch(known, name); found {
					continue
				}
				problems = append(problems, Problem{
					Path: ChildPath(ChildPath(group, "task", t.Name, -1), "resources", "", -1), Field: "licenses", Text: unknownLicense(name, known),
				})
			}
		}
	}
	return problems.Err()
}

// UnknownLicenses returns an error of CodeBadRequest if the workflow reserves or lends a license that is not known. known are all licenses of the
// region, in order. Those that its jobs request are theirs to check.
func (w *Workflow) UnknownLicenses(known []string) error {
	for _, of := range []struct {
		field string
		*WorkflowResources
	}{{"reserve", w.Reserve.Amounts}, {"lend_max", w.LendMax}} {
		if of.WorkflowResources == nil {
			continue
		}
		for _, r := range of.LicenseList() {
			if _, found := slices.BinarySearch(known, r.Name); !found {
				return Errorf(CodeBadRequest, "workflow %q: %s: licenses: %s", clip(w.ID), of.field, unknownLicense(r.Name, known))
			}
		}
	}
	return nil
}

// maxLicensesNamed bounds the licenses that an error lists.
const maxLicensesNamed = 10

func unknownLicense(name string, known []string) string {
	text := fmt.Sprintf("unknown license %q: ", clip(name))
	if len(known) == 0 {
		return text + "this region has no licenses; `nomadish license apply` makes one"
	}
	text += "this region has " + strings.Join(known[:min(len(known), maxLicensesNamed)], ", ")
	if more := len(known) - maxLicensesNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if near := Nearest(name, known); near != "" {
		return text + fmt.Sprintf("; did you mean %q?", near)
	}
	return text + "; `nomadish license apply` makes one"
}

// LicenseStub is a license in a list, with how many are used.
type LicenseStub struct {
	License
	Used int64
	// Free is how many any job may take now: what idles of workflows' reservations is not, nor what those keep that wait. It is never below 0: more may be used
	// than there are since their count was lowered.
	Free int64
	// Reserved is how many workflows have reserved, whether or not these are used or lent.
	Reserved int64
}

// LicenseUser is a group of a job that uses a license.
type LicenseUser struct {
	Namespace string
	JobID     string
	TaskGroup string
	Allocs    int   // that use it
	Count     int64 // that these use
	// Workflow names the one that the job is of and whose reservation it uses, with its namespace; Borrows the one from whose reservation it borrows.
	Workflow string
	Borrows  string
}

// LicenseReservation is what a workflow has reserved of a license. Used, Lent, Idle and Lost add up to Reserved; of one that is pending, Idle is
// what it keeps as it comes free.
type LicenseReservation struct {
	Namespace string
	Workflow  string
	Pending   bool
	Reserved  int64
	Used      int64
	Lent      int64
	Idle      int64
	// Lost is what there is not any more, as the count was lowered since.
	Lost int64
}

// LicenseStatus is a license with who uses it, those who use most first, and the workflows that have reserved some.
type LicenseStatus struct {
	LicenseStub
	Users        []LicenseUser
	Reservations []LicenseReservation
}

// SortUsers puts those who use most first.
func (s *LicenseStatus) SortUsers() {
	slices.SortFunc(s.Users, func(a, b LicenseUser) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.TaskGroup, b.TaskGroup))
	})
}

// What is called of licenses, answered and stored.
type (
	// LicenseUpsertEntry makes a license or replaces it. CAS: only if it was last changed at CheckIndex; 0: only if there is none.
	LicenseUpsertEntry struct {
		License    *License
		CAS        bool
		CheckIndex uint64
		Time       int64
	}
	// LicenseDeleteEntry removes a license that nobody uses. CAS as in LicenseUpsertEntry.
	LicenseDeleteEntry struct {
		Name       string
		CAS        bool
		CheckIndex uint64
		Time       int64
	}
	// LicenseUpsertRequest makes a license or replaces it. CAS as in LicenseUpsertEntry.
	LicenseUpsertRequest struct {
		License    *License
		CAS        bool
		CheckIndex uint64
		WriteRequest
	}
	// LicenseDeleteRequest removes a license that nobody uses. CAS as in LicenseUpsertEntry.
	LicenseDeleteRequest struct {
		Name       string
		CAS        bool
		CheckIndex uint64
		WriteRequest
	}
	// LicenseReply is a license; nil: there is none of the name.
	LicenseReply struct {
		License *LicenseStatus
		QueryMeta
	}
	// LicenseListReply lists licenses.
	LicenseListReply struct {
		Licenses []*LicenseStub
		QueryMeta
	}
)
