package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// consoleBlock finds what a guide shows of a terminal: commands after "$ ", and of the output of each the lines that matter, in their order. "…" in
// a line stands for anything, and eight hexadecimal digits for the ID that is printed there, in later commands too. A command that ends with
// "; echo $?" may fail; its exit code is the last line.
var consoleBlock = regexp.MustCompile("(?ms)^ *```console\n(.*?)^ *```$")

// changesSomething finds the commands of guides that run once, whatever they print.
var changesSomething = regexp.MustCompile(`^(job (init|run|scale|stop)|node (eligibility|pool (apply|delete))|system|tls|sim|alloc (suspend|resume)|eval delete|(vc|namespace|license) (apply|delete)|server join|` +
	`operator (scheduler set-config|snapshot|raft (info|logs|state)))\b`)

var (
	wordOrQuoted = regexp.MustCompile(`'([^']*)'|(\S+)`)
	commandLine  = regexp.MustCompile(`(?m)^ *\$ `)
	shownID      = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
)

// TestGuides runs the commands of guides' terminals in their order, and compares what they print with what the guide shows.
func TestGuides(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		name   string
		start  func(t *testing.T) *agent
		guides []string
	}{
		{"racks", simulates("racks.hcl", 4), []string{"gangs.md", "troubleshooting.md", "from-nomad.md", "gpus.md", "from-kueue-and-hived.md"}},
		{"machine", simulates("machine.hcl", 1), []string{"preemption-and-queue.md", "tls.md", "simulation.md"}},
		{"regions", twoRegions, []string{
			"one-machine.md", "licenses.md", "namespaces.md", "node-pools.md", "regions.md", "upgrading.md", "disaster-recovery.md", // which stops the agent
		}},
	} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			a := on.start(t)
			a.cwd = t.TempDir()
			examples, err := filepath.Abs("../examples")
			if err == nil {
				err = os.Symlink(examples, filepath.Join(a.cwd, "examples"))
			}
			if err != nil {
				t.Fatal(err)
			}
			terminal := &terminal{agent: a, names: map[string]string{"/etc/nomadish.d": "examples/agent.hcl", "/var/lib/nomadish": filepath.Join(a.dir, "data")}}
			for _, name := range on.guides {
				terminal.follow(name)
			}
		})
	}
}

// simulates returns what starts a development agent with the simulated nodes of an example.
func simulates(example string, nodes int) func(t *testing.T) *agent {
	return func(t *testing.T) *agent {
		t.Helper()
		path, err := filepath.Abs("../examples/" + example)
		if err != nil {
			t.Fatal(err)
		}
		a := newAgent(t, true, fmt.Sprintf("client {\n  simulate = %q\n}\n", path))
		a.start()
		a.ready(nodes)
		return a
	}
}

// twoRegions starts an agent of the region west, and one of east that knows it; both are servers and clients with their state on disk.
func twoRegions(t *testing.T) *agent {
	t.Helper()
	wan := freePort(t)
	west := newAgent(t, false, fmt.Sprintf("name = \"w1\"\nregion = \"west\"\nports {\n  serf_wan = %d\n}\n", wan)+serverAndClient)
	east := newAgent(t, false, fmt.Sprintf("name = \"e1\"\nregion = \"east\"\nports {\n  serf_wan = %d\n}\n", freePort(t))+serverAndClient)
	east.args = append(east.args, "-retry-join-wan", fmt.Sprintf("127.0.0.1:%d", wan))
	west.start()
	east.start()
	west.ready(1)
	east.ready(1)
	return west
}

// terminal is where the commands of guides run, one guide after the other.
type terminal struct {
	*agent
	names map[string]string // what stands in guides, by what it is here: IDs, files and directories
}

// follow runs the commands of a guide.
func (a *terminal) follow(guide string) {
	a.t.Helper()
	text, err := os.ReadFile("../docs/guides/" + guide)
	if err != nil {
		a.t.Fatal(err)
	}
	commands := 0
	for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
		for _, command := range commandLine.Split(block[1], -1)[1:] {
			commands++
			line, output, _ := strings.Cut(command, "\n")
			if line == "systemctl stop nomadish" {
				a.stop()
			} else if line, ok := strings.CutPrefix(line, "nomadish "); ok {
				a.shows(guide, line, output)
			} else {
				a.t.Errorf("%s: %q is no command of nomadish", guide, line)
			}
		}
	}
	if commands == 0 {
		a.t.Errorf("%s: no ```console block with a command", guide)
	}
}

// stop ends the agent as a service manager does.
func (a *terminal) stop() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		a.t.Fatal(err)
	}
	err := a.wait()
	a.exited <- err // for cleanup
	if err != nil {
		a.t.Errorf("the agent ended: %v", err)
	}
}

// shows runs a command as a guide has it until it prints the lines that the guide shows, in their order; one that changes something runs once.
func (a *terminal) shows(guide, line, want string) {
	a.t.Helper()
	command, coded := strings.CutSuffix(line, "; echo $?")
	var words []string
	for _, m := range wordOrQuoted.FindAllStringSubmatch(command, -1) {
		word := m[1] + m[2]
		words = append(words, cmp.Or(a.names[word], word))
	}
	try := func(context.Context) error {
		out, code := a.cli(words...)
		if coded {
			out, code = fmt.Sprintf("%s\n%d\n", out, code), 0
		}
		if missing := a.firstMissing(out, want); missing != "" || code != 0 {
			return fmt.Errorf("%s: nomadish %s: exit code %d, and %q is not there, or not in this order:\n%s", guide, line, code, missing, out)
		}
		return nil
	}
	if changesSomething.MatchString(line) {
		if err := try(a.t.Context()); err != nil {
			a.t.Error(err)
		}
		return
	}
	within(a.t, 20*time.Second, line, try)
}

// firstMissing returns the first line of a guide's that an output does not have after those before it; "": it has all, and the IDs that the guide shows
// are known.
func (a *terminal) firstMissing(out, want string) string {
	names := maps.Clone(a.names)
	printed := strings.Split(out, "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var fresh []string
		pattern := shownID.ReplaceAllStringFunc(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), func(id string) string {
			if name, ok := names[id]; ok {
				return name
			}
			fresh = append(fresh, id)
			return "([0-9a-f]{8})"
		})
		finds := regexp.MustCompile(strings.ReplaceAll(pattern, "…", ".*"))
		found := slices.IndexFunc(printed, func(have string) bool {
			m := finds.FindStringSubmatch(strings.Join(strings.Fields(have), " "))
			for i, id := range fresh {
				if m != nil {
					names[id] = m[i+1]
				}
			}
			return m != nil
		})
		if found < 0 {
			return line
		}
		printed = printed[found+1:]
	}
	a.names = names
	return ""
}
