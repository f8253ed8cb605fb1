package hclfile

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
)

// fill sets v from a value; what is wrong is returned as text, "" if nothing is.
// null leaves v as it is.
func fill(v reflect.Value, from cty.Value) string {
	if from.IsNull() {
		return ""
	}
	switch v.Type() {
	case durationType:
		return fillDuration(v, from)
	case timeType:
		return fillTime(v, from)
	}
	// The others hold nothing of interest here.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		if problem := fill(elem.Elem(), from); problem != "" {
			return problem
		}
		v.Set(elem)
		return ""
	case reflect.Interface:
		free, problem := freeValue(from)
		if problem == "" && free != nil {
			v.Set(reflect.ValueOf(free))
		}
		return problem
	case reflect.Slice:
		return fillSlice(v, from)
	case reflect.Map:
		return fillMap(v, from)
	case reflect.String:
		s, err := convert.Convert(from, cty.String)
		if err != nil {
			return wrongType("a string", from)
		}
		v.SetString(s.AsString())
		return ""
	case reflect.Bool:
		b, err := convert.Convert(from, cty.Bool)
		if err != nil {
			return wrongType("true or false", from)
		}
		v.SetBool(b.True())
		return ""
	default:
		return fillNumber(v, from)
	}
}

func wrongType(want string, from cty.Value) string {
	return fmt.Sprintf("must be %s, not %s", want, describe(from))
}

// describe shows a value in a message.
func describe(v cty.Value) string {
	ty := v.Type()
	switch {
	case v.IsNull():
		return "null"
	case ty == cty.String:
		s := v.AsString()
		if len(s) > 40 {
			s = s[:37] + "..."
		}
		return "the string " + strconv.Quote(s)
	case ty == cty.Number:
		return "the number " + v.AsBigFloat().Text('g', 12)
	case ty == cty.Bool:
		return strconv.FormatBool(v.True())
	case ty.IsListType(), ty.IsSetType(), ty.IsTupleType():
		return "a list"
	case ty.IsMapType(), ty.IsObjectType():
		return "an object"
	}
	return "a " + ty.FriendlyName()
}

func fillNumber(v reflect.Value, from cty.Value) string {
	n, err := convert.Convert(from, cty.Number)
	if err != nil {
		return wrongType("a number", from)
	}
	f := n.AsBigFloat()
	switch {
	case v.CanFloat():
		value, _ := f.Float64()
		v.SetFloat(value)
		return ""
	case !f.IsInt():
		return wrongType("a whole number", n)
	case v.CanInt():
		if i, acc := f.Int64(); acc == big.Exact && !v.OverflowInt(i) {
			v.SetInt(i)
			return ""
		}
	case v.CanUint():
		if u, acc := f.Uint64(); acc == big.Exact && !v.OverflowUint(u) {
			v.SetUint(u)
			return ""
		}
		return fmt.Sprintf("must be a whole number from 0 to %d, not %s", uint64(1)<<min(v.Type().Bits(), 63)-1, f.Text('g', 12))
	}
	return "is too large: " + f.Text('g', 12)
}

func fillDuration(v reflect.Value, from cty.Value) string {
	const want = `a duration such as "30s", "5m" or "1h30m"`
	if from.Type() == cty.Number && from.AsBigFloat().Sign() == 0 {
		v.SetInt(0)
		return ""
	}
	if from.Type() != cty.String {
		return wrongType(want+", in quotes and with its unit", from)
	}
	text := from.AsString()
	d, err := time.ParseDuration(text)
	if err != nil {
		count, isDays := strings.CutSuffix(text, "d")
		if days, dayErr := strconv.ParseUint(count, 10, 16); dayErr == nil && isDays {
			return fmt.Sprintf("must be %s; a day is no unit: write %q", want, fmt.Sprintf("%dh", 24*days))
		}
		return wrongType(want, from)
	}
	v.SetInt(int64(d))
	return ""
}

