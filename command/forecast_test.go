package command

import (
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// TestForecastOfTheRest: of several instances that wait, a forecast states whose starts its two times are.
func TestForecastOfTheRest(t *testing.T) {
	start := structs.StartForecast{First: 3600e9, All: 7200e9}
	now := time.Unix(0, 0)
	f := func(missing int, want string) {
		t.Helper()
		r := &structs.RequestForecast{Missing: missing, Expected: start, Latest: start}
		if got := strings.Join(forecastLines(r, now), "\n"); got != "Expected start: "+want+", also at the latest" {
			t.Errorf("of %d: %s", missing, got)
		}
	}
	first, all := clockTime(3600e9, now), clockTime(7200e9, now)
	f(4, first+" to "+all+" (the first and the last of the 4 instances that wait)")
	start.First = start.All
	f(4, all)
}
