package hclfile

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/nomadish/nomadish/internal/hcltext"
	"github.com/nomadish/nomadish/structs"
)

// Problem is one thing that is wrong with a file, or noteworthy.
type Problem struct {
	File         string
	Line, Column int    // from 1; 0 where the file as a whole is meant
	Text         string // what is wrong, and what is allowed
}

// String returns file:line:column: text.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}

// Problems is a list of them, in the order found. It is an error if it is not empty.
type Problems []Problem

// shownProblems bounds an error message; the list itself holds all.
const shownProblems = 30

// Error returns one problem a line.
func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == shownProblems {
			fmt.Fprintf(&b, "and %d more", len(ps)-i)
			break
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Short is Error with at most the given number of bytes.
func (ps Problems) Short(most int) string {
	if text := ps.Error(); len(text) <= most || len(ps) < 2 {
		return structs.Clip(text, most)
	}
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.TrimPrefix(structs.ClipLines(lines, "\n", most), "\n")
}

// Err is the list as an error, nil if it is empty.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// At makes a problem of a place in a file.
func At(rng hcl.Range, format string, args ...any) Problem {
	return Problem{File: rng.Filename, Line: rng.Start.Line, Column: rng.Start.Column, Text: fmt.Sprintf(format, args...)}
}

// fromDiags turns what the HCL library reports into problems.
func fromDiags(file string, diags hcl.Diagnostics) Problems {
	var out Problems
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		text := hcltext.Of(d)
		if d.Subject == nil {
			out = append(out, Problem{File: file, Text: text})
			continue
		}
		out = append(out, At(*d.Subject, "%s", text))
	}
	return out
}
