package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/fsm"
	"github.com/nomadish/nomadish/structs"
)

// facts1 is a state of a few facts.
type facts1 struct {
	jobs     map[string]string // by allocation
	nodes    map[string]string // by allocation
	requests map[string]*structs.PendingRequest
}

func (f facts1) Of(id string) (structs.NamespacedID, string, bool) {
	job, found := f.jobs[id]
	return structs.NamespacedID{ID: job, Namespace: "default"}, f.nodes[id], found
}

func (f facts1) RequestOf(_, _, group string) *structs.PendingRequest { return f.requests[group] }

// reclaimingPlan takes back, ends reservations and places gangs, all at random.
func reclaimingPlan(t *rapid.T) (*judged, facts1) {
	known := facts1{jobs: map[string]string{}, nodes: map[string]string{}, requests: map[string]*structs.PendingRequest{}}
	p := &structs.JudgedPlan{EvalID: "plan", Evals: []*structs.Evaluation{
		{ID: "plan", Namespace: "default", JobID: "job", Status: structs.EvalStatusComplete},
	}}
	nodes := rapid.IntRange(1, 30).Draw(t, "nodes")
	for b := range rapid.IntRange(1, 3).Draw(t, "batches") {
		batch := &structs.PlacementBatch{Namespace: "default", JobID: "job", Group: fmt.Sprint("g", b), Seed: fmt.Sprint("seed", b), EvalID: "plan"}
		for n := range nodes {
			batch.Nodes = append(batch.Nodes, structs.PlacedNode{ID: fmt.Sprint("n", n), Name: "a-host"})
		}
		if rapid.IntRange(0, 5).Draw(t, "gang") == 0 {
			batch.Gang = &structs.AllocGang{Size: 3}
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "instances") {
			batch.Instances = append(batch.Instances, structs.Instance{
				Ordinal: uint32(i), Index: i, Node: rapid.IntRange(0, nodes-1).Draw(t, "on"), // small
			})
		}
		p.Place = append(p.Place, batch)
		row := &structs.PendingRequest{Namespace: "default", JobID: "job", Group: batch.Group, Missing: 500, Since: 7, EvalID: "before"}
		after := &structs.RequestUpdate{Namespace: "default", JobID: "job", Group: batch.Group, Missing: rapid.IntRange(0, 3).Draw(t, "left")}
		switch rapid.IntRange(0, 2).Draw(t, "ask") {
		case 0: // it did not wait before
		case 1:
			row.Missing = after.Missing + 1
			known.requests[batch.Group], p.Requests = row, append(p.Requests, after)
		default: // by its end, nothing is new
			known.requests[batch.Group] = row
		}
	}
	told := map[string]bool{}
	for i := range rapid.IntRange(0, 25).Draw(t, "reclaims") {
		batch := p.Place[rapid.IntRange(0, len(p.Place)-1).Draw(t, "for batch")]
		in := &batch.Instances[rapid.IntRange(0, len(batch.Instances)-1).Draw(t, "for instance")]
		s := &structs.AllocStop{
			AllocID: fmt.Sprint("victim-", i), Reclaim: structs.ReclaimRequeue, PreemptedBy: structs.DeriveID(batch.Seed, uint64(in.Ordinal)),
		}
		p.Stop = append(p.Stop, s)
		if job := fmt.Sprint("victim", rapid.IntRange(0, 12).Draw(t, "of")); job != "victim0" { // that one is gone
			known.jobs[s.AllocID], known.nodes[s.AllocID] = job, batch.Nodes[in.Node].ID
			if rapid.IntRange(0, 3).Draw(t, "elsewhere") == 0 { // of a gang
				known.nodes[s.AllocID] = fmt.Sprint("n", rapid.IntRange(0, nodes).Draw(t, "held on"))
			}
			if !told[job] {
				told[job] = true
				p.Evals = append(p.Evals, &structs.Evaluation{
					ID: "of-" + job, Namespace: "default", JobID: job, TriggeredBy: structs.EvalTriggerPreemption, Status: structs.EvalStatusPending,
				})
			}
		}
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "own stops") {
		p.Stop = append(p.Stop, &structs.AllocStop{AllocID: fmt.Sprint("own-", i)})
	}
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 40), 0, 6, rapid.ID[int]).Draw(t, "unreserved") {
		p.Unreserve = append(p.Unreserve, fmt.Sprint("n", n))
	}
	return &judged{accepted: p, waiting: &waiting{plan: &structs.Plan{}}}, known
}

