package telemetry

// Labels that many families have.
const (
	nodeLabels  = "node_id,datacenter,node_class,node_pool,node_status,node_scheduling_eligibility"
	allocLabels = "job,task_group,alloc_id,namespace,task,parent_id?"
	jobLabels   = "job,task_group,namespace,parent_id?,dispatch_id?,periodic_id?"
)

// Families are all metrics of the agent, but for those of libraries, of which the table has what is of most use.
var Families = concat(agentFamilies, leaderFamilies, workFamilies, clientFamilies, rpcFamilies, fsmFamilies, libraryFamilies, ownFamilies)

func concat(all ...[]Family) []Family {
	var out []Family
	for _, one := range all {
		out = append(out, one...)
	}
	return out
}

// Every agent has these.
var agentFamilies = []Family{
	{"runtime.alloc_bytes", Gauge, "bytes", "", "Memory in use on the agent's heap"},
	{"runtime.free_count", Gauge, "objects", "", "Objects freed from the heap since the agent's start"},
	{"runtime.gc_pause_ns", Summary, "ns", "", "Pauses of the garbage collector"},
	{"runtime.heap_objects", Gauge, "objects", "", "Objects on the heap"},
	{"runtime.malloc_count", Gauge, "objects", "", "Objects allocated on the heap since the agent's start"},
	{"runtime.num_goroutines", Gauge, "goroutines", "", "Goroutines of the agent"},
	{"runtime.sys_bytes", Gauge, "bytes", "", "Memory that the agent has from the system"},
	{"runtime.total_gc_pause_ns", Gauge, "ns", "", "Pauses of the garbage collector since the agent's start, together"},
	{"runtime.total_gc_runs", Gauge, "runs", "", "Runs of the garbage collector since the agent's start"},
	{"http.request", Summary, "ms", "path,method", "Requests of the HTTP API"},
}

