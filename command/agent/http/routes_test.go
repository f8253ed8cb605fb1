package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// answering returns a fake whose answers are such that every route has something to show.
func answering() *fake {
	fk := newFake()
	fk.answer[wire.MethodJobGet] = structs.JobReply{Job: &structs.Job{ID: "j"}}
	fk.answer[wire.MethodJobVersions] = structs.JobVersionsReply{Versions: []*structs.Job{{ID: "j"}}}
	fk.answer[wire.MethodJobSummary] = structs.JobSummaryReply{JobSummary: &structs.JobSummary{}}
	fk.answer[wire.MethodJobScaleStatus] = structs.JobScaleStatusReply{JobScaleStatus: &structs.JobScaleStatus{}}
	fk.answer[wire.MethodJobSubmission] = structs.JobSubmissionReply{Submission: &structs.JobSubmission{}}
	fk.answer[wire.MethodJobExplain] = structs.JobExplainReply{Explanation: &structs.JobExplanation{}}
	fk.answer[wire.MethodAllocExplain] = structs.AllocExplainReply{Explanation: &structs.AllocExplanation{}}
	fk.answer[wire.MethodAllocGet] = structs.AllocReply{Alloc: &structs.Allocation{}}
	fk.answer[wire.MethodEvalGet] = structs.EvalReply{Eval: &structs.Evaluation{}}
	fk.answer[wire.MethodNamespaceGet] = structs.NamespaceReply{Definition: &structs.Namespace{Name: "default"}}
	fk.answer[wire.MethodVirtualClusterGet] = structs.VirtualClusterReply{VirtualCluster: &structs.VirtualClusterStatus{Name: "team"}}
	fk.answer[wire.MethodProjectGet] = structs.ProjectReply{Project: &structs.ProjectStatus{Name: "chip"}}
	fk.answer[wire.MethodProjectCalendar] = structs.ProjectCalendarReply{Calendar: &structs.ProjectCalendar{Project: "chip"}}
	fk.answer[wire.MethodProjectEdits] = structs.ProjectEditsReply{Edits: []*structs.CalendarEdit{{Project: "chip"}}}
	fk.answer[wire.MethodProjectReport] = structs.ProjectReportReply{Report: &structs.ProjectReport{Project: "chip"}}
	fk.answer[wire.MethodFlowGet] = structs.FlowReply{Flow: &structs.Flow{Name: "asic"}}
	fk.answer[wire.MethodWorkflowGet] = structs.WorkflowGetReply{Workflow: &structs.WorkflowStatus{ID: "chip"}}
	fk.answer[wire.MethodWorkflowPlan] = structs.WorkflowPlanReply{Plan: &structs.WorkflowPlan{ID: "chip"}}
	fk.answer[wire.MethodWhatIf] = structs.WhatIfReply{WhatIf: &structs.WhatIf{}}
	fk.answer[wire.MethodLicenseGet] = structs.LicenseReply{License: &structs.LicenseStatus{}}
	fk.answer[wire.MethodNodePoolGet] = structs.NodePoolReply{NodePool: &structs.NodePool{Name: "default"}}
	fk.answer[wire.MethodNodeGet] = structs.NodeReply{Node: &structs.Node{}}
	fk.answer[wire.MethodClientAllocStats] = structs.ClientStatsReply{Stats: &structs.AllocResourceUsage{}}
	fk.answer[wire.MethodScalingGet] = structs.ScalingPolicyReply{Policy: &structs.ScalingPolicy{}}
	fk.answer[wire.MethodClientMetaRead] = structs.NodeMetaReply{Node: &structs.NodeMeta{}}
	fk.answer[wire.MethodClientMetaApply] = structs.NodeMetaReply{Node: &structs.NodeMeta{}}
	fk.answer[wire.MethodClientHostStats] = structs.ClientHostStatsReply{Stats: &structs.HostStats{}}
	fk.answer[wire.MethodClientFSStat] = structs.FSStatReply{Info: &structs.AllocFileInfo{}}
	fk.answer[wire.MethodTopology] = structs.TopologyReply{Topology: &structs.Topology{}}
	fk.answer[wire.MethodAutopilotHealth] = structs.AutopilotHealthReply{Health: structs.AutopilotHealth{Healthy: true}}
	fk.answer[wire.MethodLeader] = structs.StringReply{Value: "127.0.0.1:4647"}
	return fk
}

