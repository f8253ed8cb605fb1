package wire

// The servers' RPC methods: argument → answer, both of package structs. All are
// unary but those marked "stream".
const (
	MethodPing         = "Status.Ping"        // EmptyRequest → WriteReply
	MethodLeader       = "Status.Leader"      // EmptyRequest → StringReply: the leader's RPC address
	MethodPeers        = "Status.Peers"       // EmptyRequest → StringsReply
	MethodRegions      = "Status.Regions"     // EmptyRequest → StringsReply
	MethodSearch       = "Search.Search"      // SearchRequest → SearchReply
	MethodEventStream  = "Event.Stream"       // stream: EventStreamRequest → Events…
	MethodSigningKeys  = "Keyring.ListPublic" // EmptyRequest → SigningKeysReply
	MethodHistoryList  = "History.List"       // ListRequest → HistoryReply
	MethodSystemGC     = "System.GC"          // GCRequest → WriteReply
	MethodReconcile    = "System.Reconcile"   // GCRequest → ReconcileReply
	MethodSchedulerGet = "Operator.Scheduler" // EmptyRequest → SchedulerConfigReply
	MethodSchedulerSet = "Operator.SetSched"  // SchedulerConfigRequest → SchedulerSetReply
	MethodCheck        = "Operator.Check"     // CheckRequest → CheckReply
	// MethodSnapshotSave is a stream: SnapshotSaveRequest → SnapshotChunk…
	MethodSnapshotSave    = "Operator.SnapshotSave"
	MethodSnapshotUpload  = "Operator.SnapshotUpload"  // SnapshotUploadRequest → SnapshotUploadReply
	MethodSnapshotRestore = "Operator.SnapshotRestore" // SnapshotRestoreRequest → SnapshotRestoreReply
	MethodRaftConfig      = "Operator.Raft"            // EmptyRequest → RaftConfigurationReply
	MethodRaftRemove      = "Operator.RaftRemove"      // RaftPeerRequest → WriteReply
	MethodRaftTransfer    = "Operator.Transfer"        // RaftPeerRequest → WriteReply

	MethodMembers    = "Status.Members"    // EmptyRequest → MembersReply
	MethodJoin       = "Status.Join"       // JoinRequest → CountReply: of those reached
	MethodForceLeave = "Status.ForceLeave" // ForceLeaveRequest → WriteReply
	MethodKeyring    = "Status.Keyring"    // KeyringRequest → KeyringReply
	// MethodAgentMonitor is a stream: AgentMonitorRequest → StreamFrame…. It and the two that follow are answered by the agent
	// of the server or the node that they name.
	MethodAgentMonitor    = "Agent.Monitor"
	MethodAgentHost       = "Agent.Host"               // AgentHostRequest → AgentHostReply
	MethodAgentProfile    = "Agent.Profile"            // AgentProfileRequest → AgentProfileReply
	MethodHasNode         = "Status.HasNode"           // NodeRequest → CountReply: 1, the node is connected to the called server
	MethodBootstrapVote   = "Raft.Found"               // BootstrapVoteRequest → BootstrapVoteReply
	MethodRaftState       = "Raft.State"               // RaftStateRequest → RaftStateReply
	MethodAutopilotGet    = "Operator.Autopilot"       // EmptyRequest → AutopilotConfigReply
	MethodAutopilotSet    = "Operator.SetAutopilot"    // AutopilotConfigRequest → AutopilotSetReply
	MethodAutopilotHealth = "Operator.AutopilotHealth" // EmptyRequest → AutopilotHealthReply

	MethodJobRegister    = "Job.Register"    // JobRegisterRequest → JobRegisterReply
	MethodJobDeregister  = "Job.Deregister"  // JobDeregisterRequest → JobRegisterReply
	MethodJobList        = "Job.List"        // ListRequest → JobListReply
	MethodJobGet         = "Job.Get"         // IDRequest → JobReply
	MethodJobVersions    = "Job.Versions"    // JobVersionsRequest → JobVersionsReply
	MethodJobAllocs      = "Job.Allocations" // JobAllocsRequest → AllocListReply
	MethodJobEvals       = "Job.Evaluations" // IDRequest → EvalListReply
	MethodJobSummary     = "Job.Summary"     // IDRequest → JobSummaryReply
	MethodJobPlan        = "Job.Plan"        // JobPlanRequest → JobPlanReply
	MethodJobValidate    = "Job.Validate"    // JobRegisterRequest → JobValidateReply
	MethodJobEvaluate    = "Job.Evaluate"    // JobEvaluateRequest → JobRegisterReply
	MethodJobScale       = "Job.Scale"       // JobScaleRequest → JobRegisterReply
	MethodJobScaleStatus = "Job.ScaleStatus" // IDRequest → JobScaleStatusReply
	MethodJobRevert      = "Job.Revert"      // JobRevertRequest → JobRegisterReply
	MethodJobStability   = "Job.Stable"      // JobStabilityRequest → JobStabilityReply
	MethodJobSubmission  = "Job.Submission"  // JobSubmissionRequest → JobSubmissionReply
	MethodJobExplain     = "Job.Explain"     // JobExplainRequest → JobExplainReply

	MethodAllocList    = "Alloc.List"    // ListRequest → AllocListReply
	MethodAllocGet     = "Alloc.Get"     // IDRequest → AllocReply
	MethodAllocStop    = "Alloc.Stop"    // AllocStopRequest → AllocStopReply
	MethodAllocExplain = "Alloc.Explain" // IDRequest → AllocExplainReply
	MethodAllocSuspend = "Alloc.Suspend" // AllocSuspendRequest → AllocStopReply

	MethodEvalList    = "Eval.List"        // EvalListRequest → EvalListReply
	MethodEvalCount   = "Eval.Count"       // EvalListRequest → CountReply
	MethodEvalGet     = "Eval.Get"         // EvalGetRequest → EvalReply
	MethodEvalAllocs  = "Eval.Allocations" // IDRequest → AllocListReply
	MethodEvalDelete  = "Eval.Delete"      // EvalDeleteRequest → EvalDeleteReply
	MethodEvalDequeue = "Eval.Dequeue"     // EvalDequeueRequest → EvalDequeueReply
	MethodEvalAck     = "Eval.Ack"         // EvalAckRequest → WriteReply
	MethodEvalNack    = "Eval.Nack"        // EvalAckRequest → WriteReply
	MethodEvalUpdate  = "Eval.Update"      // EvalUpdateRequest → WriteReply
	MethodPlanSubmit  = "Plan.Submit"      // PlanRequest → PlanReply

	MethodScalingList = "Scaling.ListPolicies" // ScalingPolicyListRequest → ScalingPolicyListReply
	MethodScalingGet  = "Scaling.GetPolicy"    // IDRequest → ScalingPolicyReply

	MethodTopology = "Topology.Get"   // TopologyRequest → TopologyReply
	MethodQueue    = "Queue.List"     // QueueRequest → QueueReply
	MethodForecast = "Queue.Forecast" // ForecastRequest → ForecastReply
	MethodWhatIf   = "Queue.WhatIf"   // WhatIfRequest → WhatIfReply; it changes nothing

	MethodNodeRegister     = "Node.Register"     // NodeRegisterRequest → NodeUpdateReply
	MethodNodeHeartbeat    = "Node.Heartbeat"    // NodeHeartbeatRequest → NodeUpdateReply
	MethodNodeList         = "Node.List"         // ListRequest → NodeListReply
	MethodNodeGet          = "Node.Get"          // IDRequest → NodeReply
	MethodNodeAllocs       = "Node.Allocations"  // IDRequest → AllocsReply
	MethodNodeDrain        = "Node.Drain"        // NodeDrainRequest → NodeUpdateReply
	MethodNodeEligibility  = "Node.Eligibility"  // NodeEligibilityRequest → NodeUpdateReply
	MethodNodePurge        = "Node.Purge"        // NodeRequest → NodeUpdateReply
	MethodNodeEvaluate     = "Node.Evaluate"     // NodeRequest → NodeUpdateReply
	MethodNodeClientAllocs = "Node.ClientAllocs" // ClientAllocsRequest → ClientAllocsReply
	MethodNodeUpdateAllocs = "Node.UpdateAllocs" // ClientUpdateRequest → WriteReply
	MethodNodeEvents       = "Node.Events"       // NodeEventsRequest → WriteReply
	MethodNodeSuspect      = "Node.Suspect"      // NodeSuspectRequest → WriteReply; of servers: its session was lost
	MethodNodeProbe        = "Node.Probe"        // NodeProbeRequest → NodeProbeReply; of servers: what the called one can reach

	MethodNodePoolList   = "NodePool.List"   // ListRequest → NodePoolListReply
	MethodNodePoolGet    = "NodePool.Get"    // IDRequest → NodePoolReply
	MethodNodePoolNodes  = "NodePool.Nodes"  // NodePoolListRequest → NodeListReply
	MethodNodePoolJobs   = "NodePool.Jobs"   // NodePoolListRequest → JobListReply
	MethodNodePoolUpsert = "NodePool.Upsert" // NodePoolUpsertRequest → WriteReply
	MethodNodePoolDelete = "NodePool.Delete" // NodePoolDeleteRequest → WriteReply

	MethodNamespaceList   = "Namespace.List"   // ListRequest → NamespaceListReply
	MethodNamespaceGet    = "Namespace.Get"    // IDRequest → NamespaceReply
	MethodNamespaceUpsert = "Namespace.Upsert" // NamespaceUpsertRequest → WriteReply
	MethodNamespaceDelete = "Namespace.Delete" // NamespaceDeleteRequest → WriteReply

	MethodVirtualClusterList   = "VirtualCluster.List"   // ListRequest → VirtualClusterListReply
	MethodVirtualClusterGet    = "VirtualCluster.Get"    // IDRequest → VirtualClusterReply
	MethodVirtualClusterUpsert = "VirtualCluster.Upsert" // VirtualClusterUpsertRequest → WriteReply
	MethodVirtualClusterDelete = "VirtualCluster.Delete" // VirtualClusterDeleteRequest → WriteReply
	MethodVirtualClusterShift  = "VirtualCluster.Shift"  // VirtualClusterShiftRequest → WriteReply
	MethodVirtualClusterPoints = "VirtualCluster.Points" // VirtualClusterPointsRequest → WriteReply
	MethodProjectList          = "Project.List"          // ListRequest → ProjectListReply
	MethodProjectGet           = "Project.Get"           // IDRequest → ProjectReply
	MethodProjectUpsert        = "Project.Upsert"        // ProjectUpsertRequest → WriteReply
	MethodProjectDelete        = "Project.Delete"        // ProjectDeleteRequest → WriteReply
	MethodProjectCalendar      = "Project.Calendar"      // ProjectCalendarQuery → ProjectCalendarReply
	MethodProjectCalendarEdit  = "Project.CalendarEdit"  // ProjectCalendarRequest → WriteReply
	MethodProjectEdits         = "Project.Edits"         // IDRequest → ProjectEditsReply
	MethodProjectReport        = "Project.Report"        // ProjectReportQuery → ProjectReportReply
	MethodFlowList             = "Flow.List"             // ListRequest → FlowListReply
	MethodFlowGet              = "Flow.Get"              // IDRequest → FlowReply
	MethodFlowUpsert           = "Flow.Upsert"           // FlowUpsertRequest → WriteReply
	MethodFlowDelete           = "Flow.Delete"           // FlowDeleteRequest → WriteReply

	MethodWorkflowList   = "Workflow.List"   // ListRequest → WorkflowListReply
	MethodWorkflowGet    = "Workflow.Get"    // IDRequest → WorkflowGetReply
	MethodWorkflowRun    = "Workflow.Run"    // WorkflowRunRequest → WorkflowRunReply
	MethodWorkflowPlan   = "Workflow.Plan"   // WorkflowRunRequest → WorkflowPlanReply
	MethodWorkflowPause  = "Workflow.Pause"  // WorkflowActionRequest → WriteReply
	MethodWorkflowResume = "Workflow.Resume" // WorkflowActionRequest → WriteReply
	MethodWorkflowCancel = "Workflow.Cancel" // WorkflowActionRequest → WriteReply
	MethodWorkflowRetry  = "Workflow.Retry"  // WorkflowRetryRequest → WorkflowRunReply
	MethodWorkflowDelete = "Workflow.Delete" // WorkflowActionRequest → WriteReply

	MethodLicenseList   = "License.List"   // ListRequest → LicenseListReply
	MethodLicenseGet    = "License.Get"    // IDRequest → LicenseReply
	MethodLicenseUpsert = "License.Upsert" // LicenseUpsertRequest → WriteReply
	MethodLicenseDelete = "License.Delete" // LicenseDeleteRequest → WriteReply

	MethodExchangeList     = "Exchange.List"     // ListRequest → ExchangeListReply
	MethodExchangePut      = "Exchange.Put"      // ExchangePutRequest → ExchangePutReply
	MethodExchangeWithdraw = "Exchange.Withdraw" // ExchangeWithdrawRequest → WriteReply
)

