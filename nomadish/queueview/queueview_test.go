package queueview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-metrics"
	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

const cycle = int64(structs.DefaultCycle)

// epoch is the time at which the tests' clusters begin.
const epoch = 1000 * cycle

// site is a state that entries move on.
type site struct {
	*testcluster.Log
	t     testcluster.TB
	store *state.Store
}

func newSite(t testcluster.TB) *site {
	l := testcluster.New(0, state.Options{})
	return &site{l, t, l.Store}
}

func (s *site) apply(entry any) {
	s.t.Helper()
	s.Put(s.t, entry)
}

// job registers a job of groups "name:count".
func (s *site) job(id string, priority int, pool string, groups ...string) *structs.Job {
	j := &structs.Job{ID: id, Namespace: "default", Type: structs.JobTypeService, Priority: priority, NodePool: pool}
	if ns, rest, found := strings.Cut(id, "/"); found {
		j.Namespace, j.ID = ns, rest
	}
	for _, g := range groups {
		name, count, _ := strings.Cut(g, ":")
		n := 0
		_, _ = fmt.Sscan(count, &n)
		j.TaskGroups = append(j.TaskGroups, &structs.TaskGroup{Name: name, Count: n})
	}
	s.apply(&structs.JobRegisterEntry{Job: j, Time: epoch})
	return j
}

// requests sets what is missing of "job/group" in the default namespace, since a cycle.
func (s *site) requests(cycles int64, missing int, eval string, names ...string) {
	p := &structs.JudgedPlan{Time: epoch + cycles*cycle}
	for _, n := range names {
		job, group, _ := strings.Cut(n, "/")
		p.Requests = append(p.Requests, &structs.RequestUpdate{Namespace: "default", JobID: job, Group: group, Missing: missing, EvalID: eval})
	}
	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
}

func (s *site) eval(e *structs.Evaluation) {
	e.Namespace = "default"
	s.apply(&structs.EvalUpsertEntry{Evals: []*structs.Evaluation{e}, Time: epoch})
}

