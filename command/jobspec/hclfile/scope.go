package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/nomadish/nomadish/structs"
)

// Options are what a file is read with.
type Options struct {
	// Vars are values of variables, as -var NAME=VALUE sets them: text for
	// strings, and HCL for everything else.
	Vars map[string]string
	// VarFiles are files of NAME = VALUE; later ones win, and Vars win over all.
	VarFiles []VarFile
	// Env are lines of NAME=VALUE; NOMADISH_VAR_x and NOMAD_VAR_x (the first
	// wins) give a variable x its value if nothing else does.
	Env []string
	// Inherited are values of variables of the file that names this one. They
	// win over the defaults here; those that are not declared here are ignored.
	Inherited map[string]cty.Value
	// Lenient ignores values of variables that the file does not declare, in
	// Vars and VarFiles; otherwise they are problems.
	Lenient bool
	// AllowFS turns on the functions that read files, relative to BaseDir.
	AllowFS bool
	BaseDir string
	Limits  Limits
}

// VarFile is a file with values of variables; JSON if its name ends so.
type VarFile struct {
	Name string
	Src  []byte
}

// Scope is what expressions of a file see.
type Scope struct {
	ctx    *hcl.EvalContext
	vars   map[string]cty.Value
	locals map[string]cty.Value
	limits Limits
}

// Context is the scope for the HCL library.
func (s *Scope) Context() *hcl.EvalContext { return s.ctx }

// Variables returns the values of the variables of the file.
func (s *Scope) Variables() map[string]cty.Value { return s.vars }

// NewScope evaluates the variable, variables and locals blocks at the top of a
// file. The other blocks are returned in order.
func NewScope(f *File, opts Options) (*Scope, []*hclsyntax.Block, Problems) {
	s := &Scope{vars: map[string]cty.Value{}, locals: map[string]cty.Value{}, limits: f.limits}
	s.ctx = &hcl.EvalContext{Functions: functions(opts), Variables: map[string]cty.Value{}}
	s.publish()
	var rest, variables, locals []*hclsyntax.Block
	for _, b := range f.Body.Blocks {
		switch b.Type {
		case "variable", "variables":
			variables = append(variables, b)
		case "locals":
			locals = append(locals, b)
		default:
			rest = append(rest, b)
		}
	}
	problems := s.readVariables(f, variables, opts)
	if len(problems) == 0 {
		problems = s.readLocals(f, locals)
	}
	return s, rest, problems
}

// publish makes vars and locals known to the HCL library.
func (s *Scope) publish() {
	s.ctx.Variables["var"] = cty.ObjectVal(s.vars)
	s.ctx.Variables["local"] = cty.ObjectVal(s.locals)
}

// eval evaluates an expression to a wholly known value of bounded size.
func (s *Scope) eval(e hclsyntax.Expression, ctx *hcl.EvalContext) (cty.Value, Problems) {
	if problems := s.checkReferences(e); len(problems) > 0 {
		return cty.NilVal, problems
	}
	value, diags := e.Value(ctx)
	if diags.HasErrors() {
		return cty.NilVal, fromDiags(e.Range().Filename, diags)
	}
	value, _ = value.UnmarkDeep()
	if !value.IsWhollyKnown() {
		return cty.NilVal, Problems{At(e.Range(), "the value cannot be known here")}
	}
	return value, nil
}

// checkReferences answers misspelt variables and locals better than the HCL
// library, and bounds what an expression puts together.
func (s *Scope) checkReferences(e hclsyntax.Expression) Problems {
	var out Problems
	size := 0
	for _, t := range e.Variables() {
		var known map[string]cty.Value
		switch t.RootName() {
		case "var":
			known = s.vars
		case "local":
			known = s.locals
		default:
			continue
		}
		name := attrOf(t)
		if name == "" {
			out = append(out, At(t.SourceRange(), "%s needs a name: write %s.NAME", t.RootName(), t.RootName()))
			continue
		}
		value, ok := known[name]
		if !ok {
			out = append(out, At(t.SourceRange(), "%s", undeclared(t.RootName(), name, keysOf(known))))
			continue
		}
		size += sizeOf(value)
	}
	if size > s.limits.ValueBytes {
		out = append(out, At(e.Range(), "refers to values of %d bytes in all, more than the limit of %d", size, s.limits.ValueBytes))
	}
	return out
}