// The leader has these, but for the ones whose help states that every server has them.
var leaderFamilies = []Family{
	{"nomad.job_summary.queued", Gauge, "allocations", jobLabels, "Allocations of a group that wait for room"},
	{"nomad.job_summary.complete", Gauge, "allocations", jobLabels, "Allocations of a group that completed"},
	{"nomad.job_summary.failed", Gauge, "allocations", jobLabels, "Allocations of a group that failed"},
	{"nomad.job_summary.running", Gauge, "allocations", jobLabels, "Allocations of a group that run"},
	{"nomad.job_summary.starting", Gauge, "allocations", jobLabels, "Allocations of a group that are being started"},
	{"nomad.job_summary.lost", Gauge, "allocations", jobLabels, "Allocations of a group that were lost with their nodes"},
	{"nomad.job_summary.unknown", Gauge, "allocations", jobLabels, "Allocations of a group on disconnected nodes"},
	{"nomad.job_status.pending", Gauge, "jobs", "", "Jobs that are pending"},
	{"nomad.job_status.running", Gauge, "jobs", "", "Jobs that run"},
	{"nomad.job_status.dead", Gauge, "jobs", "", "Jobs that are dead"},
	{"nomad.blocked_evals.total_blocked", Gauge, "evaluations", "", "Evaluations that wait for room"},
	{"nomad.blocked_evals.total_escaped", Gauge, "evaluations", "", "Evaluations that wait for room which may come free on nodes of any class"},
	{"nomad.blocked_evals.total_quota_limit", Gauge, "evaluations", "", "Evaluations that wait because of a quota: 0, as there are no quotas"},
	{"nomad.blocked_evals.cpu", Gauge, "MHz", "datacenter,node_class", "CPU of the allocations that wait for room, by the datacenters that their jobs name. node_class is always none"},
	{"nomad.blocked_evals.memory", Gauge, "MB", "datacenter,node_class", "Memory of the allocations that wait for room, likewise"},
	{"nomad.blocked_evals.job.cpu", Gauge, "MHz", "job,namespace", "CPU of the allocations of a job that wait for room"},
	{"nomad.blocked_evals.job.memory", Gauge, "MB", "job,namespace", "Memory of the allocations of a job that wait for room"},
	{"nomad.broker.total_ready", Gauge, "evaluations", "", "Evaluations that a worker may take"},
	{"nomad.broker.total_unacked", Gauge, "evaluations", "", "Evaluations that workers have"},
	{"nomad.broker.total_pending", Gauge, "evaluations", "", "Evaluations behind another of their job"},
	{"nomad.broker.total_waiting", Gauge, "evaluations", "", "Evaluations that are delayed"},
	{"nomad.broker.service.ready", Gauge, "evaluations", "", "Evaluations of service jobs that a worker may take"},
	{"nomad.broker.batch.ready", Gauge, "evaluations", "", "Evaluations of batch jobs that a worker may take"},
	{"nomad.broker.system.ready", Gauge, "evaluations", "", "Evaluations of system jobs that a worker may take"},
	{"nomad.broker.sysbatch.ready", Gauge, "evaluations", "", "Evaluations of sysbatch jobs that a worker may take"},
	{"nomad.broker._core.ready", Gauge, "evaluations", "", "Evaluations of the servers' own work that a worker may take"},
	{"nomad.broker.service.unacked", Gauge, "evaluations", "", "Evaluations of service jobs that workers have"},
	{"nomad.broker.batch.unacked", Gauge, "evaluations", "", "Evaluations of batch jobs that workers have"},
	{"nomad.broker.system.unacked", Gauge, "evaluations", "", "Evaluations of system jobs that workers have"},
	{"nomad.broker.sysbatch.unacked", Gauge, "evaluations", "", "Evaluations of sysbatch jobs that workers have"},
	{"nomad.broker._core.unacked", Gauge, "evaluations", "", "Evaluations of the servers' own work that workers have"},
	{"nomad.broker.wait_time", Summary, "ms", "", "From an evaluation's coming to its being taken"},
	{"nomad.broker.process_time", Summary, "ms", "", "From an evaluation's being taken to its end"},
	{"nomad.broker.response_time", Summary, "ms", "", "From an evaluation's coming to its end"},
	{"nomad.broker.nack", Counter, "evaluations", "", "Evaluations that workers returned unfinished"},
	{"nomad.broker.failed", Counter, "evaluations", "", "Evaluations that were given up after too many failures"},
	{"nomad.plan.queue_depth", Gauge, "plans", "", "Plans that wait to be judged"},
	{"nomad.plan.submit", Summary, "ms", "", "From a plan's coming to its being committed"},
	{"nomad.plan.evaluate", Summary, "ms", "", "Judging a plan"},
	{"nomad.plan.apply", Summary, "ms", "", "Committing plans"},
	{"nomad.plan.node_rejected", Counter, "nodes", "", "Nodes that plans were refused for"},
	{"nomad.plan.refused", Counter, "plans", "", "Plans that were refused in whole or in part"},
	{"nomad.plan.overtook", Counter, "plans", "", "Plans sent back because a higher-ranked request had not been tried"},
	{"nomad.heartbeat.active", Gauge, "nodes", "", "Nodes whose heartbeats are awaited"},
	{"nomad.heartbeat.invalidate", Counter, "nodes", "", "Nodes that were marked down because they were silent"},
	{"nomad.heartbeat.gossip_lost", Counter, "nodes", "", "Nodes that are heard by RPC and not by gossip"},
	{"nomad.heartbeat.mass_failure", Gauge, "boolean", "", "1 while too many nodes are silent at once to mark them down"},
	{"nomad.autopilot.healthy", Gauge, "boolean", "", "1 if all servers are healthy"},
	{"nomad.autopilot.failure_tolerance", Gauge, "servers", "", "Servers that may be lost while the cluster goes on"},
	{"nomad.leader.barrier", Summary, "ms", "", "Waiting for all earlier entries to be applied"},
	{"nomad.leader.establish_leadership", Summary, "ms", "", "Starting what only a leader runs"},
	{"nomad.leader.revoke_leadership", Summary, "ms", "", "Stopping what only a leader runs"},
	{"nomad.leader.reconcile", Summary, "ms", "", "Bringing Raft's servers in line with those that gossip knows"},
	{"raft.appliedIndex", Gauge, "index", "", "Last log entry that this server has applied. Every server has it"},
	{"raft.lastIndex", Gauge, "index", "", "Last log entry that this server has. Every server has it"},
	{"state.snapshotIndex", Gauge, "index", "", "Index of the state that queries are answered from. Every server has it"},
}

