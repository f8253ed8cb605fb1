package command

import (
	"flag"
	"slices"
)

// nomadFlags are flags of Nomad's for which there is nothing to do here, and why. A command that accepts one (see
// spec.accepts) warns where it is given.
var nomadFlags = map[string]struct {
	isBool bool
	preset bool
	why    string
}{
	"hcl2-strict":      {isBool: true, preset: true, why: "a variable that the file does not declare is always refused"},
	"policy-override":  {isBool: true, why: "there are no policies to override"},
	"vault-namespace":  {why: "there is no Vault integration"},
	"consul-namespace": {why: "there is no Consul integration"},
	"ui":               {isBool: true, why: "there is no web interface"},
}

// fileFlags are those of commands that read a job file.
var fileFlags = []string{"hcl2-strict", "policy-override", "vault-namespace", "consul-namespace"}

// acceptFlags adds flags of nomadFlags.
func acceptFlags(fs *flag.FlagSet, names []string) {
	for _, name := range names {
		f := nomadFlags[name]
		text := "accepted, for scripts made for Nomad: " + f.why
		if f.isBool {
			fs.Bool(name, f.preset, text)
		} else {
			fs.String(name, "", text)
		}
	}
}

// warnNoEffect warns of each flag that was set and has no effect.
func warnNoEffect(e *env, fs *flag.FlagSet, names []string) {
	fs.Visit(func(f *flag.Flag) {
		if slices.Contains(names, f.Name) && (nomadFlags[f.Name].preset || f.Value.String() != f.DefValue) {
			e.eprintf("Warning: -%s has no effect: %s\n", f.Name, nomadFlags[f.Name].why)
		}
	})
}
