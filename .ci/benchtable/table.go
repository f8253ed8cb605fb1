package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Verdicts.
const (
	met        = "met"    // the "must"
	wanted     = "wanted" // the "want" too
	missedMust = "MISSED"
	notRun     = "NOT RUN"
	noTrace    = "no trace"
	isInfo     = ""
)

// Line is a row as measured by one benchmark.
type Line struct {
	Work, On, Benchmark, Unit string
	Median, Min, Max          float64
	Runs                      int
	Must, Want                float64
	Peer                      string
	Verdict                   string
}

// judge makes the lines of the table.
func judge(rows []Row, r *Results) (lines []Line) {
	for _, row := range rows {
		base := Line{Work: row.Work, Unit: row.Unit, Must: row.Must, Want: row.Want, Peer: row.Peer}
		var of []Line
		for _, name := range r.Order {
			m := row.Match.FindStringSubmatch(name)
			values := r.Values[name][row.Unit]
			if m == nil || len(values) == 0 {
				continue
			}
			l := base
			l.Benchmark, l.On, l.Runs = name, m[len(m)-1], len(values)
			l.measure(values)
			l.Verdict = row.verdict(l.Median)
			of = append(of, l)
		}
		switch {
		case len(of) == 0 && row.Trace:
			base.Verdict = noTrace
			of = append(of, base)
		case len(of) == 0 && !row.Info:
			base.Verdict = notRun
			of = append(of, base)
		case len(of) > 1 && row.Worst:
			slices.SortStableFunc(of, func(a, b Line) int { return cmp.Compare(b.Median, a.Median) })
			if row.AtLeast {
				slices.Reverse(of)
			}
			of = of[:1]
		}
		lines = append(lines, of...)
	}
	return lines
}

func (l *Line) measure(values []float64) {
	v := slices.Sorted(slices.Values(values))
	l.Min, l.Max, l.Median = v[0], v[len(v)-1], (v[(len(v)-1)/2]+v[len(v)/2])/2
}

func (r *Row) verdict(v float64) string {
	reaches := func(limit float64) bool { return v <= limit }
	if r.AtLeast {
		reaches = func(limit float64) bool { return v >= limit }
	}
	switch {
	case r.Info:
		return isInfo
	case reaches(r.Want):
		return wanted
	case reaches(r.Must):
		return met
	}
	return missedMust
}

// missed returns what must be mended. A smoke run judges no figure, a partial one
// wants no row.
func missed(lines []Line, r *Results, smoke, partial bool) (out []string) {
	for _, l := range lines {
		switch {
		case l.Verdict == notRun && !partial:
			out = append(out, fmt.Sprintf("not run: %s", l.Work))
		case l.Verdict == missedMust && !smoke:
			out = append(out, fmt.Sprintf("missed: %s, on %s: %s %s, must be %s", l.Work, l.On, number(l.Median), l.Unit, number(l.Must)))
		}
	}
	for _, line := range r.Failed {
		out = append(out, "failed: "+line)
	}
	if !r.Ended && len(r.Failed) == 0 {
		out = append(out, "failed: the benchmarks did not end; see what they print")
	}
	return out
}

// write prints the table as Markdown, its columns aligned.
func write(out io.Writer, lines []Line, env Environment, partial bool) error {
	cells := [][]string{
		{"work", "on", "measured (min–max)", "unit", "must", "want", "verdict", "peer"},
		{"---", "---", "---:", "---", "---:", "---:", "---", "---"},
	}
	last := ""
	for _, l := range lines {
		if partial && (l.Verdict == notRun || l.Verdict == noTrace) {
			continue
		}
		work := l.Work
		if work == last {
			work = ""
		}
		last = l.Work
		measured := "–"
		if l.Runs > 0 {
			measured = number(l.Median)
		}
		if l.Runs > 1 {
			measured += fmt.Sprintf(" (%s–%s)", number(l.Min), number(l.Max))
		}
		must, want := number(l.Must), number(l.Want)
		if l.Verdict == isInfo {
			must, want = "", ""
		}
		cells = append(cells, []string{work, l.On, measured, l.Unit, must, want, l.Verdict, l.Peer})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %d cores, %s, %s; load %s when it began, %s when it ended.\n\n",
		env.CPU, env.Cores, env.OS, env.Go, env.LoadStart, env.LoadEnd)
	aligned(&b, cells)
	b.WriteByte('\n')
	_, err := io.WriteString(out, b.String())
	return err
}

func aligned(b *strings.Builder, cells [][]string) {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range cells {
		for i, c := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if strings.HasSuffix(cells[1][i], ":") {
				b.WriteString("| " + pad + c + " ")
			} else {
				b.WriteString("| " + c + pad + " ")
			}
		}
		b.WriteString("|\n")
	}
}

// number prints three digits that matter.
func number(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1e15:
		return fmt.Sprintf("%d", int64(v))
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
