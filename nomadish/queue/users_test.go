package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// submitted is a blocked evaluation of a new job that a user submitted ("": nobody in particular), and that needs so much CPU.
func (b *bed) submitted(t testcluster.TB, namespace, id, user string, priority, cpu int) *structs.Evaluation {
	job := &structs.Job{
		ID: id, Namespace: namespace, Type: structs.JobTypeService, Priority: priority, NodePool: structs.NodePoolDefault,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "mock_driver", Resources: &structs.Resources{CPU: cpu}}}}},
	}
	if user != "" {
		job.Submitter = &structs.Submitter{User: user, Source: structs.SubmitterSourceHeader}
	}
	b.Put(t, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: job})
	e := waits(id, id)
	e.Namespace, e.Priority = namespace, priority
	return e
}

// uses commits an allocation that a user's job has on a node, with so much CPU.
func (b *bed) uses(nodeID, seed, user string, cpu int64) {
	b.Helper()
	resources := &structs.AllocatedResources{Tasks: map[string]*structs.AllocatedTaskResources{"t": {Cpu: structs.AllocatedCpuResources{CpuShares: cpu}}}}
	resources.Shared.Terms = &structs.AllocTerms{Priority: 50, User: user}
	b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
		EvalID: "e-" + seed, Place: []*structs.PlacementBatch{{
			Namespace: "default", JobID: "busy", Group: "g", Seed: seed, EvalID: "e-" + seed, Resources: resources,
			Nodes: []structs.PlacedNode{{ID: nodeID, Name: nodeID}}, Instances: []structs.Instance{{}},
		}},
	}}})
	synctest.Wait()
}

// TestUsersRank: within a namespace the user with the least of the pool goes first, as of each commit; who has most goes before none of the
// others, nor does what nobody in particular submitted, as it is one user's.
func TestUsersRank(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.uses("s", "one", "ada", 300)
		b.uses("s", "two", "", 200)
		for user, priority := range map[string]int{"ada": 60, "": 55, "bob": 50} {
			b.put(b.submitted(b, "default", "by-"+user, user, priority, priority)) // none fails as another does
		}
		step := func(what string, change func(), want ...string) {
			b.Helper()
			b.register(node(what, "small")) // all may be tried
			change()
			for _, id := range want {
				b.tried(id)
			}
			b.lease("")
		}
		step("at-first", func() {}, "by-bob", "by-", "by-ada")
		step("bob-has-most", func() { b.uses("s", "three", "bob", 400) }, "by-", "by-ada", "by-bob")
		step("ada-has-nothing", func() { b.end("one") }, "by-ada", "by-", "by-bob")
		step("bob-has-nothing", func() { b.end("three") }, "by-ada", "by-bob", "by-")
		step("nobody-in-particular-has-nothing", func() { b.end("two") }, "by-ada", "by-", "by-bob")
	})
}

// TestCompareOfUsers: within a namespace its share makes no difference, not even where it was another one when the pass took each of two; within
// what a user has there, the user's makes none either.
func TestCompareOfUsers(t *testing.T) {
	g := &gates{users: true, shares: map[string]*poolShares{"p": {map[string]int{"a": 9, "b": 5}, map[string]int{"ada": 9, "bob": 5}}}}
	of := func(namespace, user string, number int64, share, userShare int) rankKey {
		return rankKey{&position{structs.Rank{Standing: structs.StandingNormal, Number: number}, "p", user}, namespace, share >= 0, share, userShare}
	}
	now := -1
	for _, c := range []struct {
		what          string
		first, second rankKey
	}{
		{"by the namespace", of("b", "ada", 1, now, now), of("a", "bob", 2, now, now)},
		{"by the user", of("a", "bob", 1, now, now), of("a", "ada", 2, now, now)},
		{"by the user's share as the pass took it", of("a", "ada", 1, 0, 3), of("a", "bob", 2, 0, 4)},
		{"the namespace's as the pass took it makes none", of("a", "bob", 1, 8, 3), of("a", "ada", 2, 2, 4)},
		{"of one user", of("a", "ada", 2, 8, 4), of("a", "ada", 1, 2, 3)},
		{"of other namespaces, as the pass took them", of("a", "ada", 1, 4, 9), of("b", "bob", 2, 5, 0)},
	} {
		if g.compare(c.first, c.second) >= 0 || g.compare(c.second, c.first) <= 0 {
			t.Errorf("%s: %+v does not go before %+v", c.what, c.first, c.second)
		}
	}
}

