package hclfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/nomadish/nomadish/structs"
)

// Decoder fills structs from blocks. One is used for one file.
type Decoder struct {
	file     *File
	scope    *Scope
	problems Problems
	places   map[string]hcl.Range // by path and field
	within   map[string]*within   // by path
	blocks   int
}

// NewDecoder makes a decoder of a file whose runtime references are text
// ([File.Literal]), evaluated in a scope.
func NewDecoder(file *File, scope *Scope) *Decoder {
	return &Decoder{file: file, scope: scope, places: map[string]hcl.Range{}, within: map[string]*within{}}
}

// Problems is everything that was found wrong so far.
func (d *Decoder) Problems() Problems { return d.problems }

func (d *Decoder) addf(rng hcl.Range, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	d.problems = append(d.problems, At(rng, "%s", text))
}

// within is what of a block has a place: its fields, and the paths of the blocks right within it.
type within struct{ fields, blocks []string }

// note remembers the first place of a field.
func (d *Decoder) note(path, field string, rng hcl.Range) {
	key := path + "\x00" + field
	if _, known := d.places[key]; known {
		return
	}
	d.places[key] = rng
	in := d.in(path)
	in.fields = append(in.fields, field)
}

// in returns what of a block has a place, for more to be added.
func (d *Decoder) in(path string) *within {
	in := d.within[path]
	if in == nil {
		in = &within{}
		d.within[path] = in
		if at := strings.LastIndex(path, " > "); at >= 0 {
			around := d.in(path[:at])
			around.blocks = append(around.blocks, path)
		}
	}
	return in
}

// Range finds where a field of a block is written, by the path that
// structs.ChildPath makes: the field, else the block, else the nearest block
// around it that the file holds.
func (d *Decoder) Range(path, field string) (hcl.Range, bool) {
	for {
		if rng, ok := d.places[path+"\x00"+field]; ok {
			return rng, true
		}
		if rng, ok := d.places[path+"\x00"]; ok {
			return rng, true
		}
		at := strings.LastIndex(path, " > ")
		if at < 0 {
			return hcl.Range{}, false
		}
		path = path[:at]
	}
}

// Stated returns the names of the attributes and blocks that the block at path states itself, in the order of the file. It costs as much as the block holds,
// however large the file is.
func (d *Decoder) Stated(path string) (names []string) {
	in := d.within[path]
	if in == nil {
		return nil
	}
	for _, name := range in.fields {
		if name != "" { // else it is the block itself
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Compare(d.places[path+"\x00"+a].Start.Byte, d.places[path+"\x00"+b].Start.Byte)
	})
	return names
}

// RangeOfText finds where that is written that a line is about, as structs.Problem
// has it: path: field: text. It is the longest path that the file holds.
func (d *Decoder) RangeOfText(line string) (hcl.Range, bool) {
	longest, found := 0, hcl.Range{}
	for key, rng := range d.places { // order does not matter: no two keys that begin the line are equally long
		begin := strings.TrimSuffix(strings.Replace(key, "\x00", ": ", 1), ": ") + ": "
		if len(begin) > longest && strings.HasPrefix(line, begin) {
			longest, found = len(begin), rng
		}
	}
	return found, longest > 0
}

// Alias makes Range answer for a block under a second path too. It costs as much as the block holds, however large the file is.
func (d *Decoder) Alias(path, as string) {
	in := d.within[path]
	if in == nil || path == as {
		return
	}
	fields, blocks := in.fields, in.blocks // without what is added if one path is within the other
	for _, field := range fields {
		d.note(as, field, d.places[path+"\x00"+field])
	}
	for _, block := range blocks {
		d.Alias(block, as+block[len(path):])
	}
}

// AliasField makes Range answer for a field of the block at path under the path of another block too, where that one
// does not state the field.
func (d *Decoder) AliasField(path, as, field string) {
	if rng, ok := d.places[path+"\x00"+field]; ok {
		d.note(as, field, rng)
	}
}

// Block decodes a block, found at the top of the file, into a pointer to a
// struct, and remembers its places under path.
func (d *Decoder) Block(b *hclsyntax.Block, into any, path string) {
	d.note(path, "", b.DefRange())
	v := reflect.ValueOf(into).Elem()
	setDefaults(v)
	d.body(block{Type: b.Type, Body: b.Body, Ctx: d.scope.Context(), Range: b.DefRange()}, v, path)
}