// eachRoute calls f with requests for every route, and the RPC method that each calls.
func eachRoute(f func(method, path, body, wantCall string)) {
	workRoutes(f)
	clusterRoutes(f)
	tenantRoutes(f)
	operationRoutes(f)
}

func workRoutes(f func(method, path, body, wantCall string)) {
	const job = `{"Job":{"ID":"j","Name":"j","Type":"batch"}}`
	f("GET", "/v1/jobs", "", wire.MethodJobList)
	f("GET", "/.well-known/jwks.json", "", wire.MethodSigningKeys)
	f("POST", "/v1/jobs", job, wire.MethodJobRegister)
	f("PUT", "/v1/jobs", job, wire.MethodJobRegister)
	f("POST", "/v1/jobs/parse", `{"JobHCL":"job \"a\" {}"}`, "")
	f("PUT", "/v1/validate/job", job, wire.MethodJobValidate)
	f("GET", "/v1/job/j", "", wire.MethodJobGet)
	f("PUT", "/v1/job/j", job, wire.MethodJobRegister)
	f("DELETE", "/v1/job/j?purge=true", "", wire.MethodJobDeregister)
	f("GET", "/v1/job/j/versions?diffs=true", "", wire.MethodJobVersions)
	f("GET", "/v1/job/j/allocations", "", wire.MethodJobAllocs)
	f("GET", "/v1/job/j/evaluations", "", wire.MethodJobEvals)
	f("GET", "/v1/job/j/summary", "", wire.MethodJobSummary)
	f("GET", "/v1/job/cron/periodic-7/summary", "", wire.MethodJobSummary)
	f("PUT", "/v1/job/j/plan", job, wire.MethodJobPlan)
	f("PUT", "/v1/job/j/evaluate", "", wire.MethodJobEvaluate)
	f("PUT", "/v1/job/j/evaluate", `{"JobID":"j","EvalOptions":{"ForceReschedule":true}}`, wire.MethodJobEvaluate)
	f("GET", "/v1/job/j/scale", "", wire.MethodJobScaleStatus)
	f("PUT", "/v1/job/j/scale", `{"Count":3,"Target":{"Job":"j","Group":"g"}}`, wire.MethodJobScale)
	f("PUT", "/v1/job/j/revert", `{"JobID":"j","JobVersion":0}`, wire.MethodJobRevert)
	f("PUT", "/v1/job/j/stable", `{"JobID":"j","JobVersion":0,"Stable":true}`, wire.MethodJobStability)
	f("GET", "/v1/job/j/submission?version=0", "", wire.MethodJobSubmission)
	f("GET", "/v1/job/j/deployments", "", "")
	f("GET", "/v1/job/j/deployment", "", "")
	f("GET", "/v1/deployments", "", "")
	f("GET", "/v1/allocations", "", wire.MethodAllocList)
	f("GET", "/v1/allocation/a", "", wire.MethodAllocGet)
	f("PUT", "/v1/allocation/a/stop", "", wire.MethodAllocStop)
	f("GET", "/v1/client/allocation/a/stats", "", wire.MethodClientAllocStats)
	f("PUT", "/v1/client/allocation/a/restart", `{"TaskName":"t"}`, wire.MethodClientAllocRestart)
	f("PUT", "/v1/client/allocation/a/signal", `{"Signal":"SIGHUP"}`, wire.MethodClientAllocSignal)
	f("GET", "/v1/client/allocation/a/gc", "", wire.MethodClientAllocGC)
	f("PUT", "/v1/client/allocation/a/suspend", "", wire.MethodAllocSuspend)
	f("PUT", "/v1/client/allocation/a/resume", "{}", wire.MethodAllocSuspend)
	f("GET", "/v1/client/fs/ls/a?path=/", "", wire.MethodClientFSList)
	f("GET", "/v1/client/fs/stat/a?path=f", "", wire.MethodClientFSStat)
	f("GET", "/v1/client/fs/cat/a?path=f", "", wire.MethodClientFSRead)
	f("GET", "/v1/client/fs/readat/a?path=f&offset=1&limit=-1", "", wire.MethodClientFSRead)
	f("GET", "/v1/client/fs/stream/a?path=f", "", wire.MethodClientFSRead)
	f("GET", "/v1/client/fs/logs/a?task=t&type=stdout", "", wire.MethodClientFSRead)
	f("GET", "/v1/client/stats", "", wire.MethodClientHostStats)
	f("GET", "/v1/client/gc?node_id=n", "", wire.MethodClientGC)
	f("GET", "/v1/evaluations", "", wire.MethodEvalList)
	f("DELETE", "/v1/evaluations", `{"Filter":"Status == pending"}`, wire.MethodEvalDelete)
	f("GET", "/v1/scaling/policies?job=j&type=horizontal", "", wire.MethodScalingList)
	f("GET", "/v1/scaling/policy/p", "", wire.MethodScalingGet)
	f("GET", "/v1/client/metadata", "", wire.MethodClientMetaRead)
	f("POST", "/v1/client/metadata?node_id=n", `{"Meta":{"a":"b","c":null}}`, wire.MethodClientMetaApply)
	f("GET", "/v1/evaluations/count", "", wire.MethodEvalCount)
	f("GET", "/v1/evaluation/e?related=true", "", wire.MethodEvalGet)
	f("GET", "/v1/evaluation/e/allocations", "", wire.MethodEvalAllocs)
}

