package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/scheduler/internal/schedtest"
	"github.com/nomadish/nomadish/structs"
)

// licenses is a cluster whose nodes have room, and licenses.
type licenses struct{ *projects }

func newLicenses(t tester, counts map[string]int64) *licenses {
	l := &licenses{newProjects(t)}
	l.node("n1")
	l.node("n2")
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		l.set(name, counts[name])
	}
	return l
}

// set states how many there are of a license.
func (l *licenses) set(name string, count int64) {
	if l.licenses == nil {
		l.licenses = map[string]int64{}
	}
	l.licenses[name] = count
	e := l.w.Edit()
	scheduler.SetLicense(e, name, count)
	l.w = e.World()
	l.checkWorld()
}

// used counts what the allocations that run use of a license.
func (l *licenses) used(name string) (n int64) {
	for _, a := range l.allocs {
		if a.Terminal() || a.Suspended() {
			continue
		}
		for _, r := range a.AllocatedResources.Shared.Terms.Licenses.List() {
			if r.Name == name {
				n += r.Count
			}
		}
	}
	return n
}

// licensed has each instance of a job request licenses, and little else.
func licensed(needs map[string]int, change ...func(*structs.Job)) func(*structs.Job) {
	return func(j *structs.Job) {
		requests(50, 100, 100)(j)
		j.TaskGroups[0].Tasks[0].Resources.Licenses = needs
		for _, f := range change {
			f(j)
		}
	}
}

func vcs(n int) map[string]int { return map[string]int{"vcs": n} }

// waits returns why the last job's group waits, as its evaluation states it.
func (l *licenses) waits() string {
	m := l.last.FailedTGAllocs["g"]
	if m == nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(m.DimensionExhausted)), "; ")
}

// TestLicenses: as many instances run as there are licenses; the others wait and say so, until some are returned or there are more.
func TestLicenses(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 10})
	f := func(id string, running int, waits string) {
		t.Helper()
		if l.decide(id); l.running(id) != running || l.waits() != waits {
			t.Errorf("%s: %d run and %q waits, want %d and %q", id, l.running(id), l.waits(), running, waits)
		}
	}
	l.submit("", "a", 6, licensed(vcs(1)))
	l.submit("", "b", 3, licensed(vcs(2)))
	f("a", 6, "")
	f("b", 2, `license "vcs": 2 needed, 0 of 10 free`)
	l.submit("", "plain", 3)
	f("plain", 3, "")
	l.set("vcs", 11)
	f("b", 2, `license "vcs": 2 needed, 1 of 11 free`)
	l.set("vcs", 12)
	f("b", 3, "")
	l.set("vcs", 4) // what runs goes on
	l.submit("", "c", 1, licensed(vcs(1)))
	f("a", 6, "")
	f("c", 0, `license "vcs": 1 needed, 0 of 4 free`)
	l.client(func(a *structs.Allocation) bool { return a.JobID != "c" }, l.ended(false))
	f("c", 1, "")
	l.submit("", "d", 1, licensed(map[string]int{"vcs": 3, "vsc": 1}))
	f("d", 0, `license "vsc": there is no such license`)
}

// TestLicensesOfSuspended: a suspended instance returns its licenses, and goes on only when there are some for it.
func TestLicensesOfSuspended(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 2})
	l.submit("", "a", 2, licensed(vcs(1)))
	l.suspended("a", true)
	l.commit(&structs.JudgedPlan{})
	e := l.w.Edit()
	for _, a := range l.allocs {
		e.UpsertAlloc(a)
	}
	l.w = e.World()
	l.submit("", "b", 1, licensed(vcs(1)))
	if l.running("b") != 1 {
		t.Fatalf("%d of b run: %s", l.running("b"), l.waits())
	}
	l.suspended("a", false)
	l.decide("a")
	if n := l.used("vcs"); n != 2 || !strings.Contains(l.waits(), `license "vcs": 1 needed, 0 of 2 free`) {
		t.Errorf("%d are used; %q", n, l.waits())
	}
}

