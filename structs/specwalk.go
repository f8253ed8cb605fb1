package structs

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

// ChildPath extends the path of a block by a block inside it, as problems and
// warnings name places: job "web" > group "api" > constraint[1]. A block with a
// label is named by it, a repeated one by its place from 0, a single one
// (index -1) by its name alone.
func ChildPath(parent, block, label string, index int) string {
	at := block
	switch {
	case label != "":
		at += " " + strconv.Quote(label)
	case index >= 0:
		at += "[" + strconv.Itoa(index) + "]"
	}
	if parent == "" {
		return at
	}
	return parent + " > " + at
}

// LabelOf returns a block's label; "" if its type has none.
func LabelOf(s reflect.Value) string {
	for _, f := range Fields(s.Type()) {
		if f.Kind == FieldLabel {
			return s.FieldByIndex(f.Index).String()
		}
	}
	return ""
}

// specPath is a block of a specification. Its path is written only where something is to be reported about it.
type specPath struct {
	parent       *specPath
	block, label string
	index        int
}

func (p *specPath) path() string {
	if p == nil {
		return ""
	}
	return ChildPath(p.parent.path(), p.block, p.label, p.index)
}

// specType is what walks need to know of a struct type.
type specType struct {
	blocks  []specField // fields with structs inside
	checked []Field     // those that a check tag limits
	silent  []specField // those that nothing acts on, with their default
	free    []Field     // those that hold whatever is written
}

type specField struct {
	Field
	text string // the name of a block, or the default
	form form
}

var specCache sync.Map // reflect.Type → *specType

func specOf(t reflect.Type) *specType {
	if known, ok := specCache.Load(t); ok {
		return known.(*specType) // nothing else is put there
	}
	s := &specType{}
	for _, f := range Fields(t) {
		if form := formOf(f.Type); form == formObject || form == formObjects { // nothing below the others has a name
			name := cmp.Or(f.HCL, f.Name)
			if f.Name == "ReservedPorts" {
				name = "port" // where Canonicalize took them from
			}
			s.blocks = append(s.blocks, specField{f, name, form})
		}
		if f.Type == reflect.TypeFor[map[string]any]() {
			s.free = append(s.free, f)
		}
		if f.hasMin || f.hasMax || len(f.oneOf) > 0 {
			s.checked = append(s.checked, f)
		}
		if means, listed := noBehaviour()[t.Name()+"."+f.Name]; listed {
			s.silent = append(s.silent, specField{Field: f, text: means})
		}
	}
	specCache.Store(t, s)
	return s
}

// walkSpec visits a struct and all structs inside it, parents first.
func walkSpec(v reflect.Value, at *specPath, visit func(at *specPath, v reflect.Value)) {
	visit(at, v)
	for _, f := range specOf(v.Type()).blocks {
		field := v.FieldByIndex(f.Index)
		if f.form == formObjects {
			walkMany(field, at, f.text, visit)
		} else if in := deref(field); in.IsValid() {
			walkSpec(in, &specPath{at, f.text, LabelOf(in), -1}, visit)
		}
	}
}

func walkMany(field reflect.Value, at *specPath, name string, visit func(*specPath, reflect.Value)) {
	if field.Len() == 0 {
		return
	}
	if field.Kind() != reflect.Map {
		for i := range field.Len() {
			if in := deref(field.Index(i)); in.IsValid() {
				walkSpec(in, &specPath{at, name, LabelOf(in), i}, visit)
			}
		}
		return
	}
	keys := field.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if in := deref(field.MapIndex(key)); in.IsValid() {
			walkSpec(in, &specPath{at, name, key.String(), -1}, visit)
		}
	}
}
