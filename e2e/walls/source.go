package walls

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// The parts that must give the same answer wherever and whenever they run.
var (
	pure       = []string{"structs", "structs/acl", "scheduler/..."}
	replicated = []string{"nomadish/fsm", "nomadish/state/..."}
)

// clock are the functions of package time that read the clock or wait for it.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// mostMethods is how many methods an interface may have before it says "server" instead of what is needed.
const mostMethods = 5

// uses walks over every use of a name in the packages, in the order of the source.
func (t *Tree) uses(pkgs []*Package, visit func(p *Package, id *ast.Ident, obj types.Object)) {
	for _, p := range pkgs {
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if obj := p.info.Uses[id]; obj != nil {
						visit(p, id, obj)
					}
				}
				return true
			})
		}
	}
}

// forbiddenCalls finds the clock in what must not have one: walls 1, 3 and 4.
func forbiddenCalls(t *Tree) []Breach {
	var found []Breach
	t.uses(t.Match(slices.Concat(pure, replicated)...), func(p *Package, id *ast.Ident, obj types.Object) {
		fn, ok := obj.(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "time" || fn.Signature().Recv() != nil || !slices.Contains(clock, fn.Name()) {
			return
		}
		found = append(found, Breach{wallOf(p), t.at(id.Pos()), "uses time." + fn.Name() + ": take the time as an argument"})
	})
	return found
}

// goroutines finds go statements in the scheduler, and whatever starts any in its tests: wall 3. Those tests do not run under the race
// detector, as nothing in them can race.
func goroutines(t *Tree) []Breach {
	var found []Breach
	for _, p := range t.Match("scheduler/...") {
		for _, f := range p.Others {
			ast.Inspect(f, func(n ast.Node) bool {
				s, named := n.(*ast.SelectorExpr)
				if _, starts := n.(*ast.GoStmt); starts || named && (s.Sel.Name == "Parallel" || s.Sel.Name == "Go") {
					found = append(found, Breach{3, t.at(n.Pos()), "a test starts a goroutine: tests of the scheduler run without the race detector"})
				}
				return true
			})
		}
	}
	for _, p := range t.Match(pure...) {
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					found = append(found, Breach{wallOf(p), t.at(g.Pos()), "starts a goroutine: workers run many schedulers, a scheduler is one"})
				}
				return true
			})
		}
	}
	return found
}

// worldFields finds fields of World and Edit that others could read: wall 3.
func worldFields(t *Tree) []Breach {
	return append(openFields(t, "scheduler/internal/world", "World"), openFields(t, "scheduler/internal/world", "Edit")...)
}

// openFields finds the exported fields of a type.
func openFields(t *Tree, pkg, name string) []Breach {
	if gone := t.declared(pkg, name); gone != nil {
		return []Breach{{3, pkg, gone.Error()}}
	}
	fields, ok := t.pkgs[pkg].types.Scope().Lookup(name).Type().Underlying().(*types.Struct)
	if !ok {
		return []Breach{{3, pkg, name + " is no struct, and its guard sees nothing"}}
	}
	var found []Breach
	for v := range fields.Fields() {
		if v.Exported() {
			found = append(found, Breach{3, t.at(v.Pos()), name + " shows its field " + v.Name() + ": a World is read through its methods and the functions beside it"})
		}
	}
	return found
}

func wallOf(p *Package) int {
	switch {
	case matches(p.Path, replicated...):
		return 4
	case matches(p.Path, "scheduler/..."):
		return 3
	}
	return 1
}

// orderExcuse is the comment that lets a loop over a map be, on its line or on the one before, with the reason behind it.
const orderExcuse = "order does not matter: "

// mapOrder finds loops over maps in the replicated parts: wall 4. Fine are a loop that only collects what is sorted right
// after it, and one whose comment says why order does not matter.
func mapOrder(t *Tree) []Breach {
	var found []Breach
	for _, p := range t.Match(replicated...) {
		for _, f := range p.Files {
			excused := excusedLines(t, f)
			sorted := sortedLoops(f)
			ast.Inspect(f, func(n ast.Node) bool {
				loop, ok := n.(*ast.RangeStmt)
				if !ok || !overMap(p, loop.X) || sorted[loop] {
					return true
				}
				if line := t.fset.Position(loop.Pos()).Line; !excused[line] && !excused[line-1] {
					found = append(found, Breach{4, t.at(loop.Pos()), "loops over a map: sort its keys, or say why in a comment `// " + orderExcuse + "…`"})
				}
				return true
			})
		}
	}
	return found
}

