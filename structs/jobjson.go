package structs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// UnmarshalJSON reads a job as Nomad's API writes it. Fields absent or null keep
// their defaults, names match whatever their case, durations are nanoseconds or
// strings such as "30s", and unknown fields are ignored, as Nomad ignores them.
// Errors name the field: TaskGroups[0].Tasks[1].KillTimeout.
func (j *Job) UnmarshalJSON(b []byte) error { return decodeJSON(b, j) }

// UnmarshalJSON reads a group on its own, by the rules of [Job.UnmarshalJSON].
func (g *TaskGroup) UnmarshalJSON(b []byte) error { return decodeJSON(b, g) }

// UnmarshalJSON reads a task on its own, by the rules of [Job.UnmarshalJSON].
func (t *Task) UnmarshalJSON(b []byte) error { return decodeJSON(b, t) }

// UnmarshalJSON reads a scaling policy, by the rules of [Job.UnmarshalJSON].
func (p *ScalingPolicy) UnmarshalJSON(b []byte) error { return decodeJSON(b, p) }

// decodeJSON decodes one JSON value into a pointer to a struct of this package.
func decodeJSON(b []byte, into any) error {
	v := reflect.ValueOf(into).Elem()
	if readFast(b, v) {
		return nil
	}
	return decodeTree(b, v)
}

// decodeTree decodes one JSON value, whatever is wrong with it, by way of a tree of maps and lists.
func decodeTree(b []byte, v reflect.Value) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	if tree == nil {
		return nil
	}
	prepare(v)
	return fillJSON(v, tree, "")
}

func prepare(v reflect.Value) {
	if d, ok := v.Addr().Interface().(Defaulter); ok {
		d.SetDefaults()
	}
}

func jsonError(path, want string, got any) error {
	var is string
	switch got.(type) {
	case map[string]any:
		is = "an object"
	case []any:
		is = "a list"
	case string:
		is = "a string"
	case bool:
		is = "a boolean"
	case json.Number:
		is = "a number"
	case nil:
		is = "null"
	}
	if path == "" {
		path = "the value"
	}
	return fmt.Errorf("%s: want %s, have %s", path, want, is)
}

// fillJSON sets v from a decoded JSON value. null leaves v as it is.
func fillJSON(v reflect.Value, from any, path string) error {
	if from == nil {
		return nil
	}
	if v.Type() == durationType {
		return fillDuration(v, from, path)
	}
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		prepare(elem.Elem())
		if err := fillJSON(elem.Elem(), from, path); err != nil {
			return err
		}
		v.Set(elem)
		return nil
	case reflect.Struct:
		return fillStruct(v, from, path)
	case reflect.Slice:
		return fillSlice(v, from, path)
	case reflect.Map:
		return fillMap(v, from, path)
	case reflect.Interface:
		if free := freeValue(from); free != nil {
			v.Set(reflect.ValueOf(free))
		}
		return nil
	default:
		return fillScalar(v, from, path)
	}
}

func fillStruct(v reflect.Value, from any, path string) error {
	object, ok := from.(map[string]any)
	if !ok {
		return jsonError(path, "an object", from)
	}
	others := foldKeys(object, namesOf(v.Type()))
	for _, f := range Fields(v.Type()) {
		value, ok := object[f.Name]
		if !ok {
			if value, ok = others[f.Name]; !ok {
				continue
			}
		}
		at := f.Name
		if path != "" {
			at = path + "." + f.Name
		}
		if err := fillJSON(v.FieldByIndex(f.Index), value, at); err != nil {
			return err
		}
	}
	if a, ok := v.Addr().Interface().(AfterDecoder); ok {
		a.AfterDecode()
	}
	return nil
}

// fieldNames are the names of a struct type's fields as they are, and by their lower case.
type fieldNames struct {
	exact map[string]bool
	lower map[string][]string
}

var nameCache sync.Map // reflect.Type → *fieldNames

func namesOf(t reflect.Type) *fieldNames {
	if known, ok := nameCache.Load(t); ok {
		return known.(*fieldNames) // nothing else is put there
	}
	names := &fieldNames{exact: map[string]bool{}, lower: map[string][]string{}}
	for _, f := range Fields(t) {
		low := strings.ToLower(f.Name)
		names.exact[f.Name], names.lower[low] = true, append(names.lower[low], f.Name)
	}
	nameCache.Store(t, names)
	return names
}

