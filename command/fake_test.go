package command

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// present is the time that commands under test take it to be.
var present = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) int64 { return present.Add(-d).UnixNano() }

// fake is an agent that answers what it is told to.
type fake struct {
	*httptest.Server
	mu        sync.Mutex
	answers   map[string][]any // "GET /v1/jobs" → answers in turn; the last one stays
	requested []string         // method, path and query
	bodies    []string
	pages     map[string]int // how many items a list at a path gives at once
}

// refusal is an answer that is an error.
type refusal struct {
	status int
	text   string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{answers: map[string][]any{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// on adds answers of a route. prefix and such are answered for lists of stubs as
// a server does: by the beginnings of IDs.
func (f *fake) on(route string, answers ...any) *fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[route] = append(f.answers[route], answers...)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	f.requested, f.bodies = append(f.requested, r.Method+" "+r.URL.RequestURI()), append(f.bodies, string(body))
	key := r.Method + " " + r.URL.Path
	answers := f.answers[key]
	if len(answers) == 0 {
		http.Error(w, "nothing at "+key, http.StatusNotFound)
		return
	}
	answer := answers[0]
	if len(answers) > 1 {
		f.answers[key] = answers[1:]
	}
	w.Header().Set("X-Nomad-Index", "7")
	prefix := r.URL.Query().Get("prefix")
	if slow, ok := answer.(func() any); ok {
		answer = slow()
	}
	switch a := answer.(type) {
	case refusal:
		http.Error(w, a.text, a.status)
		return
	case string:
		_, _ = io.WriteString(w, a)
		return
	case []*structs.JobListStub:
		answer = having(a, func(j *structs.JobListStub) string { return j.ID }, prefix)
	case []*structs.AllocListStub:
		answer = having(a, func(j *structs.AllocListStub) string { return j.ID }, prefix)
	case []*structs.NodeListStub:
		answer = having(a, func(j *structs.NodeListStub) string { return j.ID }, prefix)
	case []*structs.Namespace:
		answer = having(a, func(n *structs.Namespace) string { return n.Name }, prefix)
	case []*structs.VirtualClusterStatus:
		answer = having(a, func(vc *structs.VirtualClusterStatus) string { return vc.Name }, prefix)
	case []*structs.ProjectStatus:
		answer = having(a, func(p *structs.ProjectStatus) string { return p.Name }, prefix)
	case []*structs.NodePool:
		answer = having(a, func(p *structs.NodePool) string { return p.Name }, prefix)
	case *structs.Topology:
		answer = f.page(w, r, a)
	case []*structs.QueueEntry:
		if size := f.pages[r.URL.Path]; size > 0 {
			from, _ := strconv.Atoi(r.URL.Query().Get("next_token"))
			if to := from + size; to < len(a) {
				w.Header().Set("X-Nomad-Nexttoken", strconv.Itoa(to))
				a = a[:to]
			}
			answer = a[from:]
		}
	case []*structs.ScalingPolicyListStub:
		answer = having(a, func(j *structs.ScalingPolicyListStub) string { return j.ID }, prefix)
	case []*structs.Evaluation:
		answer = having(a, func(j *structs.Evaluation) string { return j.ID }, prefix)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// page cuts a list of nodes where pages are told to be short.
func (f *fake) page(w http.ResponseWriter, r *http.Request, t *structs.Topology) *structs.Topology {
	size := f.pages[r.URL.Path]
	if size == 0 {
		return t
	}
	if r.URL.Query().Get("filter") == "Devices != 0" {
		t = siteOf(slices.DeleteFunc(slices.Clone(t.Nodes), func(n *structs.TopologyNode) bool { return n.Devices == 0 })...)
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("next_token"))
	to := min(from+size, len(t.Nodes))
	if to < len(t.Nodes) {
		w.Header().Set("X-Nomad-Nexttoken", strconv.Itoa(to))
	}
	out := siteOf(slices.Clone(t.Nodes[from:to])...)
	for _, o := range t.Owners {
		out.AddOwner(structs.OwnerCounts{Owner: o.Owner, Owned: o.Owned})
	}
	for _, s := range out.Sites {
		s.CellOwner = t.Sites[slices.IndexFunc(t.Sites, func(of *structs.TopologySite) bool { return of.ID == s.ID })].CellOwner
	}
	if r.URL.Query().Get("details") == "" {
		for i, n := range out.Nodes {
			plain := *n
			plain.Cells = nil
			out.Nodes[i] = &plain
		}
	}
	return out
}

func having[T any](all []T, id func(T) string, prefix string) []T {
	return slices.DeleteFunc(slices.Clone(all), func(t T) bool { return !strings.HasPrefix(id(t), prefix) })
}

// requests are those whose method and path begin with a prefix, in their order.
func (f *fake) requests(prefix string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, r := range f.requested {
		if strings.HasPrefix(r, prefix) {
			out = append(out, r)
		}
	}
	return out
}

// lastPut is the body of the last PUT.
func (f *fake) lastPut() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, line := range slices.Backward(f.requested) {
		if strings.HasPrefix(line, "PUT ") {
			return f.bodies[i]
		}
	}
	return ""
}

// lastBody is what was sent last.
func (f *fake) lastBody() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[len(f.bodies)-1]
}

// result is how a command ended.
type result struct {
	code     int
	out, err string
}

// run runs a command line against the agent, at the present.
func (f *fake) run(t *testing.T, args ...string) result { t.Helper(); return f.runIn(t, "", args...) }

// specs are those of all commands.
func specs() map[string]spec {
	all := map[string]spec{}
	for name, make := range registry() {
		all[name] = make()
	}
	return all
}

// runIn is run with something on standard input.
func (f *fake) runIn(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var errOut bytes.Buffer
	got := f.runTo(t, &errOut, stdin, args...)
	got.err = errOut.String()
	return got
}

// runTo is runIn with an error output of its own; the result has none.
func (f *fake) runTo(t *testing.T, errOut io.Writer, stdin string, args ...string) result {
	t.Helper()
	name, rest := "", args
	all := specs()
	for n := min(4, len(args)); n > 0 && name == ""; n-- {
		if _, ok := all[strings.Join(args[:n], " ")]; ok {
			name, rest = strings.Join(args[:n], " "), args[n:]
		}
	}
	if name == "" {
		t.Fatalf("there is no command %q", args)
	}
	if f != nil && !all[name].local {
		rest = append([]string{"-address", f.URL}, rest...)
	}
	var out bytes.Buffer
	r := &runner{
		name: name, spec: all[name], in: strings.NewReader(stdin), out: &out, err: errOut, ctx: t.Context(),
		now: func() time.Time { return present },
	}
	code := r.Run(rest)
	return result{code: code, out: out.String()}
}

// wants fails the test unless all parts stand in text.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

const (
	allocA = "5f3a9c01-0000-8000-8000-000000000001"
	allocB = "5f3a9c02-0000-8000-8000-000000000002"
	nodeA  = "01976c1c-5f3a-7c11-a9d0-5d1f2b3c4d5e"
	nodeB  = "01976c1c-5f3b-7c11-a9d0-5d1f2b3c4d5f"
	evalA  = "01976c1d-0001-7a00-8000-000000000001"
	evalB  = "01976c1d-0002-7b00-8000-000000000002"
)

func webJob() *structs.Job {
	j := &structs.Job{
		ID: "web", Name: "web", Namespace: "default", Type: structs.JobTypeService, Priority: 50, NodePool: "default",
		Datacenters: []string{"dc1"}, Status: structs.JobStatusRunning, Version: 3, SubmitTime: ago(time.Hour),
		TaskGroups: []*structs.TaskGroup{{
			Name: "front", Count: 2,
			Networks: []*structs.NetworkResource{{ReservedPorts: []structs.Port{{Label: "http", Value: 80}}}},
			Tasks:    []*structs.Task{{Name: "serve", Driver: "mock_driver"}},
		}},
	}
	return j
}

func webAlloc(id, status string) *structs.Allocation {
	return &structs.Allocation{
		ID: id, Namespace: "default", EvalID: evalA, Name: "web.front[0]", NodeID: nodeA, NodeName: "gpu-1", JobID: "web",
		Job: webJob(), JobVersion: 3, TaskGroup: "front", DesiredStatus: structs.AllocDesiredRun, ClientStatus: status,
		CreateIndex: 20, CreateTime: ago(5 * time.Minute), ModifyTime: ago(2 * time.Second),
		AllocatedResources: &structs.AllocatedResources{
			Tasks: map[string]*structs.AllocatedTaskResources{"serve": {
				Cpu:    structs.AllocatedCpuResources{CpuShares: 500, ReservedCores: []uint16{2, 3}},
				Memory: structs.AllocatedMemoryResources{MemoryMB: 256},
				Devices: []*structs.AllocatedDeviceResource{{
					Vendor: "nvidia", Type: "gpu", Name: "H100", DeviceIDs: []string{"gpu-1-gpu-0"},
				}},
			}},
			Shared: structs.AllocatedSharedResources{DiskMB: 300, Ports: []structs.PortMapping{
				{Label: "http", Value: 80, HostIP: "10.0.0.1"}, {Label: "admin", Value: 23456, To: 9090, HostIP: "10.0.0.1"},
			}},
		},
		Metrics: &structs.AllocMetric{
			NodesEvaluated: 3, NodesFiltered: 1, ConstraintFiltered: map[string]int{"${attr.kernel.name} = linux": 1},
			ScoreMetaData: []*structs.NodeScoreMeta{{NodeID: nodeA, Scores: map[string]float64{"binpack": 0.5}, NormScore: 0.5}},
		},
		TaskStates: map[string]*structs.TaskState{"serve": {
			State: structs.TaskStateRunning, StartedAt: present.Add(-time.Minute), Restarts: 2,
			Events: []*structs.TaskEvent{
				{Type: structs.TaskReceived, Time: ago(time.Minute), DisplayMessage: "Task received by client"},
				{Type: structs.TaskStarted, Time: ago(time.Minute), DisplayMessage: "Task started by client"},
			},
		}},
	}
}

func teamNamespace() *structs.Namespace {
	return &structs.Namespace{
		Name: "team", Description: "Those who train", Meta: map[string]string{"owner": "sre"},
		Capabilities: &structs.NamespaceCapabilities{EnabledTaskDrivers: []string{"exec", "mock_driver"}, DisabledNetworkModes: []string{"host"}},
	}
}

// teamCluster is a virtual cluster of which a node is in use, and lent in part.
func teamCluster() *structs.VirtualClusterStatus {
	return &structs.VirtualClusterStatus{
		Name: "team", OverLimit: structs.OverLimitOpportunistic, Points: 12, GuaranteedGPUs: 3,
		Cells: []*structs.CellStatus{{
			Kind: "nvidia/gpu/H100", NodePool: structs.DefaultNodePool, Level: "node", Given: 4, Won: 1, Bound: 1, Doomed: 1, GPUs: 16, GPUsUsed: 3, Lent: 1,
		}},
		Bound: []*structs.BoundCell{{
			Kind: "nvidia/gpu/H100", Level: "node", Cell: "gpu-1", NodeID: nodeA, Used: 3, Lent: 1, Allocs: []string{allocA}, Borrowers: []string{allocB},
		}},
		Windows: []*structs.CellWindow{{
			From: present.Add(240 * time.Hour).Truncate(24 * time.Hour), To: present.Add(480 * time.Hour).Truncate(24 * time.Hour), Cells: []*structs.CellQuota{{Level: "node", Count: 6}},
		}},
	}
}

func gpuPool() *structs.NodePool {
	return &structs.NodePool{Name: "gpu", Description: "Machines with H100", Meta: map[string]string{"owner": "sre"}, NodeIdentityTTL: time.Hour}
}

func webEval(id, status string) *structs.Evaluation {
	return &structs.Evaluation{
		ID: id, Namespace: "default", JobID: "web", Type: structs.JobTypeService, Priority: 50, Status: status,
		TriggeredBy: structs.EvalTriggerJobRegister, CreateIndex: 20, CreateTime: ago(time.Minute), ModifyTime: ago(time.Minute),
	}
}

// unplaced makes an evaluation one that could not place 2 of group back.
func unplaced(e *structs.Evaluation) *structs.Evaluation {
	e.BlockedEval = evalB
	e.FailedTGAllocs = map[string]*structs.AllocMetric{"back": {
		NodesEvaluated: 4, NodesAvailable: map[string]int{"dc1": 4, "dc2": 0},
		ConstraintFiltered: map[string]int{"${attr.kernel.name} = windows": 3}, NodesExhausted: 1,
		DimensionExhausted: map[string]int{"memory": 1}, CoalescedFailures: 1,
	}}
	return e
}

func gpuNode(id, name string) *structs.Node {
	return &structs.Node{
		ID: id, Name: name, Datacenter: "dc1", NodePool: "default", Status: structs.NodeStatusReady,
		SchedulingEligibility: structs.NodeEligible, Attributes: map[string]string{"kernel.name": "linux"},
		Meta:    map[string]string{"rack": "r1"},
		Drivers: map[string]*structs.DriverInfo{"mock_driver": {Detected: true, Healthy: true, HealthDescription: "Healthy"}},
		Events:  []*structs.NodeEvent{{Message: "Node registered", Subsystem: "Cluster", Timestamp: present}},
		NodeResources: &structs.NodeResources{
			Cpu:    structs.NodeCpuResources{CpuShares: 8000, TotalCpuCores: 4, ReservableCpuCores: []uint16{0, 1, 2, 3}},
			Memory: structs.NodeMemoryResources{MemoryMB: 4096}, Disk: structs.NodeDiskResources{DiskMB: 10240},
			Devices: []*structs.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "H100", Instances: []*structs.NodeDevice{
				{ID: name + "-gpu-0", Healthy: true}, {ID: name + "-gpu-1", HealthDescription: "Xid 79"},
			}}},
		},
	}
}

