package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/e2e/harness"
)

// series is a line of /v1/metrics?format=prometheus.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// scrape reads all series as Prometheus does. types has those of the families. What Prometheus would refuse fails the test.
func scrape(ctx context.Context, a *harness.Agent) (all []series, types map[string]string, err error) {
	body, err := a.API.Raw(ctx, "/v1/metrics", &api.Query{Params: map[string]string{"format": "prometheus"}})
	if err != nil {
		return nil, nil, err
	}
	defer body.Close() //nolint:errcheck // read only
	types = map[string]string{}
	seen := map[string]bool{}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if types[name] != "" {
				a.T.Errorf("the family %s comes twice", name)
			}
			types[name] = kind
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := seriesLine.FindStringSubmatch(line)
		if m == nil {
			a.T.Fatalf("line %q", line)
		}
		if key := m[1] + "{" + m[2]; seen[key] {
			a.T.Errorf("the series %s} comes twice", key)
		} else {
			seen[key] = true
		}
		s := series{name: m[1], labels: map[string]string{}}
		if s.value, err = strconv.ParseFloat(m[3], 64); err != nil {
			a.T.Fatalf("line %q: %v", line, err)
		}
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			s.labels[l[1]] = l[2]
		}
		all = append(all, s)
	}
	return all, types, lines.Err()
}

// wanted is a line of testdata/metrics/dashboards.txt.
type wanted struct {
	line     string
	name     string
	labels   map[string]string // by name; empty: any value
	min, max float64
}

func dashboards(t *testing.T) (all []wanted) {
	t.Helper()
	for _, line := range dataLines(t, "testdata/metrics/dashboards.txt") {
		head, bounds, _ := strings.Cut(line, "} ")
		name, labels, ok := strings.Cut(strings.TrimSuffix(head, "}"), "{")
		if !ok {
			t.Fatalf("line %q", line)
		}
		w := wanted{line: line, name: name, labels: map[string]string{}, max: math.Inf(1)}
		for label := range strings.SplitSeq(labels, ",") {
			if label != "" {
				key, value, _ := strings.Cut(label, "=")
				w.labels[key] = value
			}
		}
		if low, high, ok := strings.Cut(bounds, ".."); ok {
			var err error
			if w.min, err = strconv.ParseFloat(low, 64); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if high != "" {
				if w.max, err = strconv.ParseFloat(high, 64); err != nil {
					t.Fatalf("line %q: %v", line, err)
				}
			}
		}
		all = append(all, w)
	}
	return all
}

func dataLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// in reports what is wrong with the series of that name; empty: one has all labels, and all of those a value within the bounds.
func (w *wanted) in(all []series) string {
	found, other := false, ""
	for _, s := range all {
		if s.name != w.name {
			continue
		}
		missing := ""
		for key, value := range w.labels {
			if got, ok := s.labels[key]; !ok || got == "" || value != "" && got != value {
				missing = key
			}
		}
		if missing != "" {
			other = fmt.Sprintf("there is %v, in which %s is another", s, missing)
			continue
		}
		found = true
		if _, quantile := s.labels["quantile"]; quantile && math.IsNaN(s.value) { // of a while in which nothing was observed
			continue
		}
		if !(s.value >= w.min && s.value <= w.max) {
			return fmt.Sprintf("%v is not from %v to %v", s, w.min, w.max)
		}
	}
	if !found {
		return "it is missing; " + other
	}
	return ""
}

const metricsConfig = harness.ServerAndClient + `
name = "watched"
telemetry {
  collection_interval        = "100ms"
  prometheus_metrics         = true
  publish_allocation_metrics = true
  publish_node_metrics       = true
  use_node_name              = true
}
`

const metricsJobs = `job "web" {
  datacenters = ["dc1"]
  group "front" {
    count = 2
    task "sleep" {
      driver = "raw_exec"
      config {
        command = "sleep"
        args    = ["600"]
      }
      resources {
        cpu    = 50
        memory = 20
      }
    }
  }
}
---
job "done" {
  datacenters = ["dc1"]
  type = "batch"
  group "once" {
    task "true" {
      driver = "raw_exec"
      config { command = "true" }
      resources {
        cpu    = 50
        memory = 20
      }
    }
  }
}
---
job "huge" {
  datacenters = ["dc1"]
  type = "batch"
  group "never" {
    count = 3
    task "true" {
      driver = "raw_exec"
      config { command = "true" }
      resources {
        cpu    = 100000000
        memory = 20
      }
    }
  }
}`

