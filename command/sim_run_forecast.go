package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/nomadish/backtest"
	"github.com/nomadish/nomadish/scheduler/trace"
	"github.com/nomadish/nomadish/structs"
)

// minForecastEvery is the least time between two forecasts.
const minForecastEvery = time.Second

// forecastFlags adds the flags of forecasts.
func (o *simRunOptions) forecastFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.forecast, "forecast", "", "replay once more with the parts of a leader, make a forecast every so much virtual `time` (1h), and compare it with what happens")
	fs.StringVar(&o.horizon, "forecast-horizon", "", "how far forecasts look, a `time` (default "+structs.DefaultForecastHorizon.String()+")")
	fs.StringVar(&o.forecastFrom, "forecast-from", "", "the first forecast is made so much virtual `time` after the trace's start (0s)")
	fs.StringVar(&o.forecastUntil, "forecast-until", "", "the last one, a `time` after it (default: as long as somebody waits)")
	fs.StringVar(&o.limits, "limits", "", "rows that state no time limit state so many `times` their duration, rounded up as people do: 1.1")
}

// maxLimits bounds -limits.
const maxLimits = 1000

// parseLimits reads "1.1"; 0: not stated.
func parseLimits(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v >= 1 && v <= maxLimits) {
		return 0, fmt.Errorf("-limits %q: must be a number from 1 to %d, such as 1.1", s, maxLimits)
	}
	return v, nil
}

// readForecast reads how forecasts are made, and refuses what does not go together with them.
func (p *simPlan) readForecast() (err error) {
	o := p.o
	if o.forecast == "" {
		if o.horizon != "" || o.forecastFrom != "" || o.forecastUntil != "" {
			return errors.New("-forecast-horizon, -forecast-from and -forecast-until: state which forecasts are made; have them made with -forecast 1h")
		}
		return nil
	}
	if p.every, err = time.ParseDuration(o.forecast); err != nil || p.every < minForecastEvery {
		return fmt.Errorf("-forecast %q: must be a time of %s or more, such as 1h", o.forecast, minForecastEvery)
	}
	if p.horizon = structs.DefaultForecastHorizon; o.horizon != "" {
		if p.horizon, err = time.ParseDuration(o.horizon); err != nil || p.horizon <= 0 || p.horizon > structs.MaxForecastHorizon {
			return fmt.Errorf("-forecast-horizon %q: must be a time of at most %s, such as 168h", o.horizon, structs.MaxForecastHorizon)
		}
	}
	if p.from, err = parseSinceStart("-forecast-from", o.forecastFrom); err != nil {
		return err
	}
	if p.to, err = parseSinceStart("-forecast-until", o.forecastUntil); err != nil {
		return err
	}
	switch {
	case p.to > 0 && p.to < p.from:
		return fmt.Errorf("-forecast-until %s: must not be before -forecast-from %s", p.to, p.from)
	case o.drop:
		return errors.New("-forecast: nobody waits with -drop and -order: leave them out")
	case o.virtualClusters != "":
		return errors.New("-forecast: is not made where virtual clusters own something: leave out -virtual-clusters")
	case p.trace.Workflows:
		return errors.New("-forecast: is not made of workflows, and the trace has the column workflow")
	}
	for i := range p.trace.Len() {
		if p.trace.At(i).MaxRun > 0 {
			return nil
		}
	}
	if p.trace.Len() >= 0 {
		return errors.New("-forecast: no row states a time limit (max_run_duration), so that no start at the latest can be known: add -limits 1.1")
	}
	return nil
}

// parseSinceStart reads a time since the trace's start; 0: not stated.
func parseSinceStart(name, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > trace.MaxTime {
		return 0, fmt.Errorf("%s %q: must be a time since the trace's start, such as 336h", name, s)
	}
	return d, nil
}

// forecastNotes state what was chosen for forecasts.
func (p *simPlan) forecastNotes() (out []string) {
	if p.o.limits != "" {
		out = append(out, "Rows that state no time limit state "+p.o.limits+" times their duration, rounded up to 5, 15 or 30 minutes, 1, 2, 4, 8 or 12 hours, "+
			"1, 2, 3, 4, 7, 14 or 30 days, or a multiple of 30 days.")
	}
	if p.every > 0 {
		if p.from > 0 || p.to > 0 {
			text := fmt.Sprintf("Forecasts were made from %s after the trace's start", p.from)
			if p.to > 0 {
				text += fmt.Sprintf(" until %s after it", p.to)
			}
			out = append(out, text+". What came before was replayed, too.")
		}
		out = append(out, "Forecasts know of what runs what a server does: time limits, and how long finished runs of the tenant took, who counts as one user.")
	}
	return out
}

// forecast replays once more, with forecasts.
func (p *simPlan) forecast(ctx context.Context, x *simReplay, c *trace.Config) (*trace.ForecastFigures, error) {
	return backtest.Run(ctx, backtest.Config{
		Nodes: p.nodes, Rows: p.rows(x.seed), Scheduler: c.Scheduler, Seed: x.seed, Every: p.every, Horizon: p.horizon, From: p.from, Until: p.to, Report: c.Report,
	})
}
