package httpapi

import (
	"net/http"
	"net/http/pprof"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

func unsupported(what string) error {
	return structs.Errorf(structs.CodeUnsupported, "%s: Nomad has it, this server does not yet", what)
}

// get makes a route that is read. What it stands for is a row of the table of methods in package wire.
func get(path string, h handlerFunc, standsFor string) *route {
	return (&route{path: path, actions: map[string]action{}}).with(h, standsFor, http.MethodGet)
}

func stream(path string, h handlerFunc, standsFor string) *route {
	r := get(path, h, standsFor)
	r.streams = true
	return r
}

// put takes POST as well, as Nomad does nearly everywhere.
func put(path string, h handlerFunc, standsFor string) *route {
	return (&route{path: path, actions: map[string]action{}}).with(h, standsFor, http.MethodPut, http.MethodPost)
}

// costly makes a route that shows the agent's own process, or has it do something: no browser does so for a page of another site.
func costly(path string, h handlerFunc, standsFor string) *route {
	r := stream(path, h, standsFor)
	for method, do := range r.actions {
		do.costly = true
		r.actions[method] = do
	}
	return r
}

// with adds a method.
func (r *route) with(h handlerFunc, standsFor string, methods ...string) *route {
	for _, m := range methods {
		r.actions[m] = action{run: h, standsFor: standsFor}
	}
	return r
}

// later is a route of Nomad's that is known and answered with 501.
func later(path string) *route { return laterFor(path, wire.AgentMissing) }

// laterFor is a later route that not everybody may call.
func laterFor(path, standsFor string) *route {
	h := func(r *request) (any, error) { return nil, unsupported(r.Method + " " + path) }
	r := &route{path: path, actions: map[string]action{}, later: true}
	return r.with(h, standsFor, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete)
}

// table is every route there is.
func (s *Server) table() []*route {
	var all []*route
	for _, part := range [][]*route{
		jobRoutes(), allocRoutes(), nodeRoutes(), agentRoutes(), projectRoutes(), workflowRoutes(), licenseRoutes(), operatorRoutes(), laterRoutes(), s.debugRoutes(),
	} {
		all = append(all, part...)
	}
	return all
}

func jobRoutes() []*route {
	return []*route{
		put("/v1/jobs", jobRegister, wire.MethodJobRegister).with(jobList, wire.MethodJobList, http.MethodGet),
		put("/v1/jobs/parse", jobParse, wire.AgentParse),
		later("/v1/jobs/statuses"),
		put("/v1/validate/job", jobValidate, wire.MethodJobValidate),
		put("/v1/job/*", jobRegister, wire.MethodJobRegister).with(jobGet, wire.MethodJobGet, http.MethodGet).with(jobStop, wire.MethodJobDeregister, http.MethodDelete),
		get("/v1/job/*/versions", jobVersions, wire.MethodJobVersions),
		get("/v1/job/*/allocations", jobAllocs, wire.MethodJobAllocs),
		get("/v1/job/*/evaluations", jobEvals, wire.MethodJobEvals),
		get("/v1/job/*/summary", jobSummary, wire.MethodJobSummary),
		put("/v1/job/*/plan", jobPlan, wire.MethodJobPlan),
		put("/v1/job/*/evaluate", jobEvaluate, wire.MethodJobEvaluate),
		put("/v1/job/*/scale", jobScale, wire.MethodJobScale).with(jobScaleStatus, wire.MethodJobScaleStatus, http.MethodGet),
		put("/v1/job/*/revert", jobRevert, wire.MethodJobRevert),
		get("/v1/job/*/submission", jobSubmission, wire.MethodJobSubmission),
		get("/v1/job/*/explain", jobExplain, wire.MethodJobExplain),
		get("/v1/job/*/deployments", noDeployments, wire.AgentDeployments),
		get("/v1/job/*/deployment", noDeployment, wire.AgentDeployments),
		later("/v1/job/*/periodic/force"),
		later("/v1/job/*/dispatch"),
		later("/v1/job/*/dispatch/payload"),
		put("/v1/job/*/stable", jobStability, wire.MethodJobStability),
		later("/v1/job/*/services"),
		later("/v1/job/*/actions"),
		later("/v1/job/*/action"),
		later("/v1/job/*/tag"),
		later("/v1/job/*/versions/*/tag"),

		get("/v1/deployments", noDeployments, wire.AgentDeployments),
		get("/v1/deployment/*", deploymentGet, wire.AgentDeployments),
		get("/v1/deployment/allocations/*", noDeploymentAllocs, wire.AgentDeployments),
		later("/v1/deployment/fail/*"),
		later("/v1/deployment/pause/*"),
		later("/v1/deployment/promote/*"),
		later("/v1/deployment/unblock/*"),
		later("/v1/deployment/allocation-health/*"),

		get("/v1/evaluations", evalList, wire.MethodEvalList).with(evalDelete, wire.MethodEvalDelete, http.MethodDelete),
		get("/v1/evaluations/count", evalCount, wire.MethodEvalCount),
		get("/v1/evaluation/*", evalGet, wire.MethodEvalGet),
		get("/v1/evaluation/*/allocations", evalAllocs, wire.MethodEvalAllocs),

		get("/v1/scaling/policies", scalingPolicies, wire.MethodScalingList),
		get("/v1/scaling/policy/*", scalingPolicy, wire.MethodScalingGet),
	}
}

func allocRoutes() []*route {
	return []*route{
		get("/v1/allocations", allocList, wire.MethodAllocList),
		get("/v1/allocation/*", allocGet, wire.MethodAllocGet),
		put("/v1/allocation/*/stop", allocStop, wire.MethodAllocStop),
		get("/v1/allocation/*/explain", allocExplain, wire.MethodAllocExplain),
		later("/v1/allocation/*/services"),
		later("/v1/allocation/*/checks"),

		get("/v1/client/allocation/*/stats", allocStats, wire.MethodClientAllocStats),
		put("/v1/client/allocation/*/restart", allocRestart, wire.MethodClientAllocRestart),
		put("/v1/client/allocation/*/signal", allocSignal, wire.MethodClientAllocSignal),
		put("/v1/client/allocation/*/gc", allocGC, wire.MethodClientAllocGC).with(goClientOnly(allocGC), wire.MethodClientAllocGC, http.MethodGet),
		costly("/v1/client/allocation/*/exec", allocExec, wire.MethodAllocGet),
		later("/v1/client/allocation/*/snapshot"),
		later("/v1/client/allocation/*/checks"),
		later("/v1/client/allocation/*/pause"),
		put("/v1/client/allocation/*/suspend", allocSuspend, wire.MethodAllocSuspend),
		put("/v1/client/allocation/*/resume", allocResume, wire.MethodAllocSuspend),

		get("/v1/client/fs/ls/*", fsList, wire.MethodClientFSList),
		get("/v1/client/fs/stat/*", fsStat, wire.MethodClientFSStat),
		stream("/v1/client/fs/cat/*", fsCat, wire.MethodClientFSRead),
		stream("/v1/client/fs/readat/*", fsReadAt, wire.MethodClientFSRead),
		stream("/v1/client/fs/stream/*", fsStream, wire.MethodClientFSRead),
		stream("/v1/client/fs/logs/*", fsLogs, wire.MethodClientFSRead),

		get("/v1/client/stats", clientStats, wire.MethodClientHostStats),
		put("/v1/client/gc", clientGC, wire.MethodClientGC).with(goClientOnly(clientGC), wire.MethodClientGC, http.MethodGet),
		put("/v1/client/metadata", nodeMetaApply, wire.MethodClientMetaApply).with(nodeMetaRead, wire.MethodClientMetaRead, http.MethodGet),
		later("/v1/client/identity"),
		later("/v1/client/identity/renew"),
	}
}

func nodeRoutes() []*route {
	return []*route{
		get("/v1/nodes", nodeList, wire.MethodNodeList),
		get("/v1/node/*", nodeGet, wire.MethodNodeGet),
		get("/v1/node/*/allocations", nodeAllocs, wire.MethodNodeAllocs),
		put("/v1/node/*/drain", nodeDrain, wire.MethodNodeDrain),
		put("/v1/node/*/eligibility", nodeEligibility, wire.MethodNodeEligibility),
		put("/v1/node/*/purge", nodePurge, wire.MethodNodePurge),
		put("/v1/node/*/sim-health", nodeSimHealth, wire.MethodClientSimHealth),
		put("/v1/node/*/evaluate", nodeEvaluate, wire.MethodNodeEvaluate),

		get("/v1/topology", topologyGet, wire.MethodTopology),
		get("/v1/topology/node/*", topologyNode, wire.MethodTopology),
		get("/v1/queue", queueList, wire.MethodQueue),
		get("/v1/forecast", forecast, wire.MethodForecast),
		put("/v1/what-if", whatIf, wire.MethodWhatIf),

		put("/v1/node/pools", poolUpsert, wire.MethodNodePoolUpsert).with(poolList, wire.MethodNodePoolList, http.MethodGet),
		put("/v1/node/pool/*", poolUpsert, wire.MethodNodePoolUpsert).with(poolGet, wire.MethodNodePoolGet, http.MethodGet).with(poolDelete, wire.MethodNodePoolDelete, http.MethodDelete),
		get("/v1/node/pool/*/nodes", poolNodes, wire.MethodNodePoolNodes),
		get("/v1/node/pool/*/jobs", poolJobs, wire.MethodNodePoolJobs),
	}
}

func agentRoutes() []*route {
	return []*route{
		get("/v1/agent/self", agentSelf, wire.AgentSelf),
		get("/v1/agent/health", agentHealth, wire.AgentHealth),
		get("/v1/agent/members", agentMembers, wire.MethodMembers),
		put("/v1/agent/servers", agentSetServers, wire.AgentSetServers).with(agentServers, wire.AgentServers, http.MethodGet),
		put("/v1/agent/reload", agentReload, wire.AgentReload),
		put("/v1/agent/join", agentJoin, wire.MethodJoin),
		put("/v1/agent/force-leave", agentForceLeave, wire.MethodForceLeave),
		get("/v1/agent/schedulers", agentSchedulers, wire.AgentOperate),
		put("/v1/agent/schedulers/config", agentSetSchedulers, wire.AgentOperate).with(agentSchedulersConfig, wire.AgentOperate, http.MethodGet),
		put("/v1/agent/keyring/*", keyringChange, wire.MethodKeyring).with(keyringChange, wire.MethodKeyring, http.MethodGet),
		costly("/v1/agent/host", agentHost, wire.MethodAgentHost),
		costly("/v1/agent/monitor", agentMonitor, wire.MethodAgentMonitor),
		laterFor("/v1/agent/monitor/export", wire.AgentDebug),
		costly("/v1/agent/pprof/*", agentProfile, wire.MethodAgentProfile),

		{path: "/v1/metrics", streams: true, actions: map[string]action{http.MethodGet: {run: metricsGet, standsFor: wire.AgentMetrics}}},
		get("/.well-known/jwks.json", signingKeys, wire.MethodSigningKeys),
		get("/v1/regions", regionList, wire.MethodRegions),
		get("/v1/status/leader", statusLeader, wire.MethodLeader),
		get("/v1/status/peers", statusPeers, wire.MethodPeers),
		put("/v1/search", searchPrefix, wire.MethodSearch),
		put("/v1/search/fuzzy", searchFuzzy, wire.MethodSearch),
		stream("/v1/event/stream", eventStream, wire.MethodEventStream),

		get("/v1/namespaces", namespaceList, wire.MethodNamespaceList),
		put("/v1/namespace", namespaceUpsert, wire.MethodNamespaceUpsert),
		put("/v1/namespace/*", namespaceUpsert, wire.MethodNamespaceUpsert).with(namespaceGet, wire.MethodNamespaceGet, http.MethodGet).with(namespaceDelete, wire.MethodNamespaceDelete, http.MethodDelete),
		get("/v1/virtual-clusters", virtualClusterList, wire.MethodVirtualClusterList),
		put("/v1/virtual-cluster/*", virtualClusterUpsert, wire.MethodVirtualClusterUpsert).with(virtualClusterGet, wire.MethodVirtualClusterGet, http.MethodGet).with(virtualClusterDelete, wire.MethodVirtualClusterDelete, http.MethodDelete),
		put("/v1/virtual-cluster/*/points", virtualClusterPoints, wire.MethodVirtualClusterPoints),
		put("/v1/virtual-cluster/*/shift", virtualClusterShift, wire.MethodVirtualClusterShift),
		get("/v1/exchanges", exchangeList, wire.MethodExchangeList),
		put("/v1/exchange/offer", exchangeOffer, wire.MethodExchangePut),
		put("/v1/exchange/bid", exchangeBid, wire.MethodExchangePut),
		{path: "/v1/exchange/*", actions: map[string]action{http.MethodDelete: {run: exchangeWithdraw, standsFor: wire.MethodExchangeWithdraw}}},
		get("/v1/history", historyList, wire.MethodHistoryList),
	}
}

func projectRoutes() []*route {
	return []*route{
		get("/v1/projects", projectList, wire.MethodProjectList),
		put("/v1/project/*", projectUpsert, wire.MethodProjectUpsert).with(projectGet, wire.MethodProjectGet, http.MethodGet).with(projectDelete, wire.MethodProjectDelete, http.MethodDelete),
		put("/v1/project/*/calendar", projectCalendarEdit, wire.MethodProjectCalendarEdit).with(projectCalendar, wire.MethodProjectCalendar, http.MethodGet),
		get("/v1/project/*/edits", projectEdits, wire.MethodProjectEdits),
		get("/v1/project/*/report", projectReport, wire.MethodProjectReport),
		get("/v1/flows", flowList, wire.MethodFlowList),
		put("/v1/flow/*", flowUpsert, wire.MethodFlowUpsert).with(flowGet, wire.MethodFlowGet, http.MethodGet).with(flowDelete, wire.MethodFlowDelete, http.MethodDelete),
	}
}

func workflowRoutes() []*route {
	action := func(name, method string) *route { return put("/v1/workflow/*/"+name, workflowAction(method), method) }
	return []*route{
		get("/v1/workflows", workflowList, wire.MethodWorkflowList),
		put("/v1/workflow/*", workflowRun, wire.MethodWorkflowRun).with(workflowGet, wire.MethodWorkflowGet, http.MethodGet).with(workflowAction(wire.MethodWorkflowDelete), wire.MethodWorkflowDelete, http.MethodDelete),
		put("/v1/workflow/*/plan", workflowPlan, wire.MethodWorkflowPlan),
		action("pause", wire.MethodWorkflowPause),
		action("resume", wire.MethodWorkflowResume),
		action("cancel", wire.MethodWorkflowCancel),
		put("/v1/workflow/*/retry", workflowRetry, wire.MethodWorkflowRetry),
	}
}

func licenseRoutes() []*route {
	return []*route{
		get("/v1/licenses", licenseList, wire.MethodLicenseList),
		put("/v1/license/*", licenseUpsert, wire.MethodLicenseUpsert).with(licenseGet, wire.MethodLicenseGet, http.MethodGet).with(licenseDelete, wire.MethodLicenseDelete, http.MethodDelete),
	}
}

func operatorRoutes() []*route {
	return []*route{
		put("/v1/operator/scheduler/configuration", schedulerConfigSet, wire.MethodSchedulerSet).with(schedulerConfigGet, wire.MethodSchedulerGet, http.MethodGet),
		get("/v1/operator/check", operatorCheck, wire.MethodCheck),
		get("/v1/operator/raft/configuration", raftConfig, wire.MethodRaftConfig),
		{path: "/v1/operator/raft/peer", actions: map[string]action{http.MethodDelete: {run: raftRemove, standsFor: wire.MethodRaftRemove}}},
		put("/v1/operator/raft/transfer-leadership", raftTransfer, wire.MethodRaftTransfer),
		{path: "/v1/system/gc", actions: map[string]action{http.MethodPut: {run: systemGC, standsFor: wire.MethodSystemGC}}},
		{path: "/v1/system/reconcile/summaries", actions: map[string]action{http.MethodPut: {run: systemReconcile, standsFor: wire.MethodReconcile}}},
		laterFor("/v1/operator/license", wire.AgentOperate),
		laterFor("/v1/operator/keyring/*", wire.AgentOperate),
		put("/v1/operator/autopilot/configuration", autopilotConfigSet, wire.MethodAutopilotSet).with(autopilotConfigGet, wire.MethodAutopilotGet, http.MethodGet),
		get("/v1/operator/autopilot/health", autopilotHealth, wire.MethodAutopilotHealth),
		{path: "/v1/operator/snapshot", streams: true, actions: map[string]action{
			http.MethodGet: {run: snapshotSave, standsFor: wire.MethodSnapshotSave},
			http.MethodPut: {run: snapshotRestore, standsFor: wire.MethodSnapshotRestore}, http.MethodPost: {run: snapshotRestore, standsFor: wire.MethodSnapshotRestore},
		}},
		laterFor("/v1/operator/upgrade-check/*", wire.AgentOperate),
		laterFor("/v1/operator/utilization", wire.AgentOperate),
	}
}

// laterRoutes are those of Nomad's of which nothing is there yet, and our own
// that come later.
func laterRoutes() []*route {
	var out []*route
	for _, path := range []string{
		"/v1/volumes", "/v1/volumes/external", "/v1/volumes/snapshot", "/v1/volumes/claims", "/v1/volumes/claim/*",
		"/v1/volume/csi/*", "/v1/volume/host/*", "/v1/plugins", "/v1/plugin/csi/*",
		"/v1/acl/policies", "/v1/acl/policy/*", "/v1/acl/token/onetime", "/v1/acl/token/onetime/exchange", "/v1/acl/bootstrap",
		"/v1/acl/tokens", "/v1/acl/token", "/v1/acl/token/*", "/v1/acl/roles", "/v1/acl/role", "/v1/acl/role/*",
		"/v1/acl/auth-methods", "/v1/acl/auth-method", "/v1/acl/auth-method/*", "/v1/acl/binding-rules", "/v1/acl/binding-rule",
		"/v1/acl/binding-rule/*", "/v1/acl/oidc/auth-url", "/v1/acl/oidc/complete-auth", "/v1/acl/login",
		"/v1/acl/identity/client-introduction-token",
		"/v1/services", "/v1/service/*", "/v1/vars", "/v1/var/*",
		"/.well-known/openid-configuration",
		"/v1/sentinel/policies", "/v1/sentinel/policy/*", "/v1/quotas", "/v1/quota-usages", "/v1/quota/*", "/v1/quota",
		"/v1/recommendation", "/v1/recommendations", "/v1/recommendations/apply", "/v1/recommendation/*",
	} {
		out = append(out, later(path))
	}
	return out
}

// debugRoutes are there only where the configuration has enable_debug: profiles
// show what the process works on.
func (s *Server) debugRoutes() []*route {
	if !s.cfg.Debug {
		return nil
	}
	plain := func(path string, h http.HandlerFunc) *route {
		return costly(path, func(r *request) (any, error) {
			h(r.w, r.Request)
			return answered, nil
		}, wire.AgentDebug)
	}
	return []*route{
		plain("/debug/pprof/", pprof.Index),
		plain("/debug/pprof/*", pprof.Index),
		plain("/debug/pprof/cmdline", pprof.Cmdline),
		plain("/debug/pprof/profile", pprof.Profile),
		plain("/debug/pprof/symbol", pprof.Symbol),
		plain("/debug/pprof/trace", pprof.Trace),
	}
}
