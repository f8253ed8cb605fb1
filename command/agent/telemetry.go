package agent

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
	metricsprom "github.com/hashicorp/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nomadish/nomadish/command/agent/config"
)

// telemetry holds where metrics go: into memory for JSON, and to Prometheus.
type telemetry struct {
	memory   *metrics.InmemSink
	registry *prometheus.Registry
	stop     func()
}

// startTelemetry makes the global metrics of the process and emits Go's own at
// every interval until stop.
func startTelemetry(cfg *config.Config, logger hclog.Logger) (*telemetry, error) {
	t := &telemetry{registry: prometheus.NewRegistry()}
	t.memory = metrics.NewInmemSink(cfg.Telemetry.InMemoryInterval, cfg.Telemetry.InMemoryRetention)
	prom, err := metricsprom.NewPrometheusSinkFrom(metricsprom.PrometheusOpts{
		Expiration: 60 * time.Second, Registerer: t.registry, Name: "nomad",
	})
	if err != nil {
		return nil, fmt.Errorf("start telemetry: %w", err)
	}
	if err := t.registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, fmt.Errorf("start telemetry: %w", err)
	}
	conf := metrics.DefaultConfig("nomad") // Nomad's prefix: dashboards made for it work
	conf.EnableRuntimeMetrics = false      // its goroutine never ends; ours does
	conf.EnableHostname = !cfg.Telemetry.DisableHostname
	if cfg.Telemetry.UseNodeName {
		conf.HostName, conf.EnableHostname = cfg.Name, true
	}
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
	global, err := metrics.NewGlobal(conf, metrics.FanoutSink{t.memory, prom})
	if err != nil {
		return nil, fmt.Errorf("start telemetry: %w", err)
	}
	global.EmitRuntimeStats() // so that there is something to show at once
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(cfg.Telemetry.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				global.EmitRuntimeStats()
			case <-done:
				return
			}
		}
	})
	var once sync.Once
	t.stop = func() { once.Do(func() { close(done) }); wg.Wait() }
	logger.Debug("telemetry started", "interval", cfg.Telemetry.InMemoryInterval)
	return t, nil
}

// summary is the last interval as /v1/metrics shows it.
func (t *telemetry) summary() (any, error) {
	shown, err := t.memory.DisplayMetrics(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if s, ok := shown.(metrics.MetricsSummary); ok {
		for _, values := range [][]metrics.SampledValue{s.Samples, s.Counters} {
			for i := range values {
				// Rounding can make the root of a tiny negative number; JSON has no NaN.
				if math.IsNaN(values[i].Stddev) {
					values[i].Stddev = 0
				}
			}
		}
	}
	return shown, nil
}

func (t *telemetry) prometheus(logger hclog.Logger) http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:      logger.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// newLogger makes the agent's logger, which can be monitored. Whatever is logged is printable and, each time, one line.
func newLogger(cfg *config.Config, out io.Writer) hclog.Logger {
	return hclog.NewInterceptLogger(&hclog.LoggerOptions{
		Name: "agent", Level: hclog.LevelFromString(cfg.LogLevel), Output: &logLines{to: out, json: cfg.LogJSON}, JSONFormat: cfg.LogJSON, IncludeLocation: cfg.LogLocation,
	})
}
