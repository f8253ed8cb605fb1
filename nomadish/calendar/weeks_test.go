package calendar_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nomadish/nomadish/internal/week"
	"github.com/nomadish/nomadish/nomadish/calendar"
	"github.com/nomadish/nomadish/nomadish/clock"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// shifted is the machine's clock, ahead by some time.
type shifted struct{ by time.Duration }

// Now implements clock.Clock.
func (c shifted) Now() time.Time { return time.Now().Add(c.by) }

// AfterFunc implements clock.Clock.
func (shifted) AfterFunc(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) }

// TestWeekBegins: slots change hands at the instant at which a week begins where the calendar is kept, over the turn of a year with 53 weeks and over
// both changes of daylight saving, in two time zones; at no other instant, and once.
func TestWeekBegins(t *testing.T) {
	for _, row := range []struct {
		zone, starts, first string
		begins              [3]string // when the first week begins, the second, and when that ends, in UTC
		hours               float64   // that the first week has
	}{
		{"Europe/Berlin", "mon 00:00", "2026-W53", [3]string{"2026-12-27T23:00:00Z", "2027-01-03T23:00:00Z", "2027-01-10T23:00:00Z"}, 168},
		{"America/New_York", "mon 00:00", "2026-W53", [3]string{"2026-12-28T05:00:00Z", "2027-01-04T05:00:00Z", "2027-01-11T05:00:00Z"}, 168},
		{"Europe/Berlin", "mon 00:00", "2027-W12", [3]string{"2027-03-21T23:00:00Z", "2027-03-28T22:00:00Z", "2027-04-04T22:00:00Z"}, 167},
		{"America/New_York", "mon 00:00", "2027-W10", [3]string{"2027-03-08T05:00:00Z", "2027-03-15T04:00:00Z", "2027-03-22T04:00:00Z"}, 167},
		{"Europe/Berlin", "mon 00:00", "2026-W43", [3]string{"2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z", "2026-11-01T23:00:00Z"}, 169},
		{"America/New_York", "mon 00:00", "2026-W44", [3]string{"2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-09T05:00:00Z"}, 169},
		// At 02:30 the clocks have just been set forward, from 02:00 to 03:00, or show the time for the first of two times.
		{"Europe/Berlin", "sun 02:30", "2027-W11", [3]string{"2027-03-21T01:30:00Z", "2027-03-28T01:00:00Z", "2027-04-04T00:30:00Z"}, 167.5},
		{"Europe/Berlin", "sun 02:30", "2026-W42", [3]string{"2026-10-18T00:30:00Z", "2026-10-25T00:30:00Z", "2026-11-01T01:30:00Z"}, 168},
	} {
		t.Run(row.zone+" "+row.first+" "+row.starts, func(t *testing.T) {
			var begins []time.Time
			for _, text := range row.begins {
				at, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				begins = append(begins, at)
			}
			if hours := begins[1].Sub(begins[0]).Hours(); hours != row.hours {
				t.Errorf("the week has %v hours, want %v", hours, row.hours)
			}
			weeks, err := week.New(row.zone, row.starts)
			if err != nil {
				t.Fatal(err)
			}
			first, err := week.Parse(row.first)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				weekBegins(t, weeks, first, begins, &structs.CalendarConfiguration{TimeZone: row.zone, WeekStarts: row.starts})
			})
		})
	}
}

// weekBegins gives two projects slots of two weeks, in the hour before the first of them begins, and lets time pass.
func weekBegins(t *testing.T, weeks week.Calendar, first week.ID, begins []time.Time, of *structs.CalendarConfiguration) {
	c := shifted{time.Until(begins[0].Add(-time.Hour))}
	store, w := state.New(state.Options{})
	l := &log{w: w}
	put := func(kind structs.LogType, payload any) {
		t.Helper()
		if _, err := l.Apply(t.Context(), kind, payload); err != nil {
			t.Fatal(err)
		}
	}
	config := structs.DefaultSchedulerConfiguration()
	config.Calendar = of
	put(structs.LogSchedulerConfig, &structs.SchedulerConfigEntry{Config: config})
	put(structs.LogNodeRegister, &structs.NodeRegisterEntry{Node: &structs.Node{
		ID: "n", Name: "n", NodePool: structs.NodePoolDefault, Status: structs.NodeStatusReady,
		NodeResources: &structs.NodeResources{Cpu: structs.NodeCpuResources{CpuShares: 4000, TotalCpuCores: 4}, Slots: map[string]int{structs.SlotBatch: 4}},
	}})
	for name, slots := range map[string][2]int{"chip": {3, 1}, "board": {1, 3}} { // order does not matter: they share nothing
		put(structs.LogProjectUpsert, &structs.ProjectUpsertEntry{Project: &structs.Project{Name: name}})
		for i, count := range slots {
			id := first.Add(i)
			put(structs.LogProjectCalendar, &structs.ProjectCalendarEntry{Time: c.Now().UnixNano(), Week: &structs.ProjectWeek{
				Project: name, Week: id.String(), Rows: []structs.CalendarRow{{Type: structs.SlotBatch, Count: count}},
				From: weeks.Begin(id).UnixNano(), To: weeks.End(id).UnixNano(),
			}})
		}
	}
	given := func() string {
		book := store.Snapshot().World().Slots()
		return fmt.Sprint(book.Account("chip").Given(structs.SlotBatch), book.Account("board").Given(structs.SlotBatch))
	}
	lead := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			calendar.New(calendar.Options{NewID: func() string { return "id" }, Clock: c}, store, l).Run(ctx)
		}()
		return func() { cancel(); <-done }
	}
	slots := []string{"0 0", "3 1", "1 3", "0 0"} // of both, before the first begins and after each
	for i, at := range begins {                   // each has a leader of its own, which knows nothing but the state
		time.Sleep(at.Add(-time.Hour).Sub(c.Now()))
		stop := lead()
		time.Sleep(at.Add(-1).Sub(c.Now()))
		synctest.Wait()
		if got := given(); got != slots[i] {
			t.Errorf("just before %s: %s slots, want %s", at, got, slots[i])
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := given(); got != slots[i+1] {
			t.Errorf("at %s: %s slots, want %s", at, got, slots[i+1])
		}
		time.Sleep(5 * time.Hour)
		stop()
	}
	var commits []time.Time
	for _, at := range l.commits {
		commits = append(commits, at.Add(c.by).UTC())
	}
	// A leader that finds another week stated than it is by the cluster's calendar states that at once, an hour before.
	commits = slices.DeleteFunc(commits, func(at time.Time) bool {
		return slices.ContainsFunc(begins, func(begin time.Time) bool { return at.Equal(begin.Add(-time.Hour)) })
	})
	if !slices.EqualFunc(commits, begins, time.Time.Equal) {
		t.Errorf("weeks began at %v, want %v", commits, begins)
	}
}
