package walls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tree is the module's source as the guards see it. It is not changed once made; With returns a changed copy.
type Tree struct {
	// Module is the module's path, the first part of every package's path.
	Module string
	// Root is the folder that holds go.mod.
	Root string

	pkgs   map[string]*Package
	deps   map[string][]string // what packages that are not ours import, by their paths
	fset   *token.FileSet
	export types.Importer // of packages that are not ours
}

// Package is one package of the module.
type Package struct {
	// Path is the import path without the module, "" for the module's root.
	Path string
	// Imports are the full paths that the package imports outside its tests, sorted.
	Imports []string
	// TestImports are those that only its tests import.
	TestImports []string
	// Files is the syntax of the package outside its tests, with comments.
	Files []*ast.File
	// Others is the syntax of the files without types here: tests, and files of builds with other tags.
	Others []*ast.File
	// TestFuncs are the names of the top-level functions of its tests.
	TestFuncs []string

	types *types.Package
	info  *types.Info
}

// listed is what `go list -json` prints about a package, as far as it is needed.
type listed struct {
	ImportPath   string
	Dir          string
	Export       string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	// IgnoredGoFiles are left out of this build by their tags.
	IgnoredGoFiles []string
	Imports        []string
	TestImports    []string
	XTestImports   []string
}

// Load reads the module that holds the folder dir. Its own packages need not compile; those that are not ours are
// compiled where their types are not known yet. The paths in also name packages to have at hand although nobody
// imports them.
func Load(dir string, also ...string) (*Tree, error) {
	mod, err := goCmd(dir, "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return nil, err
	}
	module, root, _ := strings.Cut(strings.TrimSpace(string(mod)), " ")
	own, err := list(root, "-e", "./...")
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: module, Root: root, pkgs: map[string]*Package{}, deps: map[string][]string{}, fset: token.NewFileSet()}
	foreign := map[string]bool{}
	for _, l := range own {
		p, err := t.read(l)
		if err != nil {
			return nil, err
		}
		t.pkgs[p.Path] = p
		for _, imp := range slices.Concat(p.Imports, also) {
			if _, ours := t.ours(imp); !ours && imp != "C" && imp != "unsafe" {
				foreign[imp] = true
			}
		}
	}
	known, err := list(root, append([]string{"-e", "-deps", "-export"}, sortedKeys(foreign)...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range known {
		exports[l.ImportPath] = l.Export
		t.deps[l.ImportPath] = l.Imports
	}
	t.export = importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("types of %s: not listed", path)
		}
		return os.Open(exports[path])
	})
	for _, p := range t.Packages() {
		t.check(p)
	}
	return t, nil
}

func list(dir string, args ...string) ([]listed, error) {
	out, err := goCmd(dir, append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"}, args...)...)
	if err != nil {
		return nil, err
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		all = append(all, l)
	}
}

func goCmd(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return out, nil
}

// Packages returns the packages in the order of their paths.
func (t *Tree) Packages() []*Package {
	return slices.SortedFunc(maps.Values(t.pkgs), func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
}

// Match returns the packages whose path is one of the patterns. A pattern that ends in "/..." matches the folder itself
// and all below it.
func (t *Tree) Match(patterns ...string) []*Package {
	var found []*Package
	for _, p := range t.Packages() {
		if matches(p.Path, patterns...) {
			found = append(found, p)
		}
	}
	return found
}

func matches(pkg string, patterns ...string) bool {
	for _, pattern := range patterns {
		dir, deep := strings.CutSuffix(pattern, "/...")
		if pkg == dir || deep && strings.HasPrefix(pkg, dir+"/") {
			return true
		}
	}
	return false
}

// ours is the path within the module of an import path, and whether it is of the module at all.
func (t *Tree) ours(importPath string) (string, bool) {
	if importPath == t.Module {
		return "", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// With returns a copy of the tree in which the file (path from the module's root, like "structs/x.go") holds src besides
// what is there. It serves the test of the guards themselves.
func (t *Tree) With(file, src string) (*Tree, error) {
	f, err := parser.ParseFile(t.fset, file, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(file)
	p := &Package{Path: dir}
	if old := t.pkgs[dir]; old != nil {
		*p = *old
	}
	var imports []string
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		imports = append(imports, name)
	}
	c := *t
	c.pkgs = maps.Clone(t.pkgs)
	c.pkgs[dir] = p
	if strings.HasSuffix(file, "_test.go") {
		p.TestImports = append(slices.Clone(p.TestImports), imports...)
		p.Others = append(slices.Clone(p.Others), f)
		return &c, nil
	}
	p.Imports = append(slices.Clone(p.Imports), imports...)
	p.Files = append(slices.Clone(p.Files), f)
	p.types = nil
	c.check(p)
	return &c, nil
}

// Without returns a copy of the tree in which the package has no test functions.
func (t *Tree) Without(pkg string) *Tree {
	c := *t
	c.pkgs = maps.Clone(t.pkgs)
	if old := t.pkgs[pkg]; old != nil {
		p := *old
		p.TestFuncs = nil
		c.pkgs[pkg] = &p
	}
	return &c
}

// read parses the files of a package of ours.
func (t *Tree) read(l listed) (*Package, error) {
	rel, _ := t.ours(l.ImportPath)
	p := &Package{Path: rel, Imports: l.Imports, TestImports: slices.Concat(l.TestImports, l.XTestImports)}
	slices.Sort(p.TestImports)
	for _, name := range l.GoFiles {
		f, err := t.parse(l.Dir, name)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, f)
	}
	for _, name := range slices.Concat(l.TestGoFiles, l.XTestGoFiles) {
		f, err := t.parse(l.Dir, name)
		if err != nil {
			return nil, err
		}
		p.Others = append(p.Others, f)
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				p.TestFuncs = append(p.TestFuncs, fn.Name.Name)
			}
		}
	}
	for _, name := range l.IgnoredGoFiles {
		f, err := t.parse(l.Dir, name)
		if err != nil {
			return nil, err
		}
		p.Others = append(p.Others, f)
	}
	return p, nil
}

// parse names a file by its path from the root, which is how breaches are reported.
func (t *Tree) parse(dir, name string) (*ast.File, error) {
	full := filepath.Join(dir, name)
	src, err := os.ReadFile(full)
	if err != nil {
		return nil, err
	}
	short, err := filepath.Rel(t.Root, full)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(t.fset, filepath.ToSlash(short), src, parser.ParseComments)
}

// check finds the types of a package of ours, and of those of ours that it imports. A file that does not compile is the
// compiler's to report: here it only leaves types unknown.
func (t *Tree) check(p *Package) *types.Package {
	if p.types != nil {
		return p.types
	}
	// Where packages import each other in a circle, the second one to be requested is taken as it is by then: empty.
	p.types = types.NewPackage(t.Module+"/"+p.Path, "")
	p.info = &types.Info{
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{},
	}
	conf := types.Config{Importer: importFunc(t.importTypes), Error: func(error) {}}
	p.types, _ = conf.Check(t.Module+"/"+p.Path, t.fset, p.Files, p.info)
	return p.types
}

func (t *Tree) importTypes(name string) (*types.Package, error) {
	if dir, ok := t.ours(name); ok {
		if p := t.pkgs[dir]; p != nil {
			return t.check(p), nil
		}
		return nil, fmt.Errorf("no package %s", name)
	}
	return t.export.Import(name)
}

type importFunc func(string) (*types.Package, error)

func (f importFunc) Import(name string) (*types.Package, error) { return f(name) }
