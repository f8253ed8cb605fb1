package walls

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed imports.txt
var importsText string

// row is one package of the table of imports.
type row struct {
	pkg  string // "" for the module's root
	may  []string
	wall int
	why  string
}

// table reads the table of imports. Its errors are about the table alone; what it states about packages is compared with them by
// [imports].
func table(text string) ([]row, error) {
	var rows []row
	group := row{wall: -1}
	known := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if head, ok := strings.CutPrefix(line, "["); ok {
			if n, err := fmt.Sscanf(head, "%d", &group.wall); n != 1 {
				return nil, fmt.Errorf("imports.txt:%d: a group begins with the number of its wall: %w", i+1, err)
			}
			_, group.why, _ = strings.Cut(strings.TrimSuffix(head, "]"), " ")
			continue
		}
		pkg, may, ok := strings.Cut(line, ":")
		if !ok || group.wall < 0 || known[pkg] {
			return nil, fmt.Errorf("imports.txt:%d: want `package: what it imports`, each package once, within a group: %q", i+1, line)
		}
		r := row{pkg, strings.Fields(may), group.wall, group.why}
		for _, m := range r.may {
			if !known[m] {
				return nil, fmt.Errorf("imports.txt:%d: %s may import only what stands above it, and %s does not", i+1, pkg, m)
			}
		}
		known[pkg] = true
		if pkg == "." {
			r.pkg = ""
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// imports holds the packages of the module against the table: each package has a row, each row a package, and a row names what
// its package imports, no more and no less.
func imports(t *Tree) []Breach {
	rows, err := table(importsText)
	if err != nil {
		return []Breach{{0, "e2e/walls/imports.txt", err.Error()}}
	}
	return t.compare(rows)
}

func (t *Tree) compare(rows []row) []Breach {
	var found []Breach
	listed := map[string]bool{}
	for _, r := range rows {
		listed[r.pkg] = true
		p := t.pkgs[r.pkg]
		if p == nil {
			found = append(found, Breach{0, "e2e/walls/imports.txt", "the row " + r.pkg + " names no package: remove it"})
			continue
		}
		has := t.oursOf(p.Imports)
		if matches(r.pkg, "e2e/...") {
			has = append(has, t.oursOf(p.TestImports)...)
		}
		for _, dep := range has {
			if dep != r.pkg && !slices.Contains(r.may, dep) {
				found = append(found, Breach{r.wall, p.Path, "imports " + dep + ", which its row in e2e/walls/imports.txt does not name: " + r.why})
			}
		}
		for _, dep := range r.may {
			if !slices.Contains(has, dep) {
				found = append(found, Breach{r.wall, p.Path, "does not import " + dep + ", which its row in e2e/walls/imports.txt names: remove it there"})
			}
		}
	}
	for _, p := range t.Packages() {
		if !listed[p.Path] {
			found = append(found, Breach{0, p.Path, "has no row in e2e/walls/imports.txt: a new package needs a place in the house"})
		}
	}
	return found
}

// oursOf returns those of the import paths that are of the module, by their paths within it, each once.
func (t *Tree) oursOf(paths []string) []string {
	var own []string
	for _, path := range paths {
		if dep, ok := t.ours(path); ok && !slices.Contains(own, dep) {
			own = append(own, dep)
		}
	}
	return own
}

// link forbids packages that must not even be reached through others.
type link struct {
	wall int
	from []string
	pkgs []string // ours by their path within the module
	why  string
}

var links = []link{
	{1, []string{"structs"}, []string{"net", "net/http", "crypto/tls"}, "structs is data and does not link the network"},
	{3, []string{"scheduler/..."}, []string{"net", "net/http", "crypto/tls"}, "the scheduler is a function of a snapshot"},
	{4, []string{"nomadish/fsm", "nomadish/state/...", "internal/codec", "client/state"}, []string{"internal/wire", "github.com/hashicorp/yamux"}, "what keeps the state does not link the network of ours"},
}

// linked finds packages that are reached, near or far, where they must not be.
func linked(t *Tree) []Breach {
	var found []Breach
	for _, l := range links {
		for _, p := range t.Match(l.from...) {
			for _, pkg := range l.pkgs {
				if chain := t.chain(p.Path, pkg); chain != nil {
					found = append(found, Breach{l.wall, p.Path, "links " + strings.Join(chain, " → ") + ": " + l.why})
				}
			}
		}
	}
	return found
}

// chain returns the imports by which a package of ours reaches another, the shortest there are; nil: it does not. Packages of
// ours go by their paths within the module.
func (t *Tree) chain(from, to string) []string {
	before := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at == to && at != from {
			chain := []string{at}
			for at != from {
				at = before[at]
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		imports := t.deps[at]
		if p := t.pkgs[at]; p != nil {
			imports = p.Imports
		}
		for _, dep := range imports {
			if own, ok := t.ours(dep); ok {
				dep = own
			}
			if _, seen := before[dep]; !seen {
				before[dep] = at
				next = append(next, dep)
			}
		}
	}
	return nil
}
