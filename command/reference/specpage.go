package reference

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// Spec is a kind of block that stands at the top of a file, as job "NAME" { … }.
type Spec struct {
	Block string
	Type  reflect.Type
	// Values are blocks in which everything has its default, by what distinguishes them, as {"service", …}; none: zero values are the defaults.
	Values []SpecValue
	// Elsewhere are types that another page describes, with a link to it: blocks of them, and fields of those that a type embeds, are not listed.
	Elsewhere map[reflect.Type]string
	// Effectless are the fields without effect, by block and name.
	Effectless []structs.EffectlessField
}

// SpecValue is a block in which everything has its default.
type SpecValue struct {
	Name  string // what the defaults hold for; empty: for all
	Value reflect.Value
}

// SpecPage returns a page of the files in which some kinds of blocks stand, with the page's beginning. A type of block is listed once, where it is
// outermost.
func (w *Writer) SpecPage(intro string, specs ...Spec) string {
	var b strings.Builder
	b.WriteString(intro)
	seen := map[reflect.Type]string{} // where a type is described
	var all [][]*specBlock
	for _, s := range specs {
		all = append(all, s.blocks(seen))
	}
	b.WriteString("\nBlocks: ")
	var links []string
	for _, block := range slices.Concat(all...) {
		links = append(links, fmt.Sprintf("[%s](#%s)", block.path, anchor(block.path)))
	}
	b.WriteString(strings.Join(links, ", ") + ".\n")
	for _, block := range slices.Concat(all...) {
		w.specBlock(&b, block, seen)
	}
	return b.String()
}

// specBlock is a type of block with where it stands.
type specBlock struct {
	spec   *Spec
	path   string
	t      reflect.Type
	values []SpecValue
	// without are its fields without effect, by their names.
	without map[string]structs.EffectlessField
}

// blocks returns the types of blocks in which something has an effect, outer ones first.
func (s *Spec) blocks(seen map[reflect.Type]string) []*specBlock {
	var out []*specBlock
	for next := []*specBlock{{spec: s, path: s.Block, t: s.Type, values: s.Values}}; len(next) > 0; next = next[1:] {
		block := next[0]
		if seen[block.t] != "" {
			continue
		}
		seen[block.t] = block.path
		block.without = map[string]structs.EffectlessField{}
		for _, f := range s.Effectless {
			if f.Block == block.path {
				block.without[f.Name] = f
			}
		}
		out = append(out, block)
		for _, f := range outermost(block.t) {
			in := structOf(f.Type)
			if f.Kind != structs.FieldBlock || in == nil || block.hasNone(f) || s.Elsewhere[in] != "" || s.Elsewhere[owner(block.t, f)] != "" {
				continue
			}
			inner := &specBlock{spec: s, path: block.path + " > " + f.HCL, t: in}
			for _, v := range block.values {
				if of := first(v.Value.FieldByIndex(f.Index)); of.IsValid() {
					inner.values = append(inner.values, SpecValue{v.Name, of})
				}
			}
			next = append(next, inner)
		}
	}
	return out
}

// hasNone reports whether a field never has an effect.
func (s *specBlock) hasNone(f structs.Field) bool {
	without, ok := s.without[f.HCL]
	return ok && without.Default == ""
}

// outermost returns the fields that a file may state. A field of an outer struct stands for one of the same name that it embeds.
func outermost(t reflect.Type) []structs.Field {
	var out []structs.Field
	for _, f := range structs.Fields(t) {
		if f.Kind == structs.FieldHidden {
			continue
		}
		if i := slices.IndexFunc(out, func(o structs.Field) bool { return o.HCL == f.HCL }); i >= 0 {
			out[i] = f
			continue
		}
		out = append(out, f)
	}
	return out
}

// owner returns the struct type that declares a field of another one: t itself, or one that it embeds.
func owner(t reflect.Type, f structs.Field) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return t
}

// structOf returns the struct that a field of a type holds; nil: it holds values.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == times {
		return nil
	}
	return t
}