// Methods that a client serves. A server that is called with one passes it on to the
// client that runs the allocation, over the session that the client keeps open.
const (
	MethodClientHello        = "Client.Hello"        // client → server, after registering, once a node and session: NodeHeartbeatRequest → WriteReply
	MethodClientAllocStats   = "Client.AllocStats"   // ClientAllocRequest → ClientStatsReply
	MethodClientAllocRestart = "Client.AllocRestart" // ClientAllocRequest → WriteReply
	MethodClientAllocSignal  = "Client.AllocSignal"  // ClientAllocRequest → WriteReply
	MethodClientAllocGC      = "Client.AllocGC"      // ClientAllocRequest → WriteReply
	MethodClientPing         = "Client.Ping"         // EmptyRequest → WriteReply
	MethodClientProbe        = "Client.Probe"        // NodeProbeRequest → NodeProbeReply: whether it hears its neighbour by gossip
	MethodClientGC           = "Client.GC"           // ClientHostStatsRequest → WriteReply
	MethodClientHostStats    = "Client.HostStats"    // ClientHostStatsRequest → ClientHostStatsReply
	MethodClientMetaRead     = "Client.MetaRead"     // NodeMetaRequest → NodeMetaReply
	MethodClientMetaApply    = "Client.MetaApply"    // NodeMetaRequest → NodeMetaReply
	MethodClientSimHealth    = "Client.SimHealth"    // SimHealthRequest → WriteReply
	MethodClientFSList       = "Client.FSList"       // FSRequest → FSListReply
	MethodClientFSStat       = "Client.FSStat"       // FSRequest → FSStatReply
	MethodClientFSRead       = "Client.FSRead"       // stream: FSRequest → StreamFrame…; files and logs, with follow
)