// foldKeys returns by the names of fields what an object has under the same names in another case; nil: nothing. Of names that
// differ in case only, the one that sorts last wins, so that the result never hangs on chance.
func foldKeys(object map[string]any, names *fieldNames) map[string]any {
	var out map[string]any
	var from map[string]string
	for k, v := range object {
		if names.exact[k] {
			continue
		}
		for _, name := range names.lower[strings.ToLower(k)] {
			if was, ok := from[name]; ok && was > k {
				continue
			}
			if out == nil {
				out, from = map[string]any{}, map[string]string{}
			}
			out[name], from[name] = v, k
		}
	}
	return out
}

func fillSlice(v reflect.Value, from any, path string) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		text, ok := from.(string)
		if !ok {
			return jsonError(path, "a base64 string", from)
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		v.SetBytes(raw)
		return nil
	}
	list, ok := from.([]any)
	if !ok {
		return jsonError(path, "a list", from)
	}
	out := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, value := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		elem := out.Index(i)
		if value == nil && elem.Kind() == reflect.Pointer {
			return fmt.Errorf("%s: must not be null", at)
		}
		if elem.Kind() == reflect.Struct {
			prepare(elem)
		}
		if err := fillJSON(elem, value, at); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func fillMap(v reflect.Value, from any, path string) error {
	object, ok := from.(map[string]any)
	if !ok {
		return jsonError(path, "an object", from)
	}
	out := reflect.MakeMapWithSize(v.Type(), len(object))
	for k, value := range object {
		at := fmt.Sprintf("%s[%q]", path, k)
		elem := reflect.New(v.Type().Elem()).Elem()
		if value == nil && elem.Kind() == reflect.Pointer {
			return fmt.Errorf("%s: must not be null", at)
		}
		if err := fillJSON(elem, value, at); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(k), elem)
	}
	v.Set(out)
	return nil
}

func fillScalar(v reflect.Value, from any, path string) error {
	// the others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.String:
		s, ok := from.(string)
		if !ok {
			return jsonError(path, "a string", from)
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := from.(bool)
		if !ok {
			return jsonError(path, "true or false", from)
		}
		v.SetBool(b)
	default:
		n, ok := from.(json.Number)
		if !ok {
			return jsonError(path, "a number", from)
		}
		return fillNumber(v, n, path)
	}
	return nil
}

func fillNumber(v reflect.Value, n json.Number, path string) error {
	switch {
	case v.CanInt():
		i, err := wholeNumber(n)
		if err != nil || v.OverflowInt(i) {
			return fmt.Errorf("%s: want a whole number that fits %d bits, have %s", path, v.Type().Bits(), n)
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(n.String(), 10, 64)
		if err != nil || v.OverflowUint(u) {
			return fmt.Errorf("%s: want a whole number from 0 that fits %d bits, have %s", path, v.Type().Bits(), n)
		}
		v.SetUint(u)
	case v.CanFloat():
		f, err := n.Float64()
		if err != nil {
			return fmt.Errorf("%s: %s is too large", path, n)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("%s: cannot hold a number", path)
	}
	return nil
}

// wholeNumber reads 3, and also 3.0 and 3e2, which some programs write.
func wholeNumber(n json.Number) (int64, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, errors.New("not a whole number")
	}
	return int64(f), nil
}

func fillDuration(v reflect.Value, from any, path string) error {
	switch value := from.(type) {
	case json.Number:
		i, err := wholeNumber(value)
		if err != nil {
			return fmt.Errorf("%s: want whole nanoseconds or a string such as \"30s\", have %s", path, value)
		}
		v.SetInt(i)
		return nil
	case string:
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("%s: want a duration such as \"30s\" or \"1h30m\", have %q", path, value)
		}
		v.SetInt(int64(d))
		return nil
	}
	return jsonError(path, "nanoseconds or a string such as \"30s\"", from)
}

// freeValue turns decoded JSON into what free-form configuration holds: strings,
// bools, int64, float64, []any, map[string]any and nil.
func freeValue(from any) any {
	switch value := from.(type) {
	case json.Number:
		if i, err := value.Int64(); err == nil {
			return i
		}
		f, err := value.Float64()
		if err != nil {
			return value.String()
		}
		return f
	case []any:
		for i := range value {
			value[i] = freeValue(value[i])
		}
	case map[string]any:
		for k := range value {
			value[k] = freeValue(value[k])
		}
	}
	return from
}
