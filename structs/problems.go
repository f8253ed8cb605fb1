package structs

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a specification, or noteworthy.
type Problem struct {
	Path  string // the block: job "web" > group "api" > task "server"
	Field string // the field in it, by its HCL name; "" for the block itself
	Text  string // what is wrong, and what is allowed
}

// String returns path: field: text.
func (p Problem) String() string {
	if p.Field == "" {
		return shortPath(p.Path) + ": " + p.Text
	}
	return shortPath(p.Path) + ": " + p.Field + ": " + p.Text
}

// maxPath is what a path may take of an error. Only names that are refused make longer ones, or several very long ones.
const maxPath = 512

func shortPath(path string) string {
	if len(path) <= maxPath {
		return path
	}
	parts := strings.Split(path[:min(len(path), 8*maxPath)], " > ")
	for i, part := range parts {
		parts[i] = Clip(part, 80)
	}
	return Clip(strings.Join(parts, " > "), maxPath)
}

// Problems is everything that is wrong with a specification.
type Problems []Problem

// Strings returns each problem in one line.
func (ps Problems) Strings() []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}

// Err is nil without problems, and otherwise an [Error] of [CodeBadRequest]
// that lists them, one a line, as far as they fit into an error.
func (ps Problems) Err() error {
	switch len(ps) {
	case 0:
		return nil
	case 1:
		return &Error{Code: CodeBadRequest, Msg: Clip(ps[0].String(), MaxErrorBytes)}
	}
	head := fmt.Sprintf("%d problems:", len(ps))
	return &Error{Code: CodeBadRequest, Msg: head + ClipLines(ps.Strings(), "\n  * ", MaxErrorBytes-len(head))}
}

// problemList collects problems while walking.
type problemList struct{ all Problems }

// at returns a reporter for one block.
func (l *problemList) at(path string) reporter { return reporter{list: l, path: path} }

type reporter struct {
	list *problemList
	path string
}

// addf reports a problem with a field of the block, or with the block (field "").
func (r reporter) addf(field, format string, args ...any) {
	r.list.all = append(r.list.all, Problem{Path: r.path, Field: field, Text: fmt.Sprintf(format, args...)})
}

// in returns a reporter for a block inside. Its index is -1 where it has a label or is the only
// one.
func (r reporter) in(block, label string, index int) reporter {
	return reporter{list: r.list, path: ChildPath(r.path, block, label, index)}
}

// need reports a field that must not be empty.
func (r reporter) need(field, value string) {
	if value == "" {
		r.addf(field, "must be stated")
	}
}

// unique reports the second of two equal names.
func (r reporter) unique(field, what string, names []string) {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if seen[n] {
			r.addf(field, "there are two %s named %q; names must differ", what, clip(n))
		}
		seen[n] = true
	}
}
