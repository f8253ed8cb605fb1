package walls

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Breach is one place that breaks a wall.
type Breach struct {
	// Wall is its number in ARCHITECTURE.md; 0 is the table of imports itself.
	Wall int
	// Where is file:line, or a package.
	Where string
	// What was found there, and why it must not be.
	What string
}

func (b Breach) String() string { return fmt.Sprintf("wall %d: %s: %s", b.Wall, b.Where, b.What) }

// Guards are all guards, each named for what it holds up.
var Guards = []struct {
	Name  string
	Guard func(*Tree) []Breach
}{
	{"imports", imports},
	{"links", linked},
	{"foreign imports", forbiddenImports},
	{"calls", forbiddenCalls},
	{"goroutines", goroutines},
	{"fields", worldFields},
	{"map order", mapOrder},
	{"writer", stateWriter},
	{"plan entry", planEntry},
	{"interfaces", wideInterfaces},
	{"memdb", memdbTypes},
	{"rebuild", rebuildTest},
	{"linked", forbiddenLinks},
	{"tests only", outsideTests},
	{"settings", unreadSettings},
	{"limits", limits},
}

// Breaches runs every guard.
func (t *Tree) Breaches() []Breach {
	var all []Breach
	for _, g := range Guards {
		all = append(all, g.Guard(t)...)
	}
	return all
}

var algorithms = []string{"scheduler/bucket", "scheduler/cell", "scheduler/frag", "scheduler/persist", "scheduler/preempt", "scheduler/entitle/..."}

// ban forbids packages outside the module.
type ban struct {
	wall  int
	from  []string
	not   []string
	pkgs  []string // exact paths, or "dir/..." patterns
	allow []string // when set, everything but these is forbidden
	why   string
}

var (
	network    = []string{"net", "net/http/...", "net/rpc/...", "net/smtp", "net/textproto"}
	disk       = []string{"os/...", "io/ioutil", "io/fs", "path/filepath", "syscall", "embed"}
	logs       = []string{"log/...", "github.com/hashicorp/go-hclog", "github.com/hashicorp/go-metrics/..."}
	randomness = []string{"math/rand/...", "crypto/rand", "hash/maphash", "github.com/google/uuid", "github.com/hashicorp/go-uuid"}
)

const memdb = "github.com/hashicorp/go-memdb"

var bans = []ban{
	{wall: 1, from: []string{"structs/..."}, pkgs: slices.Concat(network, disk, logs, randomness), why: "structs is data: no I/O, no clock, no chance"},
	{wall: 2, from: algorithms, allow: []string{"cmp", "container/heap", "errors", "fmt", "iter", "maps", "math", "math/bits", "path", "slices", "sort", "strconv", "strings", "time", "unique"}, why: "an algorithm needs little of the standard library and nothing else"},
	{wall: 3, from: []string{"scheduler/..."}, pkgs: slices.Concat(network, disk, logs, randomness, []string{"sync/...", "context", "runtime/..."}), why: "the scheduler is a function of a snapshot: no clock, chance, environment, log, lock, network or disk"},
	{wall: 4, from: replicated, pkgs: slices.Concat(randomness, network), why: "replicas fed the same log must agree: IDs, times and seeds travel in the entry"},
	{wall: 9, from: []string{"..."}, not: []string{"nomadish/state", "nomadish/state/internal/memtable"}, pkgs: []string{memdb}, why: "how state keeps its tables is its own affair"},
}

func forbiddenImports(t *Tree) []Breach {
	var found []Breach
	for _, b := range bans {
		for _, p := range t.Packages() {
			if b.from[0] != "..." && !matches(p.Path, b.from...) || matches(p.Path, b.not...) || p.Path == "" {
				continue
			}
			for _, imp := range p.Imports {
				_, ours := t.ours(imp)
				if matches(imp, b.pkgs...) || b.allow != nil && !ours && !matches(imp, b.allow...) {
					found = append(found, Breach{b.wall, p.Path, "imports " + imp + ": " + b.why})
				}
			}
		}
	}
	return found
}

// testOnly are packages that tests share: no code outside tests imports them, but that of one another.
var testOnly = []string{"e2e/harness", "internal/leaks", "internal/simulation", "internal/testcluster", "nomadish/endpoint/endpointtest"}

// outsideTests finds imports of what only tests may import: wall 10.
func outsideTests(t *Tree) []Breach {
	var found []Breach
	for _, p := range t.Packages() {
		if matches(p.Path, testOnly...) {
			continue
		}
		for _, dep := range t.oursOf(p.Imports) {
			if matches(dep, testOnly...) {
				found = append(found, Breach{10, p.Path, "imports " + dep + " outside its tests: only tests do"})
			}
		}
	}
	return found
}

// keptOut are packages that the binary does not link, although nothing is wrong with them where they belong. What a package
// makes when it is initialised, every command makes, however little it does.
var keptOut = []struct {
	pkgs []string
	why  string
}{
	{[]string{"github.com/hashicorp/cli", "github.com/Masterminds/..."}, "its initialisation costs every command a tenth of its start; command/dispatch.go finds and runs commands"},
	{[]string{"github.com/hashicorp/nomad/...", "pgregory.net/rapid", "go.uber.org/goleak"}, "it is for tests"},
	{[]string{"github.com/prometheus/client_golang/...", "github.com/hashicorp/go-metrics/prometheus"}, "every command would wait a millisecond for its initialisation; internal/telemetry writes Prometheus' format"},
}

// forbiddenLinks follows the imports of main through all packages, those of libraries too.
func forbiddenLinks(t *Tree) []Breach {
	var found []Breach
	seen := map[string]bool{}
	var walk func(pkg, owner string, chain []string)
	walk = func(pkg, owner string, chain []string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, k := range keptOut {
			if matches(pkg, k.pkgs...) {
				found = append(found, Breach{12, owner, "links " + strings.Join(chain, " → ") + ": " + k.why})
				return
			}
		}
		imports := t.deps[pkg]
		if dep, ours := t.ours(pkg); ours {
			owner, imports = dep, nil
			if p := t.pkgs[dep]; p != nil {
				imports = p.Imports
			}
		}
		for _, imp := range imports {
			walk(imp, owner, append(slices.Clone(chain), imp))
		}
	}
	walk(t.Module, "", nil)
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// at prints where a position is, as file:line.
func (t *Tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}
