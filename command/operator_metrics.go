package command

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
)

// metrics is what the agent has measured in its last interval.
type metrics struct {
	Timestamp string
	Gauges    []metric
	Counters  []metric
	Samples   []metric
}

type metric struct {
	Name   string
	Labels map[string]string
	Value  float64 // of gauges
	// The rest is of counters and samples.
	Count               int
	Sum, Min, Max, Mean float64
}

func operatorMetrics() spec {
	return spec{
		synopsis: "Show the agent's metrics",
		usage:    "", example: "-format prometheus", output: true,
		setup: func(fs *flag.FlagSet) func(context.Context, *env, []string) int {
			format := fs.String("format", "", "`prometheus`: as Prometheus reads it")
			pretty := fs.Bool("pretty", false, "indented JSON")
			return withoutArgs(func(ctx context.Context, e *env) int {
				switch *format {
				case "prometheus":
					return prometheusMetrics(ctx, e)
				case "", "pretty", "json":
				default:
					return e.usage("-format %q: prometheus is the only one", *format)
				}
				raw, err := e.client.Agent().Metrics(ctx)
				if err != nil {
					return e.fail(err)
				}
				var all any
				if err := json.Unmarshal(raw, &all); err != nil {
					return e.fail(fmt.Errorf("metrics: %w", err))
				}
				e.json = e.json || *pretty || *format != ""
				if done, code := e.formatted(all); done {
					return code
				}
				var m metrics
				if err := json.Unmarshal(raw, &m); err != nil {
					return e.fail(fmt.Errorf("metrics: %w", err))
				}
				showMetricTables(&e.printer, &m)
				return exitDone
			})
		},
	}
}

func prometheusMetrics(ctx context.Context, e *env) int {
	body, err := e.client.Raw(ctx, "/v1/metrics", &api.Query{Params: map[string]string{"format": "prometheus"}})
	if err != nil {
		return e.fail(err)
	}
	defer body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(body)
	if err != nil {
		return e.fail(fmt.Errorf("read the metrics: %w", err))
	}
	e.printf("%s", ui.Lines(text))
	return exitDone
}

func showMetricTables(p *printer, m *metrics) {
	p.printf("%s\n", p.style.Bold("Interval of "+m.Timestamp))
	number := func(f float64) string { return fmt.Sprintf("%.6g", f) }
	table := func(title string, all []metric, heads []string, cells func(metric) []string) {
		if len(all) == 0 {
			return
		}
		slices.SortStableFunc(all, func(a, b metric) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(pairsText(a.Labels), pairsText(b.Labels)))
		})
		p.printf("\n%s\n", p.style.Bold(title))
		rows := [][]string{append([]string{"Name"}, heads...)}
		for _, one := range all {
			name := one.Name
			if labels := pairsText(one.Labels); labels != "" {
				name += "{" + labels + "}"
			}
			rows = append(rows, append([]string{name}, cells(one)...))
		}
		ui.Table(p.out, rows)
	}
	table("Gauges", m.Gauges, []string{"Value"}, func(g metric) []string { return []string{number(g.Value)} })
	table("Counters", m.Counters, []string{"Count", "Sum"}, func(c metric) []string {
		return []string{fmt.Sprint(c.Count), number(c.Sum)}
	})
	table("Samples", m.Samples, []string{"Count", "Min", "Mean", "Max"}, func(s metric) []string {
		return []string{fmt.Sprint(s.Count), number(s.Min), number(s.Mean), number(s.Max)}
	})
}
