package scheduler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// sharedByTwo returns a cluster whose workflow lends to two namespaces, 1:1.
func sharedByTwo(t tester, cores int) *workflows {
	return newWorkflows(t, cores, 0, &structs.WorkflowLend{To: "namespace:a", Share: 1}, &structs.WorkflowLend{To: "namespace:b", Share: 1})
}

// wantShares checks how many cores each of the two namespaces has once both have asked, and what each would have by its share.
func (w *workflows) wantShares(want int, due int64) {
	w.t.Helper()
	w.lendRound = 1
	w.flood("a", 20)
	w.flood("b", 20)
	a, b, use := w.running("flood-a"), w.running("flood-b"), scheduler.WorkflowUse(w.w, "default/wf")
	if a != want || b != want || use.To[0].Due.CPU != due {
		w.t.Fatalf("%d and %d cores are lent, want %d to each; by its share each has %d MHz, want %d: %+v", a, b, want, use.To[0].Due.CPU, due, use)
	}
}

// TestSharesOfWhatCanBeLent: shares and lend_max are of what borrowers have and of what can be lent besides. What idles of a part whose node takes no work is neither,
// nor is what the run's own instances use without a claim.
func TestSharesOfWhatCanBeLent(t *testing.T) {
	w := sharedByTwo(t, 8)
	w.stage("s", 2)
	w.slotNode("n2", 8)
	w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 8000, MemoryMB: 8000, DiskMB: 3000})
	w.set()
	w.changeNode("n1", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	w.wantShares(4, 4000)
	if u := scheduler.WorkflowUse(w.w, "default/wf"); u.Used.CPU != 2000 || u.Lent.CPU != 8000 || u.Idle.CPU != 0 || u.Lost.CPU != 6000 ||
		u.Leaves != "the part on node name-n1, which is ineligible, is lost once what runs there has ended" {
		t.Errorf("what nobody may use of a part that stays: %+v", u)
	}

	own := sharedByTwo(t, 12)
	e := own.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	own.w, own.workflows = e.World(), nil
	own.stage("0-", 4)
	own.claim.LendMax = &structs.WorkflowResources{CPU: 4000}
	own.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/0-0", Started: 1}}
	own.set()
	own.wantShares(2, 2000)

	most := sharedByTwo(t, 12)
	most.claim.LendMax = &structs.WorkflowResources{CPU: 4000}
	most.set()
	most.wantShares(2, 2000)
}

// TestLentNow: what is lent at most now leaves to the running stage what its jobs have still to take, and what borrowers have of the reservation is stated apart from
// what they have beside it.
func TestLentNow(t *testing.T) {
	w := newWorkflows(t, 8, 2, &structs.WorkflowLend{To: "namespace:a"})
	w.flood("b", 2) // which has what is free beside the reservation
	w.flood("a", 2)
	check := func(due, lent, amount, header int64) {
		t.Helper()
		u := scheduler.WorkflowUse(w.w, "default/wf")
		if to := u.To[0]; to.Due.CPU != due || to.Lent.CPU != lent || to.Amount.CPU != amount || u.Lent.CPU != header {
			t.Errorf("%+v; want %d MHz lent of %d, and %d in all", u, lent, due, amount)
		}
	}
	check(6000, 2000, 2000, 2000)
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/late", Starting: true, Needs: structs.WorkflowPart{CPU: 3000, MemoryMB: 3000, DiskMB: 300}}}
	w.set()
	check(3000, 2000, 2000, 2000)
	w.claim.Jobs[0].Needs.CPU = 5000
	w.set()
	check(2000, 2000, 2000, 2000)
	of := func(job string) func(a *structs.Allocation) bool {
		return func(a *structs.Allocation) bool { return !a.Terminal() && a.JobID == job }
	}
	w.claim.Jobs = nil
	w.set()
	w.client(of("flood-b"), w.ended(false))
	check(6000, 0, 2000, 0)

	l := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
	l.others("b", "first", 4)
	l.others("a", "u", 2)
	licenses := func(due, lent, amount int64) {
		t.Helper()
		if to := scheduler.WorkflowUse(l.w, "default/wf").To[0]; to.Due.Licenses["vcs"] != due || to.Lent.Licenses["vcs"] != lent || to.Amount.Licenses["vcs"] != amount {
			t.Errorf("%+v; want %d lent of %d, and %d in all", to, lent, due, amount)
		}
	}
	licenses(6, 2, 2)
	l.client(of("first"), l.ended(false))
	licenses(6, 0, 2)
	l.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/late", Starting: true, Licenses: []structs.RequestedLicense{{Name: "vcs", Count: 2}}}}
	l.set()
	licenses(4, 0, 2)
}

