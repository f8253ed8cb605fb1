package command

import (
	"flag"
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
	isPage(t, nomadPage, reference.Page(missingCommands(), flagsWithoutEffect()))
}

// The page of commands and the manual page say what the commands' help says.
func TestCommandPages(t *testing.T) {
	commands, general := helpOfAll()
	isPage(t, "../docs/reference/commands.md", reference.CommandsPage(commands, general))
	isPage(t, "../docs/reference/nomadish.1", reference.ManualPage(commands, general))
}

// isPage compares the file with what it is to be, or writes it.
func isPage(t *testing.T, file, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { // a page for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: run `make docs`", file)
	}
}

// helpOfAll has all commands but those that stand for others, sorted, and the options of every one that calls an agent.
func helpOfAll() (commands []reference.Command, general []reference.Option) {
	all := specs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if hidden(name) {
			continue
		}
		s := all[name]
		r := &runner{name: name, spec: s}
		c := reference.Command{Name: name, Synopsis: s.synopsis}
		if s.raw != nil {
			c.Help = r.Help()
		} else {
			c.Usage, c.Details, c.Example, c.Calls = strings.TrimSpace("[options] "+s.usage), s.details, s.example, !s.local
			c.Options = helpOptions(r)
		}
		commands = append(commands, c)
	}
	return commands, helpOptions(&runner{})
}

func helpOptions(r *runner) (options []reference.Option) {
	fs, _ := r.flags(&env{})
	fs.VisitAll(func(f *flag.Flag) {
		argument, text := flag.UnquoteUsage(f)
		options = append(options, reference.Option{Name: f.Name, Argument: argument, Text: text + defaultText(f.DefValue)})
	})
	return options
}

// missingCommands are Nomad's that are not there yet.
func missingCommands() reference.Section {
	s := reference.Section{
		Title: "Missing commands",
		Text: "The command line reports for each that it is not there yet, and exits with 1. " +
			"Names that end in `…` stand for all commands that begin so.",
		Head: []string{"Commands", "Why"},
	}
	all := specs()
	for _, f := range laterFamilies {
		s.Rows = append(s.Rows, []string{reference.Code(heads(f.names, all)...), strings.ToUpper(f.reason[:1]) + f.reason[1:] + "."})
	}
	return s
}

// heads returns the names, and in the place of all that begin with another one, that one with an ellipsis. A name that a
// registered command begins with stands for itself only.
func heads(names []string, registered map[string]spec) []string {
	isHead := func(name string) bool {
		for command := range registered {
			if strings.HasPrefix(command, name+" ") {
				return false
			}
		}
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+" ") })
	}
	var out []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		if len(out) > 0 {
			if head, cut := strings.CutSuffix(out[len(out)-1], " …"); cut && strings.HasPrefix(name, head+" ") {
				continue
			}
		}
		if isHead(name) {
			name += " …"
		}
		out = append(out, name)
	}
	return out
}

// Every missing command is meant by one name of the page, and no command that is there is.
func TestMissingCommandsOfThePage(t *testing.T) {
	all := specs()
	for _, f := range laterFamilies {
		short := heads(f.names, all)
		meant := func(command string) int {
			n := 0
			for _, name := range short {
				if head, cut := strings.CutSuffix(name, " …"); command == head || cut && strings.HasPrefix(command, head+" ") {
					n++
				}
			}
			return n
		}
		for name, reason := range laterCommands() {
			if n := meant(name); reason == f.reason && n != 1 || reason != f.reason && n != 0 {
				t.Errorf("%q: %q is meant %d times", short, name, n)
			}
		}
		for name := range all {
			if meant(name) != 0 {
				t.Errorf("%q: %q is there", short, name)
			}
		}
	}
}

// flagsWithoutEffect are those that are accepted for the sake of scripts.
func flagsWithoutEffect() reference.Section {
	s := reference.Section{
		Title: "Flags without effect",
		Text:  "They are accepted; a warning says that they have no effect.",
		Head:  []string{"Flag", "Commands", "Why it has no effect"},
	}
	all := specs()
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
