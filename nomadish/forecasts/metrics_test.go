package forecasts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/internal/testcluster"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// TestWaitsOf: of each band it is summed up how many groups wait and of how many it is not known until when, and what the medians of the others are.
func TestWaitsOf(t *testing.T) {
	l := testcluster.New(1, state.Options{})
	config := structs.DefaultSchedulerConfiguration()
	config.Bands = []structs.PriorityBand{{Low: 1, High: 50}, {Low: 51, High: 90}, {Low: 91, High: 100}}
	l.Put(t, &structs.SchedulerConfigEntry{Config: config})
	f := &structs.Forecast{Time: int64(time.Hour)}
	waits := func(job string, priority, expected, latest int) {
		j := testcluster.Job(job, structs.JobTypeBatch, 1)
		j.Priority = priority
		l.Put(t, &structs.JobRegisterEntry{Job: j})
		at := func(minutes int) (s structs.StartForecast) {
			if minutes > 0 {
				s.All = f.Time + int64(time.Duration(minutes)*time.Minute)
			}
			return s
		}
		f.Requests = append(f.Requests, &structs.RequestForecast{Namespace: j.Namespace, JobID: job, Group: "g", Expected: at(expected), Latest: at(latest)})
	}
	waits("a", 50, 1, 5)
	waits("b", 20, 9, 90)
	waits("c", 10, 2, 0)
	waits("d", 60, 7, 8)
	f.Requests = append(f.Requests, &structs.RequestForecast{Namespace: structs.DefaultNamespace, JobID: "gone", Group: "g"})
	var got []string
	for _, w := range waitsOf(l.Store.Snapshot(), f) {
		got = append(got, fmt.Sprint(w.Band.Low, "-", w.Band.High, " ", w.Groups, " ", w.Unknown, " ", w.Expected, " ", w.Latest))
	}
	if want := []string{"1-50 3 1 2m0s 1h30m0s", "51-90 1 0 7m0s 8m0s", "91-100 0 0 0s 0s"}; !slices.Equal(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
