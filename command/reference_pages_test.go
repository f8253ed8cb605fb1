package command

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/client"
	"github.com/nomadish/nomadish/command/agent/config"
	"github.com/nomadish/nomadish/command/jobspec"
	"github.com/nomadish/nomadish/command/reference"
	"github.com/nomadish/nomadish/internal/doccomment"
	"github.com/nomadish/nomadish/nomadish/heartbeat"
	"github.com/nomadish/nomadish/structs"
)

func newPages() *reference.Writer {
	return reference.NewWriter(doccomment.New("..", "github.com/nomadish/nomadish"))
}

// The page of the agent's configuration says what the structs do that files are decoded into.
func TestAgentPage(t *testing.T) {
	surface, err := os.ReadFile("agent/config/testdata/surface.txt")
	if err != nil {
		t.Fatal(err)
	}
	nomads := map[string][]string{}
	for line := range strings.Lines(string(surface)) {
		if block, names, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			nomads[block] = strings.Split(names, ", ")
		}
	}
	nomads["agent.plugin.raw_exec.config"] = []string{"enabled", "denied_envvars", "denied_host_uids", "denied_host_gids", "no_cgroups"}
	nomads["agent.client.host_volume"] = []string{"path", "read_only"}
	nomads["agent.server.default_scheduler_config"] = []string{"scheduler_algorithm", "memory_oversubscription_enabled", "reject_job_registration", "pause_eval_broker", "node_limit_for_feasibility_checks", "preemption_config"}
	nomads["agent.server.default_scheduler_config.preemption_config"] = []string{"system_scheduler_enabled", "sysbatch_scheduler_enabled", "batch_scheduler_enabled", "service_scheduler_enabled"}
	nomads["agent.server.server_join"] = nomads["agent.client.server_join"]
	pages := newPages()
	dev := config.Default()
	dev.SetDev()
	page := pages.AgentPage(withAllDefaults(config.Default()), withAllDefaults(dev), func(block, name string) bool {
		return slices.Contains(nomads[strings.TrimSuffix("agent."+block, ".")], name)
	})
	if err := pages.Err(); err != nil {
		t.Error(err)
	}
	isPage(t, "../docs/reference/agent-configuration.md", page)
}

// withAllDefaults fills in what the parts of an agent have where nothing is stated.
func withAllDefaults(c *config.Config) *config.Config {
	c.Server = c.Server.WithDefaults()
	c.Server.ClientLiveness = config.ClientLiveness(heartbeat.Liveness{}.WithDefaults())
	auto := c.AutopilotConfig()
	c.Autopilot.CleanupDeadServers, c.Autopilot.ServerStabilizationTime = &auto.CleanupDeadServers, auto.ServerStabilizationTime
	c.Autopilot.LastContactThreshold, c.Autopilot.MaxTrailingLogs = auto.LastContactThreshold, int(auto.MaxTrailingLogs)

	cl := client.Config{MaxKillTimeout: c.Client.MaxKillTimeout, GC: client.GCConfig{MaxAllocs: c.Client.GCMaxAllocs}}.WithDefaults()
	c.Client.Pool, c.Client.MaxKillTimeout, c.Client.MinDynamicPort, c.Client.MaxDynamicPort = cl.Node.Pool, cl.MaxKillTimeout, cl.Machine.MinDynamicPort, cl.Machine.MaxDynamicPort
	c.Client.Users.AllocGroupMin, c.Client.Users.AllocGroupMax = cl.AllocGroups.Min, cl.AllocGroups.Max
	c.Client.GCInterval, c.Client.GCMaxAllocs, c.Client.GCDiskUsageThreshold, c.Client.GCParallelDestroys = cl.GC.Interval, cl.GC.MaxAllocs, cl.GC.DiskUsageThreshold, cl.GC.ParallelDestroys
	c.Client.DiskFullMB, c.Client.DiskFullPercent = structs.DefaultClientDiskLimit.MB, structs.DefaultClientDiskLimit.Percent

	s := &c.Server.Scheduling
	seed := structs.DefaultSchedulerConfiguration()
	whole := seed.Effective()
	s.Policy, s.Dimensions, s.Granularity, s.PreferredCells = whole.Policy, whole.Dimensions, whole.Granularity, whole.PreferredCells
	s.ReservationAfter, s.ReservationTTL, s.Cycle = whole.ReservationAfter, whole.ReservationTTL, whole.Cycle
	grace, limit := structs.DefaultGrace, structs.DefaultSuspendLimit
	allocated, requeue, most, light := structs.DefaultAllocatedBonus, structs.DefaultRequeueBonus, structs.DefaultMaxRequeues, structs.DefaultLight
	s.Slots = structs.SlotSettings{Grace: &grace, AllocatedBonus: &allocated, RequeueBonus: &requeue, MaxRequeues: &most, SuspendLimit: &limit, Light: &light}
	return c
}

