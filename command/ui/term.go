package ui

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Style prints with colours where they are wanted: it marks text, and a [Writer] makes colours of the marks.
type Style struct{ on bool }

// StyleFor returns the style for w: with colours if w is a terminal and NO_COLOR is not set.
func StyleFor(w io.Writer) Style {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Style{}
	}
	return Style{on: IsTerminal(w)}
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	if w, ok := stream.(*Writer); ok {
		stream = w.to
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) // a file descriptor fits
}

// Coloured is a style that marks colours for any [Writer].
func Coloured() Style { return Style{on: true} }

func (s Style) mark(colour byte, text string) string {
	if !s.on {
		return text
	}
	return markStart() + string(colour) + text + markStart() + string(markReset)
}

// Bold is for heads.
func (s Style) Bold(text string) string { return s.mark(markBold, text) }

// Red is for what failed.
func (s Style) Red(text string) string { return s.mark(markRed, text) }

// Green is for what was added or is well.
func (s Style) Green(text string) string { return s.mark(markGreen, text) }

// Yellow is for what needs attention.
func (s Style) Yellow(text string) string { return s.mark(markYellow, text) }

// Bar draws done of total as a bar of width characters.
func Bar(done, total, width int) string {
	filled := 0
	if total > 0 {
		filled = max(0, min(width, done*width/total))
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat("-", width-filled) + "]"
}

// Live is a block of lines that is drawn again in place on a terminal, what is not printable escaped. Elsewhere
// nothing is drawn: plain lines are printed by the caller as things happen.
type Live struct {
	w     io.Writer
	on    bool
	lines int
}

// NewLive makes a block on w.
func NewLive(w io.Writer) *Live { return &Live{w: w, on: IsTerminal(w)} }

// On reports whether the block is drawn.
func (l *Live) On() bool { return l.on }

// Draw replaces the block.
func (l *Live) Draw(lines []string) {
	if !l.on {
		return
	}
	l.Clear()
	for _, line := range lines {
		_, _ = fmt.Fprintln(l.w, escapeLine(line))
	}
	l.lines = len(lines)
}

// Clear takes the block away, before something else is printed.
func (l *Live) Clear() {
	if l.on && l.lines > 0 {
		_, _ = fmt.Fprintf(Raw(l.w), "\x1b[%dA\x1b[J", l.lines)
		l.lines = 0
	}
}