// What servers do: workers run on every one.
var workFamilies = []Family{
	{"nomad.worker.dequeue_eval", Summary, "ms", "", "Waiting for an evaluation"},
	{"nomad.worker.wait_for_index", Summary, "ms", "", "Waiting for the state to be new enough"},
	{"nomad.worker.invoke_scheduler.service", Summary, "ms", "", "Deciding an evaluation of a service job"},
	{"nomad.worker.invoke_scheduler.batch", Summary, "ms", "", "Deciding an evaluation of a batch job"},
	{"nomad.worker.invoke_scheduler.system", Summary, "ms", "", "Deciding an evaluation of a system job"},
	{"nomad.worker.invoke_scheduler.sysbatch", Summary, "ms", "", "Deciding an evaluation of a sysbatch job"},
	{"nomad.worker.submit_plan", Summary, "ms", "", "Submitting a plan"},
	{"nomad.worker.send_ack", Summary, "ms", "", "Ending an evaluation"},
	{"nomad.worker.plan_refused", Counter, "plans", "", "Plans of this server's workers that were refused"},
	{"nomad.worker.gave_up", Counter, "evaluations", "", "Evaluations that workers gave up"},
	{"nomad.rpc.accept_conn", Counter, "connections", "", "Connections that came to the RPC port"},
	{"nomad.rpc.raft_handoff", Counter, "connections", "", "Connections to the RPC port that are Raft's"},
	{"nomad.rpc.refused_conn", Counter, "connections", "", "Connections to the RPC port that were refused"},
	{"nomad.rpc.request", Counter, "calls", "", "RPC calls"},
	{"nomad.rpc.request_error", Counter, "calls", "", "RPC calls that failed"},
	{"nomad.rpc.query", Counter, "calls", "", "RPC calls that read"},
	{"nomad.streaming_rpc.request", Counter, "calls", "", "RPC calls with a stream of answers"},
	{"nomad.streaming_rpc.request_error", Counter, "calls", "", "RPC calls with a stream of answers that failed"},
	{"nomad.raft.apply", Summary, "ms", "", "From handing Raft an entry to its being applied"},
}

