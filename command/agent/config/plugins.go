package config

import (
	"reflect"
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// pluginConfigs are the plugins that have an effect, with what their config blocks
// may hold. A null type: who uses the block checks it.
var pluginConfigs = map[string]reflect.Type{
	"raw_exec":            reflect.TypeFor[rawExecPlugin](),
	"mock_driver":         reflect.TypeFor[mockPlugin](),
	"nomad-device-nvidia": nil,
	"nvidia-gpu":          nil,
}

// inertPlugins are plugins of Nomad's that are not there yet: as with other names
// without effect, a configuration that has them is taken.
var inertPlugins = []string{"docker", "exec", "java", "qemu", "nomad-driver-exec2", "nomad-driver-podman", "nomad-driver-virt"}

// rawExecPlugin configures the driver raw_exec, which runs tasks as processes of the machine.
type rawExecPlugin struct {
	Enabled             bool     `hcl:"enabled"`               // whether tasks may use raw_exec, which runs them without isolation; default: true with -dev, else false
	DeniedEnv           []string `hcl:"denied_envvars"`        // patterns of environment variables of the agent that tasks do not get
	DeniedUIDs          string   `hcl:"denied_host_uids"`      // user IDs that no task runs as: numbers and ranges, with commas between
	DeniedGIDs          string   `hcl:"denied_host_gids"`      // the same of group IDs
	NoCgroups           bool     `hcl:"no_cgroups"`            // runs tasks without limits, outside of control groups
	AllowNewPrivs       bool     `hcl:"allow_new_privs"`       // tasks may state no_new_privs = false
	AllowCgroupOverride bool     `hcl:"allow_cgroup_override"` // tasks may name the control group that they run in
	PidsLimit           int      `hcl:"pids_limit"`            // processes and threads of a task; -1: any number; default: 1024
}

type mockPlugin struct {
	_ struct{} `inert:"fs_isolation,shutdown_periodic_after,shutdown_periodic_duration"`
}

// plugin checks a plugin's name and what stands in its config, which is kept as it is:
// else a misspelt one would leave a driver off, or variables undenied, without a word.
func (d *decoder) plugin(f field, at string) {
	config, known := pluginConfigs[f.name]
	switch {
	case slices.Contains(inertPlugins, f.name):
		d.warnings = append(d.warnings, problemAt(f.at, "%s: accepted, but has no effect yet", at))
		return
	case !known:
		names := slices.Clone(inertPlugins)
		for name := range pluginConfigs { // sorted below
			names = append(names, name)
		}
		slices.Sort(names)
		if near := structs.Nearest(f.name, names); near != "" {
			d.problems = append(d.problems, problemAt(f.at, "%s: unknown; did you mean %q?", at, near))
		} else {
			d.warnings = append(d.warnings, problemAt(f.at, "%s: accepted, but has no effect: plugins of others are not loaded yet", at))
		}
		return
	case config == nil:
		return
	}
	d.pluginConfig(config, f.value, child(at, "config"))
}

// pluginConfig checks the config blocks in a plugin's, of which JSON may make lists.
func (d *decoder) pluginConfig(want reflect.Type, t *tree, at string) {
	for _, item := range t.list {
		d.pluginConfig(want, item, at)
	}
	for _, f := range t.object {
		if f.name == "config" && f.value.kind != kindScalar {
			d.object(reflect.New(want).Elem(), f.value, at)
		}
	}
}
