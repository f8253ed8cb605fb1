package structs

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

var signalName = compiled(`^SIG[A-Z0-9]+([+-][0-9]+)?$`)

func (t *Task) validate(r reporter, j *Job, g *TaskGroup) {
	checkPathName(r, "name", t.Name)
	if t.Driver == "" {
		r.addf("driver", `must be stated, such as "raw_exec" or "exec"`)
	}
	checkKeys(r, "meta", t.Meta)
	for _, key := range sortedKeys(t.Env) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			r.addf("env", "%q cannot be the name of an environment variable", clip(key))
		}
		if strings.ContainsRune(t.Env[key], 0) {
			r.addf("env", "the value of %q must not contain a zero byte", clip(key))
		}
	}
	if t.KillSignal != "" && !signalName.MatchString(t.KillSignal) {
		r.addf("kill_signal", `must be a signal such as "SIGINT" or "SIGTERM", not %q`, clip(t.KillSignal))
	}
	if t.Lifecycle != nil && t.Lifecycle.Hook == "" {
		r.in("lifecycle", "", -1).addf("hook", `must be "prestart", "poststart" or "poststop"`)
	}
	validateConstraints(r, t.Constraints)
	validateAffinities(r, t.Affinities)
	if j.Type == JobTypeSystem && len(t.Affinities) > 0 {
		r.addf("affinity", "a system job runs on every fitting node, so it cannot prefer some; use constraint")
	}
	if t.Resources != nil {
		t.Resources.validate(r.in("resources", "", -1))
	}
	if t.RestartPolicy != nil && !sameRestart(t.RestartPolicy, g.RestartPolicy) {
		merged(t.RestartPolicy, g.RestartPolicy, defaultRestart(j.Type)).validate(r.in("restart", "", -1))
	}
	if l := t.LogConfig; l != nil && !l.Disabled && (l.MaxFiles < 1 || l.MaxFileSizeMB < 1) {
		r.in("logs", "", -1).addf("", "max_files and max_file_size must be at least 1")
	}
	t.validateFiles(r)
	t.validateExtras(r, g)
}

func sameRestart(a, b *RestartPolicy) bool {
	return b != nil && sameValue(structOf(a), structOf(b))
}

func (r *Resources) validate(rep reporter) {
	if r.CPU > 0 && r.Cores > 0 {
		rep.addf("cores", "must not be stated beside cpu: cores are whole cores, cpu is MHz of shared ones")
	}
	if r.CPU == 0 && r.Cores == 0 {
		rep.addf("cpu", "must be at least 1, or cores be stated")
	}
	if r.MemoryMaxMB > 0 && r.MemoryMaxMB < r.MemoryMB {
		rep.addf("memory_max", "must be at least memory, %d, or 0; not %d", r.MemoryMB, r.MemoryMaxMB)
	}
	for _, name := range sortedKeys(r.Licenses) {
		if n := r.Licenses[name]; name == "" || n < 1 || n > 1_000_000_000 {
			rep.addf("licenses", "must give each license a name and a number from 1; %q has %d", clip(name), n)
		}
	}
	for i, n := range r.Networks {
		n.validate(rep.in("network", "", i))
	}
	for i, d := range r.Devices {
		d.validate(rep.in("device", d.Name, i))
	}
	if r.NUMA != nil && r.NUMA.Affinity != NUMAAffinityNone && r.Cores == 0 {
		rep.in("numa", "", -1).addf("affinity", "needs cores: only whole cores belong to a NUMA node")
	}
}

func (d *RequestedDevice) validate(r reporter) {
	parts := strings.Split(d.Name, "/")
	if len(parts) > 3 || slices.Contains(parts, "") {
		r.addf("", `must be named "type", "vendor/type" or "vendor/type/model", not %q`, clip(d.Name))
	}
	if d.Share == shareOfNothing {
		r.addf("share", "must be between 1 and %d thousandths of a device, not 0; leave it out for whole devices", DeviceShareWhole)
	} else if d.Share < DeviceShareWhole && d.Count > 1 {
		r.addf("share", "must be %d with a count above 1: a share is of one device; not %d", DeviceShareWhole, d.Share)
	}
	validateConstraints(r, d.Constraints)
	validateAffinities(r, d.Affinities)
	if d.Topology != nil {
		in := r.in("topology", "", -1)
		d.Topology.validate(in)
		if d.Topology.Required && d.Topology.Level == LevelMIG && d.Count > 1 {
			in.addf("level", "must be above %q with a count above 1: a cell of that level is one slice", LevelMIG)
		}
	}
}

