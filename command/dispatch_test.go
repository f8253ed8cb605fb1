package command

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	p := &program{commands: registry()}
	f := func(text, name, args, requests string) {
		t.Helper()
		words := strings.Split(text, ",")
		a := p.parse(words)
		var got []string
		for what, is := range map[string]bool{
			"help": a.help, "version": a.version, "flags": a.flagsFirst, "install": a.install, "uninstall": a.uninstall,
		} {
			if is {
				got = append(got, what)
			}
		}
		slices.Sort(got)
		if a.name != name || strings.Join(a.args, ",") != args || strings.Join(got, " ") != requests {
			t.Errorf("%q: %q with %q, asks for %q", words, a.name, a.args, got)
		}
	}
	f("job", "job", "", "")
	f("job,run,x.hcl", "job run", "x.hcl", "")
	f("job,run,-detach,x.hcl", "job run", "-detach,x.hcl", "")
	f("job,-x,run", "job", "-x,run", "")
	f("job,,run", "job", ",run", "")
	f("job,run stop", "job", "run stop", "")
	f("job run,-h", "", "", "")
	f(",job,run", "job run", "", "")
	f("operator,raft,list-peers,x", "operator raft list-peers", "x", "")
	f("operator,debug,check", "operator debug check", "", "") // a command beneath a command
	f("operator,debug,-x", "operator debug", "-x", "")
	f("operator,raft,x", "operator raft", "x", "")
	f("jbo,run", "jbo", "run", "")
	f("job,runs", "job", "runs", "")
	f("operator,raft,infos", "operator raft", "infos", "") // not of "operator", because a command's name begins it
	f("jobs,job", "jobs", "job", "")
	f("operator,raft info", "operator", "raft info", "")
	f("-x,job,run", "job run", "", "flags")
	f("--,job", "", "", "")
	f("job,run,x,--help", "job run", "x,--help", "help")
	f("job,run,--,-h", "job run", "--,-h", "")
	f("-h,job", "job", "", "help")
	f("-v", "", "", "version")
	f("--version,job", "job", "", "version")
	f("job,run,-v", "job run", "-v", "") // is the command's own
	f("-autocomplete-install", "", "", "install")
	f("--autocomplete-install", "", "", "install")
	f("--autocomplete-uninstall", "", "", "uninstall")
	f("-autocomplete-uninstall,--autocomplete-install", "", "", "install uninstall")
}

func TestHelpOfWhatIsBeneath(t *testing.T) {
	f := func(shown, missing string, args ...string) {
		t.Helper()
		got := line(t, args...)
		text := got.out + got.err
		if !strings.Contains(text, shown) || missing != "" && strings.Contains(text, missing) {
			t.Errorf("%q: want %q and not %q:\n%s", args, shown, missing, text)
		}
	}
	f("\n\nSubcommands:\n    apply    ", "", "node", "meta")
	f("\n    meta           Show and change", "pool list", "node", "-h") // aligned, and only the next word
	f("\n\nSubcommands:\n    check    ", "", "operator", "debug", "-h")
	f("\n    summaries    ", "\n    reconcile    ", "system", "reconcile", "-h")
	f("\n    gc    ", "\n    reconcile", "system", "-h") // an alias
	f("Invalid flags before the subcommand.", "Available commands", "-x", "job", "run")
	f("\n    agent-info    ", "\n    run    ", "-h")
}

func TestCompletion(t *testing.T) {
	f := func(typed, has, not string) {
		t.Helper()
		t.Setenv("COMP_LINE", typed)
		got := line(t)
		all := strings.Fields(got.out)
		if got.code != exitDone || got.err != "" || !slices.Contains(all, has) || slices.Contains(all, not) {
			t.Errorf("%q: exit code %d, %q, stderr %q; want %q and not %q", typed, got.code, all, got.err, has, not)
		}
	}
	f("nomadish j", "job", "agent")
	f("nomadish ", "operator", "executor")
	f("nomadish ", "node", "node-status")
	f("nomadish node ", "pool", "list")
	f("nomadish node pool ", "list", "pool")
	f("nomadish job run -", "-detach", "-h")
	f("nomadish operator debug -", "-duration", "check")
	f("nomadish system reconcile -", "-region", "gc")
}
