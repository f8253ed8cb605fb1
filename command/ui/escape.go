package ui

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/nomadish/nomadish/internal/printable"
)

// Colours travel through the command line as marks, and become escape sequences only in a Writer. A mark has a random part,
// made anew by each process that needs one: nobody who names a job or a node can write one.
var markStart = sync.OnceValue(func() string { return string(markFirst) + rand.Text() })

// markFirst is the first byte of markStart.
const markFirst = '\x1b'

// What follows markStart.
const (
	markReset  = '0'
	markBold   = 'b'
	markRed    = 'r'
	markGreen  = 'g'
	markYellow = 'y'
)

// sequences are what a terminal is sent for the marks.
var sequences = map[byte]string{
	markReset: "\x1b[0m", markBold: "\x1b[1m", markRed: "\x1b[31m", markGreen: "\x1b[32m", markYellow: "\x1b[33m",
}

// escaped escapes the text around marks with safe, and what stands for a mark with mark.
func escaped(s string, safe func(string) string, mark func(colour byte) string) string {
	if strings.IndexByte(s, markFirst) < 0 {
		return safe(s)
	}
	parts := strings.Split(s, markStart())
	var b strings.Builder
	b.WriteString(safe(parts[0]))
	for _, part := range parts[1:] {
		if part != "" && sequences[part[0]] != "" {
			b.WriteString(mark(part[0]))
			part = part[1:]
		}
		b.WriteString(safe(part))
	}
	return b.String()
}

// escapeLine escapes what is not printable in a text of one line, and keeps the marks of colours.
func escapeLine(s string) string {
	return escaped(s, printable.EscapeLine, func(colour byte) string { return markStart() + string(colour) })
}

// Writer is the standard output or error of a command. Nothing but printable text, newlines, tabs and the colours of [Style]
// gets through: the rest is escaped, as by [printable.EscapeText].
//
// It cannot know which newlines and tabs are the command's own. [Fprintf], [Table] and [Pairs] escape those in values.
type Writer struct{ to io.Writer }

// NewWriter returns a Writer to a file or terminal. Each Write must hold whole characters.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	s := escaped(string(p), printable.EscapeText, func(colour byte) string { return sequences[colour] })
	if s == string(p) { // as nearly always; compared without a copy
		return w.to.Write(p)
	}
	if _, err := w.to.Write([]byte(s)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw returns what a Writer writes to, for output that is passed on as it is: what a task wrote, a file, an answer.
func Raw(w io.Writer) io.Writer {
	if clean, ok := w.(*Writer); ok {
		return clean.to
	}
	return w
}

// Lines is an argument of Fprintf that is a text of several lines.
type Lines string

// Fprintf is fmt.Fprintf, with what is not printable in the arguments escaped, newlines and tabs too, except in [Lines].
func Fprintf(w io.Writer, format string, args ...any) {
	if false {
		_ = fmt.Sprintf(format, args...) // so that vet checks the callers
	}
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			if escapeLine(arg) == arg {
				safe[i] = arg
			} else {
				safe[i] = value{arg} // after its verb: %q escapes by itself
			}
		case Lines:
			safe[i] = escaped(string(arg), printable.EscapeText, func(colour byte) string { return markStart() + string(colour) })
		case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
			safe[i] = arg
		default:
			safe[i] = value{arg}
		}
	}
	_, _ = fmt.Fprintf(w, format, safe...)
}

// value prints any value in one line.
type value struct{ of any }

// Format implements fmt.Formatter.
func (v value) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, escapeLine(fmt.Sprintf(fmt.FormatString(f, verb), v.of)))
}

// Indented is an error's text: the lines after the first are indented, so that none looks like output of another kind.
func Indented(text string) Lines {
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if !more {
		return Lines(first)
	}
	var b strings.Builder
	b.WriteString(first)
	for line := range strings.SplitSeq(rest, "\n") {
		b.WriteByte('\n')
		if line != "" && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "\t") {
			b.WriteString("  ")
		}
		b.WriteString(line)
	}
	return Lines(b.String())
}

// JSON prints a value as indented JSON, with what is not printable escaped as JSON does it: programs read the same.
func JSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return err
	}
	_, err = Raw(w).Write(append(printable.EscapeJSON(raw), '\n'))
	return err
}
