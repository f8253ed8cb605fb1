package guides

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nomadish/nomadish/e2e/harness"
)

// notHere are the commands of pages that no test runs, by how they begin, with the reason.
var notHere = []struct{ page, line, why string }{
	{"simulation.md", "nomadish sim run -nodes examples/workflow-nodes.hcl -trace mix.csv -reservations none,whole,lend", "it takes half a minute; workflows.md has it run on less"},
	{"simulation.md", "cat > philly-nodes.hcl", "the trace is not part of the source"},
	{"simulation.md", "nomadish sim run -nodes philly-nodes.hcl", "the trace is not part of the source"},
	{"policies.md", "nomadish sim run -nodes openb_node_list_gpu_node.csv", "the trace is not part of the source"},
	{"regions.md", "nomadish agent -server -region west", "the test starts both agents, with ports of its own"},
	{"regions.md", "nomadish agent -server -region east", "the test starts both agents, with ports of its own"},
	{"one-machine.md", "sudo dpkg -i", "make release-try installs the package"},
}

// exempt reports whether a command of a page is one of notHere.
func exempt(page string, c command) bool {
	for _, not := range notHere {
		if not.page == page && strings.HasPrefix(c.line, not.line) {
			return true
		}
	}
	return false
}

// guides are the pages whose commands run one after the other.
var guides = []struct {
	name  string
	start func(a *terminal)
	pages []string
}{
	{"racks", nil, []string{"gangs.md", "troubleshooting.md", "from-nomad.md", "gpus.md", "from-kueue-and-hived.md"}},
	{"machine", nil, []string{"preemption-and-queue.md", "tls.md", "simulation.md"}},
	{"regions", twoRegions, []string{
		"one-machine.md", "licenses.md", "namespaces.md", "node-pools.md", "regions.md", "upgrading.md", "disaster-recovery.md", // which stops the agent
	}},
	{"forecasts", nil, []string{"when-and-what-if.md", "explain.md", "topology.md", "policies.md"}},
	{"operations", oneNode, []string{"operations.md"}},
	{"servers", threeServers, []string{"three-servers.md", "servers.md", "clients.md"}},
	{"projects", thisWeek, []string{"projects.md"}},
	{"virtual-clusters", daysToCome, []string{"virtual-clusters.md"}},
	{"workflows", ownDirectory, []string{"../reference/workflows-api.md", "workflows.md", "../../README.md"}},
}

// ownTests are the guides whose commands other tests of this package run.
var ownTests = []string{"from-slurm.md"}

// TestGuides runs the commands of pages' terminals in their order, and compares what they print with what the page shows.
func TestGuides(t *testing.T) {
	t.Parallel()
	for _, on := range guides {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			a := newTerminal(t)
			if on.start != nil {
				on.start(a)
			}
			for _, name := range on.pages {
				a.follow(name)
			}
		})
	}
}

// twoRegions starts an agent of the region west, and one of east that knows it; both are servers and clients with their state on disk.
func twoRegions(a *terminal) {
	a.t.Helper()
	wan := harness.FreePort(a.t)
	west := harness.NewAgent(a.t, false, fmt.Sprintf("name = \"w1\"\nregion = \"west\"\nports {\n  serf_wan = %d\n}\n", wan)+harness.ServerAndClient)
	east := harness.NewAgent(a.t, false, fmt.Sprintf("name = \"e1\"\nregion = \"east\"\nports {\n  serf_wan = %d\n}\n", harness.FreePort(a.t))+harness.ServerAndClient)
	east.Args = append(east.Args, "-retry-join-wan", fmt.Sprintf("127.0.0.1:%d", wan))
	west.Start()
	east.Start()
	west.WaitReady(1)
	east.WaitReady(1)
	a.names = map[string]string{"/etc/nomadish.d": "examples/agent.hcl", "/var/lib/nomadish": filepath.Join(west.Dir, "data")}
	a.calls(west)
	a.service = func(line string) {
		if line != "systemctl stop nomadish" {
			a.t.Errorf("%q: only the agent can be stopped", line)
			return
		}
		a.stop()
	}
}

// ownDirectory has the example of workflows.md pass its files on in a directory of the test, and the replay take minutes of virtual time, not hours. What the
// page shows of a stage that runs is there on a machine however slow: synthesis ends when it was seen, and the stages with borrowers take longer.
func ownDirectory(a *terminal) {
	dir := filepath.Join(a.dir, "chip")
	seen := filepath.Join(a.dir, "seen")
	a.names["-var seconds=3"] = fmt.Sprintf(`-var dir=%s -var 'seconds=1; until [ "$NOMADISH_WORKFLOW_STAGE" != synthesis ] || [ -e %s ]; do sleep 0.1; done'`, dir, seen)
	a.after = map[string]func(){"nomadish workflow status chip": func() { a.write("seen", "") }}
	a.names["-var seconds=5"] = "-var seconds=10"
	a.names["6h"] = "10m"
}

// commandOfPage finds commands in what a page shows of a terminal or a file.
var commandOfPage = regexp.MustCompile(`(?m)^ *(?:\$ )?nomadish [a-z]`)

// TestEveryCommand: every guide is among those that are run, and shows commands in blocks that are run only. What is said not to run is there.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	var run []string
	for _, on := range guides {
		run = append(run, on.pages...)
	}
	files, err := filepath.Glob(root + "docs/guides/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d guides: %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range append(files, root+"README.md", root+"docs/reference/workflows-api.md") {
		page, err := filepath.Rel(root+"docs/guides", file)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(ownTests, page) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if left := fencedBlock.ReplaceAllString(string(text), ""); commandOfPage.MatchString(left) {
			t.Errorf("%s: %q is in no block", page, commandOfPage.FindString(left))
		}
		commands := 0
		for _, b := range blocksOf(t, page) {
			if len(b.commands()) == 0 && commandOfPage.MatchString(b.text) {
				t.Errorf("%s: a block with commands is marked neither console nor sh:\n%s", page, b.text)
			}
			for _, c := range b.commands() {
				commands++
				for _, not := range notHere {
					seen[not.page+not.line] = seen[not.page+not.line] || not.page == page && strings.HasPrefix(c.line, not.line)
				}
			}
		}
		if commands > 0 && !slices.Contains(run, page) {
			t.Errorf("no test runs the commands of %s", page)
		}
	}
	for _, not := range notHere {
		if !seen[not.page+not.line] {
			t.Errorf("%s has no command %q", not.page, not.line)
		}
	}
}

// thisWeek has the week of projects.md be the one that it is.
func thisWeek(a *terminal) {
	year, week := time.Now().UTC().ISOWeek()
	a.names["2026-W48"] = fmt.Sprintf("%d-W%02d", year, week)
}

// daysToCome has the days of virtual-clusters.md be as many days after today as they were.
func daysToCome(a *terminal) {
	today := time.Now().UTC()
	for day, after := range map[string]int{"2026-12-24": 28, "2026-12-27": 31, "2027-01-04": 39, "2027-01-07": 42} {
		a.names[day] = today.AddDate(0, 0, after).Format(time.DateOnly)
	}
	a.names["+15 seconds"], a.names["+30 seconds"] = "+12 seconds", "+24 seconds"
	a.chance = regexp.MustCompile(`^dgx-\d$`)
}