func clusterRoutes(f func(method, path, body, wantCall string)) {
	f("GET", "/v1/agent/host?node_id=n", "", wire.MethodAgentHost)
	f("GET", "/v1/agent/monitor?server_id=leader", "", wire.MethodAgentMonitor)
	f("GET", "/v1/agent/pprof/heap?debug=1", "", wire.MethodAgentProfile)
	f("GET", "/v1/nodes", "", wire.MethodNodeList)
	f("GET", "/v1/topology?details=true&prefix=a", "", wire.MethodTopology)
	f("GET", "/v1/topology/node/n", "", wire.MethodTopology)
	f("GET", "/v1/node/n", "", wire.MethodNodeGet)
	f("GET", "/v1/node/n/allocations", "", wire.MethodNodeAllocs)
	f("PUT", "/v1/node/n/drain", `{"DrainSpec":{"Deadline":1}}`, wire.MethodNodeDrain)
	f("PUT", "/v1/node/n/eligibility", `{"Eligibility":"ineligible"}`, wire.MethodNodeEligibility)
	f("PUT", "/v1/node/n/sim-health", `{"Device":"n-gpu-0","Healthy":false}`, wire.MethodClientSimHealth)
	f("PUT", "/v1/node/n/purge", "", wire.MethodNodePurge)
	f("PUT", "/v1/node/n/evaluate", "", wire.MethodNodeEvaluate)
	f("GET", "/v1/node/pools", "", wire.MethodNodePoolList)
	f("PUT", "/v1/node/pools", `{"Name":"gpu"}`, wire.MethodNodePoolUpsert)
	f("GET", "/v1/node/pool/default", "", wire.MethodNodePoolGet)
	f("POST", "/v1/node/pool/gpu", `{"Description":"H100"}`, wire.MethodNodePoolUpsert)
	f("DELETE", "/v1/node/pool/gpu", "", wire.MethodNodePoolDelete)
	f("GET", "/v1/node/pool/default/nodes", "", wire.MethodNodePoolNodes)
	f("GET", "/v1/node/pool/all/jobs", "", wire.MethodNodePoolJobs)
	f("GET", "/v1/queue?node_pool=gpu&namespace=*", "", wire.MethodQueue)
	f("GET", "/v1/forecast?job=a&horizon=24h", "", wire.MethodForecast)
	f("PUT", "/v1/what-if", `{"Changes":[{"Lose":"n1"},{"Scheduler":{"SchedulerAlgorithm":"spread"}}]}`, wire.MethodWhatIf)
	f("GET", "/v1/agent/self", "", wire.MethodMembers)
	f("GET", "/v1/agent/health", "", wire.MethodLeader)
	f("GET", "/v1/agent/members", "", wire.MethodMembers)
	f("PUT", "/v1/agent/join?address=10.0.0.2&address=10.0.0.3:1", "", wire.MethodJoin)
	f("PUT", "/v1/agent/force-leave?node=s2.global&prune=1", "", wire.MethodForceLeave)
	f("GET", "/v1/agent/keyring/list?pool=clients", "", wire.MethodKeyring)
	f("PUT", "/v1/agent/keyring/install", `{"Key":"YWFhYWFhYWFhYWFhYWFhYQ=="}`, wire.MethodKeyring)
	f("GET", "/v1/operator/autopilot/configuration", "", wire.MethodAutopilotGet)
	f("PUT", "/v1/operator/autopilot/configuration?cas=4", `{"MinQuorum":3}`, wire.MethodAutopilotSet)
	f("GET", "/v1/operator/autopilot/health", "", wire.MethodAutopilotHealth)
	f("GET", "/v1/agent/servers", "", "")
	f("PUT", "/v1/agent/servers?address=10.0.0.1:4647", "", "")
	f("PUT", "/v1/agent/reload", "", "")
	f("GET", "/v1/agent/schedulers", "", "")
	f("GET", "/v1/agent/schedulers/config", "", "")
	f("GET", "/v1/metrics", "", "")
	f("GET", "/v1/metrics?format=prometheus", "", "")
	f("GET", "/v1/regions", "", wire.MethodRegions)
	f("GET", "/v1/status/leader", "", wire.MethodLeader)
	f("GET", "/v1/status/peers", "", wire.MethodPeers)
	f("PUT", "/v1/search", `{"Prefix":"a","Context":"jobs"}`, wire.MethodSearch)
	f("POST", "/v1/search/fuzzy", `{"Text":"a","Context":"all"}`, wire.MethodSearch)
	f("GET", "/v1/event/stream?topic=Job:j&topic=Queue", "", wire.MethodEventStream)
}