// queueText is the order as "pool: 1 job/group, 2 …".
func queueText(lines []*Line) string {
	var out []string
	pool := ""
	for _, l := range lines {
		text := fmt.Sprintf("%d %s/%s×%d", l.Place, l.Request.JobID, l.Request.Group, l.Request.Missing)
		if !l.Tried {
			text += "?"
		}
		if l.Pool() != pool {
			pool = l.Pool()
			text = pool + ": " + text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (s *site) order(at int64) string { return queueText(Order(s.store.Snapshot(), epoch+at*cycle)) }

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\nhave %v\nwant %v", what, got, want)
	}
}

func TestOrder(t *testing.T) {
	s := newSite(t)
	check(t, "empty", s.order(0), "")
	s.job("low", 20, "default", "g:3")
	s.job("old", 50, "default", "g:1")
	s.job("new", 50, "default", "g:1")
	s.job("pair", 60, "default", "b:2", "a:2")
	s.job("gpu", 10, "gpu", "g:4")
	s.requests(0, 1, "b", "new/g")
	s.requests(0, 1, "b", "old/g")
	s.requests(1, 3, "b", "low/g")
	s.requests(5, 2, "b", "pair/a", "gpu/g")
	s.requests(20, 1, "b", "pair/b")
	// By number: pair 60-5 = 55, old and new 50-0, low 20-1; the earlier submitted first.
	check(t, "by rank, a job by its best request", s.order(20), "default: 1 pair/a×2, 1 pair/b×1, 2 old/g×1, 3 new/g×1, 4 low/g×3, gpu: 1 gpu/g×2")
	s.requests(20, 0, "", "pair/a")
	check(t, "when its best request is placed", s.order(20), "default: 1 old/g×1, 2 new/g×1, 3 pair/b×1, 4 low/g×3, gpu: 1 gpu/g×2")
	s.requests(20, 0, "", "pair/b", "old/g", "new/g", "low/g", "gpu/g")
	check(t, "all placed", s.order(20), "")
}

// TestUsersShares: within a namespace the user goes first who has least of the pool, in all namespaces; what nobody in particular submitted is
// one user's. Where no job that waits has a user, no share of users is shown.
func TestUsersShares(t *testing.T) {
	s := newSite(t)
	n := testcluster.Node("n", 1000)
	s.apply(&structs.NodeRegisterEntry{Node: n, Time: epoch})
	s.apply(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "other"}})
	use := func(namespace, user string, cpu int64) {
		resources := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: cpu}}}}
		resources.Shared.Terms = &structs.AllocTerms{Priority: 50, User: user}
		seed := namespace + "-" + user
		s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: epoch, EvalID: seed, Place: []*structs.PlacementBatch{{
			Namespace: namespace, JobID: "busy", Group: "g", Seed: seed, EvalID: seed, Resources: resources,
			Nodes: []structs.PlacedNode{{ID: n.ID, Name: n.Name}}, Instances: []structs.Instance{{}},
		}}}}})
	}
	use("default", "ada", 100)
	use("default", "", 200)
	use("other", "ada", 50)
	use("other", "bob", 120)
	shown := func() (text string) {
		snap := s.store.Snapshot()
		viewer := NewViewer(nil, snap, time.Unix(0, epoch))
		for _, l := range Order(snap, epoch) {
			e := viewer.Entry(l)
			text += fmt.Sprintf("%d %s %d %q %d, ", e.Place, e.JobID, e.Share, e.User, e.UserShare)
		}
		return text
	}
	wait := func(id, user string, priority int) {
		j := s.job(id, priority, "default", "g:1").Copy()
		if user != "" {
			j.Submitter = &structs.Submitter{User: user}
			s.apply(&structs.JobRegisterEntry{Job: j, Time: epoch})
		}
		s.requests(0, 1, "b", id+"/g")
	}
	wait("nobody", "", 60)
	check(t, "no user waits", shown(), `1 nobody 30 "" 0, `)
	wait("by-ada", "ada", 55)
	wait("by-bob", "bob", 50)
	wait("by-eve", "eve", 45)
	check(t, "users wait", shown(), `1 by-eve 30 "eve" 0, 2 by-bob 30 "bob" 12, 3 by-ada 30 "ada" 15, 4 nobody 30 "" 20, `)
}

func TestWhatNoPlanHasSpokenOf(t *testing.T) {
	s := newSite(t)
	s.job("web", 50, "default", "g:3", "h:1")
	s.job("sys", 50, "default", "g:1")
	at := func(id, job, status string, created int64) *structs.Evaluation {
		return &structs.Evaluation{ID: id, JobID: job, Status: status, Type: "service", CreateTime: epoch + created*cycle}
	}
	s.eval(at("e1", "web", structs.EvalStatusPending, 1))
	check(t, "a new job", s.order(2), "default: 1 web/g×3?, 1 web/h×1?")
	s.requests(2, 2, "b1", "web/g")
	check(t, "what a request states goes before", s.order(2), "default: 1 web/g×2, 1 web/h×1?")
	late := at("e2", "sys", structs.EvalStatusPending, 2)
	late.WaitUntil = time.Unix(0, epoch+8*cycle)
	s.eval(late)
	check(t, "one that is delayed", s.order(7), "default: 1 web/g×2, 1 web/h×1?")
	check(t, "when it is due", s.order(8), "default: 1 web/g×2, 1 web/h×1?, 2 sys/g×1?")
	s.apply(&structs.JobDeregisterEntry{Namespace: "default", JobID: "web", Time: epoch})
	check(t, "stopped", s.order(8), "default: 1 sys/g×1?")

	s = newSite(t)
	names := []string{"x", "x-1", "x0", "y"} // each has a group that a request states, and one of which only the evaluation does
	for i, name := range names {
		s.job(name, 50-i, "default", "g:1", "h:1")
		s.eval(at("of-"+name, name, structs.EvalStatusPending, 1))
	}
	s.requests(1, 1, "b1", "y/g", "x0/g", "x/g", "x-1/g")
	check(t, "each job once", s.order(1), "default: 1 x/g×1, 1 x/h×1?, 2 x-1/g×1, 2 x-1/h×1?, 3 x0/g×1, 3 x0/h×1?, 4 y/g×1, 4 y/h×1?")

	s = newSite(t)
	j := s.job("done", 50, "default", "g:3")
	b := &structs.PlacementBatch{Namespace: "default", JobID: "done", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: "n"}}, Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}}}
	s.apply(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n", Status: structs.NodeStatusReady}, Time: epoch})
	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{b}}}})
	s.eval(at("e", j.ID, structs.EvalStatusPending, 1))
	check(t, "two of three run", s.order(2), "default: 1 done/g×1?")
}