// first returns the struct in a field, or the first one of several; not valid: there is none.
func first(v reflect.Value) reflect.Value {
	for v.IsValid() && v.Kind() != reflect.Struct {
		switch {
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		case v.Kind() == reflect.Slice && v.Len() > 0:
			v = v.Index(0)
		case v.Kind() == reflect.Map && v.Len() > 0:
			v = v.MapIndex(v.MapKeys()[0])
		default:
			return reflect.Value{}
		}
	}
	return v
}

func (w *Writer) specBlock(b *strings.Builder, block *specBlock, seen map[reflect.Type]string) {
	fields := outermost(block.t)
	names := map[string]string{}
	for _, f := range fields {
		names[block.t.FieldByIndex(f.Index).Name] = f.HCL
	}
	fmt.Fprintf(b, "\n## %s\n\n", block.path)
	if text := w.typeText(block.t, names); text != "" {
		fmt.Fprintf(b, "%s\n\n", text)
	}
	b.WriteString("| name | type | default | allowed | meaning |\n| --- | --- | --- | --- | --- |\n")
	links := map[string]bool{}
	for _, f := range fields {
		if link := block.spec.Elsewhere[owner(block.t, f)]; link != "" && owner(block.t, f) != block.t {
			links[link] = true
			continue
		}
		w.specRow(b, block, f, names, seen)
	}
	for _, link := range slices.Sorted(maps.Keys(links)) {
		fmt.Fprintf(b, "\nAnd all that stands in %s.\n", link)
	}
}