// Clients have these. The gauges are of each node that the client stands for.
var clientFamilies = []Family{
	{"client.allocations.blocked", Gauge, "allocations", nodeLabels, "Allocations that wait for the room of others"},
	{"client.allocations.migrating", Gauge, "allocations", nodeLabels, "Allocations that wait for the data of those that they replace: 0"},
	{"client.allocations.pending", Gauge, "allocations", nodeLabels, "Allocations that are being started"},
	{"client.allocations.running", Gauge, "allocations", nodeLabels, "Allocations that run"},
	{"client.allocations.terminal", Gauge, "allocations", nodeLabels, "Allocations that have ended and are not collected yet"},
	{"client.tasks.pending", Gauge, "tasks", nodeLabels, "Tasks that are being started"},
	{"client.tasks.running", Gauge, "tasks", nodeLabels, "Tasks that run"},
	{"client.tasks.dead", Gauge, "tasks", nodeLabels, "Tasks that have ended and are not collected yet"},
	{"client.allocated.cpu", Gauge, "MHz", nodeLabels, "CPU that allocations have"},
	{"client.allocated.memory", Gauge, "MB", nodeLabels, "Memory that allocations have"},
	{"client.allocated.max_memory", Gauge, "MB", nodeLabels, "Memory that allocations may use at most"},
	{"client.allocated.disk", Gauge, "MB", nodeLabels, "Disk that allocations have"},
	{"client.unallocated.cpu", Gauge, "MHz", nodeLabels, "CPU that is free"},
	{"client.unallocated.memory", Gauge, "MB", nodeLabels, "Memory that is free"},
	{"client.unallocated.disk", Gauge, "MB", nodeLabels, "Disk that is free"},
	{"client.uptime", Gauge, "s", nodeLabels, "Time since the machine's start; since the client's for simulated nodes"},
	{"client.host.cpu.user", Gauge, "%", nodeLabels + ",cpu", "Time of a core in user mode. This and all below of client.host with publish_node_metrics"},
	{"client.host.cpu.system", Gauge, "%", nodeLabels + ",cpu", "Time of a core in the kernel"},
	{"client.host.cpu.idle", Gauge, "%", nodeLabels + ",cpu", "Time of a core that it was idle"},
	{"client.host.cpu.total", Gauge, "%", nodeLabels + ",cpu", "Time of a core that it was at work"},
	{"client.host.cpu.total_percent", Gauge, "%", nodeLabels + ",cpu", "The same"},
	{"client.host.cpu.total_ticks", Gauge, "MHz", nodeLabels + ",cpu", "Compute of a core that was in use"},
	{"client.host.cpu.total_ticks_count", Counter, "MHz s", nodeLabels + ",cpu", "Compute of a core that was used since the machine's start"},
	{"client.host.memory.total", Gauge, "bytes", nodeLabels, "Memory of the machine"},
	{"client.host.memory.available", Gauge, "bytes", nodeLabels, "Memory that processes could have"},
	{"client.host.memory.used", Gauge, "bytes", nodeLabels, "Memory that processes have"},
	{"client.host.memory.free", Gauge, "bytes", nodeLabels, "Memory that nothing uses"},
	{"client.host.disk.size", Gauge, "bytes", nodeLabels + ",disk", "Size of the disk that allocations are on"},
	{"client.host.disk.used", Gauge, "bytes", nodeLabels + ",disk", "What of it is used"},
	{"client.host.disk.available", Gauge, "bytes", nodeLabels + ",disk", "What of it is free"},
	{"client.host.disk.used_percent", Gauge, "%", nodeLabels + ",disk", "What of it is used"},
	{"client.host.disk.inodes_percent", Gauge, "%", nodeLabels + ",disk", "What of its inodes is used"},
	{"client.allocs.cpu.allocated", Gauge, "MHz", allocLabels, "CPU that a task has. This and all below of client.allocs.cpu and .memory with publish_allocation_metrics"},
	{"client.allocs.cpu.user", Gauge, "%", allocLabels, "Time of cores that a task used in user mode"},
	{"client.allocs.cpu.system", Gauge, "%", allocLabels, "Time of cores that a task used in the kernel"},
	{"client.allocs.cpu.total_percent", Gauge, "%", allocLabels, "Time of cores that a task used"},
	{"client.allocs.cpu.total_ticks", Gauge, "MHz", allocLabels, "Compute that a task used"},
	{"client.allocs.cpu.total_ticks_count", Counter, "MHz s", allocLabels, "Compute that a task used since its start"},
	{"client.allocs.cpu.throttled_periods", Gauge, "periods", allocLabels, "Periods in which a task was slowed down: 0, as no driver limits a task to its share"},
	{"client.allocs.cpu.throttled_time", Gauge, "ns", allocLabels, "Time for which a task was slowed down: 0, likewise"},
	{"client.allocs.memory.allocated", Gauge, "bytes", allocLabels, "Memory that a task has"},
	{"client.allocs.memory.max_allocated", Gauge, "bytes", allocLabels, "Memory that a task may use at most"},
	{"client.allocs.memory.usage", Gauge, "bytes", allocLabels, "Memory that a task uses"},
	{"client.allocs.memory.rss", Gauge, "bytes", allocLabels, "Resident memory of a task"},
	{"client.allocs.memory.swap", Gauge, "bytes", allocLabels, "Swapped memory of a task"},
	{"client.allocs.running", Counter, "starts", allocLabels, "How often a task was started"},
	{"client.allocs.restart", Counter, "restarts", allocLabels, "How often a task was restarted"},
	{"client.allocs.complete", Counter, "ends", allocLabels, "1 when a task has ended without failing"},
	{"client.allocs.failed", Counter, "ends", allocLabels, "1 when a task has failed for good"},
	{"client.allocs.oom_killed", Counter, "kills", allocLabels, "How often a task was killed for want of memory, of its last events"},
	{"client.rpc.request", Counter, "calls", "", "RPC calls of servers to this client"},
	{"client.rpc.request_error", Counter, "calls", "", "RPC calls of servers to this client that failed"},
	{"client.streaming_rpc.request", Counter, "calls", "", "RPC calls of servers to this client with a stream of answers"},
	{"client.streaming_rpc.request_error", Counter, "calls", "", "RPC calls of servers to this client with a stream of answers that failed"},
}

