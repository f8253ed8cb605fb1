package rpc

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/nomadish/nomadish/structs"
)

// maxFilter bounds a filter's expression, in bytes.
const maxFilter = 8 << 10

// maxFieldsNamed is how many fields are named to who filters by one that is not there.
const maxFieldsNamed = 40

// filter returns a function that reports whether an item passes an expression, or ErrBadRequest if it cannot be evaluated on it.
func filter[T any](expression string) (func(T) (bool, error), error) {
	if strings.TrimSpace(expression) == "" {
		return func(T) (bool, error) { return true, nil }, nil
	}
	if len(expression) > maxFilter {
		return nil, structs.Errorf(structs.CodeBadRequest, "filter of %d bytes: at most %d", len(expression), maxFilter)
	}
	eval, err := bexpr.CreateEvaluator(expression)
	if err != nil {
		return nil, structs.Errorf(structs.CodeBadRequest, "failed to read filter expression: %w", err).
			WithHint(`write it as: Status == "running" and Name matches "web"`)
	}
	return func(item T) (ok bool, err error) {
		defer func() { // go-bexpr panics on some operand types
			if r := recover(); r != nil {
				err = structs.Errorf(structs.CodeBadRequest, "filter %q: cannot be evaluated on these fields: %v", expression, r)
			}
		}()
		ok, err = eval.Evaluate(item)
		if err == nil {
			return ok, nil
		}
		if why := unknownField(expression, reflect.TypeFor[T]()); why != "" {
			return false, structs.Errorf(structs.CodeBadRequest, "filter %q: %s", structs.Clip(expression, 200), why)
		}
		return false, structs.Errorf(structs.CodeBadRequest, "filter %q: %w", expression, err)
	}, nil
}

// unknownField returns which field of an expression items of a type do not have, and which there are; empty: they have all.
func unknownField(expression string, of reflect.Type) string {
	parsed, err := grammar.Parse("", []byte(expression))
	if err != nil {
		return ""
	}
	why := ""
	var look func(any)
	look = func(part any) {
		if why != "" {
			return
		}
		switch p := part.(type) {
		case *grammar.UnaryExpression:
			look(p.Operand)
		case *grammar.BinaryExpression:
			look(p.Left)
			look(p.Right)
		case *grammar.MatchExpression:
			why = noSuchField(p.Selector.Path, of)
		case *grammar.CollectionExpression: // what is inside it has names of its own
			why = noSuchField(p.Selector.Path, of)
		}
	}
	look(parsed)
	return why
}

// noSuchField is unknownField of one path.
func noSuchField(path []string, of reflect.Type) string {
	for i, name := range path {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch of.Kind() {
		case reflect.Map, reflect.Slice, reflect.Array: // any key may be there, or none
			of = of.Elem()
			continue
		case reflect.Struct:
		default: // not known before an item is looked at
			return ""
		}
		field, there := of.FieldByName(name)
		if there && field.IsExported() && len(field.Index) == 1 {
			of = field.Type
			continue
		}
		inside := ""
		if i > 0 {
			inside = fmt.Sprintf(" in %q", structs.Clip(strings.Join(path[:i], "."), 100))
		}
		names := fieldNames(of)
		text := fmt.Sprintf("there is no field %q%s", structs.Clip(name, 100), inside)
		if near := structs.Nearest(name, names); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		more := ""
		if n := len(names) - maxFieldsNamed; n > 0 {
			names, more = names[:maxFieldsNamed], fmt.Sprintf(" and %d more", n)
		}
		return text + "; there are " + strings.Join(names, ", ") + more
	}
	return ""
}

// fieldNames returns the fields of a struct that an expression can name, in the order in which they are declared.
func fieldNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		if f := of.Field(i); f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}
