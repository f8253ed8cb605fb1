package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Results is what a run of `go test -bench` printed.
type Results struct {
	CPU string
	// Values are the figures of each benchmark by metric, one for each time that it ran.
	Values map[string]map[string][]float64
	// Order is the benchmarks as they first appear.
	Order []string
	// Failed are the lines that tell of failure.
	Failed []string
	// Ended: the last package told that it is done.
	Ended bool
}

var (
	cpus   = regexp.MustCompile(`-\d+$`)
	rounds = regexp.MustCompile(`^\d+$`)
)

// parse reads the output, and writes every line to echo as it comes.
func parse(in io.Reader, echo io.Writer) (*Results, error) {
	r := &Results{Values: map[string]map[string][]float64{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if _, err := fmt.Fprintln(echo, line); err != nil {
			return nil, fmt.Errorf("echo a line: %w", err)
		}
		if err := r.line(line); err != nil {
			return nil, err
		}
	}
	return r, lines.Err()
}

func (r *Results) line(line string) error {
	switch {
	case strings.HasPrefix(line, "cpu: "):
		r.CPU = strings.TrimPrefix(line, "cpu: ")
	case strings.HasPrefix(line, "ok "), strings.HasPrefix(line, "ok\t"):
		r.Ended = true
	case strings.Contains(line, "FAIL"), strings.HasPrefix(line, "panic:"):
		r.Failed = append(r.Failed, line)
	case strings.HasPrefix(line, "Benchmark"):
		return r.benchmark(strings.Fields(line))
	}
	return nil
}

// benchmark takes "BenchmarkX-2 100 1.5 µs/placement 3 allocs/placement".
func (r *Results) benchmark(f []string) error {
	if len(f) < 4 || !rounds.MatchString(f[1]) {
		return nil // only the name: what it logs or why it fails follows
	}
	name := cpus.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
	if r.Values[name] == nil {
		r.Values[name] = map[string][]float64{}
		r.Order = append(r.Order, name)
	}
	for i := 2; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return fmt.Errorf("benchmark %s: %q is no number", name, f[i])
		}
		r.Values[name][f[i+1]] = append(r.Values[name][f[i+1]], v)
	}
	return nil
}