// TestUsersFailAlike: requests of a group fail for all users at once, and those of a user that wait no more leave nothing behind.
func TestUsersFailAlike(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		users := []string{"", "ada", "bob", "eve"}
		for _, user := range users {
			b.put(b.submitted(b, "default", "by-"+user, user, 50, 100))
		}
		if got := b.groups(); got != 1 {
			b.Fatalf("%d groups, want 1", got)
		}
		b.tried("by-")
		b.lease("")
		for _, user := range users {
			b.evals(b, with(b.store.Snapshot().Eval(nil, "by-"+user), structs.EvalStatusComplete))
		}
		if got := b.groups(); got != 0 {
			b.Fatalf("%d groups of nobody", got)
		}
	})
}

// TestNoUserNoLookup: while no job has a user, no share of users is looked up.
func TestNoUserNoLookup(t *testing.T) {
	run(t, func(b *bed) {
		known := func() (n int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, of := range b.gates.shares {
				n += len(of.users)
			}
			return n
		}
		b.register(node("s", "small"))
		b.Put(b, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "a"}})
		b.put(b.submitted(b, "default", "x", "", 50, 100), b.submitted(b, "a", "y", "", 51, 100))
		b.Planned(b.lease("y"), b.store.LatestIndex(), nil, sharesNow{"a": 5})
		b.uses("s", "one", "", 300)
		if n := known(); n != 0 {
			b.Errorf("%d shares of users are known", n)
		}
		b.put(b.submitted(b, "a", "z", "ada", 50, 100))
		b.lease("z")
		if n := known(); n == 0 {
			b.Error("no share of users is known, though a job has one")
		}
	})
}

// TestPassIsNotOvertaken: the pass tries a request on a state with room that the queue has not seen come free yet. A higher-ranked one of the same
// namespace, which that room helps, is not tried on a World in which the first one has it, although what that one takes has raised the namespace's share.
func TestPassIsNotOvertaken(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		b.put(b.submitted(b, "default", "high", "", 60, 300))
		b.tried("high") // it finds no room
		b.put(b.submitted(b, "default", "low", "", 50, 200))
		lease := b.lease("low")
		b.Planned(lease, b.store.LatestIndex(), nil, sharesNow{"default": 7})
		b.register(node("t", "small"))
		b.uses("t", "one", "", 300) // of that namespace, which has a greater share now
		synctest.Wait()
		if got, again := b.Next(b.store.LatestIndex(), nil); got != nil || !again {
			b.Fatalf("the pass has %+v (again: %v), with the room of what it goes before taken", got, again)
		}
		b.Answered(lease, true, false) // its plan would have overtaken the other one
		b.lease("high")
	})
}

// passOfUsers is a pass over requests of users in namespaces, with what each has of the pool as the pass's plans make it.
type passOfUsers struct {
	*bed
	waiting []*structs.Evaluation
	users   map[string]string // by evaluation
	shares  sharesNow
}

// best is the request that goes first by the shares as they are, found by looking at all.
func (p *passOfUsers) best() *structs.Evaluation {
	return slices.MinFunc(p.waiting, func(a, b *structs.Evaluation) int {
		return cmp.Or(
			cmp.Compare(p.shares[a.Namespace], p.shares[b.Namespace]), cmp.Compare(p.shares["user "+p.users[a.ID]], p.shares["user "+p.users[b.ID]]),
			cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.CreateIndex, b.CreateIndex),
		)
	})
}

// TestPassByUsersShares compares the order of a pass, while its own plans raise the shares of namespaces and users, with a list that is
// searched each time.
func TestPassByUsersShares(t *testing.T) {
	moved := 0
	rapid.Check(t, func(r *rapid.T) {
		var failed any // what a case fails by goes through the bubble's wall
		synctest.Test(t, func(t *testing.T) {
			defer func() { failed = recover() }()
			l := newLog(state.Options{})
			p := &passOfUsers{
				bed:   &bed{T: t, log: l, Broker: New(Options{NewID: testcluster.IDs("id-%d")}, l, l.store.LatestIndex)},
				users: map[string]string{}, shares: sharesNow{},
			}
			p.start()
			defer func() { p.stop() }()
			moved += p.play(r)
		})
		if failed != nil {
			panic(failed)
		}
	})
	if moved == 0 {
		t.Fatal("no plan ever changed what goes first: nothing was looked at")
	}
}

