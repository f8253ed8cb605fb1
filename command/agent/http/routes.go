package httpapi

import (
	"net/http"
	"net/http/pprof"

	"github.com/nomadish/nomadish/structs"
)

func unsupported(what string) error {
	return structs.Errorf(structs.CodeUnsupported, "%s: Nomad has it, this server does not yet", what)
}

func get(path string, h handlerFunc) *route {
	return &route{path: path, handlers: map[string]handlerFunc{http.MethodGet: h}}
}

func stream(path string, h handlerFunc) *route {
	r := get(path, h)
	r.streams = true
	return r
}

// put takes POST as well, as Nomad does nearly everywhere.
func put(path string, h handlerFunc) *route {
	return &route{path: path, handlers: map[string]handlerFunc{http.MethodPut: h, http.MethodPost: h}}
}

// with adds a method.
func (r *route) with(h handlerFunc, methods ...string) *route {
	for _, m := range methods {
		r.handlers[m] = h
	}
	return r
}

// later is a route of Nomad's that is known and answered with 501.
func later(path string) *route {
	h := func(r *request) (any, error) { return nil, unsupported(r.Method + " " + path) }
	r := &route{path: path, handlers: map[string]handlerFunc{}, later: true}
	return r.with(h, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete)
}

// laterMethod answers one method of a route with 501.
func laterMethod(r *request) (any, error) { return nil, unsupported(r.Method + " " + r.URL.Path) }

// table is every route there is.
func (s *Server) table() []*route {
	var all []*route
	for _, part := range [][]*route{
		jobRoutes(), allocRoutes(), nodeRoutes(), agentRoutes(), operatorRoutes(), laterRoutes(), s.debugRoutes(),
	} {
		all = append(all, part...)
	}
	return all
}

func jobRoutes() []*route {
	return []*route{
		put("/v1/jobs", jobRegister).with(jobList, http.MethodGet),
		put("/v1/jobs/parse", jobParse),
		later("/v1/jobs/statuses"),
		put("/v1/validate/job", jobValidate),
		put("/v1/job/*", jobRegister).with(jobGet, http.MethodGet).with(jobStop, http.MethodDelete),
		get("/v1/job/*/versions", jobVersions),
		get("/v1/job/*/allocations", jobAllocs),
		get("/v1/job/*/evaluations", jobEvals),
		get("/v1/job/*/summary", jobSummary),
		put("/v1/job/*/plan", jobPlan),
		put("/v1/job/*/evaluate", jobEvaluate),
		put("/v1/job/*/scale", jobScale).with(jobScaleStatus, http.MethodGet),
		put("/v1/job/*/revert", jobRevert),
		get("/v1/job/*/submission", jobSubmission),
		get("/v1/job/*/explain", jobExplain),
		get("/v1/job/*/deployments", noDeployments),
		get("/v1/job/*/deployment", noDeployment),
		later("/v1/job/*/periodic/force"),
		later("/v1/job/*/dispatch"),
		later("/v1/job/*/dispatch/payload"),
		put("/v1/job/*/stable", jobStability),
		later("/v1/job/*/services"),
		later("/v1/job/*/actions"),
		later("/v1/job/*/action"),
		later("/v1/job/*/tag"),
		later("/v1/job/*/versions/*/tag"),

		get("/v1/deployments", noDeployments),
		get("/v1/deployment/*", deploymentGet),
		get("/v1/deployment/allocations/*", deploymentGet),
		later("/v1/deployment/fail/*"),
		later("/v1/deployment/pause/*"),
		later("/v1/deployment/promote/*"),
		later("/v1/deployment/unblock/*"),
		later("/v1/deployment/allocation-health/*"),

		get("/v1/evaluations", evalList).with(laterMethod, http.MethodDelete),
		get("/v1/evaluations/count", evalCount),
		get("/v1/evaluation/*", evalGet),
		get("/v1/evaluation/*/allocations", evalAllocs),
	}
}

func allocRoutes() []*route {
	return []*route{
		get("/v1/allocations", allocList),
		get("/v1/allocation/*", allocGet),
		put("/v1/allocation/*/stop", allocStop),
		get("/v1/allocation/*/explain", allocExplain),
		later("/v1/allocation/*/services"),
		later("/v1/allocation/*/checks"),

		get("/v1/client/allocation/*/stats", allocStats),
		put("/v1/client/allocation/*/restart", allocRestart),
		put("/v1/client/allocation/*/signal", allocSignal),
		put("/v1/client/allocation/*/gc", allocGC).with(goClientOnly(allocGC), http.MethodGet),
		later("/v1/client/allocation/*/exec"),
		later("/v1/client/allocation/*/snapshot"),
		later("/v1/client/allocation/*/checks"),
		later("/v1/client/allocation/*/pause"),
		put("/v1/client/allocation/*/suspend", allocSuspend),
		put("/v1/client/allocation/*/resume", allocResume),

		get("/v1/client/fs/ls/*", fsList),
		get("/v1/client/fs/stat/*", fsStat),
		stream("/v1/client/fs/cat/*", fsCat),
		stream("/v1/client/fs/readat/*", fsReadAt),
		stream("/v1/client/fs/stream/*", fsStream),
		stream("/v1/client/fs/logs/*", fsLogs),

		get("/v1/client/stats", clientStats),
		put("/v1/client/gc", clientGC).with(goClientOnly(clientGC), http.MethodGet),
		later("/v1/client/metadata"),
		later("/v1/client/identity"),
		later("/v1/client/identity/renew"),
	}
}

