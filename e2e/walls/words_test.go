package walls

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWords: names are the field's. Tests' files count, those behind a build tag as well.
func TestWords(t *testing.T) {
	words, err := readWords(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	files := 0
	eachText(t, ".go", func(name string, text []byte) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, b := range bannedNames(fset, packageOf(name), f, words, used) {
			t.Error(b)
		}
	})
	if files < 500 {
		t.Fatalf("%d files", files)
	}
	for name, w := range words {
		for _, pkg := range w.allowed {
			if !used[name+" "+pkg] {
				t.Errorf("words.txt: %q is allowed in %s, where nothing has that name any more", name, pkg)
			}
		}
	}
}

// eachText calls f with the path in the module and the content of each file of that ending. Hidden folders and testdata are left out.
func eachText(t *testing.T, ending string, f func(name string, text []byte)) {
	t.Helper()
	root := load(t).Root
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") && name != root:
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ending):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, name)
		f(filepath.ToSlash(short), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBannedNames shows that each kind of declaration is seen, and that uses of others' names are not.
func TestBannedNames(t *testing.T) {
	words, err := readWords("throne thrones | leaderTracker | structs/...\n")
	if err != nil {
		t.Fatal(err)
	}
	src := "package p\nimport throneA \"fmt\"\ntype ThroneB struct{ throneC int }\nconst throneD = 1\nfunc (t *ThroneB) HTTPThroneE(throneF int) (throneG int) {\n" +
		"throneH := x.Throne()\nfor throneI, thronesJ := range y {}\nthroneK: for {}\nvar throneL int\nthrone.M()\n_ = overthrone\n}\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range bannedNames(fset, "p", f, words, map[string]bool{}) {
		name, _, _ := strings.Cut(b.What, ":")
		got = append(got, name[len(name)-1:])
	}
	if want := strings.Split("A B C D E F G H I J K L", " "); !slices.Equal(got, want) {
		t.Errorf("seen %q, want %q", got, want)
	}
	used := map[string]bool{}
	if b := bannedNames(fset, "structs/acl", &ast.File{Name: ast.NewIdent("throne")}, words, used); len(b) != 0 || !used["throne structs/..."] {
		t.Errorf("where it is allowed: %v, used %v", b, used)
	}
	if _, err := readWords("a | b | c\na | d |\n"); err == nil {
		t.Error("a word that stands there twice is accepted")
	}
}
