package config

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/nomadish/nomadish/structs"
)

// The tags of configuration structs:
//
//	hcl:"name"          a value; a map or list of values
//	hcl:"name,block"    a struct; []T: any number; map[string]*T: by label
//	hcl:"name,label"    the label of a repeated block
//	hcl:",inline"       a struct whose fields stand in the same block, as those of an embedded one do
//	…,append            a list to which later files add
//	…,later             known, decoded, without effect yet: a warning
//	…,refused           known, decoded, and refused by Validate where it is set
//	like:"x = [1]"      how it is written, for who wrote it otherwise
//	effect:"a,b"        the only keys of a map that have an effect: a warning for others
//	was:"a"             the name of an earlier version: refused with an error that names the new one
//
// and on a field named _, lists of further names that are accepted unread:
//
//	inert:"a,b"         without effect yet: a warning
//	moot:"a,b"          without effect, rightly: what they request is always so
type schema struct {
	fields map[string]schemaField
	names  []string // all, sorted
	inert  map[string]bool
	moot   map[string]bool
	was    map[string]string // names of earlier versions, with the new ones
	label  []int
}

type schemaField struct {
	index         []int
	append, later bool
	like          string
	effect        []string // nil: every key
}

// fieldsOf returns the fields of a struct, and in the place of those that it embeds, or that are inline, their fields. Each has its index in t.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && f.Tag.Get("hcl") != ",inline" {
			out = append(out, f)
			continue
		}
		for _, in := range fieldsOf(f.Type) {
			in.Index = slices.Concat(f.Index, in.Index)
			out = append(out, in)
		}
	}
	return out
}

func schemaOf(t reflect.Type) *schema {
	s := &schema{fields: map[string]schemaField{}, inert: map[string]bool{}, moot: map[string]bool{}, was: map[string]string{}}
	for _, f := range fieldsOf(t) {
		for _, tag := range []struct {
			name string
			set  map[string]bool
		}{{"inert", s.inert}, {"moot", s.moot}} {
			for name := range strings.SplitSeq(f.Tag.Get(tag.name), ",") {
				if name != "" {
					tag.set[name] = true
					s.names = append(s.names, name)
				}
			}
		}
		parts := strings.Split(f.Tag.Get("hcl"), ",")
		if parts[0] == "" || !f.IsExported() {
			continue
		}
		if slices.Contains(parts[1:], "label") {
			s.label = f.Index
			continue
		}
		field := schemaField{
			index: f.Index, append: slices.Contains(parts[1:], "append"), later: slices.Contains(parts[1:], "later"), like: f.Tag.Get("like"),
		}
		if keys := f.Tag.Get("effect"); keys != "" {
			field.effect = strings.Split(keys, ",")
		}
		if old := f.Tag.Get("was"); old != "" {
			s.was[old] = parts[0]
		}
		s.fields[parts[0]] = field
		s.names = append(s.names, parts[0])
	}
	slices.Sort(s.names)
	return s
}

// decoder fills structs from trees.
type decoder struct {
	problems Problems
	warnings Problems
	// origins record where each value, by its path, was stated last.
	origins map[string]Problem
	unread  []string // the paths of what has a problem
}

func (d *decoder) bad(t *tree, path, format string, args ...any) {
	d.unread = append(d.unread, path)
	d.problems = append(d.problems, problemAt(t.at, "%s: %s", path, fmt.Sprintf(format, args...)))
}

