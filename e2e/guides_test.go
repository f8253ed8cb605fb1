package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// consoleBlock finds what a guide shows of a terminal: commands after "$ ", and of the output of each the lines that matter, in their order. "…" in
// a line stands for anything.
var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// changesSomething finds the commands of guides that run once, whatever they print.
var changesSomething = regexp.MustCompile(`^(job (run|scale|stop)|node eligibility|system) `)

// consoleGuides are the guides whose terminals are on an agent with the nodes of examples/racks.hcl, and need nothing else.
var consoleGuides = []string{"gangs.md", "troubleshooting.md", "from-nomad.md"}

// TestGuides runs the commands of guides' terminals in their order, one agent for all guides, and compares what they print with what the guide shows.
func TestGuides(t *testing.T) {
	t.Parallel()
	racks, err := filepath.Abs("../examples/racks.hcl")
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, true, fmt.Sprintf("client {\n  simulate = %q\n}\n", racks))
	a.start()
	a.ready(4)
	for _, name := range consoleGuides {
		text, err := os.ReadFile("../docs/guides/" + name)
		if err != nil {
			t.Fatal(err)
		}
		commands := 0
		for _, block := range consoleBlock.FindAllStringSubmatch(string(text), -1) {
			for _, command := range strings.Split("\n"+block[1], "\n$ ")[1:] {
				line, output, _ := strings.Cut(command, "\n")
				if line, ok := strings.CutPrefix(line, "nomadish "); ok {
					commands++
					a.shows(name, line, output)
				} else {
					t.Errorf("%s: %q is no command of nomadish", name, line)
				}
			}
		}
		if commands == 0 {
			t.Errorf("%s: no ```console block with a command", name)
		}
	}
}

// shows runs a command as a guide has it until it prints the lines that the guide shows, in their order; one that changes something runs once.
func (a *agent) shows(guide, line, want string) {
	a.t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		if strings.HasPrefix(word, "examples/") {
			words[i] = "../" + word
		}
	}
	try := func(context.Context) error {
		out, code := a.cli(words...)
		if missing := firstMissing(out, want); missing != "" || code != 0 {
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

// firstMissing returns the first line of a guide's that an output does not have after those before it; "": it has all.
func firstMissing(out, want string) string {
	printed := strings.Split(out, "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), "…", ".*")
		found := -1
		for i, have := range printed {
			if regexp.MustCompile(pattern).MatchString(strings.Join(strings.Fields(have), " ")) {
				found = i
				break
			}
		}
		if found < 0 {
			return line
		}
		printed = printed[found+1:]
	}
	return ""
}