func setDefaults(v reflect.Value) {
	if with, ok := v.Addr().Interface().(structs.Defaulter); ok {
		with.SetDefaults()
	}
}

// block is one block after dynamic ones were expanded.
type block struct {
	Type   string
	Labels []string
	Body   *hclsyntax.Body
	Ctx    *hcl.EvalContext
	Range  hcl.Range
}

// body decodes a block's body into a struct.
func (d *Decoder) body(b block, v reflect.Value, path string) {
	fields := map[string]*structs.Field{}
	known := make([]string, 0, 32)
	list := structs.Fields(v.Type())
	for i, f := range list {
		if f.Kind != structs.FieldHidden {
			first := fields[f.HCL] == nil // a field of an outer struct stands for the embedded one's
			fields[f.HCL] = &list[i]
			if first && f.Kind != structs.FieldLabel {
				known = append(known, f.HCL)
			}
		}
	}
	for _, a := range sortedAttrs(b.Body) {
		f := fields[a.Name]
		if f == nil && d.shorthand(a, b, fields, v, path) {
			continue
		}
		if f == nil || f.Kind == structs.FieldLabel {
			d.unknown(a.NameRange, path, "attribute", a.Name, known, f != nil, v.Type())
			continue
		}
		d.attribute(a, b.Ctx, f, v.FieldByIndex(f.Index), path)
	}
	seen := map[string]hcl.Range{}
	count := map[string]int{}
	for _, in := range d.expand(b.Body, b.Ctx, path) {
		f := fields[in.Type]
		if f == nil || f.Kind == structs.FieldLabel {
			d.unknown(in.Range, path, "block", in.Type, known, f != nil, v.Type())
			continue
		}
		if f.Kind != structs.FieldBlock {
			d.addf(in.Range, path, "%s is an attribute, not a block: write %s = …", in.Type, in.Type)
			continue
		}
		field := v.FieldByIndex(f.Index)
		if first, twice := seen[in.Type]; twice && !repeats(f.Type) {
			d.addf(in.Range, path, "there may be only one %s here; the first is on line %d", in.Type, first.Start.Line)
			continue
		}
		if a := b.Body.Attributes[in.Type]; a != nil {
			d.addf(in.Range, path, "%s is stated twice; the first is on line %d", in.Type, a.NameRange.Start.Line)
			continue
		}
		seen[in.Type] = in.Range
		d.child(in, f, field, path, count[in.Type])
		count[in.Type]++
	}
	if after, ok := v.Addr().Interface().(structs.AfterDecoder); ok {
		after.AfterDecode()
	}
}

// shorthand decodes an attribute that is named as an operator: it states the operator, and one field beside it. It reports
// whether the attribute is such a one.
func (d *Decoder) shorthand(a *hclsyntax.Attribute, b block, fields map[string]*structs.Field, v reflect.Value, path string) bool {
	short, ok := v.Addr().Interface().(structs.Shorthander)
	if !ok || short.Shorthand(a.Name) == "" {
		return false
	}
	into := short.Shorthand(a.Name)
	for _, name := range []string{"operator", into} {
		if b.Body.Attributes[name] != nil {
			d.addf(a.NameRange, path, "%s states the operator and its %s: leave out %s, or write operator = %q", a.Name, into, name, a.Name)
			return true
		}
	}
	operator := v.FieldByIndex(fields["operator"].Index)
	if other := operator.String(); other != "" {
		d.addf(a.NameRange, path, "%s and %s are two operators: write a block for each", other, a.Name)
		return true
	}
	operator.SetString(a.Name)
	d.note(path, into, a.NameRange)
	d.attribute(a, b.Ctx, fields[into], v.FieldByIndex(fields[into].Index), path)
	return true
}

// repeats reports whether blocks of the type may stand more than once.
func repeats(t reflect.Type) bool {
	return t.Kind() == reflect.Slice || (t.Kind() == reflect.Map && isStruct(t.Elem()))
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || (t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct)
}

