package structs

import (
	"slices"
	"strings"
	"time"
)

func (g *TaskGroup) validate(r reporter, j *Job) {
	checkPathName(r, "name", g.Name)
	checkKeys(r, "meta", g.Meta)
	if j.PerNode() && g.Count > 1 {
		r.addf("count", "must be 1 in a %s job, which runs once on every fitting node; not %d", j.Type, g.Count)
	}
	if slices.Contains(g.Candidates, "") {
		r.addf("candidates", "must not hold an empty name")
	}
	r.unique("candidates", "nodes", g.Candidates)
	validateConstraints(r, g.Constraints)
	validateAffinities(r, g.Affinities)
	validateSpreads(r, g.Spreads)
	if j.Type == JobTypeSystem && len(g.Affinities)+len(g.Spreads) > 0 {
		r.addf("", "a system job runs on every fitting node: it cannot have affinity or spread")
	}
	g.validateGang(r, j)
	g.validatePolicies(r, j)
	g.validateNetworks(r)
	g.validateVolumes(r)
	if s := g.Scaling; s != nil {
		s.validate(r.in("scaling", "", -1))
		if s.Max >= s.Min && (int64(g.Count) < s.Min || int64(g.Count) > s.Max) {
			r.addf("count", "must be between scaling's min and max, %d and %d, not %d", s.Min, s.Max, g.Count)
		}
	}
	g.validateTasks(r, j)
	g.validateServices(r)
}

func (g *TaskGroup) validateGang(r reporter, j *Job) {
	if gang := g.Gang; gang != nil {
		in := r.in("gang", "", -1)
		if j.PerNode() {
			in.addf("", "a %s job cannot be a gang: it runs on every fitting node", j.Type)
		}
		if gang.Min > g.Count {
			in.addf("min", "must be at most the group's count of %d, not %d", g.Count, gang.Min)
		}
		for _, other := range gang.Groups {
			if other == g.Name {
				in.addf("groups", "must name other groups, not %q itself", clip(other))
			} else if peer := j.LookupTaskGroup(other); peer == nil {
				in.addf("groups", "the job has no group %q%s", clip(other), didYouMean(other, j.groupNames()))
			} else {
				g.validatePeer(in, peer)
			}
		}
		in.unique("groups", "groups", gang.Groups)
	}
	if t := g.Topology; t != nil {
		in := r.in("topology", "", -1)
		t.validate(in)
		if t.Pin != "" {
			in.addf("pin", "may only be stated in a device's topology")
		}
	}
}

// validatePeer refuses what two groups of one gang cannot both have.
func (g *TaskGroup) validatePeer(in reporter, peer *TaskGroup) {
	if peer.Gang != nil && peer.Gang.OnLoss != g.Gang.OnLoss {
		in.addf("on_loss", "must be the same in all groups of a gang: group %q has %q, not %q", clip(peer.Name), clip(peer.Gang.OnLoss), clip(g.Gang.OnLoss))
	}
	if a, b := g.Topology, peer.Topology; a != nil && b != nil && *a != *b {
		in.addf("groups", "must have the same topology block: that of group %q differs, and it is of the whole gang", clip(peer.Name))
	}
}

func (t *TopologyConstraint) validate(r reporter) {
	if !isWord(t.Level, true) {
		r.addf("level", `must be a level of the topology such as "pcie", "socket" or "node", not %q`, clip(t.Level))
	}
}

func (j *Job) groupNames() []string {
	names := make([]string, len(j.TaskGroups))
	for i, g := range j.TaskGroups {
		names[i] = g.Name
	}
	return names
}