// TestReasonsAreCurrent: what the queue states of who has reserved what is lacking counts only nodes on which that idles now.
func TestReasonsAreCurrent(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.slotNode("n2", 8)
	w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 8000, MemoryMB: 8000, DiskMB: 3000})
	w.set()
	w.flood("a", 1)
	m := w.last.FailedTGAllocs["g"]
	check := func(want string, nodes int) {
		t.Helper()
		now := scheduler.CurrentReasons(m, func(key, what string) int { return scheduler.IdleNodes(w.w, key, what) })
		if why, n := now.MainReason(); why != want || n != nodes {
			t.Errorf("%q on %d nodes, want %q on %d: %+v", why, n, want, nodes, now)
		}
	}
	check("cpu: reserved by workflow default/wf", 2)
	w.stage("s", 8)
	check("cpu exhausted", 1)
	w.stage("t", 8)
	check("cpu exhausted", 2)
	if why, n := m.MainReason(); why != "cpu: reserved by workflow default/wf" || n != 2 {
		t.Errorf("what was counted has changed: %q on %d nodes", why, n)
	}
}

// waitsAs checks that an explanation states of instances that wait why nothing is lent to them.
func (w *workflows) waitsAs(want string) {
	w.t.Helper()
	got := w.explain().Group("g").Waits
	if !slices.ContainsFunc(got, func(r structs.Wait) bool { return strings.HasSuffix(r.Text, want) }) {
		w.t.Fatalf("%+v; want one that ends with %q", got, want)
	}
}

// TestLendsNoMoreBecause: why no more of what idles is lent is stated as it is: its node takes no work, it is too little on each node, the running stage has still to
// take it, or lend_max is reached, of licenses too.
func TestLendsNoMoreBecause(t *testing.T) {
	w := newWorkflows(t, 4, 0, &structs.WorkflowLend{To: "namespace:a"})
	w.stage("s", 2)
	w.changeNode("n1", func(n *structs.Node) { n.SchedulingEligibility = structs.NodeIneligible })
	w.flood("a", 1)
	w.waitsAs("nothing idles now that can be lent: the part on node name-n1, which is ineligible, is lost once what runs there has ended")

	w = newWorkflows(t, 4, 0, &structs.WorkflowLend{To: "namespace:a"})
	w.slotNode("n2", 2)
	w.claim.Parts = append(w.claim.Parts, structs.WorkflowPart{NodeID: "n2", CPU: 2000, MemoryMB: 2000, DiskMB: 3000})
	w.set()
	w.stage("s", 3)
	big := func(j *structs.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 3000 }
	w.flood("a", 1, big)
	if got := w.explain().Group("g"); !strings.Contains(string(asJSON(t, got)), "which lends no more of it now: what idles is too little on each node") {
		t.Error(string(asJSON(t, got)))
	}
	w.claim.Jobs = []structs.WorkflowClaimJob{{JobID: "wf/1/late", Starting: true, Needs: structs.WorkflowPart{CPU: 2500, MemoryMB: 2500, DiskMB: 300}}}
	w.set()
	w.flood("a", 2)
	if got := w.explain().Group("g"); !strings.Contains(string(asJSON(t, got)), "which lends no more of it now: jobs of its running stage have still to take what idles") {
		t.Error(string(asJSON(t, got)))
	}

	l := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
	l.claim.LendMax = &structs.WorkflowResources{Licenses: map[string]int64{"vcs": 2}}
	l.set()
	l.others("a", "u", 10)
	l.waitsAs("which lends no more at once than lend_max states, licenses = { vcs = 2 }, and this job requests that license, too")
}