func nodeStub(n *structs.Node) *structs.NodeListStub {
	return &structs.NodeListStub{
		ID: n.ID, Name: n.Name, Datacenter: n.Datacenter, NodePool: n.NodePool, Status: n.Status,
		SchedulingEligibility: n.SchedulingEligibility, Address: "10.0.0.1", Version: "1.0", Attributes: map[string]string{"os.name": "debian"},
	}
}

// cluster is an agent with a job, two allocations, two nodes.
func cluster(t *testing.T) *fake {
	t.Helper()
	running, done := webAlloc(allocA, structs.AllocClientRunning), webAlloc(allocB, structs.AllocClientComplete)
	done.CreateIndex, done.NodeID, done.Name = 10, nodeB, "web.front[1]"
	stubs := []*structs.AllocListStub{done.Stub(false, true), running.Stub(false, true)}
	one, two := webEval(evalA, structs.EvalStatusComplete), webEval(evalB, structs.EvalStatusBlocked)
	two.CreateIndex = 21
	gpu := gpuNode(nodeA, "gpu-1")
	return newFake(t).
		on("GET /v1/jobs", []*structs.JobListStub{
			{ID: "web", Name: "web", Type: "service", Priority: 50, Status: "running"},
			{ID: "webhook", Name: "webhook", Type: "batch", Priority: 60, Status: "dead", Stop: true},
		}).
		on("GET /v1/job/web", webJob()).
		on("GET /v1/job/web/summary", &structs.JobSummary{JobID: "web", Summary: map[string]structs.TaskGroupSummary{"front": {Running: 1, Complete: 1}}}).
		on("GET /v1/job/web/evaluations", []*structs.Evaluation{unplaced(one), two}).
		on("GET /v1/job/web/allocations", stubs).
		on("GET /v1/job/webhook/summary", &structs.JobSummary{JobID: "webhook"}).
		on("GET /v1/job/webhook/evaluations", []*structs.Evaluation{}).
		on("GET /v1/job/webhook/allocations", []*structs.AllocListStub{}).
		on("GET /v1/job/web/versions", &structs.JobVersionsReply{Versions: []*structs.Job{webJob()}}).
		on("GET /v1/job/web/submission", &structs.JobSubmission{Source: "job \"web\" {}\n"}).
		on("GET /v1/allocations", stubs).
		on("GET /v1/allocation/"+allocA, running).
		on("GET /v1/client/allocation/"+allocA+"/stats", &structs.AllocResourceUsage{Tasks: map[string]*structs.TaskResourceUsage{"serve": {
			ResourceUsage: &structs.ResourceUsage{
				MemoryStats: &structs.MemoryStats{RSS: 1 << 20, Usage: 2 << 20}, CpuStats: &structs.CpuStats{TotalTicks: 42, Percent: 7},
			},
		}}}).
		on("GET /v1/job/web/scale", &structs.JobScaleStatus{JobID: "web", TaskGroups: map[string]structs.TaskGroupScaleStatus{
			"front": {Events: []*structs.ScalingEvent{
				{Time: ago(time.Minute), Count: new(int64), PreviousCount: 2, Message: "fewer", EvalID: &one.ID},
				{Time: ago(time.Hour), PreviousCount: 2, Message: "no room", Error: true},
			}},
			"back": {Events: []*structs.ScalingEvent{{Time: ago(2 * time.Minute), PreviousCount: 1}}},
		}}).
		on("PUT /v1/search", &structs.SearchReply{Matches: map[string][]string{"jobs": {"web", "webhook"}}}).
		on("GET /v1/evaluations", []*structs.Evaluation{one, two}).
		on("GET /v1/evaluation/"+evalA, one).
		on("GET /v1/evaluation/"+evalA+"/allocations", stubs).
		on("GET /v1/nodes", []*structs.NodeListStub{nodeStub(gpu), nodeStub(gpuNode(nodeB, "gpu-2"))}).
		on("GET /v1/node/"+nodeA, gpu).
		on("GET /v1/node/"+nodeA+"/allocations", []*structs.Allocation{running}).
		on("GET /v1/namespaces", []*structs.Namespace{structs.BuiltInNamespace("default"), teamNamespace()}).
		on("GET /v1/namespace/team", teamNamespace()).
		on("GET /v1/virtual-clusters", []*structs.VirtualClusterStatus{teamCluster()}).
		on("GET /v1/virtual-cluster/team", teamCluster()).
		on("PUT /v1/what-if", fullWhatIf()).
		on("GET /v1/licenses", []*structs.LicenseStub{&licensed().LicenseStub}).
		on("GET /v1/license/vcs", licensed()).
		on("GET /v1/workflows", []*structs.WorkflowStub{{ID: "chip", Namespace: "default", Run: 1, State: structs.WorkflowRunning, Stage: 2, Stages: 3, StageName: "place", Priority: 70}}).
		on("GET /v1/workflow/chip", drawn()).
		on("GET /v1/projects", []*structs.ProjectStatus{chipProject()}).
		on("GET /v1/project/chip/calendar", chipCalendar()).
		on("GET /v1/project/chip/edits", chipEdits()).on("GET /v1/project/chip/report", chipReport()).
		on("GET /v1/flows", []*structs.Flow{{Name: "asic", Steps: []string{"synthesis", "place"}}}).
		on("GET /v1/exchanges", []*structs.Exchange{
			{ID: allocA, Owner: "team", Cells: structs.CellQuota{Kind: "nvidia/gpu/H100", Level: "node", Count: 2}, From: present, Until: present.Add(time.Hour)},
			{ID: allocB, Bid: true, Owner: "lab", Points: 3, Cells: structs.CellQuota{Level: "rack", Size: 16, Count: 1}, From: present, Until: present.Add(time.Hour)},
		}).
		on("GET /v1/node/pools", []*structs.NodePool{structs.BuiltInNodePool("all"), structs.BuiltInNodePool("default"), gpuPool()}).
		on("GET /v1/node/pool/gpu/nodes", []*structs.NodeListStub{nodeStub(gpu)}).
		on("GET /v1/node/pool/gpu/jobs", []*structs.JobListStub{{ID: "web", Name: "web", Type: "service", Priority: 50, Status: "running"}}).
		on("GET /v1/client/metadata", someMeta()).
		on("GET /v1/agent/servers", []string{"10.0.0.1:4647"}).
		on("GET /v1/scaling/policies", []*structs.ScalingPolicyListStub{somePolicy().Stub()}).
		on("GET /v1/scaling/policy/"+policyID, somePolicy()).
		on("GET /v1/topology", smallSite()).
		on("GET /v1/topology/node/"+nodeA, smallSite()).
		on("GET /v1/queue", smallQueue()).
		on("GET /v1/operator/check", structs.CheckReport{Server: "s1", Hash: "abcd", Found: map[string]int{}}).
		on("GET /v1/job/web/explain", smallExplanation()).
		on("GET /v1/client/stats", &structs.HostStats{Memory: &structs.HostMemoryStats{Total: 4 << 30, Used: 1 << 30}, CPUTicksConsumed: 123, Uptime: 90}).
		on("GET /v1/client/fs/stat/"+allocA, &structs.AllocFileInfo{Name: "alloc", IsDir: true, Size: 4096, FileMode: "drwxr-xr-x", ModTime: present}).
		on("GET /v1/client/fs/ls/"+allocA, []*structs.AllocFileInfo{{Name: "serve.stdout.0", Size: 1536, FileMode: "-rw-r--r--", ModTime: present}}).
		on("GET /v1/agent/self", map[string]any{"stats": map[string]any{"client": map[string]string{"node_id": nodeA}}}).
		on("GET /v1/agent/members", map[string]any{"Members": []map[string]any{{
			"Name": "s1.global", "Addr": "10.0.0.1", "Port": 4648, "Status": "alive",
			"Tags": map[string]string{"region": "global", "rpc_addr": "10.0.0.1", "port": "4647"},
		}, {
			"Name": "m1.mars", "Addr": "10.9.0.1", "Port": 4649, "Status": "failed",
			"Tags": map[string]string{"region": "mars", "rpc_addr": "10.9.0.1", "port": "4647"},
		}}}).
		on("GET /v1/regions", []string{"global", "mars"}).
		on("GET /v1/operator/autopilot/configuration", &structs.AutopilotConfiguration{MinQuorum: 3, LastContactThreshold: time.Second, ModifyIndex: 8}).
		on("PUT /v1/operator/autopilot/configuration", "true").
		on("GET /v1/operator/autopilot/health", &structs.AutopilotHealth{
			Healthy: true, Leader: "s1", Voters: []string{"s1"}, Servers: []structs.ServerHealth{{ID: "s1", Name: "server-1", Leader: true, StableSince: present}},
		}).
		on("GET /v1/agent/keyring/list", &structs.KeyringReply{
			Keys: map[string]int{"b2xkLg==": 3, "bmV3Lg==": 2}, PrimaryKeys: map[string]int{"b2xkLg==": 3}, NumNodes: 3,
		}).
		on("GET /v1/status/leader", "\"10.0.0.1:4647\"").
		on("GET /v1/operator/raft/configuration", &structs.RaftConfigurationReply{Servers: []*structs.RaftServer{{
			ID: "s1", Node: "s1", Address: "10.0.0.1:4647", Leader: true, Voter: true,
		}}}).
		on("GET /v1/operator/scheduler/configuration", &structs.SchedulerConfigReply{
			SchedulerConfig: &structs.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PauseEvalBroker: true, ModifyIndex: 9},
		}).
		on("GET /v1/metrics", map[string]any{"Timestamp": "now", "Gauges": []map[string]any{{"Name": "nomad.x", "Value": 3}}}).
		on("PUT /v1/system/reconcile/summaries", &structs.ReconcileReply{Differences: []string{"job web: 1 running, counted 2"}})
}
