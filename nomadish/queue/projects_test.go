package queue

import (
	"testing"
	"testing/synctest"
	"time"

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
		b.Put(b, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip", Users: []string{"ada"}}, Time: begin.UnixNano()})
		b.Put(b, &structs.ProjectCalendarEntry{Time: begin.UnixNano(), Week: &structs.ProjectWeek{
			Project: "chip", Week: "2026-W48", Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 2}}, From: begin.UnixNano(), To: begin.Add(time.Hour).UnixNano(),
		}})
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.UnixNano(), EvalSeed: "s"})
		synctest.Wait()
		b.next("chip")
		b.Put(b, &structs.ClaimsTimeEntry{Now: begin.Add(time.Hour).UnixNano(), EvalSeed: "s"})
		synctest.Wait()
		b.next("low")
		b.next("chip2")
	})
}
