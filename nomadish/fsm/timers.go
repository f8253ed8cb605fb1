package fsm

import (
	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/structs"
)

// entryTimers are the timers of log entries by type, with Nomad's names.
var entryTimers = func() (out [structs.LogTypeLast + 1]*telemetry.Timer) {
	names := map[structs.LogType]string{
		structs.LogNodeRegister: "register_node", structs.LogNodeDeregister: "deregister_node", structs.LogNodeStatus: "node_status_update",
		structs.LogNodeEligibility: "node_eligibility_update", structs.LogNodeDrain: "node_drain_update", structs.LogNodeEvents: "upsert_node_events",
		structs.LogJobRegister: "register_job", structs.LogJobDeregister: "deregister_job", structs.LogJobScale: "upsert_scaling_event",
		structs.LogEvalUpsert: "update_eval", structs.LogPlanApply: "apply_plan_results", structs.LogAllocClient: "alloc_client_update",
		structs.LogAllocTransition: "alloc_update_desired_transition", structs.LogSchedulerConfig: "apply_scheduler_config",
		structs.LogCollect: "delete_eval", structs.LogAutopilotConfig: "autopilot", structs.LogClusterMeta: "cluster_meta",
		structs.LogJobStability: "apply_job_stability", structs.LogSigningKey: "apply_wrapped_root_key_upsert", structs.LogReconcile: "reconcile",
		structs.LogNodePoolUpsert: "apply_node_pool_upsert", structs.LogNodePoolDelete: "apply_node_pool_delete",
		structs.LogNamespaceUpsert: "apply_namespace_upsert", structs.LogNamespaceDelete: "apply_namespace_delete",
		structs.LogVirtualClusterUpsert: "apply_virtual_cluster_upsert", structs.LogVirtualClusterDelete: "apply_virtual_cluster_delete",
		structs.LogVirtualClusterShift: "apply_virtual_cluster_shift", structs.LogVirtualClusterPoints: "apply_virtual_cluster_points",
		structs.LogClaimsTime: "apply_claims_time", structs.LogExchangePut: "apply_exchange_put", structs.LogExchangeWithdraw: "apply_exchange_withdraw",
		structs.LogProjectUpsert: "apply_project_upsert", structs.LogProjectDelete: "apply_project_delete", structs.LogProjectCalendar: "apply_project_calendar",
		structs.LogFlowUpsert: "apply_flow_upsert", structs.LogFlowDelete: "apply_flow_delete",
		structs.LogWorkflowRun: "apply_workflow_run", structs.LogWorkflowAdvance: "apply_workflow_advance", structs.LogWorkflowState: "apply_workflow_state",
		structs.LogWorkflowDelete: "apply_workflow_delete", structs.LogLicenseUpsert: "apply_license_upsert", structs.LogLicenseDelete: "apply_license_delete",
		structs.LogWorkflowStart: "apply_workflow_start", structs.LogWorkflowRenew: "apply_workflow_renew",
	}
	for t, name := range names { // order does not matter: each has its own place
		if t > structs.LogTypeLast { // a build with the tag "earlier" knows fewer
			continue
		}
		out[t] = telemetry.NewTimer("nomad.fsm." + name)
	}
	return out
}()

var persistTimer = telemetry.NewTimer("nomad.fsm.persist")

// timerOf returns the timer of a type of log entries; nil, which may be used, if the type is not known.
func timerOf(t structs.LogType) *telemetry.Timer {
	if int(t) >= len(entryTimers) {
		return nil
	}
	return entryTimers[t]
}
