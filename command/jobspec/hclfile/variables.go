package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/nomadish/nomadish/structs"
)

// variable is one declared variable.
type variable struct {
	name       string
	at         hcl.Range
	typ        cty.Type
	hasDefault bool
	byDefault  cty.Value
	given      bool
	value      cty.Value
	rules      []*hclsyntax.Block
}

type variableReader struct {
	scope    *Scope
	file     *File
	declared map[string]*variable
	order    []*variable
	problems Problems
}

func (r *variableReader) addf(rng hcl.Range, format string, args ...any) {
	r.problems = append(r.problems, At(rng, format, args...))
}

// readVariables declares the variables of a file, sets their values and
// checks them.
func (s *Scope) readVariables(f *File, blocks []*hclsyntax.Block, opts Options) Problems {
	r := &variableReader{scope: s, file: f, declared: map[string]*variable{}}
	for _, b := range blocks {
		if b.Type == "variables" {
			r.shorthand(b)
		} else {
			r.declare(b)
		}
	}
	if len(r.problems) > 0 {
		return r.problems
	}
	for _, name := range keysOf(opts.Inherited) {
		if v := r.declared[name]; v != nil {
			r.set(v, opts.Inherited[name], At(v.at, ""))
		}
	}
	r.fromEnv(opts.Env)
	for _, vf := range opts.VarFiles {
		r.fromFile(vf, opts.Lenient)
	}
	r.fromFlags(opts.Vars, opts.Lenient)
	for _, v := range r.order {
		switch {
		case v.given:
			s.vars[v.name] = v.value
		case v.hasDefault:
			s.vars[v.name] = v.byDefault
		default:
			r.addf(v.at, "variable %q has no value: add a default, or set it with -var %s=VALUE or NOMAD_VAR_%s", v.name, v.name, v.name)
		}
		if value, ok := s.vars[v.name]; ok && sizeOf(value) > s.limits.ValueBytes {
			r.addf(v.at, "the value of variable %q is larger than the limit of %d bytes", v.name, s.limits.ValueBytes)
		}
	}
	s.publish()
	if len(r.problems) == 0 {
		for _, v := range r.order {
			r.check(v)
		}
	}
	return r.problems
}

func (r *variableReader) add(v *variable) {
	if first := r.declared[v.name]; first != nil {
		r.addf(v.at, "variable %q is declared twice; the first is on line %d", v.name, first.at.Start.Line)
		return
	}
	r.declared[v.name] = v
	r.order = append(r.order, v)
}

// shorthand reads variables { NAME = DEFAULT }.
func (r *variableReader) shorthand(b *hclsyntax.Block) {
	for _, a := range sortedAttrs(b.Body) {
		value, ok := r.constant(a.Expr)
		if ok {
			r.add(&variable{name: a.Name, at: a.NameRange, typ: cty.DynamicPseudoType, hasDefault: true, byDefault: value})
		}
	}
	if len(b.Body.Blocks) > 0 {
		r.addf(b.Body.Blocks[0].DefRange(), "variables may only hold NAME = DEFAULT, no block")
	}
}

// constant evaluates what may not refer to anything.
func (r *variableReader) constant(e hclsyntax.Expression) (cty.Value, bool) {
	if refs := e.Variables(); len(refs) > 0 {
		r.addf(refs[0].SourceRange(), "the default of a variable must not refer to anything; use locals")
		return cty.NilVal, false
	}
	value, problems := r.scope.eval(e, r.scope.ctx)
	r.problems = append(r.problems, problems...)
	return value, len(problems) == 0
}

func (r *variableReader) declare(b *hclsyntax.Block) {
	if len(b.Labels) != 1 || !hclsyntax.ValidIdentifier(b.Labels[0]) {
		r.addf(b.DefRange(), "variable needs a name of letters, digits, _ and -: write variable \"NAME\" { … }")
		return
	}
	v := &variable{name: b.Labels[0], at: b.DefRange(), typ: cty.DynamicPseudoType}
	known := []string{"type", "default", "description", "sensitive", "nullable", "validation"}
	for _, a := range sortedAttrs(b.Body) {
		switch a.Name {
		case "type":
			typ, diags := typeexpr.TypeConstraint(a.Expr)
			if diags.HasErrors() {
				r.problems = append(r.problems, fromDiags(r.file.Name, diags)...)
				return
			}
			v.typ = typ
		case "default", "description", "sensitive", "nullable":
		default:
			r.addf(a.NameRange, "variable %q: unknown attribute %q%s", v.name, a.Name, hint(a.Name, known))
		}
	}
	for _, in := range b.Body.Blocks {
		if in.Type != "validation" {
			r.addf(in.DefRange(), "variable %q: unknown block %q%s", v.name, in.Type, hint(in.Type, known))
			continue
		}
		v.rules = append(v.rules, in)
	}
	if a := b.Body.Attributes["default"]; a != nil {
		value, ok := r.constant(a.Expr)
		if !ok {
			return
		}
		converted, err := convert.Convert(value, v.typ)
		if err != nil {
			r.addf(a.Expr.Range(), "the default of variable %q does not fit its type, %s: %v", v.name, typeName(v.typ), err)
			return
		}
		v.hasDefault, v.byDefault = true, converted
	}
	r.add(v)
}

func typeName(t cty.Type) string { return typeexpr.TypeString(t) }

func hint(name string, known []string) string {
	if near := structs.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; known are " + strings.Join(known, ", ")
}