func TestEntry(t *testing.T) {
	s := newSite(t)
	j := *s.job("train", 60, "gpu", "g:4")
	j.Reclaim = structs.ReclaimSuspend
	s.apply(&structs.JobRegisterEntry{Job: &j, Time: epoch})
	s.apply(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n", Status: structs.NodeStatusReady}, Time: epoch})
	s.eval(&structs.Evaluation{
		ID: "b1", JobID: "train", Status: structs.EvalStatusBlocked, CreateTime: epoch, FailedTGAllocs: map[string]*structs.AllocMetric{"g": {
			DimensionExhausted: map[string]int{"memory": 5, "cpu": 2}, ConstraintFiltered: map[string]int{"${attr.x} = y": 5},
		}},
	})
	s.requests(0, 3, "b1", "train/g")
	entry := func(cycles int64) *structs.QueueEntry {
		t.Helper()
		snap := s.store.Snapshot()
		lines := Order(snap, epoch+cycles*cycle)
		if len(lines) != 1 {
			t.Fatalf("%d lines", len(lines))
		}
		return NewViewer(nil, snap, time.Unix(0, epoch+cycles*cycle)).Entry(lines[0])
	}
	want := structs.QueueEntry{
		Namespace: "default", JobID: "train", Group: "g", NodePool: "gpu", Place: 1, Class: "opportunistic", Missing: 3, Wanted: 4,
		Priority: structs.EffectivePriority{Total: 62, Declared: 60, Aged: 2, Band: 1, BandRange: structs.PriorityBand{Low: 41, High: 70}, Standing: structs.StandingNormal},
		Since:    epoch, Waited: 2 * structs.DefaultCycle, EvalID: "b1", State: structs.QueueWaiting, Reason: "memory exhausted", ReasonNodes: 5,
		ModifyIndex: s.Index(),
	}
	check(t, "waiting", *entry(2), want)
	check(t, "its text", entry(2).ReasonText(), "memory exhausted on 5 nodes")

	own := j
	own.ID, own.Class = "own", structs.ClassGuaranteed
	s.apply(&structs.JobRegisterEntry{Job: &own, Time: epoch})
	s.requests(0, 3, "", "own/g")
	classes, snap := map[string]string{}, s.store.Snapshot()
	for _, l := range Order(snap, epoch) {
		classes[l.Job.ID] = NewViewer(nil, snap, time.Unix(0, epoch)).Entry(l).Class
	}
	check(t, "classes; one may only run by a claim", fmt.Sprint(classes), "map[own:guaranteed train:opportunistic]")
	s.requests(0, 0, "", "own/g")

	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Reserve: []*structs.Reservation{{NodeID: "n", Namespace: "default", JobID: "train", Group: "g"}}}}})
	e := entry(2)
	check(t, "reserved", e.State+" "+e.StateText(), "reserved reserved room on 1 node")

	b := &structs.PlacementBatch{Namespace: "default", JobID: "train", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: "n"}}, Instances: []structs.Instance{{}}}
	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{b}}}})
	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: epoch + 3*cycle, Stop: []*structs.AllocStop{{
		AllocID: structs.DeriveID("s", 0), DesiredStatus: structs.AllocDesiredSuspend, Reclaim: structs.ReclaimSuspend,
	}}}}})
	e = entry(3)
	check(t, "suspended", fmt.Sprint(e.State, e.Suspended, e.Missing, e.Priority.Total, e.Priority.RequeueBonus, e.StateText()), "suspended1 4 63 01 suspended")
}

