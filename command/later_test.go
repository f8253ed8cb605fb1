package command

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
)

// nomadCommands are the names of Nomad's commands, a line each.
//
//go:embed testdata/nomad_commands.txt
var nomadCommands string

// laterCommands are the names of laterFamilies, with their reasons.
func laterCommands() map[string]string {
	all := map[string]string{}
	for _, f := range laterFamilies {
		for _, name := range f.names {
			all[name] = f.reason
		}
	}
	return all
}

func TestEveryNomadCommandIsThereOrSaysWhy(t *testing.T) {
	all := specs()
	names := strings.Split(strings.TrimSpace(nomadCommands), "\n")
	if len(names) < 200 {
		t.Fatalf("only %d names are known", len(names))
	}
	for _, name := range names {
		_, registered := all[name]
		there := registered || groups[name] != ""
		if reason := laterReason(name); there == (reason != "") {
			t.Errorf("%s: registered: %v, and laterFamilies says %q: exactly one must be so", name, there, reason)
		}
	}
	for name, reason := range laterCommands() {
		if !slices.Contains(names, name) {
			t.Errorf("laterFamilies has %q, which is no command of Nomad", name)
		}
		if _, registered := all[name]; registered || groups[name] != "" {
			t.Errorf("laterFamilies has %q, which is registered", name)
		}
		if reason == "" || strings.ContainsAny(reason, "\n") || strings.HasSuffix(reason, ".") {
			t.Errorf("%s: reason %q: want one clause without a full stop", name, reason)
		}
		for parent := name; strings.Contains(parent, " "); {
			parent = parent[:strings.LastIndex(parent, " ")]
			if _, registered := all[parent]; laterReason(parent) == "" && groups[parent] == "" && !registered {
				t.Errorf("%s: its group %q is neither there nor in laterFamilies", name, parent)
			}
		}
	}
}

func TestLaterCommandsAnswerInOneLine(t *testing.T) {
	says := func(name string, args ...string) {
		t.Helper()
		got := line(t, args...)
		if got.code != exitFailed || got.out != "" || got.err != laterText(name)+"\n" || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q: exit code %d, output %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
	for name := range laterCommands() {
		says(name, strings.Fields(name)...)
	}
	says("volume create", "volume", "create", "-detach", "x.hcl")
	says("volume", "volume", "nonsense")
	says("volume", "volume", "-h")
	says("alloc exec", "alloc", "exec", "5f3a9c01", "sh", "-c", "exec true")
	if got := line(t, "version", "volume"); strings.Contains(got.err, "not there yet") { // an argument is no command
		t.Errorf("an argument was taken for a command: %q", got.err)
	}
}
