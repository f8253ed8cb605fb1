package structs

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
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

// LabelOf gives a block's label; "" if its type has none.
func LabelOf(s reflect.Value) string {
	for _, f := range Fields(s.Type()) {
		if f.Kind == FieldLabel {
			return s.FieldByIndex(f.Index).String()
		}
	}
	return ""
}

// walkSpec visits a struct and all structs inside it, parents first, each with its path.
func walkSpec(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	visit(path, v)
	for _, f := range Fields(v.Type()) {
		name := cmp.Or(f.HCL, f.Name)
		if f.Name == "ReservedPorts" {
			name = "port" // where Canonicalize took them from
		}
		field := v.FieldByIndex(f.Index)
		switch shapeOf(f.Type) {
		case shapeObject:
			if in := deref(field); in.IsValid() {
				walkSpec(in, ChildPath(path, name, LabelOf(in), -1), visit)
			}
		case shapeObjects:
			walkMany(field, path, name, visit)
		case shapeInline, shapeFree, shapeStrings: // nothing below them has a name
		}
	}
}

func walkMany(field reflect.Value, path, name string, visit func(string, reflect.Value)) {
	if field.Kind() != reflect.Map {
		for i := range field.Len() {
			if in := deref(field.Index(i)); in.IsValid() {
				walkSpec(in, ChildPath(path, name, LabelOf(in), i), visit)
			}
		}
		return
	}
	keys := field.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if in := deref(field.MapIndex(key)); in.IsValid() {
			walkSpec(in, ChildPath(path, name, key.String(), -1), visit)
		}
	}
}
