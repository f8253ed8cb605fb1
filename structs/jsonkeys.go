package structs

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxShownKey bounds the part of a key that an error shows, in bytes.
const maxShownKey = 128

// CheckJSONKeys returns an error of CodeBadRequest about the first key of a JSON value, as [encoding/json] reads it into an any, that none of the
// types has. what is what the error begins with; it proposes keys of the first type. A [Job] in it is not looked into: of jobs, keys that are not
// known are ignored, as Nomad does.
func CheckJSONKeys(what string, value any, types ...reflect.Type) error {
	return keyCheck{what}.check(value, types, "")
}

// keyCheck checks the keys of what.
type keyCheck struct{ what string }

// check returns an error about the first key of a JSON value at a path that none of the types has.
func (c keyCheck) check(value any, types []reflect.Type, path string) error {
	switch value := value.(type) {
	case []any:
		elements := elementsOf(types)
		for i, v := range value {
			if err := c.check(v, elements, path+"["+strconv.Itoa(i)+"]"); err != nil {
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
				return c.unknown(at, key, fieldsOf(types[:1]))
			}
			if err := c.check(value[key], known, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknown is the error about a key that no type has. fields are those of the type that is written.
func (c keyCheck) unknown(path, key string, fields []Field) error {
	var names []string
	for _, f := range fields {
		if f.Name != "CreateIndex" && f.Name != "ModifyIndex" { // which nobody sets
			names = append(names, f.Name)
		}
	}
	err := Errorf(CodeBadRequest, "%s: unknown key %q", c.what, Clip(path, maxShownKey))
	if near := Nearest(key, names); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	return err.WithHint("known are %s", strings.Join(names, ", "))
}

// fieldsOf returns the fields of those of the types that are structs whose keys are checked.
func fieldsOf(types []reflect.Type) (fields []Field) {
	for _, t := range types {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct && t != reflect.TypeFor[Job]() {
			fields = append(fields, Fields(t)...)
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
