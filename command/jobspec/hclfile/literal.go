package hclfile

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/nomadish/nomadish/structs"
)

// A job file refers to two kinds of thing in ${…}: what the file itself knows
// (var.x, local.y, the iterator of a dynamic block), and what only a node or a
// running task knows (attr.kernel.name, NOMAD_PORT_http, a variable of the
// task's environment). The HCL library would refuse the second kind. So before
// anything is evaluated, each such reference is replaced by its own source text.

// runtimeRoots are the first words of references that a node fills in.
var runtimeRoots = map[string]bool{
	"attr": true, "node": true, "meta": true, "env": true, "device": true, "secret": true,
}

func isRuntime(root string) bool {
	return runtimeRoots[root] || strings.HasPrefix(root, "NOMAD_") || strings.HasPrefix(root, "NOMADISH_")
}

// names are those that expressions may use, beside var and local.
type names map[string]bool

func (n names) with(more ...string) names {
	out := maps.Clone(n)
	if out == nil {
		out = names{}
	}
	for _, name := range more {
		if name != "" {
			out[name] = true
		}
	}
	return out
}

type literalizer struct {
	file     *File
	problems Problems
}

// Literal turns runtime references inside a body into text. It changes the
// body; what cannot be a reference is a problem.
func (f *File) Literal(body *hclsyntax.Body) Problems {
	l := &literalizer{file: f}
	l.body(body, nil)
	return l.problems
}

func (l *literalizer) body(body *hclsyntax.Body, bound names) {
	for _, a := range sortedAttrs(body) {
		a.Expr = l.expr(a.Expr, bound)
	}
	for _, b := range body.Blocks {
		if b.Type != "dynamic" || len(b.Labels) != 1 {
			l.body(b.Body, bound)
			continue
		}
		inner := bound.with(iteratorOf(b))
		for _, a := range sortedAttrs(b.Body) {
			switch a.Name {
			case "iterator":
			case "for_each":
				a.Expr = l.expr(a.Expr, bound)
			default:
				a.Expr = l.expr(a.Expr, inner)
			}
		}
		for _, content := range b.Body.Blocks {
			l.body(content.Body, inner)
		}
	}
}

// iteratorOf names what a dynamic block's content sees: its label, or iterator.
func iteratorOf(b *hclsyntax.Block) string {
	if a := b.Body.Attributes["iterator"]; a != nil {
		if name := hcl.ExprAsKeyword(a.Expr); name != "" {
			return name
		}
	}
	if len(b.Labels) == 0 {
		return ""
	}
	return b.Labels[0]
}

// expr returns what replaces an expression that stands outside a template.
func (l *literalizer) expr(e hclsyntax.Expression, bound names) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return l.traversal(e, bound, false)
	case *hclsyntax.TemplateExpr:
		for i := range e.Parts {
			e.Parts[i] = l.part(e.Parts[i], bound)
		}
	case *hclsyntax.TemplateWrapExpr:
		e.Wrapped = l.part(e.Wrapped, bound)
	case *hclsyntax.TemplateJoinExpr:
		e.Tuple = l.expr(e.Tuple, bound)
	case *hclsyntax.ParenthesesExpr:
		e.Expression = l.expr(e.Expression, bound)
	case *hclsyntax.RelativeTraversalExpr:
		e.Source = l.expr(e.Source, bound)
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "convert" && len(e.Args) == 2 {
			e.Args[0] = l.expr(e.Args[0], bound) // the other names a type
		} else {
			l.list(e.Args, bound)
		}
	case *hclsyntax.TupleConsExpr:
		l.list(e.Exprs, bound)
	case *hclsyntax.ConditionalExpr:
		e.Condition, e.TrueResult, e.FalseResult = l.expr(e.Condition, bound), l.expr(e.TrueResult, bound), l.expr(e.FalseResult, bound)
	case *hclsyntax.IndexExpr:
		e.Collection, e.Key = l.expr(e.Collection, bound), l.expr(e.Key, bound)
	case *hclsyntax.BinaryOpExpr:
		e.LHS, e.RHS = l.expr(e.LHS, bound), l.expr(e.RHS, bound)
	case *hclsyntax.UnaryOpExpr:
		e.Val = l.expr(e.Val, bound)
	case *hclsyntax.SplatExpr:
		e.Source, e.Each = l.expr(e.Source, bound), l.expr(e.Each, bound)
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			e.Items[i].KeyExpr = l.expr(e.Items[i].KeyExpr, bound)
			e.Items[i].ValueExpr = l.expr(e.Items[i].ValueExpr, bound)
		}
	case *hclsyntax.ObjectConsKeyExpr:
		if e.ForceNonLiteral || hcl.ExprAsKeyword(e.Wrapped) == "" {
			e.Wrapped = l.expr(e.Wrapped, bound)
		}
	case *hclsyntax.ForExpr:
		l.forExpr(e, bound)
	}
	return e
}

