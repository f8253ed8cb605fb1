package jobs

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

	"github.com/nomadish/nomadish/e2e/harness"
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
		start  func(t *testing.T) *harness.Agent
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
			a.WorkDir = t.TempDir()
			examples, err := filepath.Abs("../../examples")
			if err == nil {
				err = os.Symlink(examples, filepath.Join(a.WorkDir, "examples"))
			}
			if err != nil {
				t.Fatal(err)
			}
			terminal := &terminal{Agent: a, names: map[string]string{"/etc/nomadish.d": "examples/agent.hcl", "/var/lib/nomadish": filepath.Join(a.Dir, "data")}}
			for _, name := range on.guides {
				terminal.follow(name)
			}
		})
	}
}

// simulates returns what starts a development agent with the simulated nodes of an example.
func simulates(example string, nodes int) func(t *testing.T) *harness.Agent {
	return func(t *testing.T) *harness.Agent {
		t.Helper()
		path, err := filepath.Abs("../../examples/" + example)
		if err != nil {
			t.Fatal(err)
		}
		a := harness.NewAgent(t, true, fmt.Sprintf("client {\n  simulate = %q\n}\n", path))
		a.Start()
		a.WaitReady(nodes)
		return a
	}
}

// twoRegions starts an agent of the region west, and one of east that knows it; both are servers and clients with their state on disk.
func twoRegions(t *testing.T) *harness.Agent {
	t.Helper()
	wan := harness.FreePort(t)
	west := harness.NewAgent(t, false, fmt.Sprintf("name = \"w1\"\nregion = \"west\"\nports {\n  serf_wan = %d\n}\n", wan)+harness.ServerAndClient)
	east := harness.NewAgent(t, false, fmt.Sprintf("name = \"e1\"\nregion = \"east\"\nports {\n  serf_wan = %d\n}\n", harness.FreePort(t))+harness.ServerAndClient)
	east.Args = append(east.Args, "-retry-join-wan", fmt.Sprintf("127.0.0.1:%d", wan))
	west.Start()
	east.Start()
	west.WaitReady(1)
	east.WaitReady(1)
	return west
}

// terminal is where the commands of guides run, one guide after the other.
type terminal struct {
	*harness.Agent
	names map[string]string // what stands in guides, by what it is here: IDs, files and directories
}

// follow runs the commands of a guide.
func (a *terminal) follow(guide string) {
	a.T.Helper()
	text, err := os.ReadFile("../../docs/guides/" + guide)
	if err != nil {
		a.T.Fatal(err)
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
				a.T.Errorf("%s: %q is no command of nomadish", guide, line)
			}
		}
	}
	if commands == 0 {
		a.T.Errorf("%s: no ```console block with a command", guide)
	}
}

// stop ends the agent as a service manager does.
func (a *terminal) stop() {
	a.T.Helper()
	if err := a.Cmd.Process.Signal(os.Interrupt); err != nil {
		a.T.Fatal(err)
	}
	err := a.Wait()
	a.Exited <- err // for cleanup
	if err != nil {
		a.T.Errorf("the agent ended: %v", err)
	}
}

// shows runs a command as a guide has it until it prints the lines that the guide shows, in their order; one that changes something runs once.
func (a *terminal) shows(guide, line, want string) {
	a.T.Helper()
	command, coded := strings.CutSuffix(line, "; echo $?")
	var words []string
	for _, m := range wordOrQuoted.FindAllStringSubmatch(command, -1) {
		word := m[1] + m[2]
		words = append(words, cmp.Or(a.names[word], word))
	}
	try := func(context.Context) error {
		out, code := a.CLI(words...)
		if coded {
			out, code = fmt.Sprintf("%s\n%d\n", out, code), 0
		}
		if missing := a.firstMissing(out, want); missing != "" || code != 0 {
			return fmt.Errorf("%s: nomadish %s: exit code %d, and %q is not there, or not in this order:\n%s", guide, line, code, missing, out)
		}
		return nil
	}
	if changesSomething.MatchString(line) {
		if err := try(a.T.Context()); err != nil {
			a.T.Error(err)
		}
		return
	}
	harness.Within(a.T, 20*time.Second, line, try)
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
