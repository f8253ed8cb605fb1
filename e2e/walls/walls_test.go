package walls

import (
	"go/doc"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// tree loads the module once for all tests. The packages named besides are those that only a broken wall would import.
var tree = sync.OnceValues(func() (*Tree, error) {
	return Load(".", "net/http", "os", "math/rand", "math/rand/v2", "crypto/rand", "sync", "time", "maps", "expvar", memdb, "github.com/google/uuid", "github.com/hashicorp/go-hclog")
})

func load(t *testing.T) *Tree {
	t.Helper()
	tr, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestWalls is the guard: the module as it stands breaks no wall.
func TestWalls(t *testing.T) {
	for _, b := range load(t).Breaches() {
		t.Error(b)
	}
}

// TestGuardsSee breaks every wall and requires the breach to be reported. A row is a file that is added to the module as it stands, and
// what its guard must say; .ci/walls-break puts the same files into a copy of the tree.
func TestGuardsSee(t *testing.T) {
	clean := map[string]bool{}
	for _, b := range load(t).Breaches() {
		clean[b.String()] = true
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/*.txt: %d files, %v", len(files), err)
	}
	walls := map[int]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			broken, want, wall := breakage(t, file)
			walls[wall] = true
			for _, g := range Guards { // one by one: most rows need few of them
				for _, b := range g.Guard(broken) {
					if !clean[b.String()] && b.Wall == wall && strings.Contains(b.String(), want) {
						return
					}
				}
			}
			t.Errorf("no breach of wall %d with %q; reported: %v", wall, want, broken.Breaches())
		})
	}
	for wall := 1; wall <= 13; wall++ {
		if !walls[wall] && wall != 11 {
			t.Errorf("wall %d has no row that breaks it", wall)
		}
	}
	if got := rebuildTest(load(t).Without("nomadish/state")); len(got) != 1 || got[0].Wall != 11 {
		t.Errorf("state without its test of a rebuilt World: reported %v", got)
	}
}

// breakage reads a row: the first line is `// PATH: wall N: WANT`, the rest the file.
func breakage(t *testing.T, file string) (*Tree, string, int) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^// (\S+): wall (\d+): (.+)\n`).FindStringSubmatch(string(src))
	if m == nil {
		t.Fatalf("%s: the first line must be `// PATH: wall N: WANT`", file)
	}
	wall := 0
	for _, c := range m[2] {
		wall = wall*10 + int(c-'0')
	}
	broken, err := load(t).With(m[1], string(src))
	if err != nil {
		t.Fatal(err)
	}
	return broken, m[3], wall
}

// TestAllowedLoops shows what the guard of map order lets be, and what it does not.
func TestAllowedLoops(t *testing.T) {
	f := func(body string, want int) {
		t.Helper()
		tr, err := load(t).With("nomadish/fsm/zz_loop.go", "package fsm\n\nimport \"slices\"\n\nfunc zzLoop(m map[string]int) (keys []string, n int) {\n"+body+"\n_ = slices.Sort[[]string]\nreturn keys, n\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, b := range mapOrder(tr) {
			if strings.Contains(b.Where, "zz_loop") {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d breaches, want %d", body, got, want)
		}
	}
	f("for k := range m { keys = append(keys, k) }", 1)
	f("for k := range m { keys = append(keys, k) }\nslices.Sort(keys)", 0)
	f("for k := range m { keys = append(keys, k); n++ }\nslices.Sort(keys)", 1)
	f("for _, v := range m { n += v } // order does not matter: a sum", 0)
	f("// order does not matter: a sum\nfor _, v := range m { n += v }", 0)
	f("for _, v := range m { n += v } // order does not matter", 1)
	f("for range keys { n++ }", 0)
}

// TestOpenFields shows what the guard of World's fields sees.
func TestOpenFields(t *testing.T) {
	f := func(name string, want bool) {
		t.Helper()
		if got := openFields(load(t), "scheduler/internal/world", name); (len(got) > 0) != want {
			t.Errorf("%s: %v, want breaches: %v", name, got, want)
		}
	}
	f("World", false)
	f("NodeState", true)
	f("Gone", true)
}

// TestInterfaceCeiling counts embedded methods too.
func TestInterfaceCeiling(t *testing.T) {
	f := func(decl string, want int) {
		t.Helper()
		tr, err := load(t).With("command/ui/zz_wide.go", "package ui\n\n"+decl+"\n")
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, b := range wideInterfaces(tr) {
			if strings.Contains(b.Where, "zz_wide") {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d breaches, want %d", decl, got, want)
		}
	}
	f("type five interface{ A(); B(); C(); D(); E() }", 0)
	f("type six interface{ A(); B(); C(); D(); E(); F() }", 1)
	f("type sum interface{ three; other }\ntype three interface{ A(); B(); C() }\ntype other interface{ D(); E(); F() }", 1)
	f("func take(x interface{ A(); B(); C(); D(); E(); F() }) {}", 1)
}

// TestLinksOfLibraries sees what only a library brings into the binary.
func TestLinksOfLibraries(t *testing.T) {
	tr := &Tree{
		Module: "m",
		pkgs:   map[string]*Package{"": {Imports: []string{"m/a"}}, "a": {Path: "a", Imports: []string{"fmt", "lib/x"}}, "unlinked": {Imports: []string{"pgregory.net/rapid"}}},
		deps:   map[string][]string{"lib/x": {"fmt", "lib/y"}, "lib/y": {"lib/x", "github.com/Masterminds/sprig/v3"}},
	}
	got := forbiddenLinks(tr)
	if len(got) != 1 || !strings.HasPrefix(got[0].String(), "wall 12: a: links m/a → lib/x → lib/y → github.com/Masterminds/sprig/v3: ") {
		t.Errorf("reported %v", got)
	}
}

// TestPackageDocs requires of every package a doc comment that states its purpose.
func TestPackageDocs(t *testing.T) {
	for _, p := range load(t).Packages() {
		text, files := "", 0
		for _, f := range p.Files {
			files++
			if f.Doc != nil {
				text += f.Doc.Text()
			}
		}
		if files == 0 { // a package of tests only
			continue
		}
		name := p.Files[0].Name.Name
		switch {
		case text == "":
			t.Errorf("%s: no file has a package comment", p.Path)
		case name == "main":
		case !strings.HasPrefix(text, "Package "+name+" "):
			t.Errorf("%s: its comment must begin with %q", p.Path, "Package "+name+" ")
		case utf8.RuneCountInString(new(doc.Package).Synopsis(text)) < len("Package "+name)+20:
			t.Errorf("%s: its comment says too little: %q", p.Path, text)
		}
	}
}

// TestNoMachinePaths finds names of places that only exist on the machine where somebody happened to work.
func TestNoMachinePaths(t *testing.T) {
	bad := regexp.MustCompile(`(^|[^A-Za-z0-9_.$}-])/(wo` + `rk|fa` + `rm|tmp/br` + `ief|root/g` + `o)/`)
	root := load(t).Root
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "bin" || name == ".bench" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in a worktree
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.ContainsRune(string(text[:min(len(text), 1024)]), 0) {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if bad.MatchString(line) {
				rel, _ := filepath.Rel(root, path)
				t.Errorf("%s:%d names a path of one machine: %s", rel, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