// elsewhere are the operators of constraints that people write as attributes, with what
// states the same.
var elsewhere = map[string]string{
	structs.ConstraintDistinctHosts:    `operator = "distinct_hosts" and value = "true"`,
	structs.ConstraintDistinctProperty: `operator = "distinct_property", attribute = "${meta.rack}" (or another), and as value how many may share one`,
}

// unknown reports a name that nothing of a block has. within is the type of the block; nil: it has no blocks within it.
func (d *Decoder) unknown(rng hcl.Range, path, what, name string, known []string, label bool, within reflect.Type) {
	if label {
		d.addf(rng, path, "%s is the block's label: write it between the block's type and its {", name)
		return
	}
	if form := elsewhere[name]; form != "" {
		d.addf(rng, path, "unknown %s %q; write a block constraint with %s", what, name, form)
		return
	}
	if block := blockOf(within, name); block != "" {
		d.addf(rng, path, "unknown %s %q; it belongs in %s", what, name, block)
		return
	}
	if near := structs.Nearest(name, known); near != "" {
		d.addf(rng, path, "unknown %s %q; did you mean %q?", what, name, near)
		return
	}
	if len(known) == 0 {
		d.addf(rng, path, "unknown %s %q; nothing may stand here", what, name)
		return
	}
	slices.Sort(known)
	d.addf(rng, path, "unknown %s %q; known are %s", what, name, strings.Join(known, ", "))
}

// jobBlocks are the blocks that a job is made of, one within the other.
var jobBlocks = []string{"stage", "job", "group", "task", "resources"}

// blockOf names the block of those that a job is made of, within one of a type, that has something of a name, the outermost that does; "": there is none.
func blockOf(t reflect.Type, name string) string {
	if t == nil {
		return ""
	}
	for _, f := range structs.Fields(t) {
		in := structOf(f.Type)
		if f.Kind != structs.FieldBlock || in == nil || !slices.Contains(jobBlocks, f.HCL) {
			continue
		}
		if slices.ContainsFunc(structs.Fields(in), func(g structs.Field) bool {
			return g.HCL == name && g.Kind != structs.FieldHidden && g.Kind != structs.FieldLabel
		}) {
			return "the block " + f.HCL
		}
		if block := blockOf(in, name); block != "" {
			return block
		}
	}
	return ""
}

// structOf returns the struct that a field's blocks are decoded into; nil: they are not.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func (d *Decoder) attribute(a *hclsyntax.Attribute, ctx *hcl.EvalContext, f *structs.Field, v reflect.Value, path string) {
	if f.Kind == structs.FieldBlock && (f.Type.Kind() != reflect.Map || isStruct(f.Type.Elem())) {
		d.addf(a.NameRange, path, "%s is a block, not an attribute: write %s { … }", a.Name, a.Name)
		return
	}
	d.note(path, a.Name, a.NameRange)
	value, ok := d.eval(a.Expr, ctx, path, a.Name)
	if !ok {
		return
	}
	d.set(v, f, value, a.Expr.Range(), path, a.Name)
}

// set fills a field and checks it.
func (d *Decoder) set(v reflect.Value, f *structs.Field, value cty.Value, rng hcl.Range, path, name string) {
	problem := fill(v, value)
	if problem == "" && !value.IsNull() {
		problem = f.Check(v)
	}
	if problem != "" {
		d.addf(rng, path, "%s: %s", name, problem)
	}
}

// eval evaluates an expression to a value that is wholly known.
func (d *Decoder) eval(e hclsyntax.Expression, ctx *hcl.EvalContext, path, name string) (cty.Value, bool) {
	value, problems := d.scope.eval(e, ctx)
	for _, p := range problems {
		p.Text = path + ": " + name + ": " + p.Text
		d.problems = append(d.problems, p)
	}
	return value, len(problems) == 0
}

