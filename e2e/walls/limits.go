package walls

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// The limits of size: wall 12. What outgrows one is divided by meaning; only a limit that no division can meet is raised, for all.
const (
	mostPackageLines  = 5000 // of a package's code
	mostFileLines     = 600  // of a file, of tests or not
	mostFuncLines     = 70   // of a function, between its braces
	mostTestFuncLines = 100  // of a function of tests, without the rows of its tables
	mostTypeMethods   = 60   // of a type, as methodsOf counts
	mostDependencies  = 12   // of a set of them, as dependencies counts
	mostSettings      = 30   // of a configuration, as settings counts
)

// unlimited are the packages whose number of lines means nothing: they have a file for each command or resource, and grow with
// their number. All other limits hold for them.
var unlimited = []string{"command", "structs"}

// outgrown is what is beyond a limit and known to be, with its count, which may only get smaller. An entry that is higher than
// what is counted, or not needed any more, is a breach itself.
var outgrown = map[string]int{}

// size is what was counted of one thing that has a limit.
type size struct {
	of    string // what was counted, of what: "methods of nomadish.Server"
	where string
	count int
	most  int
	why   string
}

// limits finds what is larger than its kind may be: wall 12.
func limits(t *Tree) []Breach { return beyond(t.sizes(), outgrown) }

// beyond finds the sizes that are over their limits or over what is known of them, and what is known that is so no more.
func beyond(sizes []size, known map[string]int) []Breach {
	var found []Breach
	counted, limit := map[string]int{}, map[string]int{}
	for _, s := range sizes {
		counted[s.of], limit[s.of] = s.count, s.most
		if most := max(s.most, known[s.of]); s.count > most {
			found = append(found, Breach{12, s.where, fmt.Sprintf("%d %s, at most %d: %s", s.count, s.of, most, s.why)})
		}
		if s.count <= s.most && known[s.of] > 0 {
			found = append(found, Breach{12, s.where, fmt.Sprintf("%d %s, within the limit of %d: remove the entry in outgrown of e2e/walls/limits.go", s.count, s.of, s.most)})
		}
	}
	for _, of := range sortedKeys(known) {
		n, ok := counted[of]
		if !ok {
			found = append(found, Breach{12, of, "is not there any more: remove the entry in outgrown of e2e/walls/limits.go"})
		} else if n < known[of] && n > limit[of] {
			found = append(found, Breach{12, of, fmt.Sprintf("are %d by now, not %d: lower the entry in outgrown of e2e/walls/limits.go", n, known[of])})
		}
	}
	return found
}

// sizes counts everything that has a limit, in the order of the packages.
func (t *Tree) sizes() []size {
	var all []size
	for _, p := range t.Packages() {
		all = append(all, t.sizesOf(p)...)
	}
	return all
}

// sizesOf counts what has a limit in one package.
func (t *Tree) sizesOf(p *Package) []size {
	all := t.linesOf(p)
	if p.types == nil {
		return all
	}
	methods := methodsOf(t, p)
	for _, name := range p.types.Scope().Names() {
		typ, ok := p.types.Scope().Lookup(name).(*types.TypeName)
		if !ok || typ.IsAlias() {
			continue
		}
		of, where := p.Path+"."+name, t.at(typ.Pos())
		all = append(all, size{"methods of " + of, where, methods[typ], mostTypeMethods, "divide the type into those that it plays"})
		fields, ok := typ.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		if setOfNeeds.MatchString(name) {
			all = append(all, size{"dependencies in " + of, where, dependencies(t, fields), mostDependencies, "a part that needs more is several parts"})
		}
		if configuration.MatchString(name) {
			all = append(all, size{"settings of " + of, where, settings(t, fields), mostSettings, "compose it of the configurations of its parts"})
		}
	}
	return all
}

// linesOf counts the lines of a package, of its files and of their functions.
func (t *Tree) linesOf(p *Package) []size {
	var all []size
	lines := 0
	for _, f := range slices.Concat(p.Files, p.Others) {
		file := t.fset.File(f.FileStart)
		n := file.LineCount()
		most := mostTestFuncLines
		if !strings.HasSuffix(file.Name(), "_test.go") {
			lines, most = lines+n, mostFuncLines
		}
		all = append(all, size{"lines of " + file.Name(), file.Name(), n, mostFileLines, "divide it by what its declarations are about"})
		for _, decl := range f.Decls {
			all = append(all, t.functionLines(f, decl, most)...)
		}
	}
	if len(p.Files) > 0 && !slices.Contains(unlimited, p.Path) {
		all = append(all, size{"lines of package " + p.Path, p.Path, lines, mostPackageLines, "divide it into parts that know little of each other"})
	}
	return all
}

// functionLines counts the lines of a function between its braces, without those of comments: of a declared one with the function
// literals in it, or of the literals that a variable holds. Of a test, rows of tables are not counted.
func (t *Tree) functionLines(f *ast.File, decl ast.Decl, most int) []size {
	var all []size
	ast.Inspect(decl, func(n ast.Node) bool {
		var body *ast.BlockStmt
		name := "a function literal"
		switch n := n.(type) {
		case *ast.FuncDecl:
			name = n.Name.Name
			if r := receiver(n); r != "" {
				name = r + "." + name
			}
			body = n.Body
		case *ast.FuncLit:
			body = n.Body
		default:
			return true
		}
		if body != nil {
			lines := t.line(body.Rbrace) - t.line(body.Lbrace) - 1
			if lines > most { // most functions need no closer look
				lines -= t.notCounted(f, body, most == mostTestFuncLines)
			}
			all = append(all, size{"lines of the function " + name + " in " + t.fset.Position(n.Pos()).Filename, t.at(n.Pos()), lines, most, "name its steps, and make each a function"})
		}
		return false
	})
	return all
}

