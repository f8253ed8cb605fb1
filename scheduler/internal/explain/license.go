package explain

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/license"
	"github.com/nomadish/nomadish/scheduler/internal/standing"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// licenses explains which license the instances that are left find too few of, and who uses it.
func (x *explainer) licenses(out *structs.GroupExplanation, left int) {
	lacking, why := x.lackingLicense(out.Group)
	if why == "" {
		return
	}
	wait := structs.Wait{Kind: structs.ReasonLicense, Instances: left, Text: why}
	used := map[structs.NamespacedID]int64{}
	for id, n := range x.after.Licenses().Users(lacking.Name) {
		u, counts := world.Usages(x.after).Get(id)
		if !counts {
			continue
		}
		used[structs.NamespacedID{Namespace: u.Owner.Namespace, ID: u.Owner.Job}] += n
		if wait.AllocCount++; wait.AllocCount <= allocsNamed {
			wait.Allocs = append(wait.Allocs, id)
		}
	}
	if text := usersText(used); text != "" {
		wait.Text += "; used by " + text
	}
	wait.Text += sharesText(x.after.Licenses().Shares(lacking.Name))
	out.Waits = append(out.Waits, wait)
}

// lackingLicense returns what an instance of a group requests of the first license that it finds too few of, a gang's first members of all that
// these request, and why; "": of none.
func (x *explainer) lackingLicense(group string) (lacking structs.RequestedLicense, why string) {
	g, edit := x.in.Job.LookupTaskGroup(group), world.LicenseEdit{E: x.after.Edit()}
	instances, terms := 1, feasible.Terms(x.in.Job, g)
	recognised := standing.Of(x.w, x.in.Job) == structs.StandingRecognised
	if work := x.works[group]; work != nil && work.Gang != nil && work.Gang.Whole {
		instances = max(1, work.First)
	}
	for _, r := range g.Licenses().List() {
		terms.Licenses = &structs.LicenseTerms{Requests: []structs.RequestedLicense{r}}
		if why := edit.LacksFor(terms, instances, recognised); why != "" {
			r.Count *= int64(instances)
			return r, why
		}
	}
	return lacking, ""
}

// tooManyLicenses states that an instance of a group, or the first of a gang, request more of a license than there are, so that whatever ends is not enough; "":
// they do not.
func (x *explainer) tooManyLicenses(group string) string {
	lacking, why := x.lackingLicense(group)
	if why == "" {
		return ""
	}
	has := x.after.Licenses().Of(lacking.Name)
	if !has.Exists || lacking.Count <= has.Count {
		return ""
	}
	return fmt.Sprintf("%d of license %q are requested at once, and there are %d in all", lacking.Count, lacking.Name, has.Count)
}

// sharesText states what workflows have reserved of a license, or are to have.
func sharesText(shares []license.Share) (text string) {
	for i := range shares[:min(len(shares), usersNamed)] {
		s := &shares[i]
		if s.Pending {
			text += fmt.Sprintf("; workflow %s, which waits for its reservation, is to have %d", s.Workflow, s.Total)
			continue
		}
		text += fmt.Sprintf("; workflow %s has reserved %d, of which it uses %d and lends %d", s.Workflow, s.Total, s.Used, s.Lent)
	}
	if more := len(shares) - usersNamed; more > 0 {
		text += fmt.Sprintf("; %d more workflows have reserved some", more)
	}
	return text
}

// usersNamed bounds the jobs that an explanation names as users of a license.
const usersNamed = 5

// usersText names the jobs that use most of a license.
func usersText(used map[structs.NamespacedID]int64) string {
	jobs := make([]structs.NamespacedID, 0, len(used))
	for job := range used { // order does not matter: sorted below
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b structs.NamespacedID) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	var parts []string
	for _, job := range jobs[:min(len(jobs), usersNamed)] {
		parts = append(parts, fmt.Sprintf("job %q of namespace %q (%d)", job.ID, job.Namespace, used[job]))
	}
	if more := len(jobs) - usersNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more jobs", more))
	}
	return strings.Join(parts, ", ")
}

// moreLicenses tries to have as many more of the license that is lacking as the instances that are left request.
func (p *remedySearch) moreLicenses() {
	lacking, why := p.x.lackingLicense(p.g.Name)
	if why == "" {
		return
	}
	has := p.x.w.Licenses().Of(lacking.Name)
	if !has.Exists {
		return
	}
	count := p.licensesFor(lacking.Name, max(lacking.Count, int64(p.before)*p.requested(lacking.Name)))
	with := func(n int) alteration {
		return alteration{world: func(e *world.Edit) { world.LicenseEdit{E: e}.Set(lacking.Name, has.Count+int64(n)) }}
	}
	if len(p.x.after.Licenses().Shares(lacking.Name)) > 0 { // it may borrow what another has to have beside it
		if queued, ok := p.try(with(int(count - has.Count))); ok {
			count = has.Count + int64(p.fewest(int(count-has.Count), queued, with))
		}
	}
	p.check(with(int(count-has.Count)), structs.Remedy{
		Kind: structs.RemedyLicense, Size: 0.3, Text: fmt.Sprintf("%d more of license %q: count %d", count-has.Count, lacking.Name, count),
		Edits: []structs.Edit{{On: structs.EditLicense, ID: lacking.Name, Op: structs.EditReplace, Path: "/Count", Value: raw(count), Was: raw(has.Count)}},
	})
}

// licensesFor returns the least count of a license with which so many are free for the group beside what its job gets now. What is added may be of a
// workflow first, which lends so much less of its own, or waits for it.
func (p *remedySearch) licensesFor(name string, need int64) int64 {
	book := p.x.after.Licenses()
	by := world.LicenseEdit{E: p.x.after.Edit()}.TakerOf(feasible.Terms(p.x.in.Job, p.g), standing.Of(p.x.w, p.x.in.Job) == structs.StandingRecognised)
	least, most := book.Of(name).Count, max(book.Of(name).Count, book.Of(name).Used)+need
	for _, s := range book.Shares(name) {
		most += s.Total
	}
	least, most = min(least, structs.MaxLicenseCount), min(most, structs.MaxLicenseCount)
	return least + int64(sort.Search(int(most-least), func(more int) bool {
		return book.Set(&world.Token{}, name, least+int64(more)).FreeFor(name, by) >= need
	}))
}

// requested returns how many of a license an instance of the group requests.
func (p *remedySearch) requested(name string) int64 {
	for _, r := range p.g.Licenses().List() {
		if r.Name == name {
			return r.Count
		}
	}
	return 0
}