// overMap reports whether ranging over x visits a map's entries, by itself or through package maps.
func overMap(p *Package, x ast.Expr) bool {
	if tv, ok := p.info.Types[x]; ok && tv.Type != nil {
		if _, ok := tv.Type.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj := p.info.Uses[sel.Sel]
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, obj.Name())
}

func excusedLines(t *Tree, f *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		if strings.Contains(group.Text(), orderExcuse) {
			lines[t.fset.Position(group.End()).Line] = true
		}
	}
	return lines
}

// sortedLoops finds the loops of the form `for … { x = append(x, …) }` that a sort of x follows in the same block.
func sortedLoops(f *ast.File) map[*ast.RangeStmt]bool {
	fine := map[*ast.RangeStmt]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		block, ok := n.(*ast.BlockStmt)
		if !ok {
			return true
		}
		for i, stmt := range block.List {
			loop, ok := stmt.(*ast.RangeStmt)
			if !ok || i+1 == len(block.List) {
				continue
			}
			if name := collects(loop); name != "" && sorts(block.List[i+1], name) {
				fine[loop] = true
			}
		}
		return true
	})
	return fine
}

// collects returns the name of the slice that the loop's only statement appends to.
func collects(loop *ast.RangeStmt) string {
	if len(loop.Body.List) != 1 {
		return ""
	}
	assign, ok := loop.Body.List[0].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return ""
	}
	to, ok := assign.Lhs[0].(*ast.Ident)
	if !ok {
		return ""
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok {
		return ""
	}
	if fn, ok := call.Fun.(*ast.Ident); !ok || fn.Name != "append" {
		return ""
	}
	return to.Name
}

// sorts reports whether the statement is a call of package slices or sort on the named slice.
func sorts(stmt ast.Stmt, name string) bool {
	expr, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := expr.X.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	arg, ok2 := call.Args[0].(*ast.Ident)
	return ok && ok2 && arg.Name == name && (pkg.Name == "slices" && strings.HasPrefix(sel.Sel.Name, "Sort") || pkg.Name == "sort")
}

// stateWriter finds hands on the state's writer other than those of state, fsm and the wirings, of a server and of the
// simulation: wall 5. It counts as a hand to name the type, to call one of its methods, or to hold a value of it.
func stateWriter(t *Tree) []Breach {
	const home, name = "nomadish/state", "Writer"
	if gone := t.declared(home, name); gone != nil {
		return []Breach{{5, home, gone.Error()}}
	}
	var found []Breach
	for _, p := range t.Packages() {
		if matches(p.Path, home, "nomadish/fsm", "nomadish", "internal/simulation") {
			continue
		}
		seen := map[int]bool{}
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				obj := p.info.Uses[id]
				if obj == nil {
					obj = p.info.Defs[id]
				}
				if obj == nil || !contains(obj.Type(), t.Module+"/"+home, name) {
					return true
				}
				if line := t.fset.Position(id.Pos()).Line; !seen[line] {
					seen[line] = true
					found = append(found, Breach{5, t.at(id.Pos()), id.Name + " holds or takes the state's writer: only fsm writes state"})
				}
				return true
			})
		}
	}
	return found
}

// contains reports whether a type is the named one, a pointer to it, or a function that has it as receiver, argument or result.
func contains(typ types.Type, pkg, name string) bool {
	switch typ := typ.(type) {
	case *types.Pointer:
		return contains(typ.Elem(), pkg, name)
	case *types.Named:
		return typ.Obj().Name() == name && typ.Obj().Pkg() != nil && typ.Obj().Pkg().Path() == pkg
	case *types.Signature:
		if typ.Recv() != nil && contains(typ.Recv().Type(), pkg, name) {
			return true
		}
		return tupleContains(typ.Params(), pkg, name) || tupleContains(typ.Results(), pkg, name)
	}
	return false
}

func tupleContains(tuple *types.Tuple, pkg, name string) bool {
	for v := range tuple.Variables() {
		if contains(v.Type(), pkg, name) {
			return true
		}
	}
	return false
}

