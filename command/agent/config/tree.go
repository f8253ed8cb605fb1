package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/nomadish/nomadish/internal/hcltext"
	"github.com/nomadish/nomadish/structs"
)

// What reading one file may cost.
const (
	maxFileBytes = 4 << 20
	maxNesting   = 64
)

// tree is a value of a file: a scalar, a list or an object.
type tree struct {
	at     hcl.Range
	scalar cty.Value // cty.NilVal: not a scalar
	list   []*tree
	object []field
	kind   kind
	unread bool // it has a problem that was reported already; it looks like null
}

type kind int

const (
	kindScalar kind = iota
	kindList
	kindObject
)

func (k kind) String() string {
	return [...]string{"a value", "a list", "a block"}[k]
}

// field is a name in an object. The labels of a block become fields around it,
// as JSON writes them.
type field struct {
	name  string
	at    hcl.Range
	value *tree
}

// Problem is one thing that is wrong with a configuration, or worth a warning.
type Problem struct {
	File string // empty: of the whole
	Line int    // 0: of the whole file
	Text string
}

// String returns file:line: text.
func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Text
	case p.Line == 0:
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems are all that were found. It is an error when there are any.
type Problems []Problem

// Error returns a problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Err is ps as an error, nil if it is empty.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

func problemAt(at hcl.Range, format string, args ...any) Problem {
	return Problem{File: at.Filename, Line: at.Start.Line, Text: fmt.Sprintf(format, args...)}
}

func fromDiags(name string, diags hcl.Diagnostics) Problems {
	var out Problems
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		p := Problem{File: name, Text: hcltext.Of(d)}
		if d.Subject != nil {
			p.Line = d.Subject.Start.Line
		}
		out = append(out, p)
	}
	return out
}

// parse reads a file's syntax: JSON if its name ends so or its text begins with a brace, as no HCL does; else HCL.
func parse(name string, src []byte) (*tree, Problems) {
	if len(src) > maxFileBytes {
		return nil, Problems{{File: name, Text: fmt.Sprintf("has %d bytes; at most %d are allowed", len(src), maxFileBytes)}}
	}
	if line := tooDeep(src); line > 0 {
		return nil, Problems{{File: name, Line: line, Text: fmt.Sprintf("nested deeper than the %d levels that are allowed", maxNesting)}}
	}
	if filepath.Ext(name) == ".json" || bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")) {
		return parseJSON(name, withoutTrailingCommas(src))
	}
	src, names := unquoteNames(name, src)
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fromDiags(name, diags)
	}
	body, ok := f.Body.(*hclsyntax.Body)
	if !ok {
		return nil, Problems{{File: name, Text: "is not HCL"}}
	}
	r := &reader{file: name, names: names}
	t := r.body(body)
	return t, r.problems
}

// tooDeep returns the line where brackets nest too deep, 0 if they do not. It
// looks into strings too, which no sensible file fills with open brackets.
func tooDeep(src []byte) int {
	depth := 0
	for i, c := range src {
		switch c {
		case '{', '[', '(':
			if depth++; depth > maxNesting {
				return 1 + bytes.Count(src[:i], []byte("\n"))
			}
		case '}', ']', ')':
			depth = max(0, depth-1)
		}
	}
	return 0
}

// withoutTrailingCommas returns a JSON text with a space for each comma before a closing bracket, which Nomad accepts.
// Positions in the text stay what they were.
func withoutTrailingCommas(src []byte) []byte {
	out := bytes.Clone(src)
	comma, quoted := -1, false // where the comma is that nothing but white space has followed
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, comma = !quoted, -1
		case quoted:
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			comma = -1
		}
	}
	return out
}

func parseJSON(name string, src []byte) (*tree, Problems) {
	f, diags := json.Parse(src, name)
	if diags.HasErrors() {
		return nil, fromDiags(name, diags)
	}
	attrs, diags := f.Body.JustAttributes()
	if diags.HasErrors() {
		return nil, fromDiags(name, diags)
	}
	r := &reader{file: name}
	t := &tree{kind: kindObject, at: hcl.Range{Filename: name, Start: hcl.InitialPos}}
	for _, a := range attrs {
		t.object = append(t.object, field{a.Name, a.NameRange, r.expr(a.Expr)})
	}
	t.inOrder()
	return t, r.problems
}

// inOrder sorts fields by where they stand: the HCL library returns a map.
func (t *tree) inOrder() {
	slices.SortStableFunc(t.object, func(a, b field) int { return a.at.Start.Byte - b.at.Start.Byte })
}

type reader struct {
	file     string
	names    map[int]string // quoted names, by where they stand
	problems Problems
}

func (r *reader) body(b *hclsyntax.Body) *tree {
	t := &tree{kind: kindObject, at: b.SrcRange}
	for _, a := range b.Attributes {
		name := a.Name
		if quoted, ok := r.names[a.NameRange.Start.Byte]; ok {
			name = quoted
		}
		t.object = append(t.object, field{name, a.NameRange, r.expr(a.Expr)})
	}
	for _, block := range b.Blocks {
		inner := r.body(block.Body)
		inner.at = block.TypeRange
		for i := len(block.Labels) - 1; i >= 0; i-- {
			inner = &tree{kind: kindObject, at: block.TypeRange, object: []field{{block.Labels[i], block.LabelRanges[i], inner}}}
		}
		t.object = append(t.object, field{block.Type, block.TypeRange, inner})
	}
	t.inOrder()
	return t
}

func (r *reader) expr(e hcl.Expression) *tree {
	t := &tree{at: e.Range(), scalar: cty.NullVal(cty.DynamicPseudoType)}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		t.kind = kindObject
		for _, p := range pairs {
			key, diags := p.Key.Value(nil)
			if diags.HasErrors() || key.IsNull() || !key.IsWhollyKnown() || key.Type() != cty.String {
				r.problems = append(r.problems, problemAt(p.Key.Range(), "a name must be a plain word or string"))
				continue
			}
			t.object = append(t.object, field{key.AsString(), p.Key.Range(), r.expr(p.Value)})
		}
		return t
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		t.kind = kindList
		for _, item := range items {
			t.list = append(t.list, r.expr(item))
		}
		return t
	}
	v, diags := e.Value(nil)
	if word := hcl.ExprAsKeyword(e); word != "" && diags.HasErrors() {
		r.problems = append(r.problems, problemAt(e.Range(), "unknown name %q: %s", word, structs.BareWord(word)))
		t.unread = true
		return t
	}
	if diags.HasErrors() {
		r.problems = append(r.problems, fromDiags(r.file, diags)...)
		t.unread = true
		return t
	}
	if !v.IsWhollyKnown() {
		r.problems = append(r.problems, problemAt(e.Range(), "the value must be written out"))
		t.unread = true
		return t
	}
	v, _ = v.UnmarkDeep()
	if !v.IsNull() && !v.Type().IsPrimitiveType() {
		r.problems = append(r.problems, problemAt(e.Range(), "the value must be written out, not computed"))
		t.unread = true
		return t
	}
	t.scalar = v
	return t
}
