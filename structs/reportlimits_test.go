package structs_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/structs"
)

// full is a report with everything that a client says, with texts of so many bytes.
func full(tasks, events, text int) *structs.AllocClientUpdate {
	long := strings.Repeat("é", text/2)
	u := &structs.AllocClientUpdate{
		ID: strings.Repeat("a", 36), NodeID: strings.Repeat("b", 36), ClientStatus: structs.AllocClientFailed, ClientDescription: long, ModifyTime: math.MinInt64,
		DeploymentStatus: &structs.AllocDeploymentStatus{Healthy: new(true), Timestamp: time.Now(), Canary: true, ModifyIndex: math.MaxUint64},
		NetworkStatus:    &structs.AllocNetworkStatus{InterfaceName: "eth0", Address: "10.0.0.1", DNS: &structs.DNSConfig{Servers: []string{"10.0.0.2"}, Searches: []string{"a"}, Options: []string{"b"}}},
		TaskStates:       map[string]*structs.TaskState{},
	}
	for i := range tasks {
		s := &structs.TaskState{
			State: structs.TaskStateDead, Failed: true, Restarts: math.MaxUint64, LastRestart: time.Now(), StartedAt: time.Now(), FinishedAt: time.Now(),
		}
		for j := range events {
			s.Events = append(s.Events, &structs.TaskEvent{
				Type: structs.TaskDriverFailure, Time: int64(j) + 1, DisplayMessage: long, Message: long, FailsTask: true, RestartReason: long, DriverError: long,
				ExitCode: math.MinInt64, Signal: math.MinInt64, KillReason: long, KillTimeout: math.MinInt64, KillError: long, StartDelay: math.MinInt64,
				FailedSibling: "x", TaskSignal: "SIGKILL", Details: map[string]string{"driver_error": long, "empty": ""},
			})
		}
		u.TaskStates[fmt.Sprintf("t%d", i)] = s
	}
	return u
}

func encoded(t testing.TB, v any) int {
	t.Helper()
	b, err := codec.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// TestReportSize: a report takes no more bytes than is said before it is encoded, by which clients split what they send.
func TestReportSize(t *testing.T) {
	for _, u := range []*structs.AllocClientUpdate{{}, full(0, 0, 0), full(1, 1, 0), full(3, 10, 10), full(2, 10, 70_000), {TaskStates: map[string]*structs.TaskState{"t": nil}}} {
		if size, is := u.Size(), encoded(t, u); is > size {
			t.Errorf("%d tasks: %d bytes, and %d are expected at most", len(u.TaskStates), is, size)
		}
	}
}

// TestFit: whatever a client has to say of an allocation is cut until there is room for it, from the least that matters on; what it was
// cut from stays as it is, because events are shared.
func TestFit(t *testing.T) {
	for _, c := range []struct{ tasks, events, text, wantEvents int }{
		{1, 10, 100, 10}, {1, 15, 100, 10}, {1, 10, 100_000, 10}, {40, 10, 5000, 10}, {400, 10, 2500, 2}, {2000, 2, 100, 0},
	} {
		u := full(c.tasks, c.events, c.text)
		before := full(c.tasks, c.events, c.text)
		const most = 768 << 10
		got := u.Fit(most)
		if n := encoded(t, got); n > most {
			t.Errorf("%+v: %d bytes", c, n)
		}
		if events := got.TaskStates["t0"].Events; len(events) != c.wantEvents || c.wantEvents > 0 && events[len(events)-1].Time != int64(c.events) {
			t.Errorf("%+v: %d events", c, len(events))
		}
		if err := got.CheckLimits(); err != nil {
			t.Errorf("%+v: refused: %v", c, err)
		}
		for _, s := range before.TaskStates { // the clock has gone on
			for _, e := range s.Events {
				if !reflect.DeepEqual(e, u.TaskStates["t0"].Events[e.Time-1]) {
					t.Fatalf("%+v: what it was cut from has changed", c)
				}
			}
		}
	}
}

// TestHonestReportsCostNothing: a report within all bounds is neither copied nor allocated for.
func TestHonestReportsCostNothing(t *testing.T) {
	u := full(2, 10, 100)
	if n := testing.AllocsPerRun(100, func() {
		if err := u.CheckLimits(); err != nil {
			t.Fatal(err)
		}
		if u.Cut(structs.MaxTaskText, structs.MaxTaskEvents) != u || u.Fit(1<<20) != u {
			t.Fatal("it is copied")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"shorter", 5, "short"},
		{"", 0, ""},
		{"x", 0, ""},
		{strings.Repeat("a", 300) + "the cause", 40, "aaaaaaaa … (cut from 309 bytes) … se"},
		{strings.Repeat("é", 100), 5, "éé"},
	} {
		if got := structs.CutText(c.text, c.most); got != c.want || len(got) > c.most {
			t.Errorf("%.20q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}
