package sim

import (
	"reflect"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/gocty"
)

// blockField is a field of a struct that a block is read into, by its tag: hcl:"name" (an attribute that need not be stated),
// hcl:"name,label", hcl:"name,block" ([]*struct), and hcl:",def_range" (where the block begins).
//
// Package gohcl reads such tags too. It is not used, as it brings the library's writer of HCL with it, which costs every
// command of the command line time when it starts.
type blockField struct {
	name, kind string
	index      int
}

func blockFields(t reflect.Type) []blockField {
	var out []blockField
	for i := range t.NumField() {
		name, kind, _ := strings.Cut(t.Field(i).Tag.Get("hcl"), ",")
		out = append(out, blockField{name, kind, i})
	}
	return out
}

// schemaOf says what may stand in a block that is read into a struct.
func schemaOf(t reflect.Type) *hcl.BodySchema {
	var s hcl.BodySchema
	for _, f := range blockFields(t) {
		switch f.kind {
		case "block":
			s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: f.name, LabelNames: labelsOf(t.Field(f.index).Type.Elem().Elem())})
		case "", "optional":
			s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: f.name})
		}
	}
	return &s
}

func labelsOf(t reflect.Type) []string {
	var out []string
	for _, f := range blockFields(t) {
		if f.kind == "label" {
			out = append(out, f.name)
		}
	}
	return out
}

// decodeBody reads a body into a struct.
func decodeBody(body hcl.Body, v reflect.Value) hcl.Diagnostics {
	content, diags := body.Content(schemaOf(v.Type()))
	if content == nil {
		return diags
	}
	blocks := content.Blocks.ByType()
	for _, f := range blockFields(v.Type()) {
		field := v.Field(f.index)
		switch f.kind {
		case "block":
			for _, b := range blocks[f.name] {
				one := reflect.New(field.Type().Elem().Elem())
				diags = append(diags, decodeBlock(b, one.Elem())...)
				field.Set(reflect.Append(field, one))
			}
		case "", "optional":
			if attr := content.Attributes[f.name]; attr != nil {
				diags = append(diags, decodeValue(attr, field)...)
			}
		}
	}
	return diags
}

func decodeBlock(b *hcl.Block, v reflect.Value) hcl.Diagnostics {
	labels := b.Labels
	for _, f := range blockFields(v.Type()) {
		switch {
		case f.kind == "label" && len(labels) > 0:
			v.Field(f.index).SetString(labels[0])
			labels = labels[1:]
		case f.kind == "def_range":
			v.Field(f.index).Set(reflect.ValueOf(b.DefRange))
		}
	}
	return decodeBody(b.Body, v)
}

func decodeValue(attr *hcl.Attribute, field reflect.Value) hcl.Diagnostics {
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() {
		return diags
	}
	into := field.Addr().Interface()
	t, err := gocty.ImpliedType(into)
	if err == nil {
		value, err = convert.Convert(value, t)
	}
	if err == nil {
		err = gocty.FromCtyValue(value, into)
	}
	if err != nil {
		at := attr.Expr.Range()
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Unsuitable value of " + attr.Name, Detail: err.Error(), Subject: &at})
	}
	return diags
}
