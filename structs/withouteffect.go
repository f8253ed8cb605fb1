package structs

import (
	"cmp"
	"reflect"
	"slices"
)

// EffectlessField is a field of the job specification that is accepted and kept, and that nothing acts on yet.
type EffectlessField struct {
	Block    string // that it stands in, as "job > group > task"
	Name     string // its name in HCL or, where HCL has none for it, in JSON
	JSONOnly bool   // HCL has no name for it
	Default  string // a value that is as good as none: nobody is warned of it; empty: there is no such value
	Warning  string // the text about it instead of its having no effect; empty: nothing
}

// FieldsWithoutEffect returns what [Job.Warnings] may warn of, outer blocks first, each field once: where the job's outermost
// block that has it is.
func FieldsWithoutEffect() []EffectlessField {
	type block struct {
		t    reflect.Type
		path string
	}
	var out []EffectlessField
	seen := map[reflect.Type]bool{}
	for next := []block{{reflect.TypeFor[Job](), "job"}}; len(next) > 0; next = next[1:] {
		b := next[0]
		if seen[b.t] {
			continue
		}
		seen[b.t] = true
		s := specOf(b.t)
		silent := map[string]bool{}
		for _, f := range s.silent {
			silent[f.Name] = true
			out = append(out, EffectlessField{b.path, cmp.Or(f.HCL, f.Name), f.HCL == "", f.text, halfEffects[b.t.Name()+"."+f.Name]})
		}
		for _, f := range s.blocks {
			if t := structType(f.Type); t != nil && !silent[f.Name] { // a block without effect stands for all in it
				next = append(next, block{t, b.path + " > " + f.text})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b EffectlessField) int { return cmp.Compare(a.Block, b.Block) })
	return out
}

// structType is the struct that a field of a type holds, or nil.
func structType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}
