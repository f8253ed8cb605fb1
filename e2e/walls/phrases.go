package walls

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// phrasesFile is the table of what is written in no text: see its head.
//
//go:embed phrases.txt
var phrasesFile string

// phrases finds the words and phrases of the table in running text.
type phrases struct {
	pattern *regexp.Regexp    // any of them, whole words
	rows    map[string]phrase // in lower case, with single spaces
}

// phrase is one of them.
type phrase struct {
	instead string   // what the field says
	places  []string // packages and files in which it means something else
	texts   []string // that may contain it
}

// key names one of the row's exceptions.
func (p phrase) key(exception string) string { return p.instead + ": " + exception }

// readPhrases reads the table: lines "phrase, phrase | instead | exceptions", the last packages, files and quoted texts.
func readPhrases(text string) (*phrases, error) {
	p := &phrases{rows: map[string]phrase{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("phrases.txt: %q has %d columns, not 3", line, len(cells))
		}
		row := phrase{instead: strings.TrimSpace(cells[1])}
		for _, e := range splitCell(cells[2]) {
			quoted, err := strconv.Unquote(e)
			switch {
			case err == nil:
				row.texts = append(row.texts, quoted)
			case strings.Contains(e, `"`):
				return nil, fmt.Errorf("phrases.txt: %s: an exception has no comma", e)
			default:
				row.places = append(row.places, e)
			}
		}
		for _, name := range splitCell(cells[0]) {
			if _, twice := p.rows[name]; twice {
				return nil, fmt.Errorf("phrases.txt: %q is listed twice", name)
			}
			p.rows[name] = row
		}
	}
	var all []string
	for name := range p.rows {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(name), " ", `\s+`))
	}
	slices.Sort(all)
	slices.Reverse(all) // of two that begin alike, the longer one first
	var err error
	p.pattern, err = regexp.Compile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	return p, err
}

// splitCell splits a cell at its commas.
func splitCell(cell string) (out []string) {
	for part := range strings.SplitSeq(cell, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// in finds them in a text that begins at a line of a file. It adds the exceptions that were needed to used.
func (p *phrases) in(file string, line int, text string, used map[string]bool) (found []Breach) {
	for _, at := range p.pattern.FindAllStringIndex(text, -1) {
		name := strings.ToLower(strings.Join(strings.Fields(text[at[0]:at[1]]), " "))
		row := p.rows[name]
		if i := slices.IndexFunc(row.places, func(place string) bool { return file == place || matches(packageOf(file), place) }); i >= 0 {
			used[row.key(row.places[i])] = true
		} else if i := slices.IndexFunc(row.texts, func(t string) bool { return within(text, t, at[0], at[1]) }); i >= 0 {
			used[row.key(row.texts[i])] = true
		} else {
			where := fmt.Sprintf("%s:%d", file, line+strings.Count(text[:at[0]], "\n"))
			found = append(found, Breach{14, where, fmt.Sprintf("%q is not a word of ours: %s", name, row.instead)})
		}
	}
	return found
}

// within reports whether text[from:to] lies in an occurrence of part.
func within(text, part string, from, to int) bool {
	for begin := max(0, to-len(part)); begin <= from && begin+len(part) <= len(text); begin++ {
		if text[begin:begin+len(part)] == part {
			return true
		}
	}
	return false
}

// packageOf returns the folder of a file, as packages are named here.
func packageOf(file string) string {
	return strings.TrimSuffix(file[:strings.LastIndex(file, "/")+1], "/")
}

// inSource finds them in a file's comments and string literals.
func (p *phrases) inSource(fset *token.FileSet, file string, f *ast.File, used map[string]bool) (found []Breach) {
	for _, group := range f.Comments {
		var lines []string
		first := fset.Position(group.Pos()).Line
		for _, c := range group.List {
			for len(lines) < fset.Position(c.Pos()).Line-first {
				lines = append(lines, "")
			}
			for line := range strings.SplitSeq(c.Text, "\n") {
				lines = append(lines, strings.TrimLeft(line, "/* \t"))
			}
		}
		found = append(found, p.in(file, first, strings.Join(lines, "\n"), used)...)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			found = append(found, p.in(file, fset.Position(lit.Pos()).Line, lit.Value, used)...)
		}
		return true
	})
	return found
}