// elements names what must be somewhere, and the keys by which it hangs together with
// others: those that share one are in one entry.
func elements(p *structs.JudgedPlan, known facts1) map[string][]string {
	out := map[string][]string{}
	homes, reclaimed := map[string]string{}, map[string]bool{}
	for _, b := range p.Place {
		for i := range b.Instances {
			homes[b.Allocation(i).ID] = b.Allocation(i).NodeID
		}
	}
	for _, s := range p.Stop {
		if s.PreemptedBy == "" {
			out["stop "+s.AllocID] = nil
			continue
		}
		node := homes[s.PreemptedBy]
		reclaimed[node] = true
		out["stop "+s.AllocID] = []string{"on " + node}
		if job := known.jobs[s.AllocID]; job != "" {
			out["stop "+s.AllocID] = append(out["stop "+s.AllocID], "of "+job, "on "+known.nodes[s.AllocID])
			reclaimed[known.nodes[s.AllocID]] = true
		}
	}
	for _, id := range p.Unreserve {
		out["reservation "+id] = []string{"on " + id}
		reclaimed[id] = true
	}
	for _, b := range p.Place {
		for i := range b.Instances {
			a := b.Allocation(i)
			name := "instance " + a.ID
			out[name] = nil
			if reclaimed[a.NodeID] {
				out[name] = append(out[name], "on "+a.NodeID)
			}
			if b.Gang != nil {
				out[name] = append(out[name], "gang")
			}
		}
	}
	for _, e := range p.Evals {
		if e.TriggeredBy == structs.EvalTriggerPreemption {
			out["evaluation "+e.ID] = []string{"of " + e.JobID}
		}
	}
	return out
}

// TestCutKeepsCellsTogether: where a newcomer takes a cell from a job of its own namespace, all newcomers that use cells are committed together: another one may have
// been given the cell that comes free.
func TestCutKeepsCellsTogether(t *testing.T) {
	for _, c := range []struct {
		claim, of string
		parts     int
	}{{structs.ClaimCells, "default", 1}, {structs.ClaimCells, "other", 2}, {"", "default", 2}} {
		batch := &structs.PlacementBatch{
			Namespace: "default", JobID: "job", Group: "g", Seed: "seed", EvalID: "plan",
			Nodes:     []structs.PlacedNode{{ID: "n0"}, {ID: "n1"}},
			Instances: []structs.Instance{{Ordinal: 0, Node: 0}, {Ordinal: 1, Index: 1, Node: 1}},
			Resources: &structs.AllocatedResources{Shared: structs.AllocatedSharedResources{Terms: &structs.AllocTerms{Claim: c.claim}}},
		}
		stop := &structs.AllocStop{AllocID: "victim", Reclaim: structs.ReclaimRequeue, PreemptedBy: batch.Allocation(1).ID}
		known := ofOne{structs.NamespacedID{Namespace: c.of, ID: "lower"}, "n1"}
		j := &judged{accepted: &structs.JudgedPlan{EvalID: "plan", Stop: []*structs.AllocStop{stop}, Place: []*structs.PlacementBatch{batch}}, waiting: &waiting{plan: &structs.Plan{}}}
		var with []*structs.JudgedPlan
		for _, p := range cut(j, 1, known) {
			if len(p.Place) > 0 {
				with = append(with, p)
			}
		}
		if len(with) != c.parts {
			t.Errorf("%q, of namespace %s: placed in %d parts, want %d", c.claim, c.of, len(with), c.parts)
		}
	}
}

// ofOne is a state of which any allocation is of one job, on one node.
type ofOne struct {
	job  structs.NamespacedID
	node string
}

