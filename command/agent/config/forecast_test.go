package config

import (
	"strings"
	"testing"
)

// TestForecastLimits: how far forecasts look, and what they take of a core, is bounded.
func TestForecastLimits(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		c := Default()
		_, err := c.Merge("a.hcl", []byte("data_dir = \"/d\"\nserver {\n enabled = true\n forecast {\n"+line+"\n}\n}"))
		if err == nil {
			err = c.ValidateRead()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: have %v, want %q", line, err, want)
		}
	}
	const horizon, cpu = "server.forecast.horizon", "server.forecast.cpu_percent"
	f(`horizon = "1m"`, "")
	f(`horizon = "2160h"`, "")
	f(`horizon = "59s"`, horizon+" 59s: must be from 1m0s to 2160h0m0s (90 days)")
	f(`horizon = "2161h"`, horizon+" 2161h0m0s: must be from 1m0s")
	f(`horizon = "-1h"`, horizon)
	f(`horizon = 30`, horizon+": want a duration")
	f(`cpu_percent = 50`, "")
	f(`cpu_percent = 50.1`, cpu+" 50.1: must be above 0 and at most 50, of one core; enabled = false switches forecasts off")
	f(`cpu_percent = -1`, cpu)
	f(`enabled = "no"`, "server.forecast.enabled: want true or false")
}