// TestReservedBeyondCount: what a workflow has reserved of a license and there is not any more, as the count was lowered, is lost: it neither idles nor can be lent.
func TestReservedBeyondCount(t *testing.T) {
	w := newLicensedWorkflow(t, &structs.WorkflowLend{To: "namespace:a"})
	w.starts("s", 1)
	(&licenses{w.projects}).set("vcs", 2)
	check := func(lent, idle, due, lost int64) {
		t.Helper()
		u, r := scheduler.WorkflowUse(w.w, "default/wf"), scheduler.LicenseUsers(w.w, &structs.License{Name: "vcs", Count: 2}).Reservations[0]
		if u.Reserved.Licenses["vcs"] != 6 || u.Used.Licenses["vcs"] != 1 || u.Lent.Licenses["vcs"] != lent || u.Idle.Licenses["vcs"] != idle ||
			u.Lost.Licenses["vcs"] != lost || u.To[0].Due.Licenses["vcs"] != due || r.Idle != idle || r.Lost != lost || r.Lent != lent {
			t.Errorf("%+v, %+v; want %d lent, %d idle, %d to be lent, %d lost", u, r, lent, idle, due, lost)
		}
	}
	check(0, 1, 1, 4)
	w.others("a", "u", 5)
	check(1, 0, 1, 4)
}

// TestReasonsOfTheGone: what is left of a request after more of it was placed does not wait for room of a workflow that has none any more, also where why it waits
// is not to be counted anew.
func TestReasonsOfTheGone(t *testing.T) {
	w := newWorkflows(t, 8, 0)
	w.flood("a", 10)
	waits := w.last.Evals[slices.IndexFunc(w.last.Evals, func(e *structs.Evaluation) bool { return e.Status == structs.EvalStatusBlocked })]
	if m := waits.FailedTGAllocs["g"].DimensionExhausted; m["cpu: reserved by workflow default/wf"] != 1 {
		t.Fatalf("it waits because of %v", m)
	}
	e := w.w.Edit()
	scheduler.DropWorkflow(e, "default/wf")
	w.w, w.workflows = e.World(), nil
	in := w.input()
	in.Brief = true
	plan, err := scheduler.Schedule(w.w, waits, in)
	if err != nil || placed(plan) != 8 {
		t.Fatalf("%v: %d are placed", err, placed(plan))
	}
	if m := plan.FailedTGAllocs["g"].DimensionExhausted; m["cpu"] != 1 || len(m) != 1 {
		t.Errorf("what is left waits because of %v", m)
	}
}

// TestCoresIdleWithTheirMHz: MHz that whole cores of the reservation serve are used; these cores idle no more.
func TestCoresIdleWithTheirMHz(t *testing.T) {
	w := newWorkflows(t, 8, 0, &structs.WorkflowLend{To: "namespace:a"})
	w.claim.Parts[0].Cores = 8
	w.set()
	check := func(used, idle, due structs.WorkflowResources) {
		t.Helper()
		u, on := scheduler.WorkflowUse(w.w, "default/wf"), scheduler.ReservedOn(w.w, "n1")[0]
		for _, is := range []struct{ got, want structs.WorkflowResources }{{u.Used, used}, {on.Used, used}, {u.Idle, idle}, {on.Idle, idle}, {u.To[0].Due, due}} {
			if is.got.CPU != is.want.CPU || is.got.Cores != is.want.Cores {
				t.Errorf("%d MHz and %d cores, want %d and %d: %+v", is.got.CPU, is.got.Cores, is.want.CPU, is.want.Cores, u)
			}
		}
	}
	check(structs.WorkflowResources{}, structs.WorkflowResources{Cores: 8}, structs.WorkflowResources{Cores: 8})
	w.submit("", "wf/1/s", 1, requests(50, 5500, 100), ofStage)
	check(structs.WorkflowResources{CPU: 5500}, structs.WorkflowResources{Cores: 2, CPU: 500}, structs.WorkflowResources{Cores: 2, CPU: 500})
}
