package walls

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// wireFieldsFile lists what package structs has on the wire and on disk: a line for each field of each of its types.
const wireFieldsFile = "wirefields.txt"

var rewrite = flag.Bool("rewrite", false, "write "+wireFieldsFile+" anew")

// TestWireFields: log entries, rows of snapshots, and RPC arguments and replies are encoded field by field, by name. A field that is renamed
// or changes its type cannot be read by servers of other versions, nor from the disk; a name on the wire stays, whatever Go calls the field.
func TestWireFields(t *testing.T) {
	fields := map[string]string{}
	eachText(t, ".go", func(name string, text []byte) {
		if path.Dir(name) != "structs" || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		wireFields(f, fields)
	})
	if len(fields) < 1000 {
		t.Fatalf("%d fields", len(fields))
	}
	if *rewrite {
		var lines []string
		for field, kind := range fields {
			lines = append(lines, field+" "+kind+"\n")
		}
		slices.Sort(lines)
		if err := os.WriteFile(wireFieldsFile, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(wireFieldsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range wireChanges(string(text), fields) {
		t.Error(problem)
	}
}

// wireFields adds the fields of a file's struct types: "Type.name on the wire" and its type.
func wireFields(f *ast.File, fields map[string]string) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		of, ok := spec.Type.(*ast.StructType)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		for _, field := range of.Fields.List {
			for _, name := range wireNames(field) {
				fields[spec.Name.Name+"."+name] = types.ExprString(field.Type)
			}
		}
		return true
	})
}

// wireNames returns what fields that are declared together are named on the wire; none: they are not on it.
func wireNames(field *ast.Field) (names []string) {
	var tag reflect.StructTag
	if field.Tag != nil {
		tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
	}
	renamed := ""
	for _, key := range []string{"json", "codec", "wire", "entry"} { // the last one counts, as in package codec
		if value, ok := tag.Lookup(key); ok {
			renamed, _, _ = strings.Cut(value, ",")
		}
	}
	switch {
	case renamed == "-":
		return nil
	case len(field.Names) == 0:
		return []string{"+" + types.ExprString(field.Type)} // its fields are as those of the type itself
	}
	for _, name := range field.Names {
		switch {
		case !name.IsExported():
		case renamed != "":
			names = append(names, renamed)
		default:
			names = append(names, name.Name)
		}
	}
	return names
}

// wireChanges compares fields with a list of them.
func wireChanges(list string, fields map[string]string) (problems []string) {
	const stay = "what was written with it, and servers of other versions, have it still"
	left := map[string]bool{}
	for field := range fields {
		left[field] = true
	}
	for line := range strings.Lines(list) {
		field, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch now, ok := fields[field]; {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s (%s) is gone: %s. Keep its name by a tag, or, of a type that is only renamed or never on the wire, run this test with -rewrite", field, kind, stay))
		case now != kind:
			problems = append(problems, fmt.Sprintf("%s was %s and is %s: %s. If the encodings are the same, run this test with -rewrite", field, kind, now, stay))
		}
		delete(left, field)
	}
	for field := range left {
		problems = append(problems, fmt.Sprintf("%s (%s) is new: servers of earlier versions pass it over; if that is right, run this test with -rewrite", field, fields[field]))
	}
	slices.Sort(problems)
	return problems
}

// TestWireChanges shows that each change is seen.
func TestWireChanges(t *testing.T) {
	fields := func(body string) map[string]string {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package structs\ntype T struct {\n"+body+"\n}\n", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		wireFields(f, out)
		return out
	}
	const list = "T.+Base Base\nT.A []*int\nT.B string\n"
	for _, row := range []struct{ body, want string }{
		{"Base\nA []*int\nB string\nc int\nD int `json:\"-\"`", ""},
		{"Base\nA []*int\nRenamed string `json:\"x\" codec:\"B,omitempty\"`", ""},
		{"Base\nA []*int\nRenamed string `codec:\"b\" json:\"B\"`", "T.B (string) is gone"},
		{"Base\nA []*int\nRenamed string", "T.B (string) is gone"},
		{"Base\nA []int\nB string", "T.A was []*int and is []int"},
		{"A []*int\nB string", "T.+Base (Base) is gone"},
		{"Base\nA []*int\nB, C string", "T.C (string) is new"},
	} {
		if got := strings.Join(wireChanges(list, fields(row.body)), "\n"); !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", row.body, got, row.want)
		}
	}
}
