package wire

import (
	"crypto/tls"

	"github.com/nomadish/nomadish/structs"
)

// Role is what a caller may act as. A Role value may combine several.
type Role uint8

// The roles. A certificate states them by its names, see Peer.
const (
	// RoleServer is a server of this region, on RPC.
	RoleServer Role = 1 << iota
	// RoleFarServer is a server of another region that passes a call on. It has looked at who called it by the
	// same table.
	RoleFarServer
	// RoleClient is a client's agent that speaks for its own nodes. Each call states the node's ID and secret.
	RoleClient
	// RolePassing is a client's agent that passes on people's requests to its HTTP API. Servers know nothing of
	// those people.
	RolePassing
	// RoleOperator is who runs the cluster, on HTTPS: whoever has an operator's or a server's certificate of this
	// region.
	RoleOperator
	// RolePerson is anybody else with a certificate of the authority, on HTTPS, but for clients.
	RolePerson
)

// allOnRPC are the roles of a peer on RPC whose certificate does not count, or who has none.
const allOnRPC = RoleServer | RoleFarServer | RoleClient | RolePassing

// Method is a row of the table of methods.
type Method struct {
	Name    string
	Callers Role // who may call it
}

// The kinds of methods, by who may call them.
const (
	forAnyone    = allOnRPC | RoleOperator | RolePerson
	forNodes     = RoleServer | RoleClient
	forPeople    = RoleServer | RoleFarServer | RolePassing | RoleOperator | RolePerson
	forOperators = RoleServer | RoleFarServer | RoleOperator
	// forThisRegion is for operators, and no server passes it on to another region.
	forThisRegion = RoleServer | RoleOperator
	forServers    = RoleServer
	// forOwnAgent is never answered over RPC, whoever calls.
	forOwnAgent = RoleOperator
)

// What an agent answers by itself over HTTP. There is no RPC method of that name.
const (
	AgentSelf        = "agent/self"
	AgentHealth      = "agent/health"
	AgentMetrics     = "agent/metrics"
	AgentServers     = "agent/servers"
	AgentSetServers  = "agent/set-servers"
	AgentReload      = "agent/reload"
	AgentDebug       = "agent/debug"       // profiles, logs, the host
	AgentParse       = "agent/parse"       // a job file
	AgentDeployments = "agent/deployments" // likewise: there are none
	AgentMissing     = "agent/missing"     // a route of Nomad's that is answered with 501
	AgentOperate     = "agent/operate"     // a route that is for operators, also one that is answered with 501
)

