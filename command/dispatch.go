package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/posener/complete"
	"github.com/posener/complete/cmd/install"
)

// program finds the command that a command line names, and runs it or prints its help.
type program struct {
	commands commands
	in       io.Reader
	out, err io.Writer
	ctx      context.Context
}

// requested is what a command line requests.
type recorded struct {
	name       string   // of a command or group; the first word if there is none of that name, "" if there is no word
	args       []string // what follows the name
	flagsFirst bool     // there are flags before the name
	help       bool
	version    bool

	install, uninstall bool // completion, in the user's shell
}

// run returns the exit code.
func (p *program) run(args []string) int {
	if os.Getenv("COMP_LINE") != "" { // a shell requests completion
		c := complete.New("nomadish", p.completion(""))
		c.Out = p.out
		c.Complete()
		return exitDone
	}
	a := p.parse(args)
	switch {
	case a.version:
		return p.print(p.out, exitDone, VersionString())
	case a.help && a.name == "":
		return p.print(p.out, exitDone, p.overview())
	case a.install || a.uninstall:
		return p.installCompletion(a)
	case !p.has(a.name):
		return p.print(p.err, exitFailed, p.overview(), "", unknown("", append([]string{a.name}, a.args...), p.commands))
	case a.help:
		return p.print(p.out, exitDone, p.help(a.name))
	case a.flagsFirst:
		return p.print(p.err, exitFailed, "Invalid flags before the subcommand. If these flags are for\nthe subcommand, please put them after the subcommand.", "", p.help(a.name))
	}
	if _, ok := p.commands[a.name]; ok {
		return p.runner(a.name).Run(a.args)
	}
	if len(a.args) > 0 {
		p.print(p.err, exitFailed, unknown(a.name, a.args, p.commands), "")
	}
	return p.print(p.err, exitFailed, p.help(a.name))
}

// print prints lines, and returns the exit code.
func (p *program) print(to io.Writer, code int, lines ...string) int {
	_, _ = fmt.Fprintln(to, strings.Join(lines, "\n"))
	return code
}

func (p *program) runner(name string) *runner {
	return &runner{name: name, spec: p.commands[name](), in: p.in, out: p.out, err: p.err, ctx: p.ctx, now: time.Now}
}

// has reports whether name is a command or a group.
func (p *program) has(name string) bool {
	_, command := p.commands[name]
	return command || groups[name] != ""
}

// parse sorts the words of a command line. A flag for help counts wherever it stands, up to a "--".
func (p *program) parse(args []string) recorded {
	var a recorded
	for i, arg := range args {
		switch {
		case arg == "--":
			return a
		case arg == "-h" || arg == "-help" || arg == "--help":
			a.help = true
		case arg == "-autocomplete-install" || arg == "--autocomplete-install":
			a.install = true
		case arg == "-autocomplete-uninstall" || arg == "--autocomplete-uninstall":
			a.uninstall = true
		case a.name != "" || arg == "":
		case arg == "-v" || arg == "-version" || arg == "--version":
			a.version = true
		case arg[0] == '-':
			a.flagsFirst = true
		case strings.Contains(arg, " "): // quoted: no command is called so
			return a
		default:
			a.name = p.named(args[i:])
			a.args = args[i+1+strings.Count(a.name, " "):]
		}
	}
	return a
}

// mostWords is how many words the name of a command has at most.
const mostWords = 4

// named is the longest name of a command or group that words begin with, or else their first, which is not empty.
func (p *program) named(words []string) string {
	longest, name := words[0], ""
	for _, word := range words[:min(len(words), mostWords)] {
		if strings.Contains(word, " ") { // "raft info" is no two words
			break
		}
		if name = beneath(name, word); p.has(name) {
			longest = name
		}
	}
	return longest
}

// names are those of all commands and groups, sorted.
func (p *program) names() []string {
	all := make([]string, 0, len(p.commands)+len(groups))
	for name := range p.commands {
		all = append(all, name)
	}
	for name := range groups {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// hidden reports whether a command is not shown where others are listed.
func hidden(name string) bool { return aliases[name] != "" || name == "executor" }

// synopsis is what a command or group does, in a line.
func (p *program) synopsis(name string) string {
	if s, ok := p.commands[name]; ok {
		return s().synopsis
	}
	_, text, _ := strings.Cut(groups[name], "\n\n  ")
	return text
}

// help is that of a command or group, with the list of what stands beneath it.
func (p *program) help(name string) string {
	text := "Usage: nomadish " + groups[name]
	if _, ok := p.commands[name]; ok {
		text = p.runner(name).Help()
	}
	if list := p.list(name); list != "" {
		text += "\n\nSubcommands:\n" + strings.TrimSuffix(list, "\n")
	}
	return text
}

// overview is the help of the program itself.
func (p *program) overview() string {
	return "nomadish schedules jobs on clusters of GPU and HPC machines." +
		"\n\nUsage: nomadish [--version] [--help] <command> [<args>]" +
		"\n\nAvailable commands are:\n" + p.list("") +
		"\n\nAs in Nomad, run, plan, validate, inspect, start, stop and init stand for those of job; logs and fs for those of alloc." +
		"\n\nStart with `nomadish agent -dev` in one terminal and `nomadish job init && nomadish job run example.nomad.hcl` in another."
}

// list has a line for each command and group that is one word longer than the group ("": the program's own name).
func (p *program) list(group string) string {
	var words []string
	width := 0
	for _, name := range p.names() {
		if word, ok := strings.CutPrefix(name, beneath(group, "")); ok && word != "" && !strings.Contains(word, " ") && !hidden(name) {
			words, width = append(words, word), max(width, len(word))
		}
	}
	var b strings.Builder
	for _, word := range words {
		fmt.Fprintf(&b, "    %-*s    %s\n", width, word, p.synopsis(beneath(group, word)))
	}
	return b.String()
}

// installCompletion changes the files that the user's shells read at their start.
func (p *program) installCompletion(a recorded) int {
	change := install.Install
	if a.uninstall {
		change = install.Uninstall
	}
	if a.install && a.uninstall {
		return p.print(p.err, exitFailed, "Either the autocomplete install or uninstall flag may be specified, but not both.")
	}
	if err := change("nomadish"); err != nil {
		return p.print(p.err, exitFailed, err.Error())
	}
	return exitDone
}

// completion is what may follow a command or group ("": the program's own name).
func (p *program) completion(name string) complete.Command {
	c := complete.Command{Sub: complete.Commands{}}
	if _, ok := p.commands[name]; ok {
		r := p.runner(name)
		c.Args, c.Flags = r.predictArgs(), r.predictFlags()
	}
	for _, below := range p.names() {
		rest, ok := strings.CutPrefix(below, beneath(name, ""))
		if !ok || hidden(below) {
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		if _, known := c.Sub[word]; !known {
			c.Sub[word] = p.completion(below) // a name beneath one that is hidden stands for it
		}
	}
	return c
}
