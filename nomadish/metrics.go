package nomadish

import (
	"time"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/nomadish/ownerseries"
	"github.com/nomadish/nomadish/nomadish/workflow"
)

var (
	snapshotIndex = telemetry.Named("state.snapshotIndex")
	queueDepth    = telemetry.Named("nomad.plan.queue_depth")

	barrierTime   = telemetry.NewTimer("nomad.leader.barrier")
	establishTime = telemetry.NewTimer("nomad.leader.establish_leadership")
	revokeTime    = telemetry.NewTimer("nomad.leader.revoke_leadership")

	requests, requestErrors = telemetry.NewCount("nomad.rpc.request"), telemetry.NewCount("nomad.rpc.request_error")
	streams, streamErrors   = telemetry.NewCount("nomad.streaming_rpc.request"), telemetry.NewCount("nomad.streaming_rpc.request_error")
)

// Metrics adds the series of the server to a batch: where its log is, and as a leader those of jobs, of virtual clusters, of licenses and of workflows.
func (s *Server) Metrics(b *telemetry.Batch) {
	s.raft.Metrics(b)
	b.Add(snapshotIndex, float64(s.store.LatestIndex()), nil)
	s.forecasts.Metrics(b)
	if s.IsLeader() {
		b.Add(queueDepth, float64(s.leader.plans.Waiting()), nil)
		snap := s.store.Snapshot()
		s.series.Add(b, snap)
		s.owners.Add(b, snap)
		ownerseries.AddLicenses(b, snap)
		workflow.Metrics(b, snap)
	}
}

// observeState looks at the clock for the state machine.
func observeState(timer *telemetry.Timer) (done func()) {
	begun := time.Now()
	return func() { timer.Since(begun) }
}

// callTimers are the timers of RPC methods, with Nomad's names. What is not here is ours, or not a call of Nomad's.
var callTimers = func() map[string]*telemetry.Timer {
	out := map[string]*telemetry.Timer{}
	for method, name := range map[string]string{
		wire.MethodAllocGet: "alloc.get_alloc", wire.MethodAllocList: "alloc.list", wire.MethodAllocStop: "alloc.stop",
		wire.MethodNodePurge: "client.deregister", wire.MethodNodeEvents: "client.emit_events", wire.MethodNodeEvaluate: "client.evaluate",
		wire.MethodNodeAllocs: "client.get_allocs", wire.MethodNodeClientAllocs: "client.get_client_allocs", wire.MethodNodeGet: "client.get_node",
		wire.MethodNodeList: "client.list", wire.MethodNodeRegister: "client.register", wire.MethodNodeUpdateAllocs: "client.update_alloc",
		wire.MethodNodeDrain: "client.update_drain", wire.MethodNodeEligibility: "client.update_eligibility",
		wire.MethodNodeHeartbeat: "client.update_status", wire.MethodClientAllocGC: "client_allocations.garbage_collect",
		wire.MethodClientGC: "client_allocations.garbage_collect_all", wire.MethodClientAllocRestart: "client_allocations.restart",
		wire.MethodClientAllocSignal: "client_allocations.signal", wire.MethodClientAllocStats: "client_allocations.stats",
		wire.MethodClientHostStats: "client_stats.stats", wire.MethodEvalAck: "eval.ack", wire.MethodEvalAllocs: "eval.allocations",
		wire.MethodEvalCount: "eval.count", wire.MethodEvalDequeue: "eval.dequeue", wire.MethodEvalGet: "eval.get_eval",
		wire.MethodEvalList: "eval.list", wire.MethodEvalNack: "eval.nack", wire.MethodEvalUpdate: "eval.update",
		wire.MethodClientFSList: "file_system.list", wire.MethodClientFSStat: "file_system.stat", wire.MethodClientFSRead: "file_system.stream",
		wire.MethodJobAllocs: "job.allocations", wire.MethodJobDeregister: "job.deregister", wire.MethodJobEvaluate: "job.evaluate",
		wire.MethodJobEvals: "job.evaluations", wire.MethodJobGet: "job.get_job", wire.MethodJobSubmission: "job.get_job_submission",
		wire.MethodJobVersions: "job.get_job_versions", wire.MethodJobList: "job.list", wire.MethodJobPlan: "job.plan",
		wire.MethodJobRegister: "job.register", wire.MethodJobRevert: "job.revert", wire.MethodJobScale: "job.scale",
		wire.MethodJobScaleStatus: "job.scale_status", wire.MethodJobStability: "job.stable", wire.MethodJobValidate: "job.validate",
		wire.MethodJobSummary: "job_summary.get_job_summary", wire.MethodSigningKeys: "keyring.list_public", wire.MethodSearch: "search.prefix_search",
		wire.MethodClientMetaApply: "client_meta.apply", wire.MethodClientMetaRead: "client_meta.read", wire.MethodEvalDelete: "eval.delete",
		wire.MethodNodePoolDelete: "node_pool.delete_node_pools", wire.MethodNodePoolGet: "node_pool.get_node_pool", wire.MethodNodePoolList: "node_pool.list",
		wire.MethodNodePoolJobs: "node_pool.list_jobs", wire.MethodNodePoolNodes: "node_pool.list_nodes", wire.MethodNodePoolUpsert: "node_pool.upsert_node_pools",
		wire.MethodNamespaceDelete: "namespace.delete_namespaces", wire.MethodNamespaceGet: "namespace.get_namespace",
		wire.MethodNamespaceList:      "namespace.list_namespace",
		wire.MethodVirtualClusterList: "virtual_cluster.list", wire.MethodVirtualClusterGet: "virtual_cluster.get",
		wire.MethodVirtualClusterUpsert: "virtual_cluster.upsert", wire.MethodVirtualClusterDelete: "virtual_cluster.delete",
		wire.MethodVirtualClusterShift: "virtual_cluster.shift", wire.MethodVirtualClusterPoints: "virtual_cluster.points", wire.MethodExchangeList: "exchange.list",
		wire.MethodExchangePut: "exchange.put", wire.MethodExchangeWithdraw: "exchange.withdraw", wire.MethodNamespaceUpsert: "namespace.upsert_namespaces",
		wire.MethodScalingGet: "scaling.get_policy", wire.MethodScalingList: "scaling.list_policies",
	} { // order does not matter: a map made of a map
		out[method] = telemetry.NewTimer("nomad." + name)
	}
	return out
}()

// observeCall counts and times an RPC call.
func observeCall(method string, begun time.Time, err error) {
	count, failed := requests, requestErrors
	switch method {
	case wire.MethodEventStream, wire.MethodSnapshotSave, wire.MethodClientFSRead:
		count, failed = streams, streamErrors
	}
	count.Add(1)
	if err != nil {
		failed.Add(1)
	}
	callTimers[method].Since(begun)
}
