package reference

// Difference is what behaves otherwise than in Nomad on purpose.
type Difference struct {
	Here  string // what Nomadish does
	Nomad string // what Nomad does
	Why   string // one sentence
}

// Differences are all of them, by what they are about. Whoever adds a difference adds a row; whoever removes one deletes it.
// Links are relative to docs/reference.
var Differences = []struct {
	About string
	Rows  []Difference
}{
	{"security and networks", []Difference{
		{
			"An agent listens on 127.0.0.1 unless `bind_addr` sets another address.",
			"It listens on all addresses.",
			"Whoever reaches an agent without ACLs can run programs on its machines.",
		},
		{
			"An agent that other machines can reach starts only with TLS (`http`, `rpc`, `verify_server_hostname`, `verify_https_client`) and a key for each gossip, or with `insecure = true`. A reload that removes one of them is refused.",
			"It starts without any of them.",
			"A cluster that is open by mistake should not start ([TLS](../guides/tls.md)).",
		},
		{
			"Off loopback, HTTPS requires a certificate of every caller. Its name decides what the caller may do: `cli.REGION.nomad` everything, another name jobs and nodes only. Calls of operators need the former.",
			"Every certificate of the CA may connect; ACL tokens decide who may do what.",
			"There are no ACLs yet, so only the certificate distinguishes callers ([TLS](../guides/tls.md#roles)).",
		},
		{
			"The HTTP API of a client's agent refuses users' requests to the cluster, with `verify_server_hostname`. Use a server's agent, or set `tls { client_requests = true }` on the servers.",
			"Every agent passes on every request.",
			"Whoever steals the certificate of one node could otherwise run jobs on all.",
		},
		{
			"A request that addresses the agent by an unknown host name gets 403, and so does a change that a page of another site sends. `http_config { allowed_hosts, trusted_origins }` lists exceptions.",
			"Both are answered.",
			"Any web page could otherwise use the agent through its reader's browser ([operations](../guides/operations.md#by-which-names-the-http-api-is-reached)).",
		},
		{
			"`GET /v1/client/gc` and `GET /v1/client/allocation/*/gc` are answered to Nomad's Go client only. Everybody else sends PUT.",
			"GET collects garbage.",
			"No GET that a browser may send should change anything; Nomad's client knows no other method here.",
		},
		{
			"`acl { enabled = true }` keeps the agent from starting.",
			"It switches ACLs on.",
			"An agent that should have access control must not run without ([security](../design/security.md)).",
		},
		{
			"Sizes are bounded: what a node sends, jobs (1,000 groups, 5,000 tasks, 4 MiB), IDs and names (512 bytes), request bodies and the time that they take, job files that the server parses, answers (64 MiB: request pages with `per_page`) and errors (1 KiB).",
			"There are fewer limits.",
			"One caller or one node must not cost the others the cluster ([operations](../guides/operations.md#what-callers-may-cost)).",
		},
		{
			"What the command line prints and the agent logs has control characters and invisible ones escaped, as `\\x1b`. `alloc logs` and files of `alloc fs` are passed on as they are.",
			"Names are printed as they are.",
			"A job's name must neither command the terminal of an operator nor look like something else.",
		},
	}},
	{"servers and regions", []Difference{
		{
			"Servers of several regions gossip at a port of their own, `ports { serf_wan = 4649 }`, and join by `retry_join_wan` or `server join -wan`.",
			"The servers of all regions share one gossip at port 4648, and any `server join` joins regions.",
			"The loss of a link between regions must not slow down how a region finds its own lost servers ([regions](../guides/regions.md)).",
		},
		{
			"Clients gossip with each other and with the servers, at port 4650. A client that this gossip still hears keeps its work when it cannot be called.",
			"A lost client is detected by heartbeats alone.",
			"A dead client is known within seconds, and one that only lost its connection is not taken for dead ([clients](../guides/clients.md#how-the-loss-of-a-client-is-detected)).",
		},
		{
			"Heartbeats of clients: 3 s and 3 s of grace, 250 a second of all clients together. A new leader waits for 30 s.",
			"10 s and 10 s of grace, 50 a second, 5 min.",
			"Work of a lost node should run elsewhere soon. All four are settings with Nomad's names.",
		},
		{
			"`server force-leave` and `operator raft remove-peer` refuse a server that is alive.",
			"They remove it, and it comes back.",
			"It would be a voter again seconds later: end its agent first.",
		},
		{
			"A server without `bootstrap_expect` and without an address to join is a cluster of its own.",
			"It waits for others.",
			"One server should need no setting.",
		},
		{
			"A server that failed keeps its vote until a replacement is there (`min_quorum` is `bootstrap_expect` from 3 on).",
			"It is removed as soon as the rest has a majority.",
			"Two of three servers that are restarted one after the other should not leave a cluster of one.",
		},
	}},
	{"jobs and scheduling", []Difference{
		{
			"What waits for room is placed in the order of the queue: band of priority, what was taken back, priority with age, submission. A job that waits for long reserves room.",
			"Whatever is evaluated first when room comes free is placed.",
			"Large and old requests would otherwise be overtaken for ever ([queue](../guides/preemption-and-queue.md#the-order-of-the-queue)).",
		},
		{
			"A job takes room from lower bands of priority only (1–40, 41–70, 71–100 by default). With `reclaim = \"suspend\"` the preempted allocations are suspended in place.",
			"It takes from every job whose priority is lower by 10 or more.",
			"Between jobs of one band the queue decides, so that small differences of priority stop nothing ([preemption](../guides/preemption-and-queue.md)).",
		},
		{
			"Priorities of jobs are from 1 to 100, so that `job_max_priority` may be from `job_default_priority` to 100.",
			"`job_max_priority` may be from 100 to 32766, and `job_default_priority` from 50 to that.",
			"Bands of priority are ranges within 1 to 100 ([operations](../guides/operations.md#priorities-of-jobs)).",
		},
		{
			"The default placement is the policy `least-fragmentation`. Nomad's clients see `binpack`.",
			"It is `binpack`.",
			"GPUs that are cut up without need cannot be given whole any more; without GPUs both pack ([policies](../guides/policies.md)).",
		},
		{
			"A job that is registered anew after it was purged begins with version 1 or later while allocations of the earlier one are known.",
			"It begins with version 0.",
			"No allocation of the earlier job can be taken for one of the new one.",
		},
		{
			"The status of a system job without a running allocation is `pending`.",
			"It is `running`.",
			"Nothing of it runs.",
		},
		{
			"`update { canary }` of a service above the group's `count` is refused.",
			"It is accepted.",
			"It is a slip of the pen nearly always.",
		},
		{
			"`disconnect { replace = false }` beside `lost_after` replaces the instance when that time is over.",
			"It is never replaced.",
			"`replace = false` alone means never; together with a time it means until then ([clients](../guides/clients.md#jobs-on-disconnected-clients-the-disconnect-block)).",
		},
		{
			"A job without `region`, or with `global` where no region has that name, goes to the region of the agent that receives it.",
			"It goes to `global`.",
			"An agent should take a job that names no other place ([regions](../guides/regions.md)).",
		},
		{
			"Names of groups and tasks have no control characters and no slashes.",
			"Names may have control characters, and those of groups slashes.",
			"They name directories and log files.",
		},
	}},
	{"tasks and nodes", []Difference{
		{
			"`${attr.nomad.version}` is the version of Nomadish, such as `0.1.0`. A constraint on a version of Nomad excludes every node.",
			"It is the version of Nomad.",
			"A node should not claim a version whose features it may not have: constrain by the features, such as `${attr.driver.docker}`.",
		},
		{
			"A task of `raw_exec` has its `memory` as a limit (cgroups, version 1 or 2), CPU by shares, and 1,024 processes and threads (`pids_limit`). One that takes more memory is killed.",
			"`raw_exec` limits nothing.",
			"One task must not take the node from the others ([clients](../guides/clients.md#what-a-task-may-use)).",
		},
		{
			"Tasks run with `no_new_privs`: `sudo` and the like gain nothing. A job states `no_new_privs = false` on nodes with `allow_new_privs = true`.",
			"Set-user-ID programs work.",
			"A task should not become root because the node has such a program.",
		},
		{
			"`cgroup_v2_override` needs `allow_cgroup_override = true` on the node, and `cgroup_v1_override` has no effect.",
			"Any task may use both.",
			"A task that chooses its control group chooses its limits.",
		},
		{
			"A task has of the agent's environment only `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `TZ` and `SHELL`, and none of its descriptors.",
			"It has everything that `env.denylist` does not name.",
			"The agent's environment may hold secrets, and differs from node to node.",
		},
		{
			"The directory of an allocation is closed to all but the agent's user and its own tasks; log files have mode 0640.",
			"Other tasks of the machine can read it.",
			"Jobs of different people share nodes ([clients](../guides/clients.md#users-of-tasks-and-what-tasks-can-reach)).",
		},
		{
			"A node whose disk is nearly full takes no new work, and its tasks go on.",
			"It collects garbage, and takes work.",
			"Work that is placed there fails ([operations](../guides/operations.md)).",
		},
		{
			"GPUs of NVIDIA are found without a plugin. The plugin's block `nomad-device-nvidia` is read.",
			"The plugin is a program of its own.",
			"The scheduler needs their place in the machine, which the plugin does not report ([GPUs](../guides/gpus.md)).",
		},
	}},
	{"command line", []Difference{
		{
			"`job run` follows batch work until it has ended: exit code 1 if it failed.",
			"It returns when the work is placed.",
			"A script can wait for the work by the command alone; `-detach` does not follow.",
		},
		{
			"`job stop`, `job eval` and `alloc stop` take several names, `-prefix` and `-filter`. On a terminal they ask for confirmation before they change more than one, or what only the beginning of an ID names. Without a terminal, both, `-prefix` and `-filter` need `-yes`, and whole IDs need nothing.",
			"`job stop` takes several names, the other two take one. None has `-prefix` or `-filter`.",
			"What a prefix or a filter finds may be more than was meant ([operations](../guides/operations.md#many-jobs-at-once)).",
		},
		{
			"`operator metrics` prints tables; `operator metrics -json` prints JSON.",
			"It prints JSON.",
			"Every command prints for people by default. Scripts that read JSON use `-json`.",
		},
	}},
}