func tenantRoutes(f func(method, path, body, wantCall string)) {
	f("GET", "/v1/namespaces", "", wire.MethodNamespaceList)
	f("GET", "/v1/namespace/default", "", wire.MethodNamespaceGet)
	f("PUT", "/v1/namespace", `{"Name":"team"}`, wire.MethodNamespaceUpsert)
	f("POST", "/v1/namespace/team", `{"Description":"of a team"}`, wire.MethodNamespaceUpsert)
	f("DELETE", "/v1/namespace/team", "", wire.MethodNamespaceDelete)
	f("GET", "/v1/virtual-clusters", "", wire.MethodVirtualClusterList)
	f("GET", "/v1/virtual-cluster/team", "", wire.MethodVirtualClusterGet)
	f("PUT", "/v1/virtual-cluster/team?when_free&cas=4", `{"Cells":[{"Level":"node","Count":2}]}`, wire.MethodVirtualClusterUpsert)
	f("POST", "/v1/virtual-cluster/team", `{"Name":"team"}`, wire.MethodVirtualClusterUpsert)
	f("DELETE", "/v1/virtual-cluster/team", "", wire.MethodVirtualClusterDelete)
	f("PUT", "/v1/virtual-cluster/team/points", `{"Points":-3}`, wire.MethodVirtualClusterPoints)
	f("PUT", "/v1/virtual-cluster/team/shift", `{"Cells":{"Level":"node","Count":1}}`, wire.MethodVirtualClusterShift)
	f("GET", "/v1/projects", "", wire.MethodProjectList)
	f("GET", "/v1/project/chip", "", wire.MethodProjectGet)
	f("PUT", "/v1/project/chip?cas=4", `{"Users":["ada"],"Throughput":{"Jobs":3,"Per":"24h"}}`, wire.MethodProjectUpsert)
	f("POST", "/v1/project/chip", `{"Name":"chip"}`, wire.MethodProjectUpsert)
	f("DELETE", "/v1/project/chip", "", wire.MethodProjectDelete)
	f("GET", "/v1/project/chip/calendar", "", wire.MethodProjectCalendar)
	f("PUT", "/v1/project/chip/calendar?week=2026-W48&cas=7", `{"Rows":[{"Type":"batch","Count":4}]}`, wire.MethodProjectCalendarEdit)
	f("GET", "/v1/project/chip/edits", "", wire.MethodProjectEdits)
	f("GET", "/v1/project/chip/report?week=2026-W48", "", wire.MethodProjectReport)
	f("GET", "/v1/flows", "", wire.MethodFlowList)
	f("GET", "/v1/flow/asic", "", wire.MethodFlowGet)
	f("PUT", "/v1/flow/asic?cas=0", `{"Steps":["synthesis"]}`, wire.MethodFlowUpsert)
	f("DELETE", "/v1/flow/asic", "", wire.MethodFlowDelete)
	f("GET", "/v1/licenses", "", wire.MethodLicenseList)
	f("GET", "/v1/license/vcs", "", wire.MethodLicenseGet)
	f("PUT", "/v1/license/vcs?cas=0", `{"Count":3}`, wire.MethodLicenseUpsert)
	f("POST", "/v1/license/vcs", `{"Name":"vcs","Count":3}`, wire.MethodLicenseUpsert)
	f("DELETE", "/v1/license/vcs?cas=7", "", wire.MethodLicenseDelete)
	f("GET", "/v1/workflows", "", wire.MethodWorkflowList)
	f("GET", "/v1/workflow/chip", "", wire.MethodWorkflowGet)
	f("PUT", "/v1/workflow/chip?cas=0", `{"Stages":[{"Name":"s"}]}`, wire.MethodWorkflowRun)
	f("POST", "/v1/workflow/chip", `{"ID":"chip"}`, wire.MethodWorkflowRun)
	f("PUT", "/v1/workflow/chip/plan", `{"Stages":[]}`, wire.MethodWorkflowPlan)
	f("PUT", "/v1/workflow/chip/plan?forecast", `{"Stages":[]}`, wire.MethodWorkflowPlan)
	f("PUT", "/v1/workflow/chip/pause", "", wire.MethodWorkflowPause)
	f("PUT", "/v1/workflow/chip/resume", "", wire.MethodWorkflowResume)
	f("PUT", "/v1/workflow/chip/cancel", "", wire.MethodWorkflowCancel)
	f("PUT", "/v1/workflow/chip/retry?stage=s", "", wire.MethodWorkflowRetry)
	f("DELETE", "/v1/workflow/chip", "", wire.MethodWorkflowDelete)
	f("GET", "/v1/exchanges", "", wire.MethodExchangeList)
	f("PUT", "/v1/exchange/offer", `{"Owner":"team"}`, wire.MethodExchangePut)
	f("PUT", "/v1/exchange/bid", `{"Owner":"team"}`, wire.MethodExchangePut)
	f("DELETE", "/v1/exchange/x", "", wire.MethodExchangeWithdraw)
}

