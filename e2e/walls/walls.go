package walls

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Breach is one place that breaks a wall.
type Breach struct {
	// Wall is its number in ARCHITECTURE.md; 0 is the order of the floors.
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
	{"floors", floors},
	{"imports", forbiddenImports},
	{"calls", forbiddenCalls},
	{"goroutines", goroutines},
	{"map order", mapOrder},
	{"writer", stateWriter},
	{"plan entry", planEntry},
	{"interfaces", wideInterfaces},
	{"memdb", memdbTypes},
	{"rebuild", rebuildTest},
	{"linked", forbiddenLinks},
}

// Breaches runs every guard.
func (t *Tree) Breaches() []Breach {
	var all []Breach
	for _, g := range Guards {
		all = append(all, g.Guard(t)...)
	}
	return all
}

// floor says which packages of ours a package may reach, near or far, beside those in its own list of patterns.
type floor struct {
	wall int
	from []string // these packages…
	not  []string // …but not those, which have a floor of their own
	may  []string
	why  string
}

// shared is what servers and clients share of the network.
var shared = []string{"structs", "internal/codec", "internal/wire", "internal/keyring", "internal/clientpool", "internal/certs", "internal/atomicfile"}

// The house, from the ground up. A package that stands on no floor is reported: a new room needs a place.
var house = []floor{
	{1, []string{"structs"}, nil, nil, "structs is the vocabulary and imports nobody"},
	{1, []string{"structs/..."}, []string{"structs"}, []string{"structs", "structs/acl"}, "what lies under structs knows only structs"},
	{1, []string{"internal/wire", "internal/keyring", "internal/clientpool", "internal/certs"}, nil, shared, "what servers and client share of the network knows only structs and itself"},
	{1, []string{"internal/codec"}, nil, nil, "how values are written needs nothing of ours"},
	{0, []string{"internal/atomicfile"}, nil, nil, "replacing a file needs nothing of ours"},
	{8, []string{"internal/simulation"}, nil, []string{"structs/...", "scheduler/...", "nomadish/*", "internal/*"}, "the simulation runs the parts, without the wiring"},
	{2, []string{"scheduler/bucket", "scheduler/cell", "scheduler/frag", "scheduler/preempt"}, nil, nil, "an algorithm knows none of its siblings; schedule.go is where they meet"},
	{2, []string{"scheduler/entitle/..."}, nil, []string{"scheduler/entitle/..."}, "an algorithm knows none of its siblings; schedule.go is where they meet"},
	{3, []string{"scheduler/..."}, algorithms, []string{"structs", "scheduler/..."}, "the scheduler is a function of a snapshot"},
	{5, []string{"nomadish/state"}, nil, []string{"structs", "scheduler/...", "internal/codec", "nomadish/state"}, "state stands on the scheduler's World and on nothing of the server"},
	{7, []string{"nomadish"}, nil, []string{"structs/...", "scheduler/...", "nomadish/...", "internal/*"}, "server and client meet only on the wire, and command wires the server, not the reverse"},
	{8, []string{"nomadish/..."}, []string{"nomadish", "nomadish/state"}, []string{"structs/...", "scheduler/...", "nomadish/*", "internal/*"}, "nobody but the wiring sees the server; its parts know neither client nor command"},
	{7, []string{"client"}, nil, []string{"structs/...", "client/...", "internal/*"}, "server and client meet only on the wire, and clients do not schedule"},
	{8, []string{"client/..."}, []string{"client", "client/sim"}, []string{"structs/...", "client/*", "internal/*"}, "nobody but the wiring sees the client; its parts know neither server nor command"},
	{7, []string{"client/sim"}, nil, []string{"structs/...", "client/...", "internal/*"}, "server and client meet only on the wire"},
	{10, []string{"api"}, nil, []string{"structs"}, "api speaks HTTP and knows only the vocabulary"},
	{0, []string{"command/jobspec/..."}, nil, []string{"structs", "command/jobspec/..."}, "parsing a job needs only the vocabulary"},
	{0, []string{"command/ui"}, nil, []string{"internal/printable"}, "showing things needs nothing of ours but what makes text printable"},
	{8, []string{"command/..."}, []string{"command", "command/jobspec/...", "command/ui"}, []string{"structs/...", "scheduler/...", "nomadish/...", "client/...", "api", "internal/*", "command/*"}, "command hands things down, it is not called back"},
	{0, []string{"command"}, nil, []string{"structs/...", "scheduler/...", "nomadish/...", "client/...", "api", "internal/*", "command/..."}, "command stands on everything but e2e"},
	{0, []string{""}, nil, []string{"command/...", "structs/...", "scheduler/...", "nomadish/...", "client/...", "api", "internal/*"}, "main hands its arguments to command"},
	{0, []string{"internal/descriptors"}, nil, nil, "keeping descriptors from other processes needs nothing of ours"},
	{0, []string{"internal/leaks"}, nil, nil, "a tool of all tests knows nothing of ours"},
	{0, []string{"internal/printable"}, nil, nil, "making text printable needs nothing of ours"},
	{0, []string{"internal/telemetry"}, nil, nil, "what metrics are needs nothing of ours"},
	{10, []string{"e2e/..."}, nil, []string{"structs", "api", "e2e/..."}, "e2e is black-box: the binary, the HTTP API, api and structs"},
}