func (l *literalizer) list(exprs []hclsyntax.Expression, bound names) {
	for i := range exprs {
		exprs[i] = l.expr(exprs[i], bound)
	}
}

func (l *literalizer) forExpr(e *hclsyntax.ForExpr, bound names) {
	e.CollExpr = l.expr(e.CollExpr, bound)
	inner := bound.with(e.KeyVar, e.ValVar)
	if e.KeyExpr != nil {
		e.KeyExpr = l.expr(e.KeyExpr, inner)
	}
	e.ValExpr = l.expr(e.ValExpr, inner)
	if e.CondExpr != nil {
		e.CondExpr = l.expr(e.CondExpr, inner)
	}
}

// part returns what replaces a part of a template: ${NAME} on its own may be
// anything, for the task's environment is not known here.
func (l *literalizer) part(e hclsyntax.Expression, bound names) hclsyntax.Expression {
	if t, ok := e.(*hclsyntax.ScopeTraversalExpr); ok {
		return l.traversal(t, bound, true)
	}
	return l.expr(e, bound)
}

func (l *literalizer) traversal(e *hclsyntax.ScopeTraversalExpr, bound names, alone bool) hclsyntax.Expression {
	root := e.Traversal.RootName()
	switch {
	case root == "var" || root == "local" || bound[root]:
		return e
	case isRuntime(root) || (alone && !l.confused(root)):
		return &hclsyntax.LiteralValueExpr{
			Val:      cty.StringVal("${" + l.file.text(e.SrcRange) + "}"),
			SrcRange: e.SrcRange,
		}
	}
	l.problems = append(l.problems, At(e.SrcRange, "%s", unknownName(root, l.file.text(e.SrcRange), bound)))
	return &hclsyntax.LiteralValueExpr{Val: cty.StringVal(""), SrcRange: e.SrcRange}
}

// confused names are meant for var or local, not for a task's environment.
func (l *literalizer) confused(root string) bool {
	return root == "vars" || root == "variable" || root == "variables" || root == "locals"
}

func unknownName(root, text string, bound names) string {
	switch root {
	case "vars", "variable", "variables":
		return fmt.Sprintf("unknown name %q: variables are written var.NAME", root)
	case "locals":
		return fmt.Sprintf("unknown name %q: locals are written local.NAME", root)
	}
	if root == text {
		if near := structs.Nearest(root, append(mapKeys(bound), "true", "false", "null")); near != "" {
			return fmt.Sprintf("unknown name %q; did you mean %s?", text, near)
		}
		return fmt.Sprintf("unknown name %q: %s", text, structs.BareWord(text))
	}
	return fmt.Sprintf("unknown name %q: known are var.NAME, local.NAME, and what a node fills in, such as attr.NAME, meta.NAME and NOMAD_NAME", text)
}

func mapKeys(m names) []string {
	out := make([]string, 0, len(m)+3)
	for k := range m {
		out = append(out, k)
	}
	return out
}