// methods is every RPC method and everything that agents answer by themselves, with who may call it. A method
// that is not here may be called by nobody whose role is known.
var methods = []Method{
	{MethodPing, forAnyone},
	{MethodLeader, forAnyone},
	{MethodPeers, forAnyone},
	{MethodRegions, forAnyone},
	{MethodMembers, forAnyone},
	{MethodSigningKeys, forAnyone}, // public keys, which verify tokens

	{MethodNodeRegister, forNodes},
	{MethodNodeHeartbeat, forNodes},
	{MethodNodeClientAllocs, forNodes},
	{MethodNodeUpdateAllocs, forNodes},
	{MethodNodeEvents, forNodes},
	{MethodClientHello, forNodes},

	{MethodSearch, forPeople},
	{MethodEventStream, forPeople},
	{MethodHistoryList, forPeople},
	{MethodTopology, forPeople},
	{MethodQueue, forPeople},
	{MethodForecast, forPeople},
	{MethodWhatIf, forPeople},
	{MethodJobRegister, forPeople},
	{MethodJobDeregister, forPeople},
	{MethodJobList, forPeople},
	{MethodJobGet, forPeople},
	{MethodJobVersions, forPeople},
	{MethodJobAllocs, forPeople},
	{MethodJobEvals, forPeople},
	{MethodJobSummary, forPeople},
	{MethodJobPlan, forPeople},
	{MethodJobValidate, forPeople},
	{MethodJobEvaluate, forPeople},
	{MethodJobScale, forPeople},
	{MethodJobScaleStatus, forPeople},
	{MethodJobRevert, forPeople},
	{MethodJobStability, forPeople},
	{MethodJobSubmission, forPeople},
	{MethodJobExplain, forPeople},
	{MethodAllocList, forPeople},
	{MethodAllocGet, forPeople},
	{MethodAllocStop, forPeople},
	{MethodAllocExplain, forPeople},
	{MethodAllocSuspend, forPeople},
	{MethodEvalList, forPeople},
	{MethodEvalCount, forPeople},
	{MethodEvalGet, forPeople},
	{MethodEvalAllocs, forPeople},
	{MethodScalingList, forPeople},
	{MethodScalingGet, forPeople},
	{MethodNodeList, forPeople},
	{MethodNodeGet, forPeople},
	{MethodNodeAllocs, forPeople},
	{MethodNodeDrain, forPeople},
	{MethodNodeEligibility, forPeople},
	{MethodNodePurge, forPeople},
	{MethodNodeEvaluate, forPeople},
	{MethodNodePoolList, forPeople},
	{MethodNodePoolGet, forPeople},
	{MethodNodePoolNodes, forPeople},
	{MethodNodePoolJobs, forPeople},
	{MethodNodePoolUpsert, forPeople},
	{MethodNodePoolDelete, forPeople},
	{MethodNamespaceList, forPeople},
	{MethodNamespaceGet, forPeople},
	{MethodNamespaceUpsert, forPeople},
	{MethodNamespaceDelete, forPeople},
	{MethodVirtualClusterList, forPeople},
	{MethodVirtualClusterGet, forPeople},
	{MethodVirtualClusterUpsert, forPeople},
	{MethodVirtualClusterDelete, forPeople},
	{MethodVirtualClusterShift, forPeople},
	{MethodVirtualClusterPoints, forPeople},
	{MethodExchangeList, forPeople},
	{MethodExchangePut, forPeople},
	{MethodExchangeWithdraw, forPeople},
	{MethodProjectList, forPeople},
	{MethodProjectGet, forPeople},
	{MethodProjectUpsert, forPeople},
	{MethodProjectDelete, forPeople},
	{MethodProjectCalendar, forPeople},
	{MethodProjectCalendarEdit, forPeople},
	{MethodProjectEdits, forPeople},
	{MethodProjectReport, forPeople},
	{MethodFlowList, forPeople},
	{MethodFlowGet, forPeople},
	{MethodFlowUpsert, forPeople},
	{MethodFlowDelete, forPeople},
	{MethodWorkflowList, forPeople},
	{MethodWorkflowGet, forPeople},
	{MethodWorkflowRun, forPeople},
	{MethodWorkflowPlan, forPeople},
	{MethodWorkflowPause, forPeople},
	{MethodWorkflowResume, forPeople},
	{MethodWorkflowCancel, forPeople},
	{MethodWorkflowRetry, forPeople},
	{MethodWorkflowDelete, forPeople},
	{MethodLicenseList, forPeople},
	{MethodLicenseGet, forPeople},
	{MethodLicenseUpsert, forPeople},
	{MethodLicenseDelete, forPeople},
	{MethodClientAllocStats, forPeople},
	{MethodClientAllocRestart, forPeople},
	{MethodClientAllocSignal, forPeople},
	{MethodClientAllocGC, forPeople},
	{MethodClientGC, forPeople},
	{MethodClientHostStats, forPeople},
	{MethodClientMetaRead, forPeople},
	{MethodClientMetaApply, forPeople},
	{MethodClientSimHealth, forPeople},
	{MethodClientFSList, forPeople},
	{MethodClientFSStat, forPeople},
	{MethodClientFSRead, forPeople},

	{MethodSystemGC, forOperators},
	{MethodEvalDelete, forOperators},
	{MethodReconcile, forOperators},
	{MethodSchedulerGet, forOperators},
	{MethodSchedulerSet, forOperators},
	{MethodCheck, forOperators},
	{MethodSnapshotSave, forOperators},
	{MethodSnapshotUpload, forOperators},
	{MethodSnapshotRestore, forOperators},
	{MethodRaftConfig, forOperators},
	{MethodRaftRemove, forOperators},
	{MethodRaftTransfer, forOperators},
	{MethodAutopilotGet, forOperators},
	{MethodAutopilotSet, forOperators},
	{MethodAutopilotHealth, forOperators},
	{MethodAgentMonitor, forOperators},
	{MethodAgentHost, forOperators},
	{MethodAgentProfile, forOperators},
	{MethodJoin, forThisRegion},
	{MethodForceLeave, forThisRegion},
	{MethodKeyring, forOwnAgent},

	{MethodEvalDequeue, forServers},
	{MethodEvalAck, forServers},
	{MethodEvalNack, forServers},
	{MethodEvalUpdate, forServers},
	{MethodPlanSubmit, forServers},
	{MethodBootstrapVote, forServers},
	{MethodRaftState, forServers},
	{MethodHasNode, forServers},
	{MethodNodeSuspect, forServers},
	{MethodNodeProbe, forServers},
	{MethodClientPing, forServers},
	{MethodClientProbe, forServers},

	{AgentHealth, forAnyone},
	{AgentMetrics, forAnyone},
	{AgentMissing, forAnyone},
	{AgentSelf, forPeople},
	{AgentServers, forPeople},
	{AgentParse, forPeople},
	{AgentDeployments, forPeople},
	{AgentSetServers, forOperators},
	{AgentReload, forOperators},
	{AgentDebug, forOperators},
	{AgentOperate, forOperators},
}

