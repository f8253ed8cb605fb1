package walls

import (
	"bufio"
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// wordsFile is the table of words that name nothing: see its head.
//
//go:embed words.txt
var wordsFile string

// word is one row of the table.
type word struct {
	instead string   // what the field says
	allowed []string // packages in which it means something else
}

// readWords reads the table: a line a word, "word | instead | packages", the last as Match takes them.
func readWords(text string) (map[string]word, error) {
	words := map[string]word{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("words.txt: %q has %d columns, not 3", line, len(cells))
		}
		for name := range strings.FieldsSeq(cells[0]) {
			if _, twice := words[name]; twice {
				return nil, fmt.Errorf("words.txt: %q stands there twice", name)
			}
			words[name] = word{strings.TrimSpace(cells[1]), strings.Fields(cells[2])}
		}
	}
	return words, nil
}

// bannedNames finds declarations in a file whose name contains a word of the table. It adds the words that only their
// packages' exceptions allowed to used, so that an exception that nothing needs is seen.
func bannedNames(fset *token.FileSet, pkg string, f *ast.File, words map[string]word, used map[string]bool) []Breach {
	var found []Breach
	for _, id := range declaredNames(f) {
		for _, part := range splitName(id.Name) {
			w, banned := words[part]
			switch {
			case !banned:
			case matches(pkg, w.allowed...):
				for _, pattern := range w.allowed {
					if matches(pkg, pattern) {
						used[part+" "+pattern] = true
					}
				}
			default:
				p := fset.Position(id.Pos())
				found = append(found, Breach{14, fmt.Sprintf("%s:%d", p.Filename, p.Line), fmt.Sprintf("%s: %q is not a word of ours: %s", id.Name, part, w.instead)})
			}
		}
	}
	return found
}

// declaredNames returns the names that a file declares, in the order of the source: its own, and those of parameters,
// fields and variables. Names that it only uses may be others'.
func declaredNames(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				names = append(names, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			add(n.Name)
		case *ast.ImportSpec:
			if n.Name != nil {
				add(n.Name)
			}
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.LabeledStmt:
			add(n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return slices.CompactFunc(names, func(a, b *ast.Ident) bool { return a == b })
}

// splitName returns the words of a name in lower case: "HTTPNodeOf" is http, node and of.
func splitName(name string) []string {
	runes := []rune(name)
	var words []string
	begin := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !unicode.IsUpper(runes[i]) && unicode.IsLetter(runes[i]) == unicode.IsLetter(runes[i-1]) {
			continue
		}
		if i < len(runes) && unicode.IsUpper(runes[i]) && unicode.IsUpper(runes[i-1]) && (i+1 == len(runes) || !unicode.IsLower(runes[i+1])) {
			continue
		}
		if w := strings.ToLower(string(runes[begin:i])); strings.IndexFunc(w, unicode.IsLetter) >= 0 {
			words = append(words, w)
		}
		begin = i
	}
	return words
}