// TestLicensesOfGang: a gang gets the licenses of all of its first members, or none.
func TestLicensesOfGang(t *testing.T) {
	gang := func(j *structs.Job) { j.TaskGroups[0].Gang = &structs.Gang{Min: 3} }
	l := newLicenses(t, map[string]int64{"vcs": 5})
	l.submit("", "a", 3, licensed(vcs(2), gang))
	if got, want := l.waits(), `license "vcs": 6 needed, 5 of 5 free`; l.running("a") != 0 || !strings.Contains(got, want) {
		t.Errorf("%d run; %q, want %q", l.running("a"), got, want)
	}
	l.submit("", "b", 5, licensed(vcs(1), gang))
	l.submit("", "c", 4, licensed(vcs(1), gang))
	if l.running("b") != 5 || l.running("c") != 0 {
		t.Errorf("%d of b run and %d of c", l.running("b"), l.running("c"))
	}
	l.set("vcs", 8)
	l.decide("c")
	if l.running("c") != 3 { // those above min come one by one
		t.Errorf("%d of c run: %s", l.running("c"), l.waits())
	}
}

// TestLicensesOfUpdate: what takes the place of an instance may have its licenses, and it runs on if there are too few for that.
func TestLicensesOfUpdate(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 3})
	l.job = nil
	for _, row := range []struct {
		needs, want int64
		waits       string
	}{{3, 3, ""}, {2, 2, ""}, {4, 2, `license "vcs": 4 needed, 3 of 3 free`}} {
		j := l.jobs["a"]
		if j == nil {
			l.submit("", "a", 1, licensed(vcs(int(row.needs))))
		} else {
			next := j.Copy()
			next.Version++
			next.TaskGroups[0].Tasks[0].Resources.Licenses = vcs(int(row.needs))
			l.jobs["a"] = next
			l.decide("a")
		}
		if got := l.used("vcs"); got != row.want || l.waits() != row.waits {
			t.Errorf("%d needed: %d are used, want %d; %q", row.needs, got, row.want, l.waits())
		}
	}
}

// TestLicensesPerNode: a system job is placed on as many nodes as there are licenses, and the others name it.
func TestLicensesPerNode(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 1})
	l.submit("", "a", 1, licensed(vcs(1), func(j *structs.Job) { j.Type = structs.JobTypeSysBatch }))
	if n := l.running("a"); n != 1 || !strings.Contains(l.waits(), `license "vcs": 1 needed, 0 of 1 free`) {
		t.Errorf("%d run; %q", n, l.waits())
	}
}

// planOf decides on a job, and commits nothing.
func (l *licenses) planOf(id string) *structs.Plan {
	l.t.Helper()
	l.job = l.jobs[id]
	ev := l.newEval()
	ev.JobID, ev.Type = id, structs.JobTypeBatch
	p, err := scheduler.Schedule(l.w, ev, l.input())
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// TestJudgeChecksLicenses: of two plans that were made of one World only one gets the last license, and a license that a plan counted on is not given
// away twice where what was to return it goes on.
func TestJudgeChecksLicenses(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 1})
	for _, id := range []string{"a", "b"} {
		l.jobs[id] = schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(1), func(j *structs.Job) { j.ID = id }))
	}
	a, b := l.planOf("a"), l.planOf("b")
	e := l.w.Edit()
	if valid, refused, why := scheduler.Judge(e, a); len(valid.Place) != 1 || refused != nil {
		t.Fatalf("the first: %s", why)
	}
	if valid, refused, why := scheduler.Judge(e, b); len(valid.Place) != 0 || len(refused) != 1 || !strings.Contains(why, `license "vcs": 1 needed, 0 of 1 free`) {
		t.Errorf("the second: %d placed, refused %v: %q", len(valid.Place), refused, why)
	}
}

// TestJudgeChecksLicensesOfResumed: what was to go on stays suspended if others have got its license since.
func TestJudgeChecksLicensesOfResumed(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 1})
	l.submit("", "a", 1, licensed(vcs(1)))
	l.suspended("a", true)
	l.jobs["b"] = schedtest.Job(structs.JobTypeBatch, 1, licensed(vcs(1), func(j *structs.Job) { j.ID = "b" }))
	b := l.planOf("b")
	l.client(func(a *structs.Allocation) bool { return a.JobID == "a" }, func(a *structs.Allocation) { a.DesiredTransition.Suspend = new(bool) })
	a := l.planOf("a")
	if len(resumed(a)) != 1 {
		t.Fatalf("it does not go on: %+v", a)
	}
	e := l.w.Edit()
	if valid, _, why := scheduler.Judge(e, b); len(valid.Place) != 1 {
		t.Fatalf("the license is not free: %s", why)
	}
	if valid, refused, why := scheduler.Judge(e, a); len(valid.Update) != 0 || len(refused) != 1 || !strings.Contains(why, `license "vcs": 1 needed, 0 of 1 free`) {
		t.Errorf("%d go on, refused %v: %q", len(valid.Update), refused, why)
	}
}