// planEntry finds who, besides the plan applier, could commit placements: wall 6.
func planEntry(t *Tree) []Breach {
	const home = "structs"
	allowed := map[string][]string{
		"LogPlanApply":     {home, "nomadish/plan", "nomadish/fsm"},
		"LogWorkflowStart": {home, "nomadish/plan", "nomadish/fsm", "nomadish/workflow"}, // the driver looks whether servers know it
		"LogWorkflowRenew": {home, "nomadish/plan", "nomadish/fsm", "nomadish/workflow"},
	}
	var found []Breach
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if gone := t.declared(home, name); gone != nil {
			return []Breach{{6, home, gone.Error()}}
		}
	}
	t.uses(t.Packages(), func(p *Package, id *ast.Ident, obj types.Object) {
		if at := allowed[obj.Name()]; at == nil || obj.Pkg() == nil || obj.Pkg().Path() != t.Module+"/"+home || matches(p.Path, at...) {
			return
		}
		found = append(found, Breach{6, t.at(id.Pos()), "uses " + obj.Name() + ": only the plan applier commits placements"})
	})
	return found
}

// declared guards the guards: one that looks for a name which is gone would see nothing for ever.
func (t *Tree) declared(pkg, name string) error {
	if p := t.pkgs[pkg]; p == nil || p.types == nil || p.types.Scope().Lookup(name) == nil {
		return fmt.Errorf("%s.%s is not declared: its guard in e2e/walls looks for that name", pkg, name)
	}
	return nil
}

// wideInterfaces finds interfaces with too many methods, embedded ones counted: wall 8.
func wideInterfaces(t *Tree) []Breach {
	var found []Breach
	for _, p := range t.Packages() {
		for _, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.InterfaceType)
				if !ok {
					return true
				}
				typ, ok := p.info.Types[lit].Type.(*types.Interface)
				if ok && typ.NumMethods() > mostMethods {
					found = append(found, Breach{8, t.at(lit.Pos()), fmt.Sprintf("an interface of %d methods: at most %d, declared where they are used", typ.NumMethods(), mostMethods)})
				}
				return true
			})
		}
	}
	return found
}

// memdbTypes finds go-memdb's types in what nomadish/state shows to others: wall 9.
func memdbTypes(t *Tree) []Breach {
	p := t.pkgs["nomadish/state"]
	if p == nil || p.types == nil {
		return []Breach{{9, "nomadish/state", "the package is gone, and its guard sees nothing"}}
	}
	var found []Breach
	for _, name := range p.types.Scope().Names() {
		obj := p.types.Scope().Lookup(name)
		if obj.Exported() && shows(obj, memdb) {
			found = append(found, Breach{9, t.at(obj.Pos()), name + " shows a type of go-memdb: how state keeps its tables is its own affair"})
		}
	}
	return found
}

// shows reports whether an exported declaration has a type of the package in a signature, an exported field or a method.
func shows(obj types.Object, pkg string) bool {
	if from(obj.Type(), pkg) {
		return true
	}
	named, ok := obj.Type().(*types.Named)
	if !ok {
		return false
	}
	for m := range named.Methods() {
		if m.Exported() && from(m.Type(), pkg) {
			return true
		}
	}
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for v := range fields.Fields() {
		if v.Exported() && from(v.Type(), pkg) {
			return true
		}
	}
	return false
}

// from reports whether a type is, or is built from, one that the package declares.
func from(typ types.Type, pkg string) bool {
	// TypeString spells every named type with its full path, however deep it sits.
	_, isNamed := typ.(*types.Named)
	text := types.TypeString(typ, nil)
	return !isNamed && strings.Contains(text, pkg+".") || isNamed && strings.HasPrefix(text, pkg+".")
}

// rebuildTest finds whether the proof of wall 11 is there: a test in state that compares the World moved on step by step
// with the World rebuilt from the tables. The test itself runs with all others.
func rebuildTest(t *Tree) []Breach {
	for _, p := range t.Match("nomadish/state") {
		for _, name := range p.TestFuncs {
			if strings.HasPrefix(name, "Test") && strings.Contains(name, "Rebuil") {
				return nil
			}
		}
	}
	return []Breach{{11, "nomadish/state", "has no test named Test…Rebuilt…: World moved on must equal World rebuilt"}}
}