func (w *Writer) specRow(b *strings.Builder, block *specBlock, f structs.Field, names map[string]string, seen map[reflect.Type]string) {
	kind, text, normal := typeName(f.Type), "", ""
	without, effectless := block.without[f.HCL]
	in := structOf(f.Type)
	switch {
	case effectless && block.hasNone(f) && without.Warning != "":
		text = sentence(strings.TrimPrefix(without.Warning, "is "))
	case effectless && block.hasNone(f):
		text = "Accepted, without effect yet."
	case f.Kind == structs.FieldBlock && in != nil && block.spec.Elsewhere[in] != "":
		text = sentence("see " + block.spec.Elsewhere[in])
	case f.Kind == structs.FieldBlock && in != nil:
		about, _ := w.source.Field(block.t, f.Index)
		text = strings.TrimSpace(sentence(withNames(withoutSubject(about, f.Name), names)) + fmt.Sprintf(" See [%s](#%s).", seen[in], anchor(seen[in])))
	default:
		m := w.fieldMeaning(block.t, f.Index, names, block.path+": "+f.HCL)
		text, normal = m.text, m.normal
		if normal == "" {
			normal = block.normal(f)
		}
		if effectless && without.Default != "" {
			text += fmt.Sprintf(" Without effect yet, if it is not `%s`.", without.Default)
		}
	}
	//exhaustive:ignore
	switch f.Kind {
	case structs.FieldLabel:
		kind = "label"
	case structs.FieldOptLabel:
		kind += ", or label"
	case structs.FieldBlock:
		if in == nil {
			kind = "block: " + kind
		} else if f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map {
			kind = "blocks"
		}
	}
	allowed := f.Bounds()
	if one := f.OneOf(); len(one) > 0 {
		allowed = Code(one...)
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", f.HCL, kind, row(normal), row(allowed), row(text))
}

// normal returns the default of a field.
func (s *specBlock) normal(f structs.Field) string {
	if f.Kind == structs.FieldLabel {
		return ""
	}
	var texts []string
	for _, v := range s.values {
		field := v.Value.FieldByIndex(f.Index)
		text := valueText(field)
		if field.IsZero() && field.Kind() != reflect.Bool && (!field.CanInt() || f.OneOf() != nil) {
			text = ""
		}
		if text != "" {
			text = "`" + text + "`"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	if !slices.ContainsFunc(texts, func(text string) bool { return text != texts[0] }) {
		return texts[0]
	}
	for i, v := range s.values {
		if texts[i] == "" {
			texts[i] = "none"
		}
		texts[i] += " (" + v.Name + ")"
	}
	return strings.Join(texts, ", ")
}

// Defaults returns a block of a type in which all fields have their defaults before what is made of them together, with one of each block within it.
// without reports whether a field, by its block and name, is to be left out.
func Defaults(t reflect.Type, path string, without func(block, name string) bool) reflect.Value {
	v := reflect.New(t)
	if d, ok := v.Interface().(structs.Defaulter); ok {
		d.SetDefaults()
	}
	for _, f := range outermost(t) {
		in := structOf(f.Type)
		if f.Kind != structs.FieldBlock || in == nil || without(path, f.HCL) {
			continue
		}
		inner := Defaults(in, path+" > "+f.HCL, without)
		field := v.Elem().FieldByIndex(f.Index)
		//exhaustive:ignore
		switch f.Type.Kind() {
		case reflect.Pointer:
			field.Set(inner)
		case reflect.Slice:
			if f.Type.Elem().Kind() == reflect.Struct {
				inner = inner.Elem()
			}
			field.Set(reflect.Append(field, inner))
		case reflect.Map:
			field.Set(reflect.MakeMap(f.Type))
			field.SetMapIndex(reflect.ValueOf("name"), inner)
		case reflect.Struct:
			field.Set(inner.Elem())
		}
	}
	if a, ok := v.Interface().(structs.AfterDecoder); ok {
		a.AfterDecode()
	}
	return v
}

const generated = "<!-- Generated by `make docs` from the structs that files are decoded into, and their doc comments. Do not edit it by hand. -->\n\n"

// JobIntro is the beginning of the page of job files.
const JobIntro = generated + "# Job specification\n\n" + "A job file is HCL, as of Nomad: `job \"NAME\" { … }`, and before it `variable` and `locals` blocks. `nomadish job init` writes one to begin with, " +
	"`nomadish job validate FILE` checks one, and `nomadish job run FILE` runs it. With `-json` a file is JSON, as the HTTP API has it. Names and meanings are Nomad's, but " +
	"for `gang`, `topology`, `share`, `licenses`, `candidates`, `project`, `step`, `slot`, `reclaim`, `partial`, `class`, `policy` and `prefer`, which are not in Nomad.\n\n" +
	"A duration is a string such as `\"30s\"`. Where a block may stand in several places, as `constraint`, it is listed once. `>` stands between a block and one within it. " +
	"Each block within a group or task may be left out. Where the default depends on the type of the job, it is in brackets.\n"

// The beginnings of the pages of other files.
const (
	WorkflowIntro = generated + "# Workflow files\n\n" + "A workflow file holds one `workflow \"NAME\" { … }`, and before it `variable` and `locals` blocks. `nomadish workflow init` writes one to begin " +
		"with, `nomadish workflow plan FILE` shows what it needs, and `nomadish workflow run FILE` runs it. What workflows are and mean: the [guide](../guides/workflows.md); over HTTP: [their API](workflows-api.md).\n"
	VirtualClusterIntro = generated + "# Files of virtual clusters\n\n" + "Such a file holds any number of `virtual_cluster \"NAMESPACE\" { … }`. `nomadish vc init` writes one to begin with, and " +
		"`nomadish vc apply FILE` applies it. What virtual clusters are and mean: the [guide](../guides/virtual-clusters.md).\n"
	ProjectIntro = generated + "# Files of projects\n\n" + "Such a file holds any number of `project \"NAME\" { … }` and `flow \"NAME\" { … }`. `nomadish project init` writes one to begin with, and " +
		"`nomadish project apply FILE` applies it. What projects are and mean: the [guide](../guides/projects.md).\n"
	OtherIntro = generated + "# Files of namespaces, node pools and licenses\n\n" + "`nomadish namespace apply FILE` reads a file with the attributes of one namespace, `nomadish node pool apply FILE` one with a block " +
		"`node_pool \"NAME\" { … }`, and `nomadish license apply FILE` one with any number of `license \"NAME\" { … }`.\n"
)
