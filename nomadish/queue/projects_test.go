package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/scheduler"
	"github.com/nomadish/nomadish/structs"
)

// TestProjectsDecide: what waits moves in the queue when its project is made, gets slots, and when the week is over.
func TestProjectsDecide(t *testing.T) {
	run(t, func(b *bed) {
		of := func(id, project string, priority int) *structs.Evaluation {
			b.Put(b, &structs.JobRegisterEntry{Time: time.Now().UnixNano(), Job: &structs.Job{
				ID: id, Namespace: structs.DefaultNamespace, Type: structs.JobTypeService, Priority: priority, NodePool: structs.NodePoolDefault,
				Project: project, Submitter: &structs.Submitter{User: "ada"}, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 1}},
			}})
			return eval(id, id, priority)
		}
		b.put(of("high", "", 60), of("low", "", 50), of("chip", "chip", 55), of("chip2", "chip", 54), of("chip3", "chip", 53))
		b.next("high") // chip is of no project that is known
		n := node("n", "small")
		n.NodeResources.Slots = map[string]int{structs.SlotBatch: 4}
		b.register(n)
		begin := time.Now().Truncate(time.Hour)
		b.project("chip", begin)
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.UnixNano(), EvalSeed: "s"})
		synctest.Wait()
		b.next("chip")
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.Add(time.Hour).UnixNano(), EvalSeed: "s"})
		synctest.Wait()
		b.next("low")
		b.next("chip2")
	})
}

// TestProjectsRaiseBeside: when slots of a node come free by one project, instances of another that run there beside its slots may be raised.
func TestProjectsRaiseBeside(t *testing.T) {
	run(t, func(b *bed) {
		n := node("n", "small")
		m := node("m", "small")
		n.NodeResources.Slots, m.NodeResources.Slots = map[string]int{structs.SlotBatch: 2}, map[string]int{structs.SlotBatch: 2}
		b.register(n)
		b.register(m)
		begin := time.Now().Truncate(time.Hour)
		for _, name := range []string{"chip", "board"} {
			b.project(name, begin)
			b.Put(b, &structs.JobRegisterEntry{Time: begin.UnixNano(), Job: &structs.Job{
				ID: name, Namespace: structs.DefaultNamespace, Type: structs.JobTypeService, Priority: 50, NodePool: structs.NodePoolDefault,
				Project: name, Submitter: &structs.Submitter{User: "ada"}, TaskGroups: []*structs.TaskGroup{{Name: "g", Count: 2}},
			}})
		}
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.UnixNano(), EvalSeed: "s"})
		place := func(project, seed, claim string) {
			batch := testcluster.Batch(project, "n", seed, 2)
			batch.Resources.Shared.Terms = &structs.AllocTerms{
				Priority: 50, Claim: claim, Slots: &structs.SlotTerms{Project: project, User: "ada", Type: structs.SlotBatch, Cost: 1},
			}
			b.Put(b, testcluster.Place(seed, time.Now().UnixNano(), batch))
		}
		place("board", "s1", structs.ClaimSlots)
		place("chip", "s2", "")
		synctest.Wait()
		due := func() []string {
			names, _ := b.DueRaises(b.store.Snapshot().Index())
			return names
		}
		due() // what was placed is looked at once
		if names := due(); len(names) > 0 {
			t.Fatalf("of %v something is due", names)
		}
		b.end("s1")
		if names := due(); !slices.Contains(names, scheduler.ProjectOwner("chip")) {
			t.Errorf("of %v something is due", names)
		}
	})
}

// project stores a project of the user ada that has two batch slots for an hour.
func (b *bed) project(name string, begin time.Time) {
	b.Helper()
	b.Put(b, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: name, Users: []string{"ada"}}, Time: begin.UnixNano()})
	b.Put(b, &structs.ProjectCalendarEntry{Time: begin.UnixNano(), Week: &structs.ProjectWeek{
		Project: name, Week: "2026-W48", Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 2}}, From: begin.UnixNano(), To: begin.Add(time.Hour).UnixNano(),
	}})
}
