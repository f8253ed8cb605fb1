package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/structs"
)

// holds makes a forecast, runs the cluster on, and reports every group that does not start when that states, to the second.
func (r *reality) holds(least int) *structs.Forecast {
	r.t.Helper()
	f, from := r.forecast(Options{}), r.now
	if len(f.Requests) < least {
		r.t.Fatalf("%d requests wait, not at least %d", len(f.Requests), least)
	}
	r.until(last(f).Add(time.Minute))
	for _, q := range f.Requests {
		first, all, waits := r.differs(q, goBefore(f, q), from)
		if waits > 0 || q.Latest.All == 0 {
			r.t.Errorf("%s/%s: %d of %d have not started; %s", q.Namespace, q.JobID, waits, q.Missing, q.Latest.Unknown)
			continue
		}
		if first.Abs() >= time.Second || all.Abs() >= time.Second {
			r.t.Errorf("%s/%s: the first of %d started %s after what was forecast, the last %s", q.Namespace, q.JobID, q.Missing, first, all)
		}
	}
	return f
}

// cpuJob is a job of one instance without devices.
func cpuJob(id string, priority, mhz int, limit time.Duration) *structs.Job {
	j := testcluster.Job(id, structs.JobTypeBatch, 1)
	j.Priority, j.NodePool = priority, structs.NodePoolDefault
	j.TaskGroups[0].MaxRunDuration, j.TaskGroups[0].Tasks[0].Resources.CPU = limit, mhz
	return j
}

// comes submits a job that comes a moment after the one before: who comes at the same nanosecond has no order but that of IDs, which nobody foresees.
func (r *reality) comes(j *structs.Job) {
	r.t.Helper()
	r.submit(j)
	r.until(r.now.Add(time.Second))
}

// slotNodes registers two nodes of four slots, which have room for three jobs of 30,000 MHz each.
func (r *reality) slotNodes() {
	r.t.Helper()
	for _, id := range []string{"node-a", "node-b"} {
		n := gpuNode(id)
		n.NodeResources.Slots = map[string]int{structs.SlotBatch: 4}
		r.put(&structs.NodeRegisterEntry{Node: n, Time: r.now.UnixNano()})
	}
}

// slots gives a project of ada's slots in weeks one after the other, of which the first begins at a time.
func (r *reality) slots(project string, from time.Time, counts ...int) {
	r.t.Helper()
	r.put(&structs.ProjectUpsertEntry{Project: &structs.Project{Name: project, Users: []string{"ada"}}, Time: r.now.UnixNano()})
	for i, count := range counts {
		begin := from.AddDate(0, 0, 7*i)
		year, week := begin.ISOWeek()
		r.put(&structs.ProjectCalendarEntry{Time: r.now.UnixNano(), EvalSeed: r.newID(), Week: &structs.ProjectWeek{
			Project: project, Week: fmt.Sprintf("%d-W%02d", year, week), From: begin.UnixNano(), To: begin.AddDate(0, 0, 7).UnixNano(),
			Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}},
		}})
	}
}

// monday is when the week of the epoch began.
var monday = time.Date(2026, 2, 23, 0, 0, 0, 0, time.UTC)

// TestWeekBegins: jobs of two projects wait over the beginning of a week that gives the slots of one to the other.
func TestWeekBegins(t *testing.T) {
	r := newReality(t)
	r.until(monday.AddDate(0, 0, 7).Add(-50 * time.Minute))
	r.slotNodes()
	r.slots("chip-a", monday, 6, 2)
	r.slots("chip-b", monday, 2, 6)
	for i := range 24 {
		j := cpuJob(fmt.Sprintf("job-%02d", i), 50, 30_000, time.Duration(20+i)*time.Minute)
		j.Project, j.Submitter = []string{"chip-a", "chip-b"}[i%2], &structs.Submitter{User: "ada"}
		r.comes(j)
	}
	r.holds(12)
}