func (g *TaskGroup) validatePolicies(r reporter, j *Job) {
	merged(g.RestartPolicy, defaultRestart(j.Type)).validate(r.in("restart", "", -1))
	if g.ReschedulePolicy != nil {
		in := r.in("reschedule", "", -1)
		if j.PerNode() {
			in.addf("", "a %s job belongs to its nodes and is not rescheduled; use restart", j.Type)
		} else {
			merged(g.ReschedulePolicy, defaultReschedule(j.Type)).validate(in)
		}
	}
	if g.Update != nil {
		in := r.in("update", "", -1)
		if j.Type == JobTypeBatch || j.Type == JobTypeSysBatch {
			in.addf("", "a %s job cannot have update: what it runs ends by itself", j.Type)
		} else {
			merged(g.Update, defaultUpdate()).validate(in, g, j.Type)
		}
	}
	if g.Migrate != nil {
		in := r.in("migrate", "", -1)
		if j.Type != JobTypeService {
			in.addf("", "only service jobs can have migrate, this one is %q", clip(j.Type))
		} else {
			m := merged(g.Migrate, defaultMigrate())
			healthTimes(in, m.MinHealthyTime, m.HealthyDeadline)
			if *m.MaxParallel < 1 {
				in.addf("max_parallel", "must be at least 1, not %d", *m.MaxParallel)
			}
		}
	}
	if d := g.Disconnect; d != nil {
		in := r.in("disconnect", "", -1)
		if d.LostAfter > 0 && d.StopOnClientAfter > 0 {
			in.addf("stop_on_client_after", "must not be stated beside lost_after")
		}
		if g.StopAfterClientDisconnect > 0 || g.MaxClientDisconnect > 0 || g.PreventRescheduleOnLost {
			in.addf("", "must not be stated beside stop_after_client_disconnect, max_client_disconnect or prevent_reschedule_on_lost, its older forms")
		}
	}
}

func (p *RestartPolicy) validate(r reporter) {
	if *p.Attempts == 0 && *p.Mode == RestartPolicyModeDelay {
		r.addf("mode", `must be "fail" with attempts = 0: there is nothing to delay`)
	}
	if total := float64(*p.Attempts) * float64(*p.Delay); *p.Attempts > 0 && total > float64(*p.Interval) {
		r.addf("attempts", "%d restarts, %s apart, do not fit the interval of %s", *p.Attempts, *p.Delay, *p.Interval)
	}
}

func (p *ReschedulePolicy) validate(r reporter) {
	if !*p.Unlimited && *p.Attempts == 0 {
		return // never rescheduled
	}
	if *p.Unlimited && *p.Attempts > 0 {
		r.addf("attempts", "must not be stated beside unlimited = true")
	}
	if !*p.Unlimited && *p.Interval <= 0 {
		r.addf("interval", "must be stated, such as \"1h\", where attempts is")
	}
	switch *p.DelayFunction {
	case "":
		r.addf("delay_function", `must be "constant", "exponential" or "fibonacci"`)
	case DelayFunctionConstant:
	default:
		if *p.MaxDelay < *p.Delay {
			r.addf("max_delay", "must be at least the delay of %s, not %s", *p.Delay, *p.MaxDelay)
		}
	}
}

func (u *UpdateStrategy) validate(r reporter, g *TaskGroup, jobType string) {
	healthTimes(r, u.MinHealthyTime, u.HealthyDeadline)
	if *u.ProgressDeadline != 0 && *u.ProgressDeadline <= *u.HealthyDeadline {
		r.addf("progress_deadline", "must be longer than healthy_deadline, %s, or 0; not %s", *u.HealthyDeadline, *u.ProgressDeadline)
	}
	if *u.AutoPromote && *u.Canary == 0 {
		r.addf("auto_promote", "must not be true without canary")
	}
	if *u.MaxParallel == 0 && *u.Canary > 0 {
		r.addf("canary", "must not be stated with max_parallel = 0, which updates all at once")
	}
	switch {
	case jobType == JobTypeSystem: // there it is a percentage of the nodes
		if *u.Canary > 100 {
			r.addf("canary", "must be at most 100, the percentage of a system job's nodes, not %d", *u.Canary)
		}
	case *u.Canary > 0 && *u.Canary > g.Count:
		r.addf("canary", "must be at most the group's count of %d, not %d", g.Count, *u.Canary)
	}
}

func healthTimes(r reporter, healthy, deadline *time.Duration) {
	if *healthy >= *deadline {
		r.addf("min_healthy_time", "must be shorter than healthy_deadline, %s; not %s", *deadline, *healthy)
	}
}

// portNames are the labels of the ports that a group's tasks share.
func (g *TaskGroup) portNames() []string {
	var out []string
	add := func(networks []*NetworkResource) {
		for _, n := range networks {
			for _, p := range n.ReservedPorts {
				out = append(out, p.Label)
			}
			for _, p := range n.DynamicPorts {
				out = append(out, p.Label)
			}
		}
	}
	add(g.Networks)
	for _, t := range g.Tasks {
		if t.Resources != nil {
			add(t.Resources.Networks)
		}
	}
	return out
}