// TestLicenseExplained: an explanation names the license, who uses it and how many more would do.
func TestLicenseExplained(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 10})
	l.submit("", "a", 7, licensed(vcs(1)))
	l.submit("", "b", 1, licensed(vcs(3)))
	l.submit("", "c", 2, licensed(vcs(2)))
	x := l.explain().Group("g")
	at := slices.IndexFunc(x.Waits, func(w structs.Wait) bool { return w.Kind == structs.ReasonLicense })
	if at < 0 {
		t.Fatalf("%+v", x)
	}
	want := `license "vcs": 2 needed, 0 of 10 free; used by job "a" of namespace "default" (7), job "b" of namespace "default" (3)`
	if w := x.Waits[at]; w.Text != want || w.Instances != 2 || w.AllocCount != 8 || len(w.Allocs) != 8 {
		t.Errorf("%+v, want %q", w, want)
	}
	at = slices.IndexFunc(x.Smallest, func(r structs.Remedy) bool { return r.Kind == structs.RemedyLicense })
	if at < 0 || !x.Smallest[at].All || x.Smallest[at].Text != `4 more of license "vcs": count 14` {
		t.Errorf("%+v", x.Smallest)
	}
}

// TestLicensesAreCounted: whatever jobs come, end and are suspended, and however the counts change, nothing is placed beyond the counts, and nothing
// waits for a license that is free.
func TestLicensesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLicenses(t, map[string]int64{"vcs": 4, "spice": 2})
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			before := map[string]int64{"vcs": l.used("vcs"), "spice": l.used("spice")}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				needs := map[string]int{}
				for _, name := range []string{"vcs", "spice"} {
					if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
						needs[name] = n
					}
				}
				l.submit("", fmt.Sprintf("j%d", i), rapid.IntRange(1, 4).Draw(t, "count"), licensed(needs, func(j *structs.Job) {
					j.TaskGroups[0].Tasks[0].Resources.CPU = rapid.IntRange(100, 1500).Draw(t, "cpu")
				}))
				l.mayWait(t, needs)
			case 2:
				l.set(rapid.SampledFrom([]string{"vcs", "spice"}).Draw(t, "which"), int64(rapid.IntRange(0, 6).Draw(t, "of")))
			case 3:
				for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
					if rapid.Bool().Draw(t, "ends") {
						l.client(func(a *structs.Allocation) bool { return a.JobID == id && !a.Terminal() }, l.ended(false))
					}
				}
			}
			for name, n := range before { // order does not matter: each by itself
				if now := l.used(name); now > max(n, l.licenses[name]) {
					t.Fatalf("%d of %s are used, of %d", now, name, l.licenses[name])
				}
			}
		}
	})
}

// mayWait checks that the last job waits for licenses only if there are too few.
func (l *licenses) mayWait(t *rapid.T, needs map[string]int) {
	why := l.waits()
	if !strings.Contains(why, "license") {
		return
	}
	for name, n := range needs { // order does not matter: any will do
		if l.used(name)+int64(n) > l.licenses[name] {
			return
		}
	}
	t.Fatalf("%q, and there are enough", why)
}

// TestLicenseNeverEnough: an instance that requests more of a license than there are never starts, whatever ends, and its explanation states so.
func TestLicenseNeverEnough(t *testing.T) {
	l := newLicenses(t, map[string]int64{"vcs": 10})
	l.submit("", "many", 1, licensed(vcs(100)))
	const want = `unknown, because 100 of license "vcs" are requested at once, and there are 10 in all`
	if got := l.explain().Group("g").Expected; got == nil || got.Because != want {
		t.Errorf("have %+v, want %q", got, want)
	}
}