// TestWindowsAndExchanges: what tenants own changes while jobs wait, by a window of one and by an exchange between the others.
func TestWindowsAndExchanges(t *testing.T) {
	r := newReality(t)
	r.nodes(4)
	at := func(minutes int) time.Time { return r.now.Add(time.Duration(minutes) * time.Minute) }
	node := func(n int) []*structs.CellQuota { return []*structs.CellQuota{{Level: structs.LevelNode, Count: n}} }
	for _, vc := range []*structs.VirtualCluster{
		{Name: "red", Cells: node(1), Windows: []*structs.CellWindow{{From: at(30), To: at(150), Cells: node(2)}}},
		{Name: "blue", Cells: node(1), Points: 10}, {Name: "green", Points: 10},
	} {
		r.put(&structs.NamespaceUpsertEntry{Namespace: &structs.Namespace{Name: vc.Name}})
		r.put(&structs.VirtualClusterUpsertEntry{VirtualCluster: vc, EvalSeed: r.newID(), Time: r.now.UnixNano()})
	}
	for i, owner := range []string{"blue", "green"} {
		r.put(&structs.ExchangePutEntry{Time: r.now.UnixNano(), Exchange: structs.Exchange{
			ID: fmt.Sprint("exchange-", owner), Owner: owner, Bid: i == 1, Points: int64(3 * i), Cells: *node(1)[0], From: at(45), Until: at(100),
		}})
	}
	for i := range 22 {
		j := gpuJob(fmt.Sprintf("job-%02d", i), 50, 1, []int{8, 4, 8, 2}[i%4], time.Duration(15+7*i%40)*time.Minute)
		j.Namespace = []string{"red", "blue", "green"}[i%3]
		r.comes(j)
	}
	r.holds(6)
	if given := r.log.Store.Snapshot().VirtualClusters(nil).Get("green"); given.Points >= 10 {
		t.Errorf("nothing was exchanged: %+v", given)
	}
}

// TestLicensesWait: jobs wait for licenses, of which there are fewer than room.
func TestLicensesWait(t *testing.T) {
	r := newReality(t)
	r.nodes(2)
	r.put(&structs.LicenseUpsertEntry{License: &structs.License{Name: "vcs", Count: 3}, Time: r.now.UnixNano()})
	for i := range 12 {
		j := cpuJob(fmt.Sprintf("job-%02d", i), 50, 100, time.Duration(10+7*i%30)*time.Minute)
		j.TaskGroups[0].Tasks[0].Resources.Licenses = map[string]int{"vcs": 1 + i%2}
		r.comes(j)
	}
	f := r.holds(8)
	for _, q := range f.Requests {
		if len(q.Latest.WaitsFor) == 0 {
			t.Errorf("%s waits for nobody", q.JobID)
		}
	}
}

// TestSuspension: instances that are suspended for those who have a slot go on in place, or begin anew when they were suspended for too long; whether
// the forecast begins after they were suspended, or before. In the latter case others start when these have ended, as nothing that waits reserves room: what is
// suspended reserves none, and goes on after those who do.
func TestSuspension(t *testing.T) {
	for _, is := range []struct{ long, before bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		r := newReality(t)
		config, priority := structs.DefaultSchedulerConfiguration(), 20
		if is.before {
			config.ReservationAfter, priority = -1, 10
		}
		r.put(&structs.SchedulerConfigEntry{Config: config})
		r.slotNodes()
		ada := &structs.Submitter{User: "ada"}
		for i := range 6 { // all room
			j := cpuJob(fmt.Sprintf("low-%d", i), 20, 30_000, time.Duration(60+10*i)*time.Minute)
			j.Reclaim = structs.ReclaimSuspend
			r.comes(j)
		}
		r.until(r.now.Add(10 * time.Minute))
		r.slots("chip", monday, 8, 8)
		for i := range 4 {
			limit := time.Duration(20+i) * time.Minute
			if is.long {
				limit += time.Hour
			}
			j := cpuJob(fmt.Sprintf("slot-%d", i), 50, 30_000, limit)
			j.Project, j.Submitter = "chip", ada
			r.comes(j)
		}
		if !is.before {
			r.until(r.now.Add(3 * time.Minute)) // the grace is over
		}
		suspended := 0
		for row := range r.log.Store.Snapshot().AllocRows(nil, structs.AllNamespaces) {
			if row.Suspended() {
				suspended++
			}
		}
		if is.before != (suspended == 0) || !is.before && suspended < 3 {
			t.Fatalf("%d instances are suspended, before it: %v", suspended, is.before)
		}
		for i := range 6 {
			r.comes(cpuJob(fmt.Sprintf("more-%d", i), priority, 30_000, time.Duration(30+i)*time.Minute))
		}
		r.holds(4)
	}
}
