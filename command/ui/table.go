package ui

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table prints rows in columns, the first row as their heads, two spaces between. Each row is one line: what is not
// printable in a cell is escaped.
func Table(w io.Writer, rows [][]string) {
	var widths []int
	lines := make([][]string, len(rows))
	for n, row := range rows {
		lines[n] = make([]string, len(row))
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			lines[n][i] = escapeLine(cell)
			widths[i] = max(widths[i], width(lines[n][i]))
		}
	}
	for _, row := range lines {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-width(cell)+2))
			}
		}
		_, _ = io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}

// Pair is one line of a key-value list.
type Pair struct{ Key, Value string }

// Pairs prints "key = value" lines with the signs of equality below each other. Each pair is one line: what is not printable
// in it is escaped.
func Pairs(w io.Writer, pairs []Pair) {
	widest := 0
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = escapeLine(p.Key)
		widest = max(widest, width(keys[i]))
	}
	for i, p := range pairs {
		pad := strings.Repeat(" ", widest-width(keys[i]))
		_, _ = io.WriteString(w, strings.TrimRight(keys[i]+pad+" = "+escapeLine(p.Value), " ")+"\n")
	}
}

// width returns how many characters a terminal shows of an escaped text; colours take no room.
func width(s string) int {
	n := utf8.RuneCountInString(s)
	if strings.IndexByte(s, markFirst) >= 0 {
		n -= strings.Count(s, markStart()) * (len(markStart()) + 1)
	}
	return n
}
