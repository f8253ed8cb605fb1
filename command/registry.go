package command

import "maps"

// commands has what makes the spec of each command, by its name, whose words are separated by one space. To run a command only
// its own spec is made.
type commands map[string]func() spec

// registry names every command. A command's file is found by its name.
func registry() commands {
	all := commands{
		"agent":               agentSpec,
		"agent-info":          agentInfo,
		"check":               checkCommand,
		"executor":            executorSpec,
		"status":              statusCommand,
		"version":             version,
		"eval list":           evalList,
		"eval delete":         evalDelete,
		"eval status":         evalStatus,
		"scaling policy info": scalingPolicyInfo,
		"scaling policy list": scalingPolicyList,
		"topology":            topologyCmd,
		"queue":               queueCmd,
		"what-if":             whatIfCmd,
	}
	for _, more := range []commands{workCommands(), nodeCommands(), projectCommands(), workflowCommands(), licenseCommands(), vcCommands(), clusterCommands(), fileCommands()} {
		maps.Copy(all, more)
	}
	for alias, of := range aliases {
		all[alias] = all[of]
	}
	return all
}

// nodeCommands are those about nodes and node pools.
func nodeCommands() commands {
	return commands{
		"node status":      nodeStatus,
		"node config":      nodeConfig,
		"node meta apply":  nodeMetaApply,
		"node meta read":   nodeMetaRead,
		"node drain":       nodeDrain,
		"node eligibility": nodeEligibility,
		"node pool list":   nodePoolList,
		"node pool info":   nodePoolInfo,
		"node pool nodes":  nodePoolNodes,
		"node pool jobs":   nodePoolJobs,
		"node pool apply":  nodePoolApply,
		"node pool delete": nodePoolDelete,
		"node pool init":   nodePoolInit,
	}
}

// projectCommands are those about projects and the flows that they share.
func projectCommands() commands {
	return commands{
		"project apply":    projectApply,
		"project calendar": projectCalendar,
		"project delete":   projectDelete,
		"project edits":    projectEdits,
		"project report":   projectReport,
		"project init":     projectInit,
		"project list":     projectList,
		"project status":   projectStatus,
		"flow apply":       flowApply,
		"flow delete":      flowDelete,
		"flow list":        flowList,
	}
}

// workflowCommands are those about workflows.
func workflowCommands() commands {
	return commands{
		"workflow cancel":   workflowCancel,
		"workflow delete":   workflowDelete,
		"workflow init":     workflowInit,
		"workflow list":     workflowList,
		"workflow logs":     workflowLogs,
		"workflow pause":    workflowPause,
		"workflow plan":     workflowPlan,
		"workflow resume":   workflowResume,
		"workflow retry":    workflowRetry,
		"workflow run":      workflowRun,
		"workflow status":   workflowStatus,
		"workflow validate": workflowValidate,
	}
}

// vcCommands are those about what namespaces own.
func vcCommands() commands {
	return commands{
		"vc apply":     vcApply,
		"vc bid":       vcBid,
		"vc delete":    vcDelete,
		"vc exchanges": vcExchanges,
		"vc init":      vcInit,
		"vc list":      vcList,
		"vc offer":     vcOffer,
		"vc points":    vcPoints,
		"vc shift":     vcShift,
		"vc status":    vcStatus,
		"vc withdraw":  vcWithdraw,
	}
}

// clusterCommands are those about regions, servers and the running of a cluster.
func clusterCommands() commands {
	return commands{
		"namespace apply":                   namespaceApply,
		"namespace delete":                  namespaceDelete,
		"namespace inspect":                 namespaceInspect,
		"namespace list":                    namespaceList,
		"namespace status":                  namespaceStatus,
		"region list":                       regionList,
		"server members":                    serverMembers,
		"server join":                       serverJoin,
		"server force-leave":                serverForceLeave,
		"operator autopilot get-config":     autopilotGetConfig,
		"operator autopilot set-config":     autopilotSetConfig,
		"operator autopilot health":         autopilotHealth,
		"operator raft list-peers":          raftListPeers,
		"operator raft remove-peer":         raftRemovePeer,
		"operator raft transfer-leadership": raftTransfer,
		"operator scheduler get-config":     schedulerGetConfig,
		"operator scheduler set-config":     schedulerSetConfig,
		"operator gossip keyring generate":  gossipKeyringGenerate,
		"operator gossip keyring install":   gossipKeyringInstall,
		"operator gossip keyring list":      gossipKeyringList,
		"operator gossip keyring remove":    gossipKeyringRemove,
		"operator gossip keyring use":       gossipKeyringUse,
		"operator snapshot save":            snapshotSave,
		"operator snapshot restore":         snapshotRestore,
		"operator snapshot inspect":         snapshotInspect,
		"operator api":                      operatorAPI,
		"operator metrics":                  operatorMetrics,
		"system gc":                         systemGC,
		"system reconcile summaries":        systemReconcile,
		"monitor":                           monitorCmd,
		"operator debug":                    operatorDebug,
		"operator debug check":              debugCheck,
	}
}

