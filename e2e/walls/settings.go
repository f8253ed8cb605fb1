package walls

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// unreadSettings finds fields of configurations that nothing reads: wall 13. Whoever states such a setting is led to believe that
// it has an effect. A configuration is every struct named Config that is exported, with the structs of its package that it holds.
//
// The fields of an agent's files count as read outside their validation only, whose methods are those of the type checker there.
// The fields of another package's Config count as read in that package and below it only: who fills them in reads none. A
// struct that is converted as a whole is read as a whole.
func unreadSettings(t *Tree) []Breach {
	var found []Breach
	read := reads(t)
	for _, p := range t.Packages() {
		for _, f := range settingsOf(t, p) {
			if !isRead(p, read[f.Pos()]) {
				found = append(found, Breach{13, t.at(f.Pos()), "nothing reads the setting " + f.Name() + ": whoever states it is led to believe that it has an effect"})
			}
		}
	}
	return found
}

// agentFiles is the package of the settings that stand in an agent's files.
const agentFiles = "command/agent/config"

// isRead reports whether readers, which are packages, include one that counts for the Config of p.
func isRead(p *Package, readers map[string]bool) bool {
	for reader := range readers { // order does not matter: any will do
		if p.Path == agentFiles || matches(reader, p.Path+"/...") {
			return true
		}
	}
	return false
}

// settingsOf are the fields of a package's Config and of what it holds, in the order of the source. A field whose struct holds
// no values is none, nor one of which the agent says that it has no effect yet (later) or must not be stated (refused).
func settingsOf(t *Tree, p *Package) []*types.Var {
	if p.types == nil {
		return nil
	}
	root, ok := p.types.Scope().Lookup("Config").(*types.TypeName)
	if !ok {
		return nil
	}
	var found []*types.Var
	seen := map[types.Type]bool{} // whether they hold values
	var walk func(types.Type) bool
	walk = func(typ types.Type) (contains bool) {
		s, ok := typ.Underlying().(*types.Struct)
		if !ok {
			return true
		}
		if contains, again := seen[typ]; again {
			return contains
		}
		seen[typ] = true // for a struct that holds itself
		for i := range s.NumFields() {
			f := s.Field(i)
			if tag := s.Tag(i); !f.Exported() || strings.Contains(tag, ",later") || strings.Contains(tag, ",refused") {
				continue
			}
			in := containedStruct(p, f.Type())
			if in != nil && !walk(in) {
				continue
			}
			if in != nil && f.Embedded() { // its fields are read as if they were of this struct
				contains = true
				continue
			}
			contains = true
			found = append(found, f)
		}
		seen[typ] = contains
		return contains
	}
	if _, ok := root.Type().Underlying().(*types.Struct); ok {
		walk(root.Type())
	}
	return found
}

// containedStruct is the struct of p that a value of a type holds, through pointers, lists and maps; nil: it holds none.
func containedStruct(p *Package, typ types.Type) types.Type {
	for {
		switch u := typ.(type) {
		case *types.Pointer:
			typ = u.Elem()
		case *types.Slice:
			typ = u.Elem()
		case *types.Map:
			typ = u.Elem()
		case *types.Named:
			if _, ok := u.Underlying().(*types.Struct); ok && u.Obj().Pkg() == p.types {
				return u
			}
			return nil
		default:
			return nil
		}
	}
}

// reads are, by where a field is declared, the packages that read it outside validation.
func reads(t *Tree) map[token.Pos]map[string]bool {
	all := map[token.Pos]map[string]bool{}
	add := func(pos token.Pos, p *Package) {
		if all[pos] == nil {
			all[pos] = map[string]bool{}
		}
		all[pos][p.Path] = true
	}
	for _, p := range t.Packages() {
		for _, f := range p.Files {
			writes := map[*ast.Ident]bool{}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if p.Path == agentFiles && receiver(n) == "checker" {
						return false
					}
				case *ast.CallExpr:
					convertedWhole(p, n, func(field *types.Var) { add(field.Pos(), p) })
					noteWrites(n, writes)
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						noteWrite(to, writes)
					}
				case *ast.KeyValueExpr: // of a composite literal: a key that is a field is written
					noteWrite(n.Key, writes)
				case *ast.Ident:
					if v, ok := p.info.Uses[n].(*types.Var); ok && v.IsField() && !writes[n] {
						add(v.Pos(), p)
					}
				}
				return true
			})
		}
	}
	return all
}

// receiver is the name of the type that a method is of; empty: it is none.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// convertedWhole visits the fields of a struct that a conversion reads.
func convertedWhole(p *Package, call *ast.CallExpr, visit func(*types.Var)) {
	if tv, ok := p.info.Types[call.Fun]; !ok || !tv.IsType() || len(call.Args) != 1 {
		return
	}
	if from, ok := p.info.Types[call.Args[0]].Type.(*types.Named); ok {
		if s, ok := from.Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				visit(f)
			}
		}
	}
}

// noteWrites notes what a call of stated(&field, value) or orDefault(&field, value) writes.
func noteWrites(call *ast.CallExpr, writes map[*ast.Ident]bool) {
	if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != "stated" && id.Name != "orDefault" || len(call.Args) != 2 {
		return
	}
	if addr, ok := call.Args[0].(*ast.UnaryExpr); ok && addr.Op == token.AND {
		noteWrite(addr.X, writes)
	}
}

// noteWrite notes the field that an expression names, which is written there.
func noteWrite(to ast.Expr, writes map[*ast.Ident]bool) {
	switch to := to.(type) {
	case *ast.SelectorExpr:
		writes[to.Sel] = true
	case *ast.Ident:
		writes[to] = true
	}
}