func operationRoutes(f func(method, path, body, wantCall string)) {
	f("GET", "/v1/history", "", wire.MethodHistoryList)
	f("GET", "/v1/operator/scheduler/configuration", "", wire.MethodSchedulerGet)
	f("PUT", "/v1/operator/scheduler/configuration?cas=4", `{"SchedulerAlgorithm":"spread"}`, wire.MethodSchedulerSet)
	f("GET", "/v1/operator/raft/configuration", "", wire.MethodRaftConfig)
	f("DELETE", "/v1/operator/raft/peer?id=x", "", wire.MethodRaftRemove)
	f("PUT", "/v1/operator/raft/transfer-leadership?id=x", "", wire.MethodRaftTransfer)
	f("PUT", "/v1/system/gc", "{}", wire.MethodSystemGC)
	f("PUT", "/v1/system/reconcile/summaries", "{}", wire.MethodReconcile)
	f("GET", "/v1/job/j/explain", "", wire.MethodJobExplain)
	f("GET", "/v1/allocation/a/explain", "", wire.MethodAllocExplain)
	f("GET", "/v1/operator/check", "", wire.MethodCheck)
}

// Every documented route of the API calls the right method with the right ID.
func TestRoutes(t *testing.T) {
	fk := answering()
	ts := newTestServer(t, testConfig(fk))
	s, err := New(testConfig(fk))
	if err != nil {
		t.Fatal(err)
	}

	tried := map[string]bool{}
	f := func(method, path, body, wantCall string) {
		t.Helper()
		standsFor(t, s, method, path, wantCall)
		escaped, _, _ := strings.Cut(path, "?")
		tried[s.routes.match(escaped).route.actions[method].standsFor] = true
		fk.mu.Lock()
		fk.calls = nil
		fk.mu.Unlock()
		resp, text := post(t, ts, method, path, body)
		if resp.StatusCode != 200 {
			t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
			return
		}
		fk.mu.Lock()
		defer fk.mu.Unlock()
		if got := strings.Join(fk.calls, " "); got != wantCall {
			t.Errorf("%s %s: called %q, want %q", method, path, got, wantCall)
		}
	}
	eachRoute(f)
	for method, calls := range map[string][]string{"GET": {wire.MethodSnapshotSave}, "PUT": {wire.MethodSnapshotUpload, wire.MethodSnapshotRestore}} {
		for _, called := range calls { // see TestSnapshotSave and TestSnapshotRestore
			standsFor(t, s, method, "/v1/operator/snapshot", called)
			tried[called] = true
		}
	}

	for _, r := range s.table() { // so that what each calls was compared with what it stands for
		for method, do := range r.actions {
			if !r.later && !tried[do.standsFor] && do.standsFor != wire.AgentMissing {
				t.Errorf("%s %s: not tried here", method, r.path)
			}
		}
	}
}