// differences are the hand-written sections.
func differences() []Section {
	out := make([]Section, 0, len(Differences)+1)
	for _, part := range Differences {
		s := Section{Title: "Different on purpose: " + part.About, Head: []string{"Nomadish", "Nomad", "Why"}}
		for _, d := range part.Rows {
			s.Rows = append(s.Rows, []string{d.Here, d.Nomad, d.Why})
		}
		out = append(out, s)
	}
	return append(out, Section{
		Title: "Partial",
		Text:  "A part of each of these features is there: enough that programs which do not use the feature work.",
		Head:  []string{"Feature", "Status"}, Rows: Partly,
	})
}

// Partly are features of which a part is missing: their names, and what is there.
var Partly = [][]string{
	{"Deployments", "Updates are rolling, by `max_parallel` and the health of instances. `/v1/deployments` is empty, and a job has no deployment."},
	{"Namespaces", "They have capabilities and metadata. `quota` and `node_pool_config` are refused, and regions do not replicate them."},
	{"ACLs", "Tokens are accepted but ignored."},
	{"Periodic and parameterized jobs", "They are accepted with a warning, kept, and shown with the status `running`. They never start a job."},
	{"Volumes", "A group with a `volume` is placed only where a client's configuration has a `host_volume` of that name. It is not mounted into tasks yet. No node has CSI volumes."},
	{"Commands in a running task", "`/v1/client/allocation/*/exec` answers for an unknown allocation that it is unknown, and for others that the command cannot be run yet."},
	{"Drivers", "There are `raw_exec` and, for tests, `mock_driver`. A job with `docker`, `exec`, `java` or `qemu` is accepted and waits for a node that has it; `job explain` says so."},
	{"Templates in addresses", "`bind_addr = \"{{ GetInterfaceIP … }}\"` is refused: write the address."},
}