// What a user lets go on waits as suspended, whatever its job chose; what a user keeps
// suspended does not wait.
// What is entitled to slots is said to wait for them, the rest for what nodes lack: not for what a workflow had reserved when that was counted, and has no more.
func TestEntitledReason(t *testing.T) {
	s := newSite(t)
	s.job("own", 60, "gpu", "g:4")
	s.eval(&structs.Evaluation{
		ID: "b1", JobID: "own", Status: structs.EvalStatusBlocked, CreateTime: epoch, FailedTGAllocs: map[string]*structs.AllocMetric{"g": {
			DimensionExhausted: map[string]int{"memory": 2, "memory: reserved by workflow default/gone": 3, "slots: others leave after the grace": 5},
		}},
	})
	s.requests(0, 3, "b1", "own/g")
	snap := s.store.Snapshot()
	line := *Order(snap, epoch)[0]
	viewer := NewViewer(nil, snap, time.Unix(0, epoch))
	check(t, "normal", viewer.Entry(&line).ReasonText(), "memory exhausted on 5 nodes")
	line.Rank = line.Rank.Entitled(structs.ClaimRankSlots)
	check(t, "entitled", viewer.Entry(&line).ReasonText(), "slots: others leave after the grace")
}

func TestResumedByUser(t *testing.T) {
	s := newSite(t)
	j := *s.job("web", 50, "default", "g:3")
	j.Reclaim = structs.ReclaimRequeue
	s.apply(&structs.JobRegisterEntry{Job: &j, Time: epoch})
	s.apply(&structs.NodeRegisterEntry{Node: &structs.Node{ID: "n", Status: structs.NodeStatusReady}, Time: epoch})
	b := &structs.PlacementBatch{Namespace: "default", JobID: "web", Group: "g", Seed: "s", Nodes: []structs.PlacedNode{{ID: "n"}}, Instances: []structs.Instance{{}, {Ordinal: 1, Index: 1}}}
	s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Place: []*structs.PlacementBatch{b}}}})
	s.eval(&structs.Evaluation{ID: "b1", JobID: "web", Status: structs.EvalStatusBlocked, CreateTime: epoch})
	s.requests(0, 1, "b1", "web/g")
	yes, no := true, false
	suspend := func(to *bool) {
		s.apply(&structs.AllocTransitionEntry{Time: epoch, Transitions: map[string]*structs.DesiredTransition{
			structs.DeriveID("s", 0): {Suspend: to}, structs.DeriveID("s", 1): {Suspend: &yes},
		}})
		s.apply(&structs.AllocClientEntry{Updates: []*structs.AllocClientUpdate{
			{ID: structs.DeriveID("s", 0), ClientStatus: structs.AllocClientSuspended}, {ID: structs.DeriveID("s", 1), ClientStatus: structs.AllocClientSuspended},
		}})
	}
	entry := func() string {
		snap := s.store.Snapshot()
		e := NewViewer(nil, snap, time.Unix(0, epoch)).Entry(Order(snap, epoch)[0])
		return fmt.Sprint(e.State, " ", e.Suspended)
	}
	check(t, "they run", entry(), "waiting 0")
	suspend(&yes)
	check(t, "a user keeps them frozen", entry(), "waiting 0")
	suspend(&no)
	check(t, "one is to go on", entry(), "suspended 1")
}

// Tokens stand for lines in their order, whatever the lines are.
func TestTokensSortAsTheirLines(t *testing.T) {
	name := rapid.SampledFrom([]string{"", "a", "ab", "b", "ü", "a-b", "A"})
	line := rapid.Custom(func(t *rapid.T) *Line {
		job := &structs.Job{NodePool: rapid.SampledFrom([]string{"default", "gpu", "gpu2"}).Draw(t, "pool")}
		return &Line{Job: job, Group: &structs.TaskGroup{Name: name.Draw(t, "group")}, Rank: structs.Rank{
			Standing: rapid.IntRange(0, 3).Draw(t, "standing"), Claim: rapid.IntRange(0, 3).Draw(t, "claim"), Band: rapid.IntRange(0, 4).Draw(t, "band"), Requeued: rapid.Bool().Draw(t, "requeued"),
			Number: rapid.Int64().Draw(t, "number"), Submitted: rapid.Uint64().Draw(t, "submitted"),
			Job: structs.NamespacedID{Namespace: name.Draw(t, "namespace"), ID: name.Draw(t, "job")},
		}}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := line.Draw(t, "a"), line.Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") { // so that what comes late in the rank counts too
			b.Rank.Number, b.Rank.Standing, b.Rank.Band, b.Job = a.Rank.Number, a.Rank.Standing, a.Rank.Band, a.Job
			b.Rank.Submitted, b.Rank.Requeued, b.Rank.Claim = a.Rank.Submitted, a.Rank.Requeued, a.Rank.Claim
		}
		if got, want := strings.Compare(a.Token(), b.Token()), compare(a, b); got != want {
			t.Fatalf("tokens %d, lines %d: %+v %+v", got, want, a, b)
		}
	})
}