// Every path of Nomad's surface is known: nothing of it is a 404 of the router.
func TestSurface(t *testing.T) {
	ts := newTestServer(t, testConfig(newFake()))
	for _, path := range []string{
		"/v1/jobs/statuses", "/v1/volumes", "/v1/volumes/external", "/v1/volumes/snapshot", "/v1/volume/csi/x", "/v1/volume/csi/x/detach",
		"/v1/plugins", "/v1/plugin/csi/x", "/v1/volume/host/create", "/v1/volumes/claims", "/v1/volumes/claim/x",
		"/v1/acl/policies", "/v1/acl/policy/x", "/v1/acl/token/onetime", "/v1/acl/token/onetime/exchange", "/v1/acl/bootstrap",
		"/v1/acl/tokens", "/v1/acl/token", "/v1/acl/token/self", "/v1/acl/roles", "/v1/acl/role", "/v1/acl/role/x",
		"/v1/acl/auth-methods", "/v1/acl/auth-method", "/v1/acl/auth-method/x", "/v1/acl/binding-rules", "/v1/acl/binding-rule",
		"/v1/acl/binding-rule/x", "/v1/acl/oidc/auth-url", "/v1/acl/oidc/complete-auth", "/v1/acl/login",
		"/v1/acl/identity/client-introduction-token", "/v1/client/identity", "/v1/client/identity/renew",
		"/v1/agent/monitor/export",
		"/v1/services", "/v1/service/x", "/v1/operator/license",
		"/v1/operator/keyring/keys",
		"/v1/operator/upgrade-check/vault-workload-identity", "/v1/operator/utilization", "/v1/vars", "/v1/var/a/b/c",
		"/.well-known/openid-configuration", "/v1/sentinel/policies", "/v1/sentinel/policy/x", "/v1/quotas",
		"/v1/quota-usages", "/v1/quota/x", "/v1/quota", "/v1/recommendation", "/v1/recommendations", "/v1/recommendations/apply",
		"/v1/recommendation/x", "/v1/allocation/a/checks", "/v1/allocation/a/services", "/v1/client/allocation/a/checks",
		"/v1/client/allocation/a/snapshot", "/v1/client/allocation/a/pause",
		"/v1/deployment/fail/x", "/v1/deployment/pause/x", "/v1/deployment/promote/x", "/v1/deployment/allocation-health/x",
		"/v1/deployment/unblock/x", "/v1/job/j/periodic/force", "/v1/job/j/dispatch", "/v1/job/j/dispatch/payload",
		"/v1/job/j/services", "/v1/job/j/actions", "/v1/job/j/action", "/v1/job/j/tag", "/v1/job/j/versions/golden/tag",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			if resp, body := post(t, ts, method, path, ""); resp.StatusCode != 501 || body == "" {
				t.Errorf("%s %s: %d %q, want 501 and a message", method, path, resp.StatusCode, body)
			}
		}
	}
}

func TestRouterIDs(t *testing.T) {
	fk := newFake()
	s, err := New(testConfig(fk))
	if err != nil {
		t.Fatal(err)
	}
	f := func(path, wantRoute, wantID string) {
		t.Helper()
		m := s.routes.match(path)
		switch {
		case m.route == nil:
			if wantRoute != "" {
				t.Errorf("%s: no route", path)
			}
		case m.route.path != wantRoute || len(m.ids) > 0 && m.ids[0] != wantID:
			t.Errorf("%s: %s %q, want %s %q", path, m.route.path, m.ids, wantRoute, wantID)
		}
	}
	f("/v1/job/a", "/v1/job/*", "a")
	f("/v1/job/a%2Fb", "/v1/job/*", "a/b")
	f("/v1/job/a/b", "/v1/job/*", "a/b")
	f("/v1/job/a%2Fsummary", "/v1/job/*", "a/summary")
	f("/v1/job/a/summary", "/v1/job/*/summary", "a")
	f("/v1/job/a/dispatch-1/allocations", "/v1/job/*/allocations", "a/dispatch-1")
	f("/v1/job/a/dispatch/payload", "/v1/job/*/dispatch/payload", "a")
	f("/v1/job/%e4%b8%96", "/v1/job/*", "世")
	f("/v1/node/pools", "/v1/node/pools", "")
	f("/v1/node/pool/p/nodes", "/v1/node/pool/*/nodes", "p")
	f("/v1/node/pool/p", "/v1/node/pool/*", "p")
	f("/v1/node/poo", "/v1/node/*", "poo")
	f("/v1/job/", "", "")
	f("/v1/jobs/", "", "")
	f("/v2/jobs", "", "")
	f("/", "", "")
	f("", "", "")
}
