package command

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/command/reference"
)

const nomadPage = "../docs/reference/nomad.md"

// The page for users of Nomad says what the tables say.
func TestNomadPage(t *testing.T) {
	want := reference.Page(missingCommands(), flagsWithoutEffect())
	if *rewrite {
		if err := os.WriteFile(nomadPage, []byte(want), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(nomadPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run `make docs`", nomadPage)
	}
}

// missingCommands are Nomad's that are not there yet.
func missingCommands() reference.Section {
	s := reference.Section{
		Title: "Missing commands",
		Text:  "The command line says of each that it is not there yet, and exits with 1.",
		Head:  []string{"Command", "Why"},
	}
	for _, name := range slices.Sorted(maps.Keys(laterCommands)) {
		why := laterCommands[name]
		s.Rows = append(s.Rows, []string{reference.Code(name), strings.ToUpper(why[:1]) + why[1:] + "."})
	}
	return s
}

// flagsWithoutEffect are those that are accepted for the sake of scripts.
func flagsWithoutEffect() reference.Section {
	s := reference.Section{
		Title: "Flags without effect",
		Text:  "They are accepted; a warning says that they have no effect.",
		Head:  []string{"Flag", "Commands", "Why it has no effect"},
	}
	all := registry()
	for _, name := range slices.Sorted(maps.Keys(nomadFlags)) {
		var commands []string
		for _, command := range slices.Sorted(maps.Keys(all)) {
			if _, alias := aliases[command]; !alias && slices.Contains(all[command].accepts, name) {
				commands = append(commands, command)
			}
		}
		why := nomadFlags[name].why
		s.Rows = append(s.Rows, []string{reference.Code("-" + name), reference.Code(commands...), strings.ToUpper(why[:1]) + why[1:] + "."})
	}
	return s
}
