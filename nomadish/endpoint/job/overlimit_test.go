package job

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/nomadish/endpoint/endpointtest"
	"github.com/nomadish/nomadish/structs"
)

// thisWeek is when week 2026-W48 begins.
var thisWeek = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

// TestGuaranteedOfProjects: a project's slots are a claim as cells are, in this week or later, for groups that can use them.
func TestGuaranteedOfProjects(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"), endpointtest.Node("b"))
	s.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip"}, Time: thisWeek.UnixNano()})
	s.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "board"}, Time: thisWeek.UnixNano()})
	s.Put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: "past"}, Time: thisWeek.UnixNano()})
	config := structs.DefaultSchedulerConfiguration()
	config.Slots = &structs.SlotSettings{Types: []structs.SlotType{{Name: "gpu", GPUs: 1}}}
	s.Put(&structs.SchedulerConfigEntry{Config: config, Time: 1})
	give := func(project, week string, from time.Time) {
		s.Put(&structs.ProjectCalendarEntry{Time: from.UnixNano(), Week: &structs.ProjectWeek{
			Project: project, Week: week, Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: 1}}, From: from.UnixNano(), To: from.Add(7 * 24 * time.Hour).UnixNano(),
		}})
	}
	give("chip", "2026-W49", thisWeek.Add(7*24*time.Hour))
	give("past", "2026-W47", thisWeek.Add(-7*24*time.Hour))
	f := func(project, slot, want string, change func(g *structs.TaskGroup)) {
		t.Helper()
		g := &structs.TaskGroup{Name: "g", Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d", Resources: &structs.Resources{}}}}
		change(g)
		job := &structs.Job{Namespace: "default", ID: "j", Type: structs.JobTypeBatch, Class: structs.ClassGuaranteed, Project: project, Slot: slot, TaskGroups: []*structs.TaskGroup{g}}
		err := checkClass(s.Router.Snapshot(), job, thisWeek.Add(time.Hour))
		if want == "" && err != nil || want != "" && (structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	plain := func(*structs.TaskGroup) {}
	gpus := func(count, share int) func(g *structs.TaskGroup) {
		return func(g *structs.TaskGroup) {
			g.Tasks[0].Resources.Devices = []*structs.RequestedDevice{{Name: "nvidia/gpu", Count: count, Share: share}}
		}
	}
	f("chip", "", "", plain)
	f("", "", `namespace "default" owns nothing`, plain)
	for _, none := range []string{"board", "past", "nobody"} {
		f(none, "", `namespace "default" owns nothing, and project "`+none+`" has no slots in this week or a later one`, plain)
	}
	f("chip", "", "", func(g *structs.TaskGroup) { g.Gang = &structs.Gang{} })
	f("chip", "", `slots of type "batch" have no GPUs`, gpus(1, 0))
	f("chip", "gpu", "", gpus(2, 0))
	f("chip", "gpu", "not whole ones", gpus(1, 500))
}

// TestGuaranteedClass: a job that is to run by a claim alone is refused if its namespace owns nothing, or if one of its groups can use no claim.
func TestGuaranteedClass(t *testing.T) {
	s := newSite(t, endpointtest.DGX("a", "r1"))
	s.Put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: "team"}})
	s.Put(&structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{Name: "team", Cells: []*structs.CellQuota{{Level: "node", Count: 1}}}, EvalSeed: "seed"})
	group := func(name string, devices ...*structs.RequestedDevice) *structs.TaskGroup {
		return &structs.TaskGroup{Name: name, Count: 1, Tasks: []*structs.Task{{Name: "t", Driver: "d", Resources: &structs.Resources{Devices: devices}}}}
	}
	gpu := func(name string) *structs.RequestedDevice { return &structs.RequestedDevice{Name: name, Count: 1} }
	share := &structs.RequestedDevice{Name: "nvidia/gpu", Count: 1, Share: 500}
	f := func(namespace, kind, want string, groups ...*structs.TaskGroup) {
		t.Helper()
		job := &structs.Job{Namespace: namespace, ID: "j", Type: kind, Class: structs.ClassGuaranteed, TaskGroups: groups}
		err := checkClass(s.Router.Snapshot(), job, thisWeek.Add(time.Hour))
		switch {
		case want == "" && err != nil:
			t.Errorf("%v", err)
		case want != "" && (err == nil || structs.CodeOf(err) != structs.CodeBadRequest || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want %s", err, want)
		}
	}
	const batch = structs.JobTypeBatch
	f("team", batch, "", group("g", gpu("nvidia/gpu")))
	f("team", batch, "", group("g", gpu("nvidia/gpu"), gpu("gpu")), group("cpu"))
	f("default", batch, `job "j": class is "guaranteed", but namespace "default" owns nothing`, group("g", gpu("nvidia/gpu")))
	f("team", batch, `job "j": class is "guaranteed", but group "cpu" can use no claim: it requests no whole GPUs: only whole GPUs are owned`, group("cpu"))
	f("team", batch, `group "half" can use no claim: it requests no whole GPUs`, group("g", gpu("nvidia/gpu")), group("half", share))
	f("team", batch, `group "g" can use no claim: it requests devices of several kinds`, group("g", gpu("nvidia/gpu/H100"), gpu("nvidia/gpu/A100")))
	f("team", structs.JobTypeSystem, `group "g" can use no claim: instances of system and sysbatch jobs use none`, group("g", gpu("nvidia/gpu")))
	gang := group("g", gpu("nvidia/gpu"))
	gang.Gang = &structs.Gang{Groups: []string{"launcher"}}
	f("team", batch, `group "launcher" can use no claim: it requests no whole GPUs, and its gang uses a claim as a whole`, gang, group("launcher"))
}