func (o ofOne) Of(string) (structs.NamespacedID, string, bool)   { return o.job, o.node, true }
func (o ofOne) RequestOf(_, _, _ string) *structs.PendingRequest { return nil }

// TestCutBetweenUnits: what hangs together is in one part, whatever it takes; a part above
// the limit contains nothing else; each part says what is missing once it is committed.
func TestCutBetweenUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, known := reclaimingPlan(t)
		limit := rapid.SampledFrom([]int{4 << 10, 8 << 10, 16 << 10}).Draw(t, "limit")
		parts := cut(j, limit, known)
		whole := elements(j.accepted, known)
		at, of := map[string]int{}, map[string]int{}
		for i, p := range parts {
			for name := range elements(p, known) {
				if before, twice := at[name]; twice {
					t.Fatalf("%s is in parts %d and %d", name, before, i)
				}
				at[name] = i
			}
			encoded, err := fsm.Encode(structs.LogPlanApply, &structs.PlanCommit{Plans: []*structs.JudgedPlan{p}})
			if err != nil {
				t.Fatal(err)
			}
			if groups := joined(whole, at, i); len(encoded) > limit && groups != 1 {
				t.Fatalf("part %d of %d bytes, the limit is %d, holds %d units", i, len(encoded), limit, groups)
			}
		}
		for name, keys := range whole {
			part, there := at[name]
			if !there {
				t.Fatalf("%s got lost", name)
			}
			for _, key := range keys {
				if before, met := of[key]; met && before != part {
					t.Fatalf("what hangs together by %q is in parts %d and %d (%s)", key, before, part, name)
				}
				of[key] = part
			}
		}
		if got, want := placed(parts...), placed(j.accepted); !slices.Equal(got, want) {
			t.Fatalf("cut:\n%v\nwhole:\n%v", got, want)
		}
		checkMissing(t, j.accepted, known, parts)
	})
}

// joined counts the units of a part, one by one.
func joined(whole map[string][]string, at map[string]int, part int) (n int) {
	left := map[string]bool{}
	for name, in := range at {
		if in == part {
			left[name] = true
		}
	}
	for len(left) > 0 {
		n++
		var keys []string
		for name := range left {
			keys = slices.Clone(whole[name])
			delete(left, name)
			break
		}
		for i := 0; i < len(keys); i++ {
			for _, name := range slices.Collect(maps.Keys(left)) {
				if slices.Contains(whole[name], keys[i]) {
					keys = append(keys, whole[name]...)
					delete(left, name)
				}
			}
		}
	}
	return n
}

func checkMissing(t *rapid.T, p *structs.JudgedPlan, known facts1, parts []*structs.JudgedPlan) {
	for group, row := range known.requests {
		final := row.Missing
		if u := updateOf(p.Requests, &structs.RequestUpdate{Namespace: "default", JobID: "job", Group: group}); u != nil {
			final = u.Missing
		}
		later := 0
		for i, part := range slices.Backward(parts) {
			u := updateOf(part.Requests, &structs.RequestUpdate{Namespace: "default", JobID: "job", Group: group})
			if u == nil || u.Missing != final+later {
				t.Fatalf("after part %d of %d, %d of %s are missing; it says %+v", i+1, len(parts), final+later, group, u)
			}
			if i < len(parts)-1 && (u.EvalID != "before" || u.Since != 7) {
				t.Fatalf("after part %d of %d %s waits in %+v", i+1, len(parts), group, u)
			}
			for _, b := range part.Place {
				if b.Group == group {
					later += len(b.Instances)
				}
			}
		}
	}
}

// waitingJob has a job wait for so many.
func (b *bed) waitingJob(id string, priority, missing int) {
	b.Helper()
	b.Put(b, &structs.JobRegisterEntry{Job: &structs.Job{
		ID: id, Namespace: "default", Type: structs.JobTypeService, Priority: priority,
		TaskGroups: []*structs.TaskGroup{{Name: "g", Count: missing}},
	}, Time: 1})
	b.Put(b, &structs.PlanCommit{Plans: []*structs.JudgedPlan{{
		EvalID: "before-" + id, Time: 5, Requests: []*structs.RequestUpdate{{
			Namespace: "default", JobID: id, Group: "g", Missing: missing, Since: 5, EvalID: "before-" + id,
		}},
	}}})
}

