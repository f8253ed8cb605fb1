package walls

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// freeText are the documents that keep words of their time or of a design's own, and one that is generated from sources, which are read themselves.
var freeText = []string{"CHANGELOG.md", "docs/design/semantics.md", "docs/reference/commands.md"}

// TestPhrases: comments, texts and documents use the field's words. Tests' files are not read.
func TestPhrases(t *testing.T) {
	p, err := readPhrases(phrasesFile)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	sources, documents := 0, 0
	eachText(t, ".go", func(name string, text []byte) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		sources++
		for _, b := range p.inSource(fset, name, f, used) {
			t.Error(b)
		}
	})
	eachText(t, ".md", func(name string, text []byte) {
		if slices.Contains(freeText, name) {
			return
		}
		documents++
		for _, b := range p.in(name, 1, string(text), used) {
			t.Error(b)
		}
	})
	if sources < 500 || documents < 20 {
		t.Fatalf("%d sources, %d documents", sources, documents)
	}
	for name, row := range p.rows {
		for _, e := range slices.Concat(row.places, row.texts) {
			if !used[row.key(e)] {
				t.Errorf("phrases.txt: the exception %q of %q is needed nowhere any more", e, name)
			}
		}
	}
}

// TestPhrasesSeen shows where a phrase is seen, on which line, and what an exception lets be.
func TestPhrasesSeen(t *testing.T) {
	p, err := readPhrases("# a comment\nthrone, in vain | leaderTracker | structs/..., a/b.go, \"cgroup.throne\", \"a, throne\"\n")
	if err == nil {
		t.Fatal("a quoted text is split at its comma, and accepted")
	}
	p, err = readPhrases("# a comment\nthrone, in vain | leaderTracker | structs/..., a/b.go, \"cgroup.throne\"\n")
	if err != nil {
		t.Fatal(err)
	}
	const source = "// Package p has a Throne.\npackage p\n\nimport \"throne\"\n\n" +
		"/* It waits in\n   vain.\n*/\nvar throne = `a\nthrone` + \"thrones, overthrone, cgroup.throne\"\n\n" +
		"// It waits in\n// vain.\nfunc f() {} // in vain\n//nolint:throne\n"
	f := func(file string, want ...string) {
		t.Helper()
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		used := map[string]bool{}
		var got []string
		for _, b := range p.inSource(fset, file, parsed, used) {
			got = append(got, strings.TrimPrefix(b.Where, file+":"))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: seen on the lines %q, want %q", file, got, want)
		}
		if len(want) > 0 != used["leaderTracker: cgroup.throne"] {
			t.Errorf("%s: used %v", file, used)
		}
	}
	f("p/p.go", "1", "10", "12", "14", "15", "4", "6")
	f("structs/acl/p.go")
	f("a/b.go")
	f("a/c.go", "1", "10", "12", "14", "15", "4", "6")
	for _, bad := range []string{"a | b\n", "a | b |\na | c |\n"} {
		if _, err := readPhrases(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