func (t *Tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// notCounted counts the lines in a block that hold nothing but comments, and in a test rows of tables.
func (t *Tree) notCounted(f *ast.File, block *ast.BlockStmt, test bool) int {
	code, out := map[int]bool{}, map[int]bool{}
	ast.Inspect(block, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.CommentGroup, *ast.Comment:
			return false
		}
		code[t.line(n.Pos())], code[t.line(n.End()-1)] = true, true
		return true
	})
	for _, group := range f.Comments {
		if group.Pos() < block.Lbrace || group.End() > block.Rbrace {
			continue
		}
		for line := t.line(group.Pos()); line <= t.line(group.End()); line++ {
			if !code[line] {
				out[line] = true
			}
		}
	}
	if test {
		for _, row := range tableRows(block) {
			for line := t.line(row.Pos()); line <= t.line(row.End()); line++ {
				out[line] = true
			}
		}
	}
	return len(out)
}

// tableRows finds the rows of the tables in a test: elements of a list or map that is written out, and calls, each a statement,
// of a function that the test itself declares for them.
func tableRows(block *ast.BlockStmt) []ast.Node {
	var rows []ast.Node
	local := map[string]bool{}
	ast.Inspect(block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					_, isFunc := n.Rhs[i].(*ast.FuncLit)
					local[id.Name] = local[id.Name] || isFunc
				}
			}
		case *ast.CompositeLit:
			switch n.Type.(type) {
			case *ast.ArrayType, *ast.MapType:
				for _, row := range n.Elts {
					rows = append(rows, row)
				}
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && local[id.Name] {
					rows = append(rows, n)
				}
			}
		}
		return true
	})
	return rows
}

// methodsOf counts the methods of a package's types: those that are declared, those of our types that it embeds, and the functions
// of the package whose first parameter is a pointer to the type, which are methods in another spelling. A function that is used as
// a value is none: it is a handler, made for the table that holds it.
func methodsOf(t *Tree, p *Package) map[*types.TypeName]int {
	counts := map[*types.TypeName]int{}
	handlers := usedAsValues(p)
	for _, name := range p.types.Scope().Names() {
		switch obj := p.types.Scope().Lookup(name).(type) {
		case *types.TypeName:
			if _, isInterface := obj.Type().Underlying().(*types.Interface); isInterface || obj.IsAlias() {
				continue
			}
			for m := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
				if pkg := m.Obj().Pkg(); pkg != nil && (pkg == p.types || m.Obj().Exported()) {
					if _, ours := t.ours(pkg.Path()); ours {
						counts[obj]++
					}
				}
			}
		case *types.Func:
			if params := obj.Signature().Params(); params.Len() > 0 && !handlers[obj] {
				if ptr, ok := params.At(0).Type().(*types.Pointer); ok {
					if named, ok := ptr.Elem().(*types.Named); ok && named.Obj().Pkg() == p.types {
						counts[named.Obj()]++
					}
				}
			}
		}
	}
	return counts
}

// usedAsValues are the functions that a package names without calling them there.
func usedAsValues(p *Package) map[types.Object]bool {
	values := map[types.Object]bool{}
	for _, f := range p.Files {
		called := map[*ast.Ident]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr: // comes before the name in it
				if id, ok := n.Fun.(*ast.Ident); ok {
					called[id] = true
				}
			case *ast.Ident:
				if fn, ok := p.info.Uses[n].(*types.Func); ok && !called[n] {
					values[fn] = true
				}
			}
			return true
		})
	}
	return values
}

var (
	// setOfNeeds are the names of structs that state what a part needs, and configuration of those that state how it is to work.
	setOfNeeds    = regexp.MustCompile(`(?i)(deps|parts|config|options)$`)
	configuration = regexp.MustCompile(`(Config|Options)$`)
)

// dependencies counts the fields that bring in something that works: an interface, a function, or a pointer to a struct that hides
// fields of its own. Fields of structs that are embedded count as well.
func dependencies(t *Tree, s *types.Struct) int {
	n := 0
	for f := range s.Fields() {
		if in := embedded(t, f); in != nil {
			n += dependencies(t, in)
			continue
		}
		switch typ := f.Type().Underlying().(type) {
		case *types.Interface:
			n++
		case *types.Signature:
			n++
		case *types.Pointer:
			if to, ok := typ.Elem().Underlying().(*types.Struct); ok && hides(to) {
				n++
			}
		}
	}
	return n
}

// settings counts the fields of a configuration, and those of structs that are embedded in it.
func settings(t *Tree, s *types.Struct) int {
	n := 0
	for f := range s.Fields() {
		if in := embedded(t, f); in != nil {
			n += settings(t, in)
		} else {
			n++
		}
	}
	return n
}

// embedded returns the struct of ours that a field embeds; nil: it embeds none.
func embedded(t *Tree, f *types.Var) *types.Struct {
	typ := f.Type()
	if ptr, ok := typ.(*types.Pointer); ok {
		typ = ptr.Elem()
	}
	named, ok := typ.(*types.Named)
	if !ok || !f.Embedded() || named.Obj().Pkg() == nil {
		return nil
	}
	if _, ours := t.ours(named.Obj().Pkg().Path()); !ours {
		return nil
	}
	s, _ := named.Underlying().(*types.Struct)
	return s
}

// hides reports whether a struct has fields that only its package sees.
func hides(s *types.Struct) bool {
	for f := range s.Fields() {
		if !f.Exported() {
			return true
		}
	}
	return false
}