// TestCutPlanAtEveryIndex: a plan in several entries, of which one fails or none. After each
// entry that is committed: who was taken from has lost what he lost to somebody who is there,
// and the request says how many instances it really misses.
func TestCutPlanAtEveryIndex(t *testing.T) {
	f := func(failing int) {
		t.Helper()
		run(t, Options{EntryBytes: 6 << 10}, func(b *bed) {
			nodes := b.nodes(b, 20, 100)
			for i, n := range nodes {
				victim := fmt.Sprint("victim-", i)
				b.waitingJob(victim, 10, 1)
				p := planOf(victim, 90, n)
				p.Place[0].JobID, p.Place[0].Resources.Shared.Terms = victim, &structs.AllocTerms{Priority: 10}
				if _, err := b.applier.Submit(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
			b.waitingJob("job-1", 90, len(nodes))
			p := planOf("1", 50, nodes...)
			p.Place[0].Resources.Shared.Terms = &structs.AllocTerms{Priority: 90}
			for i := range nodes {
				p.Stop = append(p.Stop, &structs.AllocStop{
					AllocID: structs.DeriveID(fmt.Sprint("seed-victim-", i), 0), DesiredStatus: structs.AllocDesiredEvict,
					Reclaim: structs.ReclaimRequeue, PreemptedBy: structs.DeriveID("seed-1", uint64(i)), // small
				})
			}
			p.Requests = []*structs.RequestUpdate{{Namespace: "default", JobID: "job-1", Group: "g"}}
			entries := 0
			b.Before = func(structs.LogType, any) error {
				if entries++; entries == failing {
					return structs.Errorf(structs.CodeLimited, "too much at once")
				}
				return nil
			}
			b.Applied = func(testcluster.Entry) error {
				snap := b.store.Snapshot()
				placed := snap.AllocsByJob(nil, "default", "job-1", true)
				missing := 0
				if a := snap.Requests().Get(nil, "default", "job-1", "g"); a != nil {
					missing = a.Missing
				}
				if missing+len(placed) != len(nodes) {
					b.Errorf("%d are placed, and %d are said to be missing of %d", len(placed), missing, len(nodes))
				}
				took := 0
				for _, a := range placed {
					took += len(a.PreemptedAllocations)
				}
				lost := 0
				for i := range nodes {
					if a := snap.Alloc(nil, structs.DeriveID(fmt.Sprint("seed-victim-", i), 0)); a.DesiredStatus == structs.AllocDesiredEvict {
						lost++
					}
				}
				if took != len(placed) || lost != len(placed) {
					b.Errorf("%d are placed, who say that they took from %d; %d lost", len(placed), took, lost)
				}
				return nil
			}
			_, err := b.applier.Submit(b.Context(), p)
			if (err != nil) != (failing > 0) || failing == 0 && entries < 3 {
				b.Fatalf("%d entries, error: %v", entries, err)
			}
		})
	}
	f(0)
	f(2)
}

// TestMissingOfARefusedPlan: what of a plan was refused goes on missing, and waits where it
// did.
func TestMissingOfARefusedPlan(t *testing.T) {
	run(t, Options{}, func(b *bed) {
		b.waitingJob("job-1", 50, 5)
		p := planOf("1", 50, "node-000", "node-001", "node-002")
		p.Requests = []*structs.RequestUpdate{{Namespace: "default", JobID: "job-1", Group: "g", Missing: 2, EvalID: "new"}}
		b.submit(planOf("other", 60, "node-001")).want("other", 1, 0)
		b.submit(p).want("1", 2, 1)
		if a := b.store.Snapshot().Requests().Get(nil, "default", "job-1", "g"); a == nil || a.Missing != 3 || a.EvalID != "before-job-1" || a.Since != 5 {
			b.Fatalf("it waits in %+v", a)
		}
	})
}