func TestFrom(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		s.job(fmt.Sprint("j", i), 50-i, "default", "g:1")
		s.requests(0, 1, "b", fmt.Sprintf("j%d/g", i))
	}
	lines := Order(s.store.Snapshot(), epoch)
	for i, l := range lines {
		check(t, "at a line", len(From(lines, l.Token())), 5-i)
		without := slices.Delete(slices.Clone(lines), i, i+1)
		check(t, "at one that is gone", len(From(without, l.Token())), 4-i)
	}
	check(t, "without a token", len(From(lines, "")), 5)
	check(t, "behind all", len(From(lines, "ZZZ")), 0)
}

// The order is made once for all who look at the same state, and seldom when it changes
// all the time.
func TestReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.job("a", 50, "default", "g:1")
		s.requests(0, 1, "b", "a/g")
		slow := 0 * time.Second
		made := 0
		r := NewReader(func() time.Time {
			now := time.Now().Add(slow)
			if slow > 0 {
				time.Sleep(slow / 2)
			}
			made++
			return now
		})
		first, err := r.Lines(t.Context(), s.store.Snapshot())
		check(t, "first", queueText(first), "default: 1 a/g×1")
		again, _ := r.Lines(t.Context(), s.store.Snapshot())
		check(t, "the same again is made again", &again[0] == &first[0], true)
		old := s.store.Snapshot()
		s.requests(1, 0, "", "a/g")
		next, _ := r.Lines(t.Context(), s.store.Snapshot())
		check(t, "after a change", queueText(next), "")
		stale, _ := r.Lines(t.Context(), old)
		check(t, "of an older state, the same as before", len(stale) > 0 && &stale[0] == &first[0], true)
		if err != nil {
			t.Fatal(err)
		}

		slow = 2 * time.Second
		s.requests(1, 1, "b", "a/g")
		_, _ = r.Lines(t.Context(), s.store.Snapshot())
		s.requests(1, 2, "b", "a/g")
		slow = 0
		start := time.Now()
		last, _ := r.Lines(t.Context(), s.store.Snapshot())
		check(t, "after a rest", queueText(last), "default: 1 a/g×2")
		if rested := time.Since(start); rested < 2*time.Second {
			t.Errorf("it rested %v after an order that took seconds", rested)
		}

		r.notBefore = time.Now().Add(time.Hour)
		s.requests(1, 1, "b", "a/g")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.Lines(ctx, s.store.Snapshot()); err == nil {
			t.Error("who waits cannot go")
		}
	})
}

