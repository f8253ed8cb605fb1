package httpapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// decodeKnown reads the body of a request into v, as decode does, and refuses keys that v does not have: what replaces the whole of
// something would else remove what a mistyped key was to state. Keys of shown, by which the same is read, are ignored, so that what was
// read may be written. Bodies of Nomad's own requests are read by decode, as Nomad ignores keys that it does not know.
func (r *request) decodeKnown(v any, shown ...any) error {
	body, err := r.readBody()
	if err != nil {
		return err
	}
	if err := decodeJSON(body, v); err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return jsonError(err, len(body))
	}
	types := []reflect.Type{reflect.TypeOf(v)}
	for _, s := range shown {
		types = append(types, reflect.TypeOf(s))
	}
	return checkKeys(tree, types, "")
}

// checkKeys returns an error about the first key of a JSON value at a path that none of the types has.
func checkKeys(value any, types []reflect.Type, path string) error {
	switch value := value.(type) {
	case []any:
		elements := elementsOf(types)
		for i, v := range value {
			if err := checkKeys(v, elements, path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case map[string]any:
		fields := fieldsOf(types)
		if len(fields) == 0 {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			var known []reflect.Type
			for _, f := range fields {
				if strings.EqualFold(f.Name, key) {
					known = append(known, f.Type)
				}
			}
			at := strings.TrimPrefix(path+"."+key, ".")
			if known == nil {
				return unknownKey(at, key, fieldsOf(types[:1]))
			}
			if err := checkKeys(value[key], known, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknownKey is the error about a key that no type has. fields are those of the type that is written.
func unknownKey(path, key string, fields []structs.Field) error {
	var names []string
	for _, f := range fields {
		if f.Name != "CreateIndex" && f.Name != "ModifyIndex" { // which nobody sets
			names = append(names, f.Name)
		}
	}
	err := structs.Errorf(structs.CodeBadRequest, "request body: unknown key %q", structs.Clip(path, maxShownKey))
	if near := structs.Nearest(key, names); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err.WithHint("known are %s", strings.Join(names, ", "))
}

// maxShownKey bounds the part of a key that an error shows, in bytes.
const maxShownKey = 128

// fieldsOf returns the fields of those of the types that are structs.
func fieldsOf(types []reflect.Type) (fields []structs.Field) {
	for _, t := range types {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			fields = append(fields, structs.Fields(t)...)
		}
	}
	return fields
}

// elementsOf returns the types of the elements of those of the types that are lists.
func elementsOf(types []reflect.Type) (elements []reflect.Type) {
	for _, t := range types {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Slice {
			elements = append(elements, t.Elem())
		}
	}
	return elements
}