// leavesAlloc reports whether a path that is meant below dir, a directory of the allocation, leads out of the allocation.
// A destination in the directory of another task is allowed, as in Nomad: the tasks of a group share what lies there.
func leavesAlloc(dir, p string) bool {
	if hasReference(p) {
		return false // only the node knows; it checks again
	}
	clean := path.Join(dir, strings.ReplaceAll(p, `\`, "/"))
	return clean == ".." || strings.HasPrefix(clean, "../")
}

// The directories that destinations are relative to, below the allocation's.
const (
	taskDir  = "task"
	localDir = "task/local"
)

func (t *Task) validateFiles(r reporter) {
	for i, a := range t.Artifacts {
		in := r.in("artifact", "", i)
		in.need("source", a.GetterSource)
		if leavesAlloc(taskDir, a.RelativeDest) {
			in.addf("destination", "must not leave the allocation's directory: %q", clip(a.RelativeDest))
		}
	}
	dests := make([]string, 0, len(t.Templates))
	for i, m := range t.Templates {
		m.validate(r.in("template", "", i))
		if m.DestPath != "" {
			dests = append(dests, m.DestPath)
		}
	}
	r.unique("template", "destinations", dests)
	if d := t.DispatchPayload; d != nil {
		in := r.in("dispatch_payload", "", -1)
		in.need("file", d.File)
		if leavesAlloc(localDir, d.File) {
			in.addf("file", "must not leave the allocation's directory: %q", clip(d.File))
		}
	}
}

func (m *Template) validate(r reporter) {
	if (m.SourcePath == "") == (m.EmbeddedTmpl == "") {
		r.addf("", "must have one of source and data")
	}
	r.need("destination", m.DestPath)
	if leavesAlloc(taskDir, m.DestPath) {
		r.addf("destination", "must not leave the allocation's directory: %q", clip(m.DestPath))
	}
	if m.ChangeMode == ChangeModeSignal && !signalName.MatchString(m.ChangeSignal) {
		r.addf("change_signal", `must be a signal such as "SIGHUP", not %q`, clip(m.ChangeSignal))
	}
	if m.ChangeMode == ChangeModeScript {
		if m.ChangeScript == nil {
			r.addf("change_script", `must be stated with change_mode = "script"`)
		} else {
			r.in("change_script", "", -1).need("command", m.ChangeScript.Command)
		}
	}
	if mode, err := strconv.ParseUint(m.Perms, 8, 12); err != nil || mode > 0o777 {
		r.addf("perms", `must be octal such as "0644", not %q`, clip(m.Perms))
	}
	if w := m.Wait; w != nil && w.Max > 0 && w.Min > w.Max {
		r.in("wait", "", -1).addf("min", "must be at most max, %s, not %s", w.Max, w.Min)
	}
}

func (t *Task) validateExtras(r reporter, g *TaskGroup) {
	for i, m := range t.VolumeMounts {
		in := r.in("volume_mount", "", i)
		if _, ok := g.Volumes[m.Volume]; !ok {
			in.addf("volume", "the group has no volume %q%s", clip(m.Volume), didYouMean(m.Volume, sortedKeys(g.Volumes)))
		}
		in.need("destination", m.Destination)
	}
	if c := t.CSIPluginConfig; c != nil {
		in := r.in("csi_plugin", "", -1)
		in.need("id", c.ID)
		in.need("type", c.Type)
	}
	identities := make([]string, len(t.Identities))
	for i, id := range t.Identities {
		identities[i] = id.Name
	}
	r.unique("identity", "identities", identities)
	actions := make([]string, len(t.Actions))
	for i, a := range t.Actions {
		actions[i] = a.Name
		r.in("action", a.Name, i).need("command", a.Command)
	}
	r.unique("action", "actions", actions)
	secrets := make([]string, len(t.Secrets))
	for i, s := range t.Secrets {
		secrets[i] = s.Name
		in := r.in("secret", s.Name, i)
		in.need("provider", s.Provider)
		in.need("path", s.Path)
	}
	r.unique("secret", "secrets", secrets)
	for i, p := range t.ScalingPolicies {
		p.validate(r.in("scaling", "", i))
	}
	if s := t.Schedule; s != nil && s.Cron == nil {
		r.in("schedule", "", -1).addf("cron", "must be stated")
	}
}
