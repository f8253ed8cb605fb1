package structs

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FieldKind describes how a field is written in HCL.
type FieldKind int

// The kinds of field.
const (
	FieldHidden   FieldKind = iota // not written in HCL
	FieldAttr                      // name = value
	FieldBlock                     // name { … }
	FieldLabel                     // the block's label
	FieldOptLabel                  // name = value, or the block's label
)

// Field is what the tags of a struct's field state. They are read by everything
// that walks a specification: HCL and JSON decoding, validation, diffs.
//
//	hcl:"name"            an attribute
//	hcl:"name,block"      a block: *T (at most one), []T or []*T (any number),
//	                      map[string]*T (by label), or a map of values, which
//	                      may be written as an attribute too
//	hcl:"name,label"      the block's label
//	hcl:"name,optlabel"   an attribute or the block's label
//	check:"min=0,max=9"   least and greatest number (durations in nanoseconds)
//	check:"oneof=a|b"     the strings allowed beside ""
//	check:"zero=text"     what to do instead of stating a refused 0; without commas
type Field struct {
	Name  string // Go, JSON and msgpack name
	HCL   string // HCL name; "" if hidden
	Kind  FieldKind
	Index []int // for reflect.Value.FieldByIndex
	Type  reflect.Type

	min, max       int64
	hasMin, hasMax bool
	oneOf          []string
	zero           string
}

// Defaulter is a type with defaults that differ from its zero value, to be
// filled before anything is decoded into it.
type Defaulter interface{ SetDefaults() }

// AfterDecoder is a type that has something to settle when all of it was decoded.
type AfterDecoder interface{ AfterDecode() }

// Shorthander is a type whose blocks may also be written by the name of an operator, as Nomad allows it: distinct_hosts = true.
// Shorthand is the field that the attribute of a name fills then, beside the operator; "": the name is none.
type Shorthander interface{ Shorthand(name string) string }

var durationType = reflect.TypeFor[time.Duration]()

var fieldCache sync.Map // reflect.Type → []Field

// Fields returns the exported fields of a struct type in order, those of embedded structs in place.
// The result is shared and must not be changed.
func Fields(t reflect.Type) []Field {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]Field)
	}
	fields := readFields(t, nil)
	fieldCache.Store(t, fields)
	return fields
}

func readFields(t reflect.Type, at []int) []Field {
	var out []Field
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), at...), i)
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct {
			out = append(out, readFields(sf.Type, index)...)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		f := Field{Name: sf.Name, Index: index, Type: sf.Type}
		if name, _, _ := strings.Cut(sf.Tag.Get("json"), ","); name != "" {
			f.Name = name
		}
		f.readTags(sf.Tag)
		out = append(out, f)
	}
	return out
}

func (f *Field) readTags(tag reflect.StructTag) {
	if h := tag.Get("hcl"); h != "" {
		name, kind, _ := strings.Cut(h, ",")
		f.HCL = name
		switch kind {
		case "block":
			f.Kind = FieldBlock
		case "label":
			f.Kind = FieldLabel
		case "optlabel":
			f.Kind = FieldOptLabel
		default:
			f.Kind = FieldAttr
		}
	}
	for rule := range strings.SplitSeq(tag.Get("check"), ",") {
		key, value, _ := strings.Cut(rule, "=")
		switch key {
		case "min":
			f.min, _ = strconv.ParseInt(value, 10, 64)
			f.hasMin = true
		case "max":
			f.max, _ = strconv.ParseInt(value, 10, 64)
			f.hasMax = true
		case "oneof":
			f.oneOf = strings.Split(value, "|")
		case "zero":
			f.zero = value
		}
	}
}

// OneOf returns the strings that the field may hold beside "", if they are limited.
func (f *Field) OneOf() []string { return f.oneOf }

// Bounds returns the least and the greatest number that the field may hold, for people; "": it is not limited.
func (f *Field) Bounds() string {
	show := func(n int64) string {
		if f.Type == durationType {
			return time.Duration(n).String()
		}
		return strconv.FormatInt(n, 10)
	}
	switch {
	case f.hasMin && f.hasMax:
		return show(f.min) + " to " + show(f.max)
	case f.hasMin:
		return "from " + show(f.min)
	case f.hasMax:
		return "up to " + show(f.max)
	}
	return ""
}

// Check returns what is wrong with a value of this field by its check tag, and what is allowed; ""
// if nothing is.
func (f *Field) Check(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return f.checkInt(v)
	case v.Kind() == reflect.String && len(f.oneOf) > 0:
		return f.checkString(v.String())
	}
	return ""
}

func (f *Field) checkInt(v reflect.Value) string {
	n := v.Int()
	low, high := f.hasMin && n < f.min, f.hasMax && n > f.max
	if !low && !high {
		return ""
	}
	show := func(n int64) string {
		if v.Type() == durationType {
			return strconv.Quote(time.Duration(n).String())
		}
		return strconv.FormatInt(n, 10)
	}
	switch {
	case n == 0 && f.zero != "":
		return fmt.Sprintf("must be between %s and %s, not 0; %s", show(f.min), show(f.max), f.zero)
	case f.hasMin && f.hasMax:
		return fmt.Sprintf("must be between %s and %s, not %s", show(f.min), show(f.max), show(n))
	case low && f.min == 0:
		return fmt.Sprintf("must not be negative, not %s", show(n))
	case low:
		return fmt.Sprintf("must be at least %s, not %s", show(f.min), show(n))
	}
	return fmt.Sprintf("must be at most %s, not %s", show(f.max), show(n))
}

func (f *Field) checkString(s string) string {
	if s == "" {
		return ""
	}
	for _, one := range f.oneOf {
		if s == one {
			return ""
		}
	}
	return fmt.Sprintf("must be %s, not %q%s", orList(f.oneOf), clip(s), didYouMean(s, f.oneOf))
}

// orList writes "a", "b" or "c".
func orList(words []string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(w))
	}
	return b.String()
}

func didYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// BareWord returns how a word is written that stands where HCL takes only values.
func BareWord(word string) string {
	switch strings.ToLower(word) {
	case "yes", "on":
		return fmt.Sprintf("write true, or %q if it is meant as a string", word)
	case "no", "off":
		return fmt.Sprintf("write false, or %q if it is meant as a string", word)
	}
	return fmt.Sprintf("a string is written in quotes, %q", word)
}

// Nearest returns the known word that a mistyped one most likely meant, or "".
func Nearest(word string, known []string) string {
	if len(word) > 100 {
		return ""
	}
	best, bestCost, bestDistance := "", 1+max(1, len(word)/3), 0
	lower := strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	for _, k := range known {
		distance := editDistance(lower, strings.ToLower(k))
		cost := distance
		if cost > 1 && len(lower) > 2 && (strings.HasPrefix(k, lower) || strings.HasPrefix(lower, k)) {
			cost = 1
		}
		if cost < bestCost || cost == bestCost && best != "" && distance < bestDistance { // of those that begin so, the shortest
			best, bestCost, bestDistance = k, cost, distance
		}
	}
	return best
}

// editDistance counts insertions, deletions, changes and swaps of neighbours
// that make b of a.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