// workCommands are those about jobs and allocations.
func workCommands() commands {
	return commands{
		"job run":            jobRun,
		"job plan":           jobPlan,
		"job validate":       jobValidate,
		"job status":         jobStatus,
		"job stop":           jobStop,
		"job inspect":        jobInspect,
		"job history":        jobHistory,
		"job revert":         jobRevert,
		"job scale":          jobScale,
		"job eval":           jobEval,
		"job explain":        jobExplain,
		"job allocs":         jobAllocs,
		"job restart":        jobRestart,
		"job scaling-events": jobScalingEvents,
		"job start":          jobStart,
		"job init":           jobInit,
		"alloc status":       allocStatus,
		"alloc logs":         allocLogs,
		"alloc fs":           allocFS,
		"alloc signal":       allocSignal,
		"alloc restart":      allocRestart,
		"alloc stop":         allocStop,
		"alloc suspend":      allocSuspend,
		"alloc resume":       allocResume,
	}
}

// fileCommands are those that read or make files, or simulate, and need no cluster.
func fileCommands() commands {
	return commands{
		"config validate":     configValidate,
		"fmt":                 fmtCommand,
		"operator raft info":  raftInfo,
		"operator raft logs":  raftLogs,
		"operator raft state": raftState,
		"tls ca create":       tlsCACreate,
		"tls ca info":         tlsCAInfo,
		"tls cert create":     tlsCertCreate,
		"tls cert info":       tlsCertInfo,
		"sim nodes":           simNodes,
		"sim health":          simHealth,
		"sim run":             simRun,
		"sim generate":        simGenerate,
	}
}

// aliases are Nomad's short forms.
var aliases = map[string]string{
	"run": "job run", "plan": "job plan", "validate": "job validate", "start": "job start", "stop": "job stop",
	"inspect": "job inspect", "init": "job init", "logs": "alloc logs", "fs": "alloc fs",
	"alloc-status": "alloc status", "node-status": "node status", "node-drain": "node drain", "client-config": "node config", "eval-status": "eval status",
	"server-members": "server members", "server-join": "server join", "server-force-leave": "server force-leave",
	"regions": "region list", "metrics": "operator metrics", "debug": "operator debug", "system reconcile": "system reconcile summaries",
}

// groups are the nouns that stand alone only in help.
var groups = map[string]string{
	"config":                  "config <subcommand> [options] [args]\n\n  Check the configuration of agents",
	"job":                     "job <subcommand> [options] [args]\n\n  Submit, show and change jobs",
	"alloc":                   "alloc <subcommand> [options] [args]\n\n  Interact with allocations",
	"namespace":               "namespace <subcommand> [options] [args]\n\n  Show and change namespaces",
	"vc":                      "vc <subcommand> [options] [args]\n\n  Show and change virtual clusters: the GPUs that namespaces own",
	"project":                 "project <subcommand> [options] [args]\n\n  Show and change projects and their calendars of slots",
	"workflow":                "workflow <subcommand> [options] [args]\n\n  Run, show and change workflows: stages of jobs that reserve as a whole",
	"license":                 "license <subcommand> [options] [args]\n\n  Show and change licenses: counters that the jobs of a region share",
	"flow":                    "flow <subcommand> [options] [args]\n\n  Show and change the steps that projects share",
	"node pool":               "node pool <subcommand> [options] [args]\n\n  Show and change node pools",
	"eval":                    "eval <subcommand> [options] [args]\n\n  Show evaluations and delete a backlog of them",
	"node":                    "node <subcommand> [options] [args]\n\n  Show and drain nodes, and change their metadata",
	"node meta":               "node meta <subcommand> [options] [args]\n\n  Show and change the metadata of nodes while they run",
	"scaling":                 "scaling <subcommand> [options] [args]\n\n  Show scaling policies for autoscalers",
	"scaling policy":          "scaling policy <subcommand> [options] [args]\n\n  Show the scaling policies of jobs",
	"region":                  "region <subcommand> [options]\n\n  Show the federated regions",
	"server":                  "server <subcommand> [options] [args]\n\n  Show the servers, join servers, and remove failed ones",
	"operator":                "operator <subcommand> [options]\n\n  Operate the cluster",
	"operator gossip":         "operator gossip <subcommand> [options]\n\n  Manage the gossip between agents",
	"operator gossip keyring": "operator gossip keyring <subcommand> [options]\n\n  Create, change and show the gossip encryption keys",
	"operator snapshot":       "operator snapshot <subcommand> [options]\n\n  Save, restore and inspect snapshots of the cluster's state",
	"operator raft":           "operator raft <subcommand> [options]\n\n  Show and change the Raft cluster",
	"operator scheduler":      "operator scheduler <subcommand> [options]\n\n  Read and set the scheduler's configuration",
	"system":                  "system <subcommand> [options]\n\n  Collect garbage and rebuild job summaries",
	"tls":                     "tls <subcommand> [options]\n\n  Create and show the certificates of a cluster",
	"tls ca":                  "tls ca <subcommand> [options]\n\n  Create and show a certificate authority",
	"tls cert":                "tls cert <subcommand> [options]\n\n  Create and show certificates",
	"sim":                     "sim <subcommand> [options]\n\n  Simulated nodes, and replays of workload traces",
	"operator autopilot":      "operator autopilot <subcommand> [options]\n\n  Show and change Autopilot, and show the servers' health",
}