// fsmFamilies are of the log entries that a server applies. Nomad's names are older than some of the entries.
var fsmFamilies = []Family{
	{"nomad.fsm.register_node", Summary, "ms", "", "Applying a node's registration"},
	{"nomad.fsm.deregister_node", Summary, "ms", "", "Applying a node's removal"},
	{"nomad.fsm.node_status_update", Summary, "ms", "", "Applying a node's status"},
	{"nomad.fsm.node_eligibility_update", Summary, "ms", "", "Applying a node's eligibility"},
	{"nomad.fsm.node_drain_update", Summary, "ms", "", "Applying a node's drain"},
	{"nomad.fsm.upsert_node_events", Summary, "ms", "", "Applying events of nodes"},
	{"nomad.fsm.register_job", Summary, "ms", "", "Applying a job's registration"},
	{"nomad.fsm.deregister_job", Summary, "ms", "", "Applying a job's stop"},
	{"nomad.fsm.upsert_scaling_event", Summary, "ms", "", "Applying a group's count"},
	{"nomad.fsm.update_eval", Summary, "ms", "", "Applying evaluations"},
	{"nomad.fsm.apply_plan_results", Summary, "ms", "", "Applying plans"},
	{"nomad.fsm.alloc_client_update", Summary, "ms", "", "Applying what clients report of allocations"},
	{"nomad.fsm.alloc_update_desired_transition", Summary, "ms", "", "Applying what allocations are to do"},
	{"nomad.fsm.apply_scheduler_config", Summary, "ms", "", "Applying the scheduler's configuration"},
	{"nomad.fsm.delete_eval", Summary, "ms", "", "Applying the collection of what is over"},
	{"nomad.fsm.autopilot", Summary, "ms", "", "Applying autopilot's configuration"},
	{"nomad.fsm.cluster_meta", Summary, "ms", "", "Applying the cluster's identity"},
	{"nomad.fsm.apply_job_stability", Summary, "ms", "", "Applying a job's stability"},
	{"nomad.fsm.apply_wrapped_root_key_upsert", Summary, "ms", "", "Applying a signing key"},
	{"nomad.fsm.apply_node_pool_upsert", Summary, "ms", "", "Applying node pools"},
	{"nomad.fsm.apply_node_pool_delete", Summary, "ms", "", "Applying the deletion of node pools"},
	{"nomad.fsm.apply_namespace_upsert", Summary, "ms", "", "Applying namespaces"},
	{"nomad.fsm.apply_namespace_delete", Summary, "ms", "", "Applying the deletion of namespaces"},
	{"nomad.fsm.reconcile", Summary, "ms", "", "Applying a correction of summaries"},
	{"nomad.fsm.persist", Summary, "ms", "", "Writing a snapshot of the state"},
}

// libraryFamilies are of hashicorp/raft, serf and memberlist, which have more.
var libraryFamilies = []Family{
	{"raft.apply", Counter, "entries", "", "Entries given to Raft"},
	{"raft.commitTime", Summary, "ms", "", "Committing an entry"},
	{"raft.barrier", Counter, "calls", "", "Barriers"},
	{"raft.verify_leader", Counter, "calls", "", "Questions whether this server still leads"},
	{"raft.leader.dispatchLog", Summary, "ms", "", "Writing entries to the leader's disk"},
	{"raft.leader.dispatchNumLogs", Gauge, "entries", "", "Entries that were written together"},
	{"raft.leader.lastContact", Summary, "ms", "", "Since the leader last heard of a follower. Clusters of several servers have it"},
	{"raft.leader.oldestLogAge", Gauge, "ms", "", "Age of the oldest entry of the log"},
	{"raft.fsm.apply", Summary, "ms", "", "Applying an entry"},
	{"raft.fsm.applyBatch", Summary, "ms", "", "Applying entries that were committed together"},
	{"raft.fsm.applyBatchNum", Summary, "entries", "", "Entries that were committed together"},
	{"raft.fsm.enqueue", Summary, "ms", "", "Passing entries to the state"},
	{"raft.state.candidate", Counter, "times", "", "This server became a candidate"},
	{"raft.state.follower", Counter, "times", "", "This server became a follower"},
	{"raft.state.leader", Counter, "times", "", "This server became the leader"},
	{"serf.queue.Event", Summary, "messages", "", "Gossip of events that is to be sent"},
	{"serf.queue.Intent", Summary, "messages", "", "Gossip of joins and leaves that is to be sent"},
	{"serf.queue.Query", Summary, "messages", "", "Gossip of queries that is to be sent"},
	{"memberlist.health.score", Gauge, "score", "", "Health of gossip here; 0 is best"},
	{"memberlist.gossip", Summary, "ms", "", "A round of gossip"},
}

// ownFamilies are of what Nomad does not have.
var ownFamilies = []Family{
	{"nomad.queue.length", Gauge, "groups", "node_pool,class", "Groups of jobs that wait for room"},
	{"nomad.queue.missing", Gauge, "allocations", "node_pool,class", "Allocations that wait for room"},
	{"nomad.queue.oldest_seconds", Gauge, "s", "node_pool,class", "How long the first of them waits"},
	{"nomad.queue.pass", Summary, "ms", "", "A pass over what waits for room"},
	{"nomad.queue.tried", Counter, "groups", "", "Groups that passes have tried"},
	{"nomad.drain.moves", Counter, "allocations", "", "Allocations that drains have moved"},
	{"nomad.gc.collect", Summary, "ms", "", "Collecting what is over"},
	{"telemetry.series_dropped", Gauge, "series", "of", "Series of jobs, allocations or nodes that are left out because of telemetry.max_series"},
}