// fillTime reads a moment as RFC 3339 writes it, so that no time zone is guessed.
func fillTime(v reflect.Value, from cty.Value) string {
	const want = `a time such as "2026-12-01T00:00:00Z" or "2026-12-01T08:00:00+01:00"`
	if from.Type() != cty.String {
		return wrongType(want+", in quotes", from)
	}
	text := from.AsString()
	t, err := time.Parse(time.RFC3339, text)
	if err == nil {
		v.Set(reflect.ValueOf(t))
		return ""
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil { // only its zone is missing, or the time of the day
			return fmt.Sprintf("must be %s, not %q; in UTC it is written %q", want, text, t.Format(time.RFC3339))
		}
	}
	return wrongType(want, from)
}

func isList(v cty.Value) bool {
	return v.Type().IsTupleType() || v.Type().IsListType() || v.Type().IsSetType()
}

func fillSlice(v reflect.Value, from cty.Value) string {
	if !isList(from) {
		return wrongType("a list", from)
	}
	out := reflect.MakeSlice(v.Type(), 0, from.LengthInt())
	for it := from.ElementIterator(); it.Next(); {
		_, value := it.Element()
		elem := reflect.New(v.Type().Elem()).Elem()
		if value.IsNull() && elem.Kind() != reflect.Interface {
			return "must not hold null"
		}
		if problem := fill(elem, value); problem != "" {
			return fmt.Sprintf("element %d: %s", out.Len(), problem)
		}
		out = reflect.Append(out, elem)
	}
	v.Set(out)
	return ""
}

func fillMap(v reflect.Value, from cty.Value) string {
	if !from.Type().IsObjectType() && !from.Type().IsMapType() {
		return wrongType("an object { key = value }", from)
	}
	out := reflect.MakeMapWithSize(v.Type(), from.LengthInt())
	for it := from.ElementIterator(); it.Next(); {
		key, value := it.Element()
		elem := reflect.New(v.Type().Elem()).Elem()
		if value.IsNull() && elem.Kind() != reflect.Interface {
			continue // not stated
		}
		if problem := fill(elem, value); problem != "" {
			return fmt.Sprintf("%q: %s", key.AsString(), problem)
		}
		out.SetMapIndex(reflect.ValueOf(key.AsString()), elem)
	}
	v.Set(out)
	return ""
}

// freeValue turns a value into what free-form configuration holds: string, bool,
// int64, float64, []any, map[string]any and nil.
func freeValue(v cty.Value) (any, string) {
	ty := v.Type()
	switch {
	case v.IsNull():
		return nil, ""
	case ty == cty.String:
		return v.AsString(), ""
	case ty == cty.Bool:
		return v.True(), ""
	case ty == cty.Number:
		f := v.AsBigFloat()
		if i, acc := f.Int64(); acc == big.Exact {
			return i, ""
		}
		value, _ := f.Float64()
		return value, ""
	case isList(v):
		out := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, value := it.Element()
			free, problem := freeValue(value)
			if problem != "" {
				return nil, problem
			}
			out = append(out, free)
		}
		return out, ""
	case ty.IsObjectType(), ty.IsMapType():
		out := make(map[string]any, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			free, problem := freeValue(value)
			if problem != "" {
				return nil, problem
			}
			out[key.AsString()] = free
		}
		return out, ""
	}
	return nil, "cannot hold a " + ty.FriendlyName()
}

// sizeOf estimates what a value holds, in bytes.
func sizeOf(v cty.Value) int {
	if !v.IsKnown() || v.IsNull() {
		return 1
	}
	ty := v.Type()
	switch {
	case ty == cty.String:
		return len(v.AsString()) + 1
	case isList(v), ty.IsObjectType(), ty.IsMapType():
		sum := 1
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			sum += sizeOf(value)
			if key.Type() == cty.String {
				sum += len(key.AsString())
			}
		}
		return sum
	}
	return 8
}