// byName is the table by name.
var byName = func() map[string]Method {
	out := make(map[string]Method, len(methods))
	for _, m := range methods {
		out[m.Name] = m
	}
	return out
}()

// Methods returns the table of methods.
func Methods() []Method { return append([]Method(nil), methods...) }

// MethodNamed returns a row of the table; ok is false if there is none.
func MethodNamed(name string) (m Method, ok bool) {
	m, ok = byName[name]
	return m, ok
}

// statedRoles returns the roles that the names of a verified certificate state.
func (p Peer) statedRoles() Role {
	server, client := p.has(structs.CertServer, p.region), p.has(structs.CertClient, p.region)
	switch {
	case p.https && (server || p.has(structs.CertCLI, p.region)):
		return RoleOperator | RolePerson
	case p.https && p.states(structs.CertClient): // of any region: it lies on machines that run other people's jobs
		return RoleClient
	case p.https:
		return RolePerson
	}
	var out Role
	if server {
		out = RoleServer
	}
	if p.states(structs.CertServer) {
		out |= RoleFarServer
	}
	if client {
		out |= RoleClient
	}
	return out
}

// roles returns what the peer may act as in a call.
func (p Peer) roles(via Via) Role {
	if !p.verified {
		return allOnRPC
	}
	out := p.stated
	if via != ViaRegion {
		out &^= RoleFarServer
	}
	if out&RoleClient != 0 && p.rules.now.Load().ClientRequests {
		out |= RolePassing
	}
	return out
}

// IsServer reports whether the peer may act as a server of this region: by its certificate, or because no certificates are used.
func (p Peer) IsServer() bool { return p.roles("")&RoleServer != 0 }

// May returns nil if the peer may call a method, which was passed on as via states, and else an error that states
// which certificates may.
func (p Peer) May(method string, via Via) error {
	row, known := byName[method]
	if known && row.Callers&p.roles(via) != 0 || !known && !p.verified {
		return nil
	}
	if row.Callers == forOwnAgent && !p.https {
		return structs.Errorf(structs.CodeForbidden, "%s is for the server's own agent", method).
			WithHint("use the HTTP API of an agent that runs a server")
	}
	certificates, hint := p.needed(row.Callers)
	if certificates != "" {
		certificates = "; it needs one for " + certificates
	}
	return structs.Errorf(structs.CodeForbidden, "%s: a certificate %s may not call it%s", method, p, certificates).WithHint("%s", hint)
}

// needed returns which certificates may call what is for some roles, and what a person can do who has none of them. There
// are no certificates to name where a person may call, but not by the called agent.
func (p Peer) needed(callers Role) (certificates, hint string) {
	server, operator := structs.CertName(structs.CertServer, p.region), structs.CertName(structs.CertCLI, p.region)
	issue := "`nomadish tls cert create -cli -region " + p.region + "` makes one for operators"
	switch {
	case p.https && callers&RolePerson != 0:
		return operator + ", " + server + " or any name that is not a client's",
			issue + "; or set tls { client_requests = true } on this agent"
	case p.https && callers&RoleOperator != 0:
		return operator + " or " + server, issue
	case callers&RolePassing != 0:
		return "", "it is the certificate of the client's agent that passed the request on; use a server's agent instead (-address or NOMADISH_ADDR), or set tls { client_requests = true } on the servers"
	case callers&RoleOperator != 0:
		return "", "it is the certificate of the client's agent that passed the request on; operators call a server's agent (-address or NOMADISH_ADDR)"
	case callers&RoleClient != 0:
		return server + " or " + structs.CertName(structs.CertClient, p.region), "a node registers with the servers of its own region"
	}
	return server, "only servers call it, among themselves"
}

// OnHTTPS returns who calls over HTTPS; ok is false if no certificate was requested, so that no role can be
// known.
func (t *TLS) OnHTTPS(state *tls.ConnectionState) (p Peer, ok bool) {
	if t == nil || state == nil || len(state.VerifiedChains) == 0 {
		return Peer{}, false
	}
	return t.peer(state.PeerCertificates[0], true, true), true
}