// The page of job files says what the structs do that they are decoded into.
func TestJobPage(t *testing.T) {
	effectless := structs.FieldsWithoutEffect()
	without := func(block, name string) bool {
		return slices.ContainsFunc(effectless, func(f structs.EffectlessField) bool { return f.Block == block && f.Name == name })
	}
	spec := reference.Spec{Block: "job", Type: reflect.TypeFor[structs.Job](), Effectless: effectless}
	for _, kind := range []string{structs.JobTypeService, structs.JobTypeBatch} {
		job := reference.Defaults(spec.Type, "job", without).Interface().(*structs.Job)
		job.ID, job.Type, job.Multiregion, job.Periodic = "NAME", kind, nil, nil
		job.Canonicalize()
		group := job.TaskGroups[0]
		job.Update, job.Migrate, job.Reschedule = group.Update, group.Migrate, group.ReschedulePolicy // a job's are what its groups' are made of
		spec.Values = append(spec.Values, reference.SpecValue{Name: kind, Value: reflect.ValueOf(job).Elem()})
	}
	pages := newPages()
	page := pages.SpecPage(reference.JobIntro, spec)
	if err := pages.Err(); err != nil {
		t.Error(err)
	}
	isPage(t, "../docs/reference/jobspec.md", page)
}

// The pages of other files say what the structs do that they are decoded into.
func TestFilePages(t *testing.T) {
	pages := newPages()
	page := func(name, intro string, specs ...reference.Spec) {
		t.Helper()
		isPage(t, "../docs/reference/"+name, pages.SpecPage(intro, specs...))
	}
	const aJob = "[a job](jobspec.md#job)"
	job := map[reflect.Type]string{reflect.TypeFor[structs.Job](): aJob, jobspec.JobType(): aJob}
	page("workflow-files.md", reference.WorkflowIntro, reference.Spec{Block: "workflow", Type: jobspec.WorkflowType(), Elsewhere: job})
	page("virtual-cluster-files.md", reference.VirtualClusterIntro, reference.Spec{Block: "virtual_cluster", Type: reflect.TypeFor[structs.VirtualCluster]()})
	page("project-files.md", reference.ProjectIntro, reference.Spec{Block: "project", Type: reflect.TypeFor[projectBlock]()}, reference.Spec{Block: "flow", Type: reflect.TypeFor[structs.Flow]()})
	page("other-files.md", reference.OtherIntro, reference.Spec{Block: "namespace", Type: reflect.TypeFor[structs.Namespace]()},
		reference.Spec{Block: "node_pool", Type: reflect.TypeFor[structs.NodePool]()}, reference.Spec{Block: "license", Type: reflect.TypeFor[structs.License]()})
	if err := pages.Err(); err != nil {
		t.Error(err)
	}
}

// The pages of events and of limits say what the constants do.
func TestListPages(t *testing.T) {
	pages := newPages()
	isPage(t, "../docs/reference/events.md", pages.EventsPage())
	isPage(t, "../docs/reference/limits.md", pages.LimitsPage(withAllDefaults(config.Default())))
	if err := pages.Err(); err != nil {
		t.Error(err)
	}
}