// measured starts an agent with all metrics and a few jobs.
func measured(t *testing.T) *harness.Agent {
	t.Helper()
	a := harness.NewAgent(t, false, metricsConfig)
	a.Start()
	a.WaitReady(1)
	i := 0
	for text := range strings.SplitSeq(metricsJobs, "---") {
		i++
		if out, code := a.CLI("job", "run", "-detach", a.JobFile(strconv.Itoa(i), text)); code != 0 {
			t.Fatal(out)
		}
	}
	if out, code := a.CLI("job", "eval", "-detach", "web"); code != 0 {
		t.Fatal(out)
	}
	return a
}

// TestMetricsOfDashboards: every series that published dashboards for Nomad read is there, with its labels and a sensible
// value; what is there beside them is documented, with its type and its labels; and series of a job that is gone are gone.
func TestMetricsOfDashboards(t *testing.T) {
	t.Parallel()
	a := measured(t)
	want := dashboards(t)
	if len(want) < 125 {
		t.Fatalf("only %d series are wanted", len(want))
	}
	found := map[string]bool{} // some are forgotten a minute after they were told of
	harness.Within(t, 90*time.Second, "the series", func(ctx context.Context) error {
		if _, _, err := a.API.Jobs().List(ctx, nil); err != nil {
			return err
		}
		all, _, err := scrape(ctx, a)
		if err != nil {
			return err
		}
		var wrong []string
		for _, w := range want {
			switch what := w.in(all); {
			case what == "":
				found[w.line] = true
			case !found[w.line]:
				wrong = append(wrong, w.line+": "+what)
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d of %d: %s", len(wrong), len(want), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
		}
		return nil
	})
	familiesDocumented(t, a)
	before := alive(t, a, "web")
	if before == 0 {
		t.Fatal("there is no series of the job")
	}
	if out, code := a.CLI("job", "stop", "-purge", "-detach", "web"); code != 0 {
		t.Fatal(out)
	}
	if out, code := a.CLI("system", "gc"); code != 0 {
		t.Fatal(out)
	}
	harness.Within(t, 30*time.Second, "the end of the job's series", func(context.Context) error {
		if out, code := a.CLI("system", "gc"); code != 0 {
			return fmt.Errorf("collect: %s", out)
		}
		if n := alive(t, a, "web"); n > 0 {
			return fmt.Errorf("%d of %d series are there", n, before)
		}
		return nil
	})
}

// alive counts the series of a job, but for the counters of its tasks, which stay for a while.
func alive(t *testing.T, a *harness.Agent, job string) (n int) {
	t.Helper()
	all, types, err := scrape(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.labels["job"] == job && (types[s.name] != "counter" || strings.HasPrefix(s.name, "nomad_nomad_")) {
			n++
		}
	}
	return n
}

// familiesDocumented checks that docs/reference/metrics.md has every family, but for those of libraries, with its type and its labels.
func familiesDocumented(t *testing.T, a *harness.Agent) {
	t.Helper()
	all, types, err := scrape(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	table := metricsTable(t)
	for name, kind := range types {
		row, ok := table[name]
		if !ok {
			if !libraries.MatchString(name) {
				t.Errorf("%s (%s) is not in docs/reference/metrics.md", name, kind)
			}
			continue
		}
		if row.kind != kind {
			t.Errorf("%s is a %s; docs/reference/metrics.md says %s", name, kind, row.kind)
		}
	}
	for _, s := range all {
		row, ok := table[s.name]
		if !ok { // of a summary, or of a library
			continue
		}
		for label := range s.labels {
			if label != "host" && label != "quantile" && !slices.Contains(row.labels, label) && !slices.Contains(row.labels, label+"?") {
				t.Errorf("%s has the label %s, which docs/reference/metrics.md does not tell of", s.name, label)
			}
		}
		for _, label := range row.labels {
			if _, ok := s.labels[label]; !ok && label != "" && !strings.HasSuffix(label, "?") {
				t.Errorf("%s has no label %s: %v", s.name, label, s.labels)
			}
		}
	}
}

// libraries have more families than the documentation tells of.
var libraries = regexp.MustCompile(`^(go_|nomad_(raft|serf|memberlist)_)`)

type metricRow struct {
	kind   string
	labels []string
}

// metricsTable reads the table of docs/reference/metrics.md, by the names that Prometheus has.
func metricsTable(t *testing.T) map[string]metricRow {
	t.Helper()
	out := map[string]metricRow{}
	for _, line := range dataLines(t, "../../docs/reference/metrics.md") {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`nomad.") {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[1]), "`")
		row := metricRow{kind: strings.TrimSpace(cells[2])}
		for label := range strings.SplitSeq(cells[4], ",") {
			row.labels = append(row.labels, strings.TrimSpace(label))
		}
		out[strings.NewReplacer(".", "_", "-", "_").Replace(name)] = row
	}
	if len(out) < 200 {
		t.Fatalf("docs/reference/metrics.md has %d families", len(out))
	}
	return out
}

// TestMetricsOfNomad: which of the metrics that Nomad's documentation and source name are there. The list only grows: what is
// there and marked as missing is to be marked as there.
func TestMetricsOfNomad(t *testing.T) {
	t.Parallel()
	a := measured(t)
	table := metricsTable(t)
	for _, path := range []string{
		"/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/evaluations/count", "/v1/nodes", "/v1/job/web", "/v1/job/web/allocations", "/v1/job/web/evaluations",
		"/v1/job/web/versions", "/v1/job/web/summary", "/v1/job/web/scale", "/v1/job/web/submission?version=0", "/.well-known/jwks.json",
	} {
		if body, err := a.API.Raw(t.Context(), path, nil); err == nil {
			_, _ = io.Copy(io.Discard, body)
			_ = body.Close()
		}
	}
	lines := dataLines(t, "testdata/metrics/nomad.txt")
	if len(lines) < 414 {
		t.Fatalf("%d names", len(lines))
	}
	there := map[string]bool{}
	harness.Within(t, 60*time.Second, "the metrics", func(ctx context.Context) error {
		all, _, err := scrape(ctx, a)
		if err != nil {
			return err
		}
		for _, s := range all {
			there[s.name] = true
			there[strings.TrimSuffix(s.name, "_count")] = true
		}
		var wrong []string
		for _, line := range lines {
			mark, name, _ := strings.Cut(line, " ")
			full := "nomad_" + strings.NewReplacer(".", "_", "-", "_").Replace(name)
			switch _, known := table[full]; {
			case mark == "+" && !there[full]:
				wrong = append(wrong, name+": it was there")
			case mark == "-" && (there[full] || known):
				wrong = append(wrong, name+": it is there; mark it with + or ~")
			case mark == "~" && !known:
				wrong = append(wrong, name+": docs/reference/metrics.md does not tell of it any more")
			case !slices.Contains([]string{"+", "-", "~"}, mark):
				t.Fatalf("line %q", line)
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("%d: %s", len(wrong), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
		}
		return nil
	})
}

// TestMetricsAreSent: statsd gets what is pushed, what is derived and what is timed.
func TestMetricsAreSent(t *testing.T) {
	t.Parallel()
	statsd, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer statsd.Close() //nolint:errcheck // nothing was written
	a := harness.StartDev(t, fmt.Sprintf("telemetry {\n  statsd_address = %q\n  collection_interval = \"50ms\"\n}\n", statsd.LocalAddr()))
	if out, code := a.CLI("job", "run", "-detach", a.JobFile("web", strings.Split(metricsJobs, "---")[0])); code != 0 {
		t.Fatal(out)
	}
	want := map[string]*regexp.Regexp{}
	for _, line := range []string{
		`nomad\.runtime\.num_goroutines:[1-9][0-9.]*\|g`, `nomad\.nomad\.job_summary\.running\.web\.front\.default:2\.0+\|g`,
		`nomad\.nomad\.job\.register:[0-9.]+\|ms`, `nomad\.nomad\.rpc\.request:[1-9][0-9.]*\|c`, `nomad\.raft\.apply:[0-9.]+\|c`,
	} {
		want[line] = regexp.MustCompile(`(?m)^` + line + `$`)
	}
	packet := make([]byte, 64<<10)
	if err := statsd.SetReadDeadline(time.Now().Add(harness.Scaled(time.Minute))); err != nil {
		t.Fatal(err)
	}
	for len(want) > 0 {
		n, _, err := statsd.ReadFrom(packet)
		if err != nil {
			t.Fatalf("%v; not sent: %v", err, slices.Collect(maps.Keys(want)))
		}
		maps.DeleteFunc(want, func(_ string, line *regexp.Regexp) bool { return line.Match(packet[:n]) })
	}
}