func child(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// object fills a struct.
func (d *decoder) object(v reflect.Value, t *tree, path string) {
	if t.kind == kindList && len(t.list) > 0 { // JSON may write a block as a list of one
		for _, item := range t.list {
			d.object(v, item, path)
		}
		return
	}
	if t.unread {
		d.unread = append(d.unread, path)
		return
	}
	if t.kind != kindObject {
		d.bad(t, path, "want a block, have %s", t.kind)
		return
	}
	s := schemaOf(v.Type())
	seen := map[string]bool{}
	for _, f := range t.object {
		at := child(path, f.name)
		known, ok := s.fields[f.name]
		switch {
		case ok:
			if seen[f.name] && !repeats(v.FieldByIndex(known.index)) {
				d.problems = append(d.problems, problemAt(f.at, "%s: stated twice in one file", at))
			}
			seen[f.name] = true
			if known.later {
				d.warnings = append(d.warnings, problemAt(f.at, "%s: accepted, but has no effect yet", at))
			}
			d.origins[at] = problemAt(f.at, "")
			before := len(d.problems)
			d.value(v.FieldByIndex(known.index), f.value, at, known.append)
			if known.effect != nil {
				d.warnOfKeys(f.value, at, known.effect)
			}
			for i := before; i < len(d.problems) && known.like != ""; i++ {
				d.problems[i].Text += "; write it as in " + known.like
			}
		case s.inert[f.name]:
			d.warnings = append(d.warnings, problemAt(f.at, "%s: accepted, but has no effect yet", at))
		case s.moot[f.name]:
		default:
			text := fmt.Sprintf("%s: unknown; this is not a name of the agent's configuration", at)
			if now := s.was[f.name]; now != "" {
				text = fmt.Sprintf("%s: renamed; write %q", at, now)
			} else if near := structs.Nearest(f.name, s.names); near != "" {
				text = fmt.Sprintf("%s: unknown; did you mean %q?", at, near)
			}
			d.unread = append(d.unread, at)
			d.problems = append(d.problems, problemAt(f.at, "%s", text))
		}
	}
}

// warnOfKeys warns of keys of a map that have no effect.
func (d *decoder) warnOfKeys(t *tree, path string, effect []string) {
	for _, item := range t.list { // JSON may write a map as a list of one
		d.warnOfKeys(item, path, effect)
	}
	for _, f := range t.object {
		if slices.Contains(effect, f.name) {
			continue
		}
		text := fmt.Sprintf("%s: accepted, but has no effect", child(path, f.name))
		part, _, _ := strings.Cut(f.name, ".") // driver.denylist is a name of Nomad's, and not a misspelt user.denylist
		if near := structs.Nearest(f.name, effect); strings.HasPrefix(near, part+".") {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		d.warnings = append(d.warnings, problemAt(f.at, "%s", text))
	}
}

// repeats reports whether a field may be stated many times in one file.
func repeats(v reflect.Value) bool {
	t := v.Type()
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct || t.Kind() == reflect.Map
}

var durationType = reflect.TypeFor[time.Duration]()

// value fills v; null leaves it as it is.
func (d *decoder) value(v reflect.Value, t *tree, path string, grow bool) {
	if t.unread {
		d.unread = append(d.unread, path)
	}
	if t.kind == kindScalar && t.scalar.IsNull() {
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(v, t, path)
	case v.Kind() == reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			elem.Elem().Set(v.Elem())
		}
		d.value(elem.Elem(), t, path, grow)
		v.Set(elem)
	case v.Kind() == reflect.Struct:
		d.object(v, t, path)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		d.blocks(v, t, path)
	case v.Kind() == reflect.Slice:
		d.list(v, t, path, grow)
	case v.Kind() == reflect.Map:
		d.fillMap(v, t, path)
	case v.Kind() == reflect.Interface:
		if free := freeValue(t); free != nil {
			v.Set(reflect.ValueOf(free))
		}
	default:
		d.scalar(v, t, path)
	}
}

func (d *decoder) list(v reflect.Value, t *tree, path string, grow bool) {
	if t.kind != kindList {
		d.bad(t, path, "want a list, have %s", t.kind)
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(t.list))
	if grow {
		out = reflect.AppendSlice(out, v)
	}
	for i, item := range t.list {
		elem := reflect.New(v.Type().Elem()).Elem()
		if item.unread {
			d.unread = append(d.unread, path)
			continue
		}
		if item.kind == kindScalar && item.scalar.IsNull() {
			d.bad(item, path, "an element must not be null")
			continue
		}
		d.value(elem, item, fmt.Sprintf("%s[%d]", path, i), false)
		out = reflect.Append(out, elem)
	}
	v.Set(out)
}

// blocks adds repeated blocks. A block with a label field stands under its label.
func (d *decoder) blocks(v reflect.Value, t *tree, path string) {
	if t.kind == kindList {
		for _, item := range t.list {
			d.blocks(v, item, path)
		}
		return
	}
	s := schemaOf(v.Type().Elem())
	if s.label == nil || t.kind != kindObject {
		v.Set(reflect.Append(v, d.newBlock(v.Type().Elem(), t, path)))
		return
	}
	for _, f := range t.object {
		if f.value.kind != kindObject {
			d.bad(f.value, path, "needs a label: write %s \"NAME\" { … }", path)
			return
		}
		at := fmt.Sprintf("%s[%q]", path, f.name)
		d.origins[at] = problemAt(f.at, "")
		elem := d.newBlock(v.Type().Elem(), f.value, at)
		elem.FieldByIndex(s.label).SetString(f.name)
		v.Set(reflect.Append(v, elem))
	}
}

func (d *decoder) newBlock(t reflect.Type, from *tree, path string) reflect.Value {
	elem := reflect.New(t)
	if def, ok := elem.Interface().(structs.Defaulter); ok {
		def.SetDefaults()
	}
	d.object(elem.Elem(), from, path)
	return elem.Elem()
}

// fillMap merges by key: into a map of values, or of blocks by label.
func (d *decoder) fillMap(v reflect.Value, t *tree, path string) {
	if t.kind == kindList && len(t.list) > 0 {
		for _, item := range t.list {
			d.fillMap(v, item, path)
		}
		return
	}
	if t.kind != kindObject {
		d.bad(t, path, "want names with values, have %s", t.kind)
		return
	}
	out := reflect.MakeMap(v.Type())
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	elemType := v.Type().Elem()
	for _, f := range t.object {
		at := child(path, f.name)
		d.origins[at] = problemAt(f.at, "")
		if elemType.Kind() == reflect.Pointer {
			before := len(d.problems)
			elem := d.newBlock(elemType.Elem(), f.value, at)
			if elemType == reflect.TypeFor[*Plugin]() && len(d.problems) == before {
				d.plugin(f, at)
			}
			out.SetMapIndex(reflect.ValueOf(f.name), elem.Addr())
			continue
		}
		elem := reflect.New(elemType).Elem()
		d.value(elem, f.value, at, false)
		out.SetMapIndex(reflect.ValueOf(f.name), elem)
	}
	v.Set(out)
}

func (d *decoder) duration(v reflect.Value, t *tree, path string) {
	if t.kind == kindScalar && t.scalar.Type() == cty.String {
		if dur, err := time.ParseDuration(t.scalar.AsString()); err == nil {
			v.SetInt(int64(dur))
			return
		}
	}
	d.bad(t, path, "want a duration such as \"30s\" or \"1h30m\", have %s", t.show())
}

func (d *decoder) scalar(v reflect.Value, t *tree, path string) {
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false"}[v.Kind()]
	if want == "" {
		want = "a number"
	}
	if t.kind != kindScalar {
		d.bad(t, path, "want %s, have %s", want, t.kind)
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s, err := convert.Convert(t.scalar, cty.String); err == nil {
			v.SetString(s.AsString())
			return
		}
	case reflect.Bool:
		if b, err := convert.Convert(t.scalar, cty.Bool); err == nil {
			v.SetBool(b.True())
			return
		}
	case reflect.Float64:
		if n, err := convert.Convert(t.scalar, cty.Number); err == nil {
			f, _ := n.AsBigFloat().Float64()
			v.SetFloat(f)
			return
		}
	default:
		n, err := convert.Convert(t.scalar, cty.Number)
		if err != nil {
			break
		}
		if problem := setWhole(v, n.AsBigFloat()); problem != "" {
			d.bad(t, path, "%s, have %s", problem, t.show())
		}
		return
	}
	d.bad(t, path, "want %s, have %s", want, t.show())
}

func setWhole(v reflect.Value, n *big.Float) string {
	if v.CanUint() {
		u, acc := n.Uint64()
		if acc != big.Exact || v.OverflowUint(u) {
			return "want a whole number from 0"
		}
		v.SetUint(u)
		return ""
	}
	i, acc := n.Int64()
	if acc != big.Exact || !v.CanInt() || v.OverflowInt(i) {
		return "want a whole number"
	}
	v.SetInt(i)
	return ""
}

// show is a value as a message shows it.
func (t *tree) show() string {
	if t.kind != kindScalar {
		return t.kind.String()
	}
	if t.scalar.Type() == cty.String {
		s := t.scalar.AsString()
		if len(s) > 60 {
			s = s[:60] + "…"
		}
		return strconv.Quote(s)
	}
	if s, err := convert.Convert(t.scalar, cty.String); err == nil && !s.IsNull() {
		return s.AsString()
	}
	return "null"
}

// freeValue is a tree as free-form configuration holds it.
func freeValue(t *tree) any {
	switch t.kind {
	case kindObject:
		out := make(map[string]any, len(t.object))
		for _, f := range t.object {
			out[f.name] = freeValue(f.value)
		}
		return out
	case kindList:
		out := make([]any, 0, len(t.list))
		for _, item := range t.list {
			out = append(out, freeValue(item))
		}
		return out
	case kindScalar:
	}
	switch {
	case t.scalar.IsNull():
		return nil
	case t.scalar.Type() == cty.String:
		return t.scalar.AsString()
	case t.scalar.Type() == cty.Bool:
		return t.scalar.True()
	}
	if i, acc := t.scalar.AsBigFloat().Int64(); acc == big.Exact {
		return i
	}
	f, _ := t.scalar.AsBigFloat().Float64()
	return f
}