func (g *TaskGroup) validateNetworks(r reporter) {
	type hostPort struct {
		network string
		port    int
	}
	taken := map[hostPort]string{}
	for i, n := range g.Networks {
		in := r.in("network", "", i)
		n.validate(in)
		for _, p := range n.ReservedPorts {
			at := hostPort{p.HostNetwork, p.Value}
			if other, ok := taken[at]; ok && !p.IgnoreCollision {
				in.in("port", p.Label, -1).addf("static", "must not be %d, which port %q has", p.Value, clip(other))
			}
			taken[at] = p.Label
		}
	}
	r.unique("network", "ports", g.portNames())
}

// ipAddress distinguishes addresses from names; what it is exactly, the node finds out.
var ipAddress = compiled(`^([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:.]*(%[a-zA-Z0-9]+)?)$`)

func (n *NetworkResource) validate(r reporter) {
	switch {
	case n.Mode == "", n.Mode == NetworkModeHost, n.Mode == NetworkModeBridge, n.Mode == NetworkModeNone:
	case strings.HasPrefix(n.Mode, "cni/") && len(n.Mode) > len("cni/"):
	default:
		r.addf("mode", `must be "host", "bridge", "none" or "cni/NAME", not %q`, clip(n.Mode))
	}
	for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
		in := r.in("port", p.Label, -1)
		if !isWord(p.Label, true) {
			in.addf("", "must be named by letters, digits, dashes and underscores, not %q", clip(p.Label))
		}
	}
	for _, p := range n.ReservedPorts {
		if p.Value <= 0 {
			r.in("port", p.Label, -1).addf("static", "must be between 1 and 65535, not %d", p.Value)
		}
	}
	if n.DNS != nil {
		for _, s := range n.DNS.Servers {
			if !ipAddress.MatchString(s) && !hasReference(s) {
				r.in("dns", "", -1).addf("servers", "must be IP addresses, not %q", clip(s))
			}
		}
	}
}

func (g *TaskGroup) validateVolumes(r reporter) {
	for _, name := range sortedKeys(g.Volumes) {
		v := g.Volumes[name]
		in := r.in("volume", name, -1)
		if v.Type == "" {
			in.addf("type", `must be "host" or "csi"`)
		}
		in.need("source", v.Source)
		if v.Type == VolumeTypeCSI {
			in.need("access_mode", v.AccessMode)
			in.need("attachment_mode", v.AttachmentMode)
		}
	}
}

func (p *ScalingPolicy) validate(r reporter) {
	switch {
	case p.Max < 0:
		r.addf("max", "must be stated")
	case p.Max < p.Min:
		r.addf("max", "must be at least min, %d, not %d", p.Min, p.Max)
	}
}

func (g *TaskGroup) validateTasks(r reporter, j *Job) {
	if len(g.Tasks) == 0 {
		r.addf("", "must have a task")
	}
	names := make([]string, len(g.Tasks))
	leaders := 0
	for i, t := range g.Tasks {
		names[i] = t.Name
		if t.Leader {
			leaders++
		}
		t.validate(r.in("task", t.Name, i), j, g)
	}
	r.unique("task", "tasks", names)
	if leaders > 1 {
		r.addf("task", "only one task can be the leader, not %d", leaders)
	}
	g.validateLogSizes(r)
}

// validateLogSizes checks the logs of each task against the group's disk, as Nomad does: only a few tasks fill their logs.
func (g *TaskGroup) validateLogSizes(r reporter) {
	for _, t := range g.Tasks {
		l := t.LogConfig
		if g.EphemeralDisk == nil || l == nil || l.Disabled {
			continue
		}
		if logs := clampMul(l.MaxFiles, l.MaxFileSizeMB); logs >= g.EphemeralDisk.SizeMB {
			r.in("ephemeral_disk", "", -1).addf("size",
				"must be larger than the logs of task %q, which may grow to %d MB; it is %d", t.Name, logs, g.EphemeralDisk.SizeMB)
		}
	}
}

// clampMul multiplies without overflow.
func clampMul(a, b int) int {
	const most = 1 << 40
	if a < 0 || b < 0 {
		return 0
	}
	if a > 0 && b > most/a {
		return most
	}
	return a * b
}
