package command

// registry names every command. A command's file is found by its name.
func registry() map[string]spec {
	all := map[string]spec{
		"agent":                             agentSpec(),
		"agent-info":                        agentInfo(),
		"executor":                          executorSpec(),
		"version":                           version(),
		"job run":                           jobRun(),
		"job plan":                          jobPlan(),
		"job validate":                      jobValidate(),
		"job status":                        jobStatus(),
		"job stop":                          jobStop(),
		"job inspect":                       jobInspect(),
		"job history":                       jobHistory(),
		"job revert":                        jobRevert(),
		"job scale":                         jobScale(),
		"job eval":                          jobEval(),
		"job explain":                       jobExplain(),
		"job allocs":                        jobAllocs(),
		"job init":                          jobInit(),
		"alloc status":                      allocStatus(),
		"alloc logs":                        allocLogs(),
		"alloc fs":                          allocFS(),
		"alloc signal":                      allocSignal(),
		"alloc restart":                     allocRestart(),
		"alloc stop":                        allocStop(),
		"alloc suspend":                     allocSuspend(),
		"alloc resume":                      allocResume(),
		"eval list":                         evalList(),
		"eval status":                       evalStatus(),
		"node status":                       nodeStatus(),
		"node drain":                        nodeDrain(),
		"node eligibility":                  nodeEligibility(),
		"topology":                          topologyCmd(),
		"queue":                             queueCmd(),
		"server members":                    serverMembers(),
		"operator raft list-peers":          raftListPeers(),
		"operator raft remove-peer":         raftRemovePeer(),
		"operator raft transfer-leadership": raftTransfer(),
		"operator scheduler get-config":     schedulerGetConfig(),
		"operator scheduler set-config":     schedulerSetConfig(),
		"operator debug check":              debugCheck(),
		"operator gossip keyring generate":  gossipKeyringGenerate(),
		"operator snapshot save":            snapshotSave(),
		"operator snapshot restore":         snapshotRestore(),
		"operator snapshot inspect":         snapshotInspect(),
		"operator api":                      operatorAPI(),
		"operator metrics":                  operatorMetrics(),
		"system gc":                         systemGC(),
		"system reconcile summaries":        systemReconcile(),
		"tls ca create":                     tlsCACreate(),
		"tls ca info":                       tlsCAInfo(),
		"tls cert create":                   tlsCertCreate(),
		"tls cert info":                     tlsCertInfo(),
		"sim nodes":                         simNodes(),
		"sim health":                        simHealth(),
		"sim run":                           simRun(),
	}
	for alias, of := range aliases {
		all[alias] = all[of]
	}
	return all
}

// aliases are Nomad's short forms.
var aliases = map[string]string{
	"run": "job run", "plan": "job plan", "validate": "job validate", "status": "job status", "stop": "job stop",
	"inspect": "job inspect", "init": "job init", "logs": "alloc logs", "fs": "alloc fs",
	"alloc-status": "alloc status", "node-status": "node status", "node-drain": "node drain", "eval-status": "eval status",
	"server-members": "server members", "metrics": "operator metrics", "system reconcile": "system reconcile summaries",
}

// groups are the nouns that stand alone only in help.
var groups = map[string]string{
	"job":                     "job <subcommand> [options] [args]\n\n  Submit, look at and change jobs",
	"alloc":                   "alloc <subcommand> [options] [args]\n\n  Look at and act on allocations",
	"eval":                    "eval <subcommand> [options] [args]\n\n  Look at evaluations",
	"node":                    "node <subcommand> [options] [args]\n\n  Look at and drain nodes",
	"server":                  "server <subcommand> [options]\n\n  Look at the servers",
	"operator":                "operator <subcommand> [options]\n\n  Run the cluster",
	"operator debug":          "operator debug <subcommand> [options]\n\n  Look for faults of the cluster's own",
	"operator gossip":         "operator gossip <subcommand> [options]\n\n  Look after the gossip among agents",
	"operator gossip keyring": "operator gossip keyring <subcommand> [options]\n\n  Make keys for the encryption of gossip",
	"operator snapshot":       "operator snapshot <subcommand> [options]\n\n  Save, restore and look at the cluster's state",
	"operator raft":           "operator raft <subcommand> [options]\n\n  Look at and change the Raft cluster",
	"operator scheduler":      "operator scheduler <subcommand> [options]\n\n  Read and set the scheduler's configuration",
	"system":                  "system <subcommand> [options]\n\n  Collect garbage, rebuild what is derived",
	"tls":                     "tls <subcommand> <subcommand> [options]\n\n  Make and show the certificates of a cluster",
	"tls ca":                  "tls ca <subcommand> [options]\n\n  Make and show a certificate authority",
	"tls cert":                "tls cert <subcommand> [options]\n\n  Make and show certificates",
	"sim":                     "sim <subcommand> [options]\n\n  Simulated nodes, and replays of workload traces",
}