func nodeRoutes() []*route {
	return []*route{
		get("/v1/nodes", nodeList),
		get("/v1/node/*", nodeGet),
		get("/v1/node/*/allocations", nodeAllocs),
		put("/v1/node/*/drain", nodeDrain),
		put("/v1/node/*/eligibility", nodeEligibility),
		put("/v1/node/*/purge", nodePurge),
		put("/v1/node/*/sim-health", nodeSimHealth),
		put("/v1/node/*/evaluate", nodeEvaluate),

		get("/v1/topology", topologyGet),
		get("/v1/topology/node/*", topologyNode),
		get("/v1/queue", queueList),

		get("/v1/node/pools", poolList).with(laterMethod, http.MethodPut, http.MethodPost),
		get("/v1/node/pool/*", poolGet).with(laterMethod, http.MethodPut, http.MethodPost, http.MethodDelete),
		get("/v1/node/pool/*/nodes", poolNodes),
		get("/v1/node/pool/*/jobs", poolJobs),
	}
}

func agentRoutes() []*route {
	return []*route{
		get("/v1/agent/self", agentSelf),
		get("/v1/agent/health", agentHealth),
		get("/v1/agent/members", agentMembers),
		put("/v1/agent/servers", agentSetServers).with(agentServers, http.MethodGet),
		put("/v1/agent/reload", agentReload),
		put("/v1/agent/join", agentJoin),
		put("/v1/agent/force-leave", agentForceLeave),
		later("/v1/agent/schedulers"),
		later("/v1/agent/schedulers/config"),
		put("/v1/agent/keyring/*", keyringChange).with(keyringChange, http.MethodGet),
		later("/v1/agent/host"),
		later("/v1/agent/monitor"),
		later("/v1/agent/monitor/export"),
		later("/v1/agent/pprof/*"),

		{path: "/v1/metrics", streams: true, handlers: map[string]handlerFunc{http.MethodGet: metricsGet}},
		get("/v1/regions", regionList),
		get("/v1/status/leader", statusLeader),
		get("/v1/status/peers", statusPeers),
		put("/v1/search", searchPrefix),
		put("/v1/search/fuzzy", searchFuzzy),
		stream("/v1/event/stream", eventStream),

		get("/v1/namespaces", namespaceList),
		get("/v1/namespace/*", namespaceGet).with(laterMethod, http.MethodPut, http.MethodPost, http.MethodDelete),
		later("/v1/namespace"),
		get("/v1/history", historyList),
	}
}

func operatorRoutes() []*route {
	return []*route{
		put("/v1/operator/scheduler/configuration", schedulerConfigSet).with(schedulerConfigGet, http.MethodGet),
		get("/v1/operator/check", operatorCheck),
		get("/v1/operator/raft/configuration", raftConfig),
		{path: "/v1/operator/raft/peer", handlers: map[string]handlerFunc{http.MethodDelete: raftRemove}},
		put("/v1/operator/raft/transfer-leadership", raftTransfer),
		{path: "/v1/system/gc", handlers: map[string]handlerFunc{http.MethodPut: systemGC}},
		{path: "/v1/system/reconcile/summaries", handlers: map[string]handlerFunc{http.MethodPut: systemReconcile}},
		later("/v1/operator/license"),
		later("/v1/operator/keyring/*"),
		put("/v1/operator/autopilot/configuration", autopilotConfigSet).with(autopilotConfigGet, http.MethodGet),
		get("/v1/operator/autopilot/health", autopilotHealth),
		{path: "/v1/operator/snapshot", streams: true, handlers: map[string]handlerFunc{
			http.MethodGet: snapshotSave, http.MethodPut: snapshotRestore, http.MethodPost: snapshotRestore,
		}},
		later("/v1/operator/upgrade-check/*"),
		later("/v1/operator/utilization"),
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
		"/v1/services", "/v1/service/*", "/v1/scaling/policies", "/v1/scaling/policy/*", "/v1/vars", "/v1/var/*",
		"/.well-known/jwks.json", "/.well-known/openid-configuration",
		"/v1/sentinel/policies", "/v1/sentinel/policy/*", "/v1/quotas", "/v1/quota-usages", "/v1/quota/*", "/v1/quota",
		"/v1/recommendation", "/v1/recommendations", "/v1/recommendations/apply", "/v1/recommendation/*",
		"/v1/virtual-cluster/*", "/v1/virtual-clusters",
		"/v1/exchange/*", "/v1/exchanges", "/v1/project/*", "/v1/projects", "/v1/workflow/*", "/v1/workflows",
	} {
		out = append(out, later(path))
	}
	return out
}

// debugRoutes are there only where the configuration says enable_debug: profiles
// show what the process works on.
func (s *Server) debugRoutes() []*route {
	if !s.cfg.Debug {
		return nil
	}
	plain := func(path string, h http.HandlerFunc) *route {
		return stream(path, func(r *request) (any, error) {
			h(r.w, r.Request)
			return answered, nil
		})
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

// oneLine makes a text fit a header.
func oneLine(s string) string {
	out := make([]rune, 0, len(s))
	for _, c := range s {
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		out = append(out, c)
	}
	return string(out)
}
