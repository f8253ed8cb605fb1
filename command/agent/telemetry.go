package agent

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/command/agent/config"
	telemetryhub "github.com/nomadish/nomadish/internal/telemetry"
)

// telemetry holds where metrics go: into memory for JSON, to Prometheus, and to statsd and statsite if there are any.
type telemetry struct {
	memory *metrics.InmemSink
	hub    *telemetryhub.Hub
	full   sync.Once // to report that series are left out
	stop   func()
}

// startTelemetry makes the global metrics of the process, emits Go's own and sends what is to be sent at every interval until
// stop.
func startTelemetry(cfg *config.Config, logger hclog.Logger) (*telemetry, error) {
	conf := metricsConfig(cfg)
	t := &telemetry{memory: metrics.NewInmemSink(cfg.Telemetry.InMemoryInterval, cfg.Telemetry.InMemoryRetention)}
	t.hub = telemetryhub.NewHub(telemetryhub.Options{
		Host: hostLabel(conf), Allow: shownBy(cfg, allowedBy(conf)), MaxSeries: cfg.Telemetry.MaxSeries, Every: cfg.Telemetry.Interval,
	})
	away, err := awaySinks(cfg)
	if err != nil {
		return nil, err
	}
	global, err := metrics.NewGlobal(conf, append(metrics.FanoutSink{t.memory, t.hub.Pushed()}, away...))
	if err != nil {
		return nil, fmt.Errorf("start telemetry: %w", err)
	}
	if err := bridgeLibraries(); err != nil {
		return nil, fmt.Errorf("start telemetry: %w", err)
	}
	global.EmitRuntimeStats() // so that there is something to show at once
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var to *pusher
	if len(away) > 0 {
		if to, err = newPusher(conf, away); err != nil {
			cancel()
			return nil, fmt.Errorf("start telemetry: %w", err)
		}
		telemetryhub.Forward(to.sample)
	}
	wg.Go(func() {
		ticker := time.NewTicker(cfg.Telemetry.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				global.EmitRuntimeStats()
				to.push(ctx, t.hub)
			case <-ctx.Done():
				return
			}
		}
	})
	var once sync.Once
	t.stop = func() {
		once.Do(func() { telemetryhub.Forward(nil); cancel() })
		wg.Wait()
	}
	logger.Debug("telemetry started", "interval", cfg.Telemetry.InMemoryInterval)
	return t, nil
}

// metricsConfig returns how go-metrics names and filters.
func metricsConfig(cfg *config.Config) *metrics.Config {
	conf := metrics.DefaultConfig("nomad") // Nomad's prefix: dashboards made for it work
	conf.EnableRuntimeMetrics = false      // its goroutine never ends; ours does
	conf.EnableHostname = !cfg.Telemetry.DisableHostname
	if cfg.Telemetry.UseNodeName {
		conf.HostName, conf.EnableHostname = cfg.Name, true
	}
	conf.EnableHostnameLabel = conf.EnableHostname // a label, as dashboards expect, not a part of the name
	if cfg.Telemetry.FilterDefault != nil {
		conf.FilterDefault = *cfg.Telemetry.FilterDefault
	}
	for _, rule := range cfg.Telemetry.PrefixFilter {
		if rule[0] == '+' {
			conf.AllowedPrefixes = append(conf.AllowedPrefixes, rule[1:])
		} else {
			conf.BlockedPrefixes = append(conf.BlockedPrefixes, rule[1:])
		}
	}
	return conf
}

// hostLabel returns the value of the label host; empty: there is none.
func hostLabel(conf *metrics.Config) string {
	if !conf.EnableHostnameLabel {
		return ""
	}
	return conf.HostName
}

// allowedBy returns what go-metrics decides of a name by prefix_filter: the longest prefix counts, and of two that are the same
// the one that blocks.
func allowedBy(conf *metrics.Config) func(name string) bool {
	longest := func(name string, prefixes []string) int {
		best := -1
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				best = max(best, len(p))
			}
		}
		return best
	}
	return func(name string) bool {
		allowed, blocked := longest(name, conf.AllowedPrefixes), longest(name, conf.BlockedPrefixes)
		if allowed < 0 && blocked < 0 {
			return conf.FilterDefault
		}
		return allowed > blocked
	}
}

// shownBy leaves out what is of a server or a client where there is none: their counters are in every process.
func shownBy(cfg *config.Config, allowed func(name string) bool) func(name string) bool {
	return func(name string) bool {
		return allowed(name) && (cfg.Server.Enabled || !strings.HasPrefix(name, "nomad.nomad.")) &&
			(cfg.Client.Enabled || !strings.HasPrefix(name, "nomad.client."))
	}
}

// prometheus answers in Prometheus' text format, whichever a caller would like best: there is this one only.
func (t *telemetry) prometheus(logger hclog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", telemetryhub.TextType)
		w.Header().Add("Vary", "Accept-Encoding")
		to := io.Writer(w)
		if acceptsGzip(r.Header) {
			w.Header().Set("Content-Encoding", "gzip")
			zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails for unknown levels only
			defer zipped.Close()                                //nolint:errcheck // the caller is gone
			to = zipped
		}
		if err := t.hub.WriteText(to); err != nil {
			logger.Debug("answer with metrics", "error", err)
		}
		if n := t.hub.Pushed().Refused(); n > 0 {
			t.full.Do(func() {
				logger.Warn("metrics are left out of /v1/metrics?format=prometheus: there are too many series, or some have labels that Prometheus does not take; leave others out by telemetry.prefix_filter", "most_series", telemetryhub.MaxPushed, "values_left_out", n)
			})
		}
	})
}

// acceptsGzip reports whether an answer may be compressed: not if it only names gzip to refuse it.
func acceptsGzip(requested http.Header) bool {
	for one := range strings.SplitSeq(strings.Join(requested.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(strings.ToLower(one), ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		return !weighed || err == nil && q > 0
	}
	return false
}

// newLogger makes the agent's logger, which can be monitored. Whatever is logged is printable and, each time, one line.
func newLogger(cfg *config.Config, out io.Writer) hclog.Logger {
	return hclog.NewInterceptLogger(&hclog.LoggerOptions{
		Name: "agent", Level: hclog.LevelFromString(cfg.Logging.LogLevel), Output: &logLines{to: out, json: cfg.Logging.LogJSON}, JSONFormat: cfg.Logging.LogJSON, IncludeLocation: cfg.Logging.LogLocation,
	})
}
