package calendar_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/nomadish/calendar"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// log applies entries at once, and fails once when it is told to.
type log struct {
	mu      sync.Mutex
	w       *state.Writer
	index   uint64
	fail    bool
	commits []time.Time
}

func (l *log) Apply(_ context.Context, t structs.LogType, payload any) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail {
		l.fail = false
		return 0, errors.New("no leader")
	}
	if t == structs.LogClaimsTime {
		l.commits = append(l.commits, time.Now())
	}
	l.index++
	return l.index, l.w.Apply(l.index, t, payload)
}

// TestCalendar: an entry is committed at each edge and at no other time, once; an edge that is nearer than the one waited for is not
// missed, nor one at which the log failed.
func TestCalendar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := state.New(state.Options{})
		l := &log{w: w}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			calendar.New(calendar.Options{NewID: func() string { return "id" }}, store, l).Run(ctx)
		}()
		begin := time.Now()
		upsert := func(from, to time.Duration) {
			t.Helper()
			_, err := l.Apply(ctx, structs.LogVirtualClusterUpsert, &structs.VirtualClusterUpsertEntry{VirtualCluster: &structs.VirtualCluster{
				Name: structs.DefaultNamespace, Windows: []*structs.CellWindow{{From: begin.Add(from), To: begin.Add(to), Cells: []*structs.CellQuota{{Level: "gpu"}}}},
			}, Time: time.Now().UnixNano()})
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Apply(ctx, structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &structs.Node{
			ID: "n", Name: "n", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady, NodeResources: &structs.NodeResources{
				Devices: []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{{ID: "g", Healthy: true}}}},
			},
		}}); err != nil {
			t.Fatal(err)
		}
		upsert(3*time.Hour, 5*time.Hour)
		time.Sleep(time.Hour)
		upsert(2*time.Hour, 4*time.Hour) // nearer than what is waited for
		time.Sleep(2 * time.Hour)
		l.mu.Lock()
		l.fail = true
		l.mu.Unlock()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		cancel()
		<-done
		want := []time.Duration{2 * time.Hour, 4*time.Hour + time.Second}
		if len(l.commits) != len(want) {
			t.Fatalf("commits %v", l.commits)
		}
		for i, at := range l.commits {
			if at.Sub(begin) != want[i] {
				t.Errorf("commit %d after %s, want %s", i, at.Sub(begin), want[i])
			}
		}
	})
}

// TestWeeksAreStated: where there is a project, which week it is is stated at once, again at each turn, and when the calendar of the cluster is another
// one; never twice.
func TestWeeksAreStated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := state.New(state.Options{})
		l := &log{w: w}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			calendar.New(calendar.Options{NewID: func() string { return "id" }}, store, l).Run(ctx)
		}()
		stated := func(commits int, want string, from time.Time) {
			t.Helper()
			synctest.Wait()
			is, _ := store.Snapshot().ProjectUsage(nil).Week()
			if len(l.commits) != commits || is == nil || is.Week != want || is.From != from.UnixNano() {
				t.Fatalf("%d commits, week %+v; want %d, and %s from %s", len(l.commits), is, commits, want, from)
			}
		}
		time.Sleep(time.Hour)
		if is, _ := store.Snapshot().ProjectUsage(nil).Week(); is != nil {
			t.Fatal("a week is stated, and there are no projects")
		}
		if _, err := l.Apply(ctx, structs.LogProjectUpsert, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: "chip"}}); err != nil {
			t.Fatal(err)
		}
		monday := time.Date(1999, 12, 27, 0, 0, 0, 0, time.UTC) // the clock of the test begins on 1 January 2000
		stated(1, "1999-W52", monday)
		time.Sleep(9 * 24 * time.Hour)
		stated(3, "2000-W02", monday.AddDate(0, 0, 14))
		config := structs.DefaultSchedulerConfiguration()
		config.Calendar = &structs.CalendarConfiguration{WeekStarts: "tue 06:00"}
		if _, err := l.Apply(ctx, structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: config}); err != nil {
			t.Fatal(err)
		}
		stated(4, "2000-W01", monday.AddDate(0, 0, 8).Add(6*time.Hour))
		cancel()
		<-done
	})
}
