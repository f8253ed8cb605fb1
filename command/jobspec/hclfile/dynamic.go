package hclfile

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/nomadish/nomadish/structs"
)

// expand returns the blocks of a body, with dynamic ones replaced by what they make:
//
//	dynamic "port" {
//	  for_each = var.ports
//	  iterator = it               // the name in content; the block's type if not stated
//	  labels   = [it.value.name]
//	  content  { to = it.value.to }
//	}
func (d *Decoder) expand(body *hclsyntax.Body, ctx *hcl.EvalContext, path string) []block {
	out := make([]block, 0, len(body.Blocks))
	for _, b := range body.Blocks {
		if b.Type != "dynamic" {
			out = append(out, block{Type: b.Type, Labels: b.Labels, Body: b.Body, Ctx: ctx, Range: b.DefRange()})
			continue
		}
		out = append(out, d.expandOne(b, ctx, path)...)
	}
	return out
}

func (d *Decoder) expandOne(b *hclsyntax.Block, ctx *hcl.EvalContext, path string) []block {
	if len(b.Labels) != 1 {
		d.addf(b.DefRange(), path, "dynamic needs the type of the blocks that it makes: write dynamic \"TYPE\" { … }")
		return nil
	}
	at := structs.ChildPath(path, "dynamic", b.Labels[0], -1)
	content := d.dynamicParts(b, at)
	each := b.Body.Attributes["for_each"]
	if content == nil || each == nil {
		return nil
	}
	items, ok := d.eval(each.Expr, ctx, at, "for_each")
	if !ok {
		return nil
	}
	if items.IsNull() || !items.CanIterateElements() {
		d.addf(each.Expr.Range(), at, "for_each: must be a list, set, map or object, not %s", describe(items))
		return nil
	}
	var out []block
	for it := items.ElementIterator(); it.Next(); {
		if d.blocks++; d.blocks > d.file.limits.Blocks {
			d.addf(b.DefRange(), at, "dynamic blocks make more than the limit of %d blocks", d.file.limits.Blocks)
			return nil
		}
		key, value := it.Element()
		child := ctx.NewChild()
		child.Variables = map[string]cty.Value{
			iteratorOf(b): cty.ObjectVal(map[string]cty.Value{"key": key, "value": value}),
		}
		made := block{Type: b.Labels[0], Body: content.Body, Ctx: child, Range: b.DefRange()}
		if labels := b.Body.Attributes["labels"]; labels != nil {
			if made.Labels, ok = d.dynamicLabels(labels, child, at); !ok {
				return nil
			}
		}
		out = append(out, made)
	}
	return out
}

// dynamicParts checks what a dynamic block holds and returns its content.
func (d *Decoder) dynamicParts(b *hclsyntax.Block, path string) *hclsyntax.Block {
	known := []string{"for_each", "iterator", "labels"}
	for _, a := range sortedAttrs(b.Body) {
		switch a.Name {
		case "for_each", "labels":
		case "iterator":
			if hcl.ExprAsKeyword(a.Expr) == "" {
				d.addf(a.Expr.Range(), path, "iterator: must be a name, without quotes")
			}
		default:
			d.unknown(a.NameRange, path, "attribute", a.Name, known, false, nil)
		}
	}
	if b.Body.Attributes["for_each"] == nil {
		d.addf(b.DefRange(), path, "for_each must be stated")
	}
	var content *hclsyntax.Block
	for _, in := range b.Body.Blocks {
		switch {
		case in.Type != "content":
			d.unknown(in.DefRange(), path, "block", in.Type, []string{"content"}, false, nil)
		case content != nil:
			d.addf(in.DefRange(), path, "there may be only one content here; the first is on line %d", content.DefRange().Start.Line)
		default:
			content = in
		}
	}
	if content == nil {
		d.addf(b.DefRange(), path, "content { … } must be stated")
	}
	return content
}

func (d *Decoder) dynamicLabels(a *hclsyntax.Attribute, ctx *hcl.EvalContext, path string) ([]string, bool) {
	value, ok := d.eval(a.Expr, ctx, path, "labels")
	if !ok {
		return nil, false
	}
	if value.IsNull() || !isList(value) {
		d.addf(a.Expr.Range(), path, "labels: must be a list of strings, not %s", describe(value))
		return nil, false
	}
	var out []string
	for it := value.ElementIterator(); it.Next(); {
		_, label := it.Element()
		text, err := convert.Convert(label, cty.String)
		if err != nil || text.IsNull() {
			d.addf(a.Expr.Range(), path, "labels: must be a list of strings, but holds %s", describe(label))
			return nil, false
		}
		out = append(out, text.AsString())
	}
	return out, true
}
