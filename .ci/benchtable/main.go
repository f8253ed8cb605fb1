// Benchtable reads what `go test -bench` prints and holds it against what the project
// must reach: a table on standard output, the same as JSON in a file. It ends with
// status 1 if a "must" is missed or a benchmark of the table did not run.
//
// It never measures anything itself, and knows of the benchmarks only their names and
// metrics (rows.go).
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

func main() {
	ok, err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// Environment is what it was measured on.
type Environment struct {
	CPU       string
	Cores     int
	Go        string
	OS        string
	LoadStart string // load averages over 1, 5 and 15 minutes when it began
	LoadEnd   string
}

// report is what the JSON file holds.
type report struct {
	Environment Environment
	Lines       []Line
	Missed      []string
}

func run(args []string, in io.Reader, out, echo io.Writer) (ok bool, err error) {
	flags := flag.NewFlagSet("benchtable", flag.ContinueOnError)
	file := flags.String("json", "", "also write the table as JSON to this `file`")
	quiet := flags.Bool("quiet", false, "do not pass the benchmarks' own lines on to standard error")
	smoke := flags.Bool("smoke", false, "only see that every benchmark of the table runs; print no table, judge no figure")
	whole := flags.Bool("cluster", false, "the table of the whole cluster, not that of decisions")
	partial := flags.Bool("partial", false, "only some of the benchmarks were run: leave out the rows of others")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *quiet {
		echo = io.Discard
	}
	env := Environment{Cores: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, LoadStart: load()}
	results, err := parse(in, echo)
	if err != nil {
		return false, err
	}
	env.CPU, env.LoadEnd = results.CPU, load()
	table := decisions
	if *whole {
		table = cluster
	}
	r := report{Environment: env, Lines: judge(table(), results)}
	r.Missed = missed(r.Lines, results, *smoke, *partial)
	if !*smoke {
		if err := write(out, r.Lines, env, *partial); err != nil {
			return false, fmt.Errorf("write the table: %w", err)
		}
	}
	if *file != "" {
		if err := writeJSON(*file, r); err != nil {
			return false, err
		}
	}
	for _, m := range r.Missed {
		if _, err := fmt.Fprintln(out, m); err != nil {
			return false, fmt.Errorf("write what is missed: %w", err)
		}
	}
	return len(r.Missed) == 0, nil
}

func writeJSON(file string, r report) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the table: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil { // it holds no secret
		return fmt.Errorf("write the table as JSON: %w", err)
	}
	return nil
}

// load is the machine's load averages; "unknown" where it does not tell.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(text)); err == nil && len(f) >= 3 {
		return strings.Join(f[:3], " ")
	}
	return "unknown"
}
