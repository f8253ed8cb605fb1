package workflow

import (
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// TestPlanBesideSlots: a workflow that only the slots of this week leave no room for is not said never to have it: the next week may have others, which its forecast
// knows. One that no node could hold is.
func TestPlanBesideSlots(t *testing.T) {
	t.Parallel()
	e, site := at(t, "")
	forecast := &structs.RunForecast{Index: 7}
	e.Forecasts = fixed{run: func(*structs.WorkflowRunEntry) (*structs.RunForecast, error) { return forecast, nil }}
	node := testcluster.Node("n", 10_000)
	node.NodeResources.Slots = map[string]int{structs.SlotBatch: 4}
	site.Put(&structs.NodeRegisterEntry{Node: node, Time: 1})
	site.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip", Users: []string{"ada"}}, Time: 1})
	week := &structs.ProjectWeek{Project: "chip", Week: "1970-W01", From: -1e15, To: 1e15, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 4}}}
	site.Put(&structs.ProjectCalendarEntry{Week: week, Time: 1})
	site.Put(&structs.ClaimsTimeEntry{Now: 1, Week: &structs.WeekSpan{Week: week.Week, From: week.From, To: week.To}})
	for _, c := range []struct {
		cpu    int
		never  bool
		states string
	}{{1000, false, `beside the slots that projects are given this week (project "chip": 4 of type "batch")`}, {20_000, true, "could not hold it if they were empty: 40000 MHz"}} {
		w := chip()
		w.Stages[0].Jobs[0].Job.TaskGroups[0].Tasks[0].Resources = &structs.Resources{CPU: c.cpu, MemoryMB: 10}
		reply, err := e.plan(t.Context(), &structs.WorkflowRunRequest{Workflow: w, Forecast: true})
		if err != nil {
			t.Fatal(err)
		}
		if p := reply.Plan; p.Posted || p.Never != c.never || (p.Forecast == nil) != c.never || !strings.Contains(p.Missing, c.states) {
			t.Errorf("%d MHz: never %v, missing %q, %+v", c.cpu, p.Never, p.Missing, p.Forecast)
		}
	}
}
