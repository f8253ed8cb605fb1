package ui

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table prints rows in columns, the first row as their heads, two spaces between.
func Table(w io.Writer, rows [][]string) {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		_, _ = io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}

// Pair is one line of a key-value list.
type Pair struct{ Key, Value string }

// Pairs prints "key = value" lines with the signs of equality below each other.
func Pairs(w io.Writer, pairs []Pair) {
	width := 0
	for _, p := range pairs {
		width = max(width, utf8.RuneCountInString(p.Key))
	}
	for _, p := range pairs {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(p.Key))
		_, _ = io.WriteString(w, strings.TrimRight(p.Key+pad+" = "+p.Value, " ")+"\n")
	}
}
