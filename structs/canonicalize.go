package structs

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Canonicalize fills everything that a job leaves to its defaults, as Nomad's
// documentation states them, so that later readers never check whether something
// was stated. It may be called again without effect.
func (j *Job) Canonicalize() {
	setDefault(&j.Region, DefaultRegion)
	setDefault(&j.Namespace, DefaultNamespace)
	setDefault(&j.Name, j.ID)
	setDefault(&j.Type, JobTypeService)
	setDefault(&j.NodePool, DefaultNodePool)
	setDefault(&j.Reclaim, ReclaimRequeue)
	setDefault(&j.Class, ClassAuto)
	if j.Priority == 0 {
		j.Priority = JobDefaultPriority
	}
	if len(j.Datacenters) == 0 && j.Multiregion == nil {
		j.Datacenters = []string{DefaultDatacenter}
	}
	canonicalTargets(j.Constraints, j.Affinities)
	if p := j.Periodic; p != nil {
		setDefault(&p.SpecType, PeriodicSpecCron)
		setDefault(&p.TimeZone, "UTC")
	}
	if p := j.ParameterizedJob; p != nil {
		setDefault(&p.Payload, DispatchPayloadOptional)
	}
	if m := j.Multiregion; m != nil && m.Strategy == nil {
		m.Strategy = &MultiregionStrategy{}
	}
	for _, g := range j.TaskGroups {
		g.canonicalize(j)
	}
}

func setDefault(s *string, to string) {
	if *s == "" {
		*s = to
	}
}

func setZero(n *int, to int) {
	if *n == 0 {
		*n = to
	}
}

func canonicalTargets(constraints []*Constraint, affinities []*Affinity) {
	for _, c := range constraints {
		c.Operand = canonicalOperand(c.Operand)
	}
	for _, a := range affinities {
		a.Operand = canonicalOperand(a.Operand)
		setZero(&a.Weight, DefaultWeight)
	}
}

func canonicalOperand(op string) string {
	switch op {
	case "", "==", "is":
		return ConstraintEqual
	case "not":
		return ConstraintNotEqual
	}
	return op
}

func (g *TaskGroup) canonicalize(j *Job) {
	g.AfterDecode()
	if g.Scaling != nil {
		setDefault(&g.Scaling.Type, "horizontal")
		if g.Scaling.Min < 0 {
			g.Scaling.Min = int64(g.Count)
		}
	}
	if g.EphemeralDisk == nil {
		g.EphemeralDisk = &EphemeralDisk{}
	}
	setZero(&g.EphemeralDisk.SizeMB, DefaultEphemeralDiskMB)
	canonicalTargets(g.Constraints, g.Affinities)
	if g.Gang != nil {
		setDefault(&g.Gang.OnLoss, GangOnLossGang)
	}
	if g.Consul != nil {
		setDefault(&g.Consul.Namespace, j.ConsulNamespace)
		setDefault(&g.Consul.Cluster, "default")
	}
	g.canonicalPolicies(j)
	g.canonicalDisconnect()
	for _, n := range g.Networks {
		n.canonicalize()
	}
	for _, s := range g.Services {
		s.canonicalize(j.Name + "-" + g.Name)
	}
	for name, v := range g.Volumes {
		setDefault(&v.Name, name)
	}
	for _, t := range g.Tasks {
		t.canonicalize(j, g)
	}
}

func (g *TaskGroup) canonicalPolicies(j *Job) {
	long := j.Type == JobTypeService || j.Type == JobTypeSystem
	perNode := j.Type == JobTypeSystem || j.Type == JobTypeSysBatch
	g.RestartPolicy = merged(g.RestartPolicy, defaultRestart(j.Type))
	if perNode {
		// A system job's instance belongs to its node: there is nowhere to
		// reschedule it to. What was stated stays, for Validate to refuse.
		if g.ReschedulePolicy != nil {
			g.ReschedulePolicy = mergedReschedule(j.Type, g.ReschedulePolicy)
		}
	} else {
		g.ReschedulePolicy = mergedReschedule(j.Type, g.ReschedulePolicy, j.Reschedule)
	}
	if long || g.Update != nil || j.Update != nil {
		g.Update = merged(g.Update, j.Update, defaultUpdate())
	}
	if j.Type == JobTypeService || g.Migrate != nil || j.Migrate != nil {
		g.Migrate = merged(g.Migrate, j.Migrate, defaultMigrate())
	}
}

// canonicalDisconnect moves Nomad's older fields into the disconnect block,
// where nothing else is stated there.
func (g *TaskGroup) canonicalDisconnect() {
	if g.Disconnect == nil && (g.StopAfterClientDisconnect > 0 || g.MaxClientDisconnect > 0 || g.PreventRescheduleOnLost) {
		g.Disconnect = &DisconnectStrategy{
			LostAfter:         g.MaxClientDisconnect,
			StopOnClientAfter: g.StopAfterClientDisconnect,
			Replace:           !g.PreventRescheduleOnLost,
		}
		g.StopAfterClientDisconnect, g.MaxClientDisconnect, g.PreventRescheduleOnLost = 0, 0, false
	}
	if g.Disconnect != nil {
		setDefault(&g.Disconnect.Reconcile, ReconcileBestScore)
	}
}