// TestAround: who wants to know where one job is does not wait until the next order may be made, unless that job has changed since the last.
func TestAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		a, b := s.job("a", 50, "default", "g:2"), s.job("b", 40, "default", "g:1")
		s.requests(0, 1, "b", "a/g", "b/g")
		r := NewReader(func() time.Time {
			time.Sleep(time.Second) // so that an order takes a second
			return time.Now()
		})
		around := func(j *structs.Job) (order string, waited bool) {
			start, snap := time.Now(), s.store.Snapshot()
			lines, err := r.Around(t.Context(), snap, snap.Job(nil, j.Namespace, j.ID))
			if err != nil {
				t.Fatal(err)
			}
			return queueText(lines), time.Since(start) > 2*time.Second
		}
		wanted := func(what string, j *structs.Job, want string, waits bool) {
			t.Helper()
			order, waited := around(j)
			check(t, what, fmt.Sprint(order, ", waits: ", waited), fmt.Sprint(want, ", waits: ", waits))
		}
		_, _ = around(a)
		s.requests(1, 2, "b", "a/g")
		wanted("another one has changed", b, "default: 1 a/g×1, 2 b/g×1", false)
		wanted("it has changed", a, "default: 1 a/g×2, 2 b/g×1", true)
		s.job("c", 60, "default", "g:1")
		s.requests(1, 1, "b", "c/g")
		wanted("another one came", a, "default: 1 a/g×2, 2 b/g×1", false)
		s.requests(1, 0, "", "a/g")
		wanted("it waits no more", a, "default: 1 c/g×1, 2 b/g×1", true)
		s.requests(1, 2, "b", "c/g")
		wanted("it does not wait, and did not", a, "default: 1 c/g×1, 2 b/g×1", false)
		s.eval(&structs.Evaluation{ID: "p", JobID: "a", Status: structs.EvalStatusPending, CreateTime: epoch})
		wanted("it is to be looked at", a, "default: 1 c/g×2, 2 a/g×2?, 3 b/g×1", true)
		time.Sleep(time.Hour)
		s.requests(1, 1, "b", "c/g")
		wanted("the last is old", b, "default: 1 c/g×1, 2 a/g×2?, 3 b/g×1", true)
	})
}

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := metrics.NewInmemSink(time.Hour, 24*time.Hour)
		config := metrics.DefaultConfig("")
		config.EnableHostname, config.EnableRuntimeMetrics = false, false
		if _, err := metrics.NewGlobal(config, sink); err != nil {
			t.Fatal(err)
		}
		gauge := func(name, pool string) float32 {
			t.Helper()
			data := sink.Data()
			g, found := data[len(data)-1].Gauges["nomad.queue."+name+";node_pool="+pool+";class=opportunistic"]
			if !found {
				t.Fatalf("no gauge %s of %s: %v", name, pool, data[len(data)-1].Gauges)
			}
			return g.Value
		}
		s := newSite(t)
		s.job("a", 50, "", "g:5")
		s.job("b", 50, "gpu", "g:2", "h:2")
		since := time.Now().Add(-time.Minute).UnixNano()
		request := func(job, group string, missing int) *structs.RequestUpdate {
			return &structs.RequestUpdate{Namespace: "default", JobID: job, Group: group, Missing: missing, Since: since}
		}
		s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: time.Now().UnixNano(), Requests: []*structs.RequestUpdate{request("a", "g", 5), request("b", "g", 1), request("b", "h", 2)}}}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			Report(ctx, s.store)
			close(done)
		}()
		synctest.Wait()
		check(t, "length", gauge("length", "default"), 1)
		check(t, "length", gauge("length", "gpu"), 2)
		check(t, "missing", gauge("missing", "gpu"), 3)
		check(t, "oldest", gauge("oldest_seconds", "default"), 60)
		s.apply(&structs.PlanCommit{Plans: []*structs.JudgedPlan{{Time: time.Now().UnixNano(), Requests: []*structs.RequestUpdate{request("a", "g", 0)}}}})
		time.Sleep(2*reportEvery + time.Second) // past the second tick
		check(t, "length when all is placed", gauge("length", "default"), 0)
		check(t, "oldest then", gauge("oldest_seconds", "default"), 0)
		check(t, "oldest of the other", gauge("oldest_seconds", "gpu"), 80)
		cancel()
		<-done
		check(t, "length when another leads", gauge("length", "gpu"), 0)
	})
}

func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newSite(b)
			for i := 0; i < n; i += 500 {
				var names []string
				for k := range 500 {
					name := fmt.Sprint("job-", i+k)
					s.job(name, 1+(i+k)%100, "default", "g:1")
					names = append(names, name+"/g")
				}
				s.requests(int64(i/500), 1, "b", names...)
			}
			snap := s.store.Snapshot()
			b.ReportAllocs()
			for b.Loop() {
				if len(Order(snap, epoch)) != n {
					b.Fatal("some are missing")
				}
			}
		})
	}
}