// child decodes a block into a field.
func (d *Decoder) child(in block, f *structs.Field, field reflect.Value, path string, index int) {
	t := f.Type
	if t.Kind() == reflect.Map && !isStruct(t.Elem()) {
		d.note(path, in.Type, in.Range)
		d.noLabels(in, path)
		d.mapBody(in, field, structs.ChildPath(path, in.Type, "", -1))
		return
	}
	elem := t
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		elem = t.Elem()
	}
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	item := reflect.New(elem).Elem()
	setDefaults(item)
	if !d.labels(in, item, path) {
		return
	}
	label := structs.LabelOf(item)
	d.note(path, in.Type, in.Range)
	if t.Kind() != reflect.Slice {
		index = -1
	}
	at := structs.ChildPath(path, in.Type, label, index)
	d.note(at, "", in.Range)
	d.body(in, item, at)
	if t.Elem().Kind() == reflect.Pointer || t.Kind() == reflect.Pointer {
		item = item.Addr()
	}
	// The others hold nothing of interest here.
	//exhaustive:ignore
	switch t.Kind() {
	case reflect.Slice:
		field.Set(reflect.Append(field, item))
	case reflect.Map:
		if field.IsNil() {
			field.Set(reflect.MakeMap(t))
		}
		if field.MapIndex(reflect.ValueOf(label)).IsValid() {
			d.addf(in.Range, path, "there are two %s blocks named %q; names must differ", in.Type, label)
		}
		field.SetMapIndex(reflect.ValueOf(label), item)
	default:
		field.Set(item)
	}
}

func (d *Decoder) noLabels(in block, path string) {
	if len(in.Labels) > 0 {
		d.addf(in.Range, path, "%s takes no label: write %s { … }", in.Type, in.Type)
	}
}

// labels sets the label of a block's struct, if it has one.
func (d *Decoder) labels(in block, item reflect.Value, path string) bool {
	for _, f := range structs.Fields(item.Type()) {
		if f.Kind != structs.FieldLabel && f.Kind != structs.FieldOptLabel {
			continue
		}
		if len(in.Labels) > 1 {
			d.addf(in.Range, path, "%s takes one label, not %d: write %s \"NAME\" { … }", in.Type, len(in.Labels), in.Type)
			return false
		}
		if len(in.Labels) == 1 {
			item.FieldByIndex(f.Index).SetString(in.Labels[0])
		}
		if f.Kind == structs.FieldLabel && (len(in.Labels) == 0 || in.Labels[0] == "") {
			d.addf(in.Range, path, "%s needs a name: write %s \"NAME\" { … }", in.Type, in.Type)
			return false
		}
		return true
	}
	d.noLabels(in, path)
	return len(in.Labels) == 0
}

// mapBody decodes a block of keys and values: meta, env, config.
func (d *Decoder) mapBody(in block, field reflect.Value, path string) {
	free := field.Type().Elem().Kind() == reflect.Interface
	out := reflect.MakeMap(field.Type())
	for _, a := range sortedAttrs(in.Body) {
		d.note(path, a.Name, a.NameRange)
		value, ok := d.eval(a.Expr, in.Ctx, path, a.Name)
		if !ok || (value.IsNull() && !free) {
			continue
		}
		elem := reflect.New(field.Type().Elem()).Elem()
		if problem := fill(elem, value); problem != "" {
			d.addf(a.Expr.Range(), path, "%s: %s", a.Name, problem)
			continue
		}
		out.SetMapIndex(reflect.ValueOf(a.Name), elem)
	}
	inner := d.expand(in.Body, in.Ctx, path)
	if !free && len(inner) > 0 {
		d.addf(inner[0].Range, path, "%s may only hold KEY = VALUE, no block", in.Type)
	}
	if free {
		d.freeBlocks(in.Body, inner, out, path)
	}
	field.Set(out)
}

// freeBlocks puts the blocks of free-form configuration into its map: each is a
// map in the list of its type, and its labels are maps around it.
func (d *Decoder) freeBlocks(body *hclsyntax.Body, blocks []block, out reflect.Value, path string) {
	lists := map[string][]any{}
	for _, in := range blocks {
		if a := body.Attributes[in.Type]; a != nil {
			d.addf(in.Range, path, "%s is stated twice; the first is on line %d", in.Type, a.NameRange.Start.Line)
			continue
		}
		inner := reflect.New(reflect.TypeFor[map[string]any]()).Elem()
		d.mapBody(in, inner, structs.ChildPath(path, in.Type, "", -1))
		value := inner.Interface()
		for _, label := range slices.Backward(in.Labels) {
			value = map[string]any{label: []any{value}}
		}
		lists[in.Type] = append(lists[in.Type], value)
	}
	for name, list := range lists {
		out.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(list))
	}
}