func (t *Task) canonicalize(j *Job, g *TaskGroup) {
	if t.Resources == nil {
		t.Resources = &Resources{}
	}
	t.Resources.canonicalize()
	canonicalTargets(t.Constraints, t.Affinities)
	t.RestartPolicy = merged(t.RestartPolicy, g.RestartPolicy)
	if t.LogConfig == nil {
		t.LogConfig = &LogConfig{}
	}
	t.LogConfig.canonicalize()
	t.canonicalIdentity()
	for _, s := range t.Services {
		setDefault(&s.TaskName, t.Name)
		s.canonicalize(j.Name + "-" + g.Name + "-" + t.Name)
	}
	for _, a := range t.Artifacts {
		a.canonicalize()
	}
	for _, m := range t.Templates {
		m.canonicalize()
	}
	for _, p := range t.ScalingPolicies {
		p.Min = max(p.Min, 0)
	}
	for _, m := range t.VolumeMounts {
		setDefault(&m.PropagationMode, VolumeMountPropagationPrivate)
	}
	if v := t.Vault; v != nil {
		setDefault(&v.Namespace, j.VaultNamespace)
		setDefault(&v.Cluster, "default")
		setDefault(&v.ChangeMode, ChangeModeRestart)
		if v.ChangeMode == ChangeModeSignal {
			setDefault(&v.ChangeSignal, "SIGHUP")
		}
	}
	if c := t.Consul; c != nil {
		setDefault(&c.Namespace, j.ConsulNamespace)
		setDefault(&c.Cluster, "default")
	}
	if c := t.CSIPluginConfig; c != nil {
		setDefault(&c.MountDir, "/csi")
		setDefault(&c.StagePublishBaseDir, "/local/csi")
		if c.HealthTimeout == 0 {
			c.HealthTimeout = 30 * time.Second
		}
	}
}

// Separate moves what a job file writes in one list to the fields that the API has for it: static ports to ReservedPorts, the
// default identity to Identity. It fills in nothing.
func (j *Job) Separate() {
	for _, g := range j.TaskGroups {
		for _, n := range g.Networks {
			n.canonicalize()
		}
		for _, t := range g.Tasks {
			t.separateIdentity()
			if t.Resources == nil {
				continue
			}
			for _, n := range t.Resources.Networks {
				n.canonicalize()
			}
		}
	}
}

func (t *Task) canonicalIdentity() {
	t.separateIdentity()
	if t.Identity != nil {
		setDefault(&t.Identity.Name, DefaultIdentityName)
	}
}

// separateIdentity takes the default identity out of the list.
func (t *Task) separateIdentity() {
	at := slices.IndexFunc(t.Identities, func(i *WorkloadIdentity) bool {
		return i.Name == "" || i.Name == DefaultIdentityName
	})
	if at >= 0 && t.Identity == nil {
		t.Identity = t.Identities[at]
		t.Identities = slices.Delete(slices.Clone(t.Identities), at, at+1)
	}
}

func (r *Resources) canonicalize() {
	if r.CPU == 0 && r.Cores == 0 {
		r.CPU = DefaultCPU
	}
	setZero(&r.MemoryMB, DefaultMemoryMB)
	for _, d := range r.Devices {
		setZero(&d.Count, 1)
		setZero(&d.Share, DeviceShareWhole)
		canonicalTargets(d.Constraints, d.Affinities)
	}
	for _, n := range r.Networks {
		n.canonicalize()
	}
	if r.NUMA != nil {
		setDefault(&r.NUMA.Affinity, NUMAAffinityNone)
	}
}

func (l *LogConfig) canonicalize() {
	setZero(&l.MaxFiles, DefaultLogMaxFiles)
	setZero(&l.MaxFileSizeMB, DefaultLogMaxFileSizeMB)
	if l.Enabled != nil {
		l.Disabled, l.Enabled = l.Disabled || !*l.Enabled, nil
	}
}

// canonicalize moves ports with a static number from the dynamic to the reserved.
func (n *NetworkResource) canonicalize() {
	static := func(p Port) bool { return p.Value > 0 }
	if !slices.ContainsFunc(n.DynamicPorts, static) {
		return
	}
	var dynamic []Port
	for _, p := range n.DynamicPorts {
		if static(p) {
			n.ReservedPorts = append(n.ReservedPorts, p)
		} else {
			dynamic = append(dynamic, p)
		}
	}
	n.DynamicPorts = dynamic
}

func (s *Service) canonicalize(name string) {
	setDefault(&s.Name, name)
	setDefault(&s.AddressMode, "auto")
	setDefault(&s.OnUpdate, "require_healthy")
	setDefault(&s.Provider, ServiceProviderConsul)
	setDefault(&s.Cluster, "default")
	for _, c := range s.Checks {
		setDefault(&c.OnUpdate, s.OnUpdate)
		if c.CheckRestart == nil {
			c.CheckRestart = copyOf(s.CheckRestart)
		}
	}
	if w := s.Weights; w != nil {
		setZero(&w.Passing, 1)
		setZero(&w.Warning, 1)
	}
}

func (a *TaskArtifact) canonicalize() {
	setDefault(&a.GetterMode, "any")
	if a.RelativeDest != "" {
		return
	}
	a.RelativeDest = "local/"
	if a.GetterMode == "file" {
		file, _, _ := strings.Cut(a.GetterSource, "?")
		a.RelativeDest = path.Join("local", path.Base(file))
	}
}

func (m *Template) canonicalize() {
	setDefault(&m.ChangeMode, ChangeModeRestart)
	if m.ChangeMode == ChangeModeSignal {
		setDefault(&m.ChangeSignal, "SIGHUP")
	}
	m.ChangeSignal = strings.ToUpper(m.ChangeSignal)
	setDefault(&m.Perms, "0644")
	setDefault(&m.LeftDelim, "{{")
	setDefault(&m.RightDelim, "}}")
	if m.ChangeScript != nil && m.ChangeScript.Timeout == 0 {
		m.ChangeScript.Timeout = 5 * time.Second
	}
}
