// Package doccomment reads doc comments from the source, so that pages of reference state what the code states. Only what generates and
// checks pages uses it: the binary has no source.
package doccomment

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Source is the source of a module, of which packages are read when something of them is looked up. It is for one goroutine.
type Source struct {
	root, module string
	packages     map[string]*pkg
}

// pkg is what is known of a package's comments.
type pkg struct {
	types  map[string]*structDoc
	consts []Const // in the order of the files' names and of their declaration
}

// Const is a constant of a package.
type Const struct {
	Name, Text string // its comment
	Value      string // as the source writes it; empty: it has none of its own
}

type structDoc struct {
	text   string
	fields map[string]string
}

// New returns the source of a module whose root is a directory.
func New(root, module string) *Source {
	return &Source{root: root, module: module, packages: map[string]*pkg{}}
}

// Type returns the comment of a named type, in one line; "": it has none.
func (s *Source) Type(t reflect.Type) (string, error) {
	d, err := s.structOf(t)
	if err != nil || d == nil {
		return "", err
	}
	return d.text, nil
}

// Field returns the comment of the field of a struct at an index, as [reflect.Type.FieldByIndex] takes it, in one line; "": it has none. A comment
// that begins with the names of several fields, as in "A, B and C are …", is each one's.
func (s *Source) Field(t reflect.Type, index []int) (string, error) {
	owner := t
	for _, i := range index[:len(index)-1] {
		if owner = owner.Field(i).Type; owner.Kind() == reflect.Pointer {
			owner = owner.Elem()
		}
	}
	d, err := s.structOf(owner)
	if err != nil || d == nil {
		return "", err
	}
	return d.fields[owner.Field(index[len(index)-1]).Name], nil
}

// Consts returns the constants of a package whose names a function chooses. The package's path is relative to the module's.
func (s *Source) Consts(path string, chosen func(name string) bool) ([]Const, error) {
	p, err := s.read(s.module + "/" + path)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(p.consts), func(c Const) bool { return !chosen(c.Name) }), nil
}

func (s *Source) structOf(t reflect.Type) (*structDoc, error) {
	if t.Name() == "" || t.PkgPath() != s.module && !strings.HasPrefix(t.PkgPath(), s.module+"/") {
		return nil, nil
	}
	p, err := s.read(t.PkgPath())
	if err != nil {
		return nil, err
	}
	return p.types[t.Name()], nil
}

// read reads the files of a package but for its tests.
func (s *Source) read(path string) (*pkg, error) {
	if p := s.packages[path]; p != nil {
		return p, nil
	}
	dir := filepath.Join(s.root, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, s.module), "/")))
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("package %s: no Go files in %s", path, dir))
	}
	p := &pkg{types: map[string]*structDoc{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err := p.parse(name); err != nil {
			return nil, fmt.Errorf("package %s: %w", path, err)
		}
	}
	s.packages[path] = p
	return p, nil
}

// parse adds what a file declares.
func (p *pkg) parse(name string) error {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range f.Decls {
		if general, ok := decl.(*ast.GenDecl); ok {
			p.add(general)
		}
	}
	return nil
}

func (p *pkg) add(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			d := &structDoc{text: text(spec.Doc, spec.Comment), fields: map[string]string{}}
			if d.text == "" {
				d.text = text(decl.Doc)
			}
			if in, ok := spec.Type.(*ast.StructType); ok {
				d.add(in)
			}
			p.types[spec.Name.Name] = d
		case *ast.ValueSpec:
			about := text(spec.Doc, spec.Comment)
			if about == "" && len(decl.Specs) == 1 {
				about = text(decl.Doc)
			}
			for i, name := range spec.Names {
				c := Const{Name: name.Name, Text: about}
				if i < len(spec.Values) {
					c.Value = source(spec.Values[i])
				}
				if decl.Tok == token.CONST {
					p.consts = append(p.consts, c)
				}
			}
		}
	}
}

// source returns an expression of constants as the source has it; "": it is another kind of expression.
func source(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return source(e.X) + "." + e.Sel.Name
	case *ast.BinaryExpr:
		return source(e.X) + " " + e.Op.String() + " " + source(e.Y)
	}
	return ""
}

func (d *structDoc) add(in *ast.StructType) {
	shared := map[string]string{}
	for _, f := range in.Fields.List {
		about := text(f.Doc, f.Comment)
		for _, name := range f.Names {
			d.fields[name.Name] = about
		}
		if len(f.Names) == 0 { // embedded
			d.fields[embeddedName(f.Type)] = about
		}
		for _, name := range Subjects(about) {
			shared[name] = about
		}
	}
	for name, about := range shared {
		if own, ok := d.fields[name]; ok && own == "" {
			d.fields[name] = about
		}
	}
}

func embeddedName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return embeddedName(t.X)
	}
	return ""
}

// text joins comments to one line.
func text(groups ...*ast.CommentGroup) string {
	var words []string
	for _, g := range groups {
		if g != nil {
			words = append(words, strings.Fields(g.Text())...)
		}
	}
	return strings.Join(words, " ")
}

var listed = regexp.MustCompile(`^[A-Z]\w*((?:, [A-Z]\w*)* (?:and|to) [A-Z]\w*) `)

// Subjects returns the names that a comment begins with, if it begins with several: "A, B and C are …".
func Subjects(about string) []string {
	found := listed.FindString(about)
	if found == "" {
		return nil
	}
	names := strings.FieldsFunc(found, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.DeleteFunc(names, func(name string) bool { return name == "and" || name == "to" })
}