func (r *variableReader) fromEnv(env []string) {
	sorted := slices.Clone(env)
	slices.Sort(sorted)
	for _, prefix := range []string{"NOMAD_VAR_", "NOMADISH_VAR_"} {
		for _, line := range sorted {
			key, text, _ := strings.Cut(line, "=")
			name, ok := strings.CutPrefix(key, prefix)
			if v := r.declared[name]; ok && v != nil {
				r.give(v, text, "environment variable "+key)
			}
		}
	}
}

func (r *variableReader) fromFlags(vars map[string]string, lenient bool) {
	for _, name := range keysOf(vars) {
		v := r.declared[name]
		if v == nil {
			if !lenient {
				r.problems = append(r.problems, Problem{File: "-var " + name, Text: undeclared("var", name, keysOf(r.declared))})
			}
			continue
		}
		r.give(v, vars[name], "-var "+name)
	}
}

// give sets a variable from text: as it is for strings, otherwise HCL.
func (r *variableReader) give(v *variable, text, where string) {
	if v.typ == cty.String || v.typ == cty.DynamicPseudoType && !v.structured() {
		r.set(v, cty.StringVal(text), Problem{File: where})
		return
	}
	if p := checkNesting(where, []byte(text), r.file.limits.Nesting); len(p) > 0 {
		r.problems = append(r.problems, p...)
		return
	}
	e, diags := hclsyntax.ParseExpression([]byte(text), where, hcl.InitialPos)
	if diags.HasErrors() {
		r.problems = append(r.problems, fromDiags(where, diags)...)
		return
	}
	if len(e.Variables()) > 0 {
		r.problems = append(r.problems, Problem{File: where, Text: fmt.Sprintf("must be a value of type %s that refers to nothing; strings inside it are written in quotes", typeName(v.typ))})
		return
	}
	value, problems := r.scope.eval(e, r.scope.ctx)
	if len(problems) > 0 {
		r.problems = append(r.problems, problems...)
		return
	}
	r.set(v, value, Problem{File: where})
}

// structured reports that the default of a variable without a type is no string.
func (v *variable) structured() bool {
	return v.hasDefault && !v.byDefault.IsNull() && v.byDefault.Type() != cty.String
}

func (r *variableReader) set(v *variable, value cty.Value, at Problem) {
	converted, err := convert.Convert(value, v.typ)
	if err != nil {
		at.Text = fmt.Sprintf("variable %q must be of type %s: %v", v.name, typeName(v.typ), err)
		r.problems = append(r.problems, at)
		return
	}
	v.given, v.value = true, converted
}

func (r *variableReader) fromFile(vf VarFile, lenient bool) {
	if len(vf.Src) > r.file.limits.FileBytes {
		r.problems = append(r.problems, Problem{File: vf.Name, Text: fmt.Sprintf("the file is larger than the limit of %d bytes", r.file.limits.FileBytes)})
		return
	}
	if p := checkNesting(vf.Name, vf.Src, r.file.limits.Nesting); len(p) > 0 {
		r.problems = append(r.problems, p...)
		return
	}
	var body hcl.Body
	var diags hcl.Diagnostics
	if strings.HasSuffix(vf.Name, ".json") {
		var f *hcl.File
		f, diags = json.Parse(vf.Src, vf.Name)
		body = f.Body
	} else {
		var f *hcl.File
		f, diags = hclsyntax.ParseConfig(vf.Src, vf.Name, hcl.InitialPos)
		body = f.Body
	}
	if diags.HasErrors() {
		r.problems = append(r.problems, fromDiags(vf.Name, diags)...)
		return
	}
	attrs, diags := body.JustAttributes()
	if diags.HasErrors() {
		r.problems = append(r.problems, fromDiags(vf.Name, diags)...)
		return
	}
	for _, name := range keysOf(attrs) {
		a := attrs[name]
		at := At(a.NameRange, "")
		v := r.declared[name]
		if v == nil {
			if !lenient {
				at.Text = undeclared("var", name, keysOf(r.declared))
				r.problems = append(r.problems, at)
			}
			continue
		}
		value, diags := a.Expr.Value(r.scope.ctx)
		if diags.HasErrors() {
			r.problems = append(r.problems, fromDiags(vf.Name, diags)...)
			continue
		}
		if !value.IsWhollyKnown() {
			at.Text = "the value cannot be known here"
			r.problems = append(r.problems, at)
			continue
		}
		r.set(v, value, at)
	}
}

// check runs a variable's validation blocks.
func (r *variableReader) check(v *variable) {
	for _, b := range v.rules {
		condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
		if condition == nil || message == nil {
			r.addf(b.DefRange(), "validation needs condition and error_message")
			continue
		}
		ok, problems := r.scope.eval(condition.Expr, r.scope.ctx)
		r.problems = append(r.problems, problems...)
		if len(problems) > 0 {
			continue
		}
		holds, err := convert.Convert(ok, cty.Bool)
		if err != nil || holds.IsNull() {
			r.addf(condition.Expr.Range(), "condition must be true or false, not %s", describe(ok))
			continue
		}
		if holds.True() {
			continue
		}
		text := "its validation does not hold"
		if m, problems := r.scope.eval(message.Expr, r.scope.ctx); len(problems) == 0 && m.Type() == cty.String && !m.IsNull() {
			text = m.AsString()
		}
		r.addf(v.at, "the value of variable %q is refused: %s", v.name, text)
	}
}