// play returns how often a plan made another request the first one.
func (p *passOfUsers) play(r *rapid.T) (moved int) {
	for _, name := range []string{"a", "b"} {
		p.Put(r, &structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: name}})
	}
	for i := range rapid.IntRange(2, 12).Draw(r, "jobs") {
		id, user := fmt.Sprintf("job-%02d", i), rapid.SampledFrom([]string{"", "ada", "bob", "eve"}).Draw(r, "user")
		e := p.submitted(r, rapid.SampledFrom([]string{"a", "b"}).Draw(r, "namespace"), id, user, rapid.IntRange(50, 53).Draw(r, "priority"), rapid.SampledFrom([]int{100, 200}).Draw(r, "cpu"))
		e.CreateIndex = uint64(i)
		p.users[id] = user
		p.waiting = append(p.waiting, e)
		p.evals(r, e)
	}
	p.Put(r, &structs.NodeRegisterEntry{Node: node("s", "small"), Time: time.Now().UnixNano()})
	for len(p.waiting) > 0 {
		synctest.Wait()
		want := p.best()
		index := p.store.LatestIndex()
		lease, again := p.Next(index, nil)
		if lease == nil || again || lease.Eval.ID != want.ID {
			r.Fatalf("the pass has %+v (again: %v), want %s of %s by %q; shares %v", lease, again, want.ID, want.Namespace, p.users[want.ID], p.shares)
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(e *structs.Evaluation) bool { return e.ID == want.ID })
		if len(p.waiting) == 0 {
			break
		}
		before := p.best()
		p.shares = maps.Clone(p.shares)
		p.shares[want.Namespace] += rapid.IntRange(0, 1).Draw(r, "more of the namespace")
		p.shares["user "+p.users[want.ID]] += rapid.IntRange(0, 2).Draw(r, "more of the user")
		p.Planned(lease, index, nil, p.shares)
		if p.best() != before {
			moved++
		}
	}
	return moved
}

// TestHopelessEarly: when one is hopeless, others are looked at before others have been tried that go before them. It is stated that it is early, and who is
// not hopeless then is looked at once more in its place.
func TestHopelessEarly(t *testing.T) {
	run(t, func(b *bed) {
		b.register(node("s", "small"))
		for i, id := range []string{"first", "second"} {
			b.put(b.submitted(b, "default", id, "ada", 53-i, 300-100*i))
			lease, _ := b.Next(b.store.LatestIndex(), nil)
			b.Tried(lease, b.store.LatestIndex(), lease.Eval)
		}
		b.uses("s", "1", "", 100)
		b.end("1") // room, and nothing else that may help
		synctest.Wait()
		var looks []string
		lease, _ := b.Next(b.store.LatestIndex(), func(r Untried) (bool, time.Time) {
			looks = append(looks, fmt.Sprint(r.Eval.ID, " early ", r.Early))
			return r.Eval.ID == "first", time.Time{}
		})
		if want := []string{"first early false", "second early true", "second early false"}; !slices.Equal(looks, want) || lease == nil || lease.Eval.ID != "second" {
			b.Fatalf("looked at %q, want %q; leased %+v", looks, want, lease)
		}
	})
}

// TestHopelessForTheOldest: of requests that fail alike, and find no room, none need be tried, unless one of them has waited so long that it may do what
// others may not: also if it is the first of its user only since others of the group were looked at last.
func TestHopelessForTheOldest(t *testing.T) {
	run(t, func(b *bed) {
		began := time.Now().UnixNano()
		b.register(node("s", "small"))
		put := func(id, user string, priority, cpu int, created int64) {
			e := b.submitted(b, "default", id, user, priority, cpu)
			e.CreateTime = created
			b.put(e)
		}
		put("first", "ada", 53, 300, began)
		put("young", "bob", 50, 200, began)
		hopeless := func(r Untried) (bool, time.Time) {
			return r.Eval.CreateTime >= began, time.Time{}
		}
		frees := func(seed string) { // room, and nothing else that may help
			b.uses("s", seed, "", 100)
			b.end(seed)
		}
		tried := func(want string) {
			b.Helper()
			synctest.Wait()
			got := ""
			lease, again := b.Next(b.store.LatestIndex(), hopeless)
			if lease != nil {
				got = lease.Eval.ID
				b.Tried(lease, b.store.LatestIndex(), lease.Eval)
			}
			if got != want || again {
				b.Fatalf("leased %q (again: %v), want %q", got, again, want)
			}
		}
		tried("first") // all are when they come
		tried("young")
		frees("1")
		tried("")
		put("old", "bob", 51, 200, began-1)
		tried("old")
		frees("2")
		tried("old")
		tried("")
	})
}
