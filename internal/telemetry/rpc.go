package telemetry

// rpcFamilies are of RPC methods, on the server that answers or passes a call on, and on the client.
var rpcFamilies = func() []Family {
	var out []Family
	for _, of := range [][]string{serverCalls, clientCalls} {
		for _, name := range of {
			out = append(out, Family{name, Summary, "ms", "", "Answering a call"})
		}
	}
	return out
}()

var serverCalls = []string{
	"nomad.alloc.get_alloc", "nomad.alloc.list", "nomad.alloc.stop", "nomad.client.deregister", "nomad.client.emit_events", "nomad.client.evaluate",
	"nomad.client.get_allocs", "nomad.client.get_client_allocs", "nomad.client.get_node", "nomad.client.list", "nomad.client.register",
	"nomad.client.update_alloc", "nomad.client.update_drain", "nomad.client.update_eligibility", "nomad.client.update_status",
	"nomad.client_allocations.garbage_collect", "nomad.client_allocations.garbage_collect_all", "nomad.client_allocations.restart",
	"nomad.client_allocations.signal", "nomad.client_allocations.stats", "nomad.client_stats.stats", "nomad.eval.ack", "nomad.eval.allocations",
	"nomad.eval.count", "nomad.eval.dequeue", "nomad.eval.get_eval", "nomad.eval.list", "nomad.eval.nack", "nomad.eval.update",
	"nomad.file_system.list", "nomad.file_system.stat", "nomad.file_system.stream", "nomad.job.allocations", "nomad.job.deregister",
	"nomad.job.evaluate", "nomad.job.evaluations", "nomad.job.get_job", "nomad.job.get_job_submission", "nomad.job.get_job_versions", "nomad.job.list",
	"nomad.job.plan", "nomad.job.register", "nomad.job.revert", "nomad.job.scale", "nomad.job.scale_status", "nomad.job.stable", "nomad.job.validate",
	"nomad.job_summary.get_job_summary", "nomad.keyring.list_public", "nomad.search.prefix_search",
	"nomad.client_meta.apply", "nomad.client_meta.read", "nomad.eval.delete", "nomad.namespace.delete_namespaces",
	"nomad.namespace.get_namespace", "nomad.namespace.list_namespace", "nomad.namespace.upsert_namespaces",
	"nomad.virtual_cluster.list", "nomad.virtual_cluster.get", "nomad.virtual_cluster.upsert", "nomad.virtual_cluster.delete",
	"nomad.virtual_cluster.shift", "nomad.virtual_cluster.points", "nomad.exchange.list", "nomad.exchange.put", "nomad.exchange.withdraw",
	"nomad.project.list", "nomad.project.get", "nomad.project.upsert", "nomad.project.delete", "nomad.project.calendar", "nomad.project.calendar_edit", "nomad.project.edits", "nomad.project.report",
	"nomad.flow.list", "nomad.flow.get", "nomad.flow.upsert", "nomad.flow.delete",
	"nomad.node_pool.delete_node_pools", "nomad.node_pool.get_node_pool",
	"nomad.node_pool.list", "nomad.node_pool.list_jobs", "nomad.node_pool.list_nodes", "nomad.node_pool.upsert_node_pools",
	"nomad.scaling.get_policy", "nomad.scaling.list_policies",
}

var clientCalls = []string{
	"client.allocations.garbage_collect", "client.allocations.garbage_collect_all", "client.allocations.restart", "client.allocations.signal",
	"client.allocations.stats", "client.client_stats.stats", "client.file_system.list", "client.file_system.stat", "client.file_system.stream",
}