var algorithms = []string{"scheduler/bucket", "scheduler/cell", "scheduler/frag", "scheduler/preempt", "scheduler/entitle/..."}

// Who may see the two types that hold everything. All else takes a small interface.
var wiring = []struct {
	pkg  string
	only []string
}{
	{"nomadish", []string{"command/agent"}},
	{"client", []string{"command/agent", "client/sim"}},
}

// only tells who may import internal/wire, the part of structs that does I/O.
var wireUsers = []string{"nomadish/...", "client/...", "command/...", "internal/clientpool", "internal/keyring", "internal/simulation"}

// A pattern "dir/*" in a floor's list means all below dir, but not dir itself.
func mayReach(pkg string, may []string) bool {
	for _, m := range may {
		if dir, ok := strings.CutSuffix(m, "/*"); ok {
			if strings.HasPrefix(pkg, dir+"/") {
				return true
			}
		} else if matches(pkg, m) {
			return true
		}
	}
	return false
}

func floors(t *Tree) []Breach {
	var found []Breach
	for _, p := range t.Packages() {
		f := floorOf(p.Path)
		if f == nil {
			found = append(found, Breach{0, p.Path, "stands on no floor of the house: give it one in e2e/walls"})
			continue
		}
		for _, dep := range sortedKeys(t.reach(p)) {
			chain := t.reach(p)[dep]
			direct := len(chain) == 2
			if !mayReach(dep, f.may) && (direct || mayReach(chain[len(chain)-2], f.may)) {
				found = append(found, Breach{f.wall, p.Path, "reaches " + strings.Join(chain, " → ") + ": " + f.why})
			}
		}
		for _, imp := range p.Imports {
			dep, ok := t.ours(imp)
			if !ok {
				continue
			}
			if dep == "internal/wire" && !matches(p.Path, wireUsers...) {
				found = append(found, Breach{1, p.Path, "imports internal/wire: only server, client and command talk over the network"})
			}
			for _, w := range wiring {
				if dep == w.pkg && !matches(p.Path, w.only...) {
					found = append(found, Breach{8, p.Path, "imports " + dep + ": only the wiring sees it whole; take a small interface"})
				}
			}
		}
		if matches(p.Path, "e2e/...") {
			for _, imp := range p.TestImports {
				if dep, ok := t.ours(imp); ok && !mayReach(dep, f.may) {
					found = append(found, Breach{f.wall, p.Path, "its tests import " + dep + ": " + f.why})
				}
			}
		}
	}
	return found
}

func floorOf(pkg string) *floor {
	for i, f := range house {
		if matches(pkg, f.from...) && !matches(pkg, f.not...) {
			return &house[i]
		}
	}
	return nil
}

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
	{wall: 2, from: algorithms, allow: []string{"cmp", "container/heap", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unique"}, why: "an algorithm needs little of the standard library and nothing else"},
	{wall: 3, from: []string{"scheduler/..."}, pkgs: slices.Concat(network, disk, logs, randomness, []string{"sync/...", "context", "runtime/..."}), why: "the scheduler is a function of a snapshot: no clock, chance, environment, log, lock, network or disk"},
	{wall: 4, from: []string{"nomadish/fsm", "nomadish/state"}, pkgs: slices.Concat(randomness, network), why: "replicas fed the same log must agree: IDs, times and seeds travel in the entry"},
	{wall: 9, from: []string{"..."}, not: []string{"nomadish/state"}, pkgs: []string{memdb}, why: "how state keeps its tables is its own affair"},
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