func keysOf[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// attrOf returns the name after var or local.
func attrOf(t hcl.Traversal) string {
	if len(t) < 2 {
		return ""
	}
	switch step := t[1].(type) {
	case hcl.TraverseAttr:
		return step.Name
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && !step.Key.IsNull() {
			return step.Key.AsString()
		}
	}
	return ""
}

func undeclared(root, name string, known []string) string {
	what := "variable"
	if root == "local" {
		what = "local"
	}
	if near := structs.Nearest(name, known); near != "" {
		return fmt.Sprintf("no %s %q is declared; did you mean %s.%s?", what, name, root, near)
	}
	if len(known) == 0 {
		return fmt.Sprintf("no %s %q is declared; the file declares none", what, name)
	}
	return fmt.Sprintf("no %s %q is declared; known are %s", what, name, strings.Join(known, ", "))
}

// readLocals evaluates locals in the order of their references.
func (s *Scope) readLocals(f *File, blocks []*hclsyntax.Block) Problems {
	l := &localReader{scope: s, attrs: map[string]*hclsyntax.Attribute{}, state: map[string]int{}}
	var order []string
	for _, b := range blocks {
		if len(b.Labels) > 0 {
			l.problems = append(l.problems, At(b.DefRange(), "locals takes no label: write locals { … }"))
		}
		l.problems = append(l.problems, f.Literal(b.Body)...)
		for _, in := range b.Body.Blocks {
			l.problems = append(l.problems, At(in.DefRange(), "locals may only hold NAME = VALUE, no block"))
		}
		for _, a := range sortedAttrs(b.Body) {
			if first := l.attrs[a.Name]; first != nil {
				l.problems = append(l.problems, At(a.NameRange, "local %q is stated twice; the first is on line %d", a.Name, first.NameRange.Start.Line))
				continue
			}
			l.attrs[a.Name] = a
			order = append(order, a.Name)
		}
	}
	for _, name := range order {
		l.visit(name, nil)
	}
	return l.problems
}

type localReader struct {
	scope    *Scope
	attrs    map[string]*hclsyntax.Attribute
	state    map[string]int // 1: being evaluated, 2: done
	problems Problems
}

// maxLocalChain bounds how many locals may hang on one another.
const maxLocalChain = 1000

func (l *localReader) visit(name string, chain []string) {
	a := l.attrs[name]
	if a == nil || l.state[name] == 2 {
		return // an unknown name is answered where it is used
	}
	if l.state[name] == 1 {
		l.problems = append(l.problems, At(a.NameRange, "locals refer to each other in a circle: %s", strings.Join(append(chain[slices.Index(chain, name):], name), " → ")))
		return
	}
	if len(chain) > maxLocalChain {
		l.problems = append(l.problems, At(a.NameRange, "locals refer to each other more than %d deep", maxLocalChain))
		return
	}
	l.state[name] = 1
	before := len(l.problems)
	for _, t := range a.Expr.Variables() {
		if t.RootName() == "local" {
			l.visit(attrOf(t), append(chain, name))
		}
	}
	l.state[name] = 2
	if len(l.problems) > before {
		l.scope.locals[name] = cty.NullVal(cty.DynamicPseudoType) // already answered
		return
	}
	value, problems := l.scope.eval(a.Expr, l.scope.ctx)
	if len(problems) == 0 && sizeOf(value) > l.scope.limits.ValueBytes {
		problems = Problems{At(a.Expr.Range(), "is larger than the limit of %d bytes", l.scope.limits.ValueBytes)}
	}
	if len(problems) > 0 {
		value = cty.NullVal(cty.DynamicPseudoType)
	}
	for _, p := range problems {
		p.Text = "local " + name + ": " + p.Text
		l.problems = append(l.problems, p)
	}
	l.scope.locals[name] = value
	l.scope.publish()
}
