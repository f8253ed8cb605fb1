package fields

import (
	"strings"
)

// Why fields of the official client's types are empty.

var jobExemptions = []exemption{
	{"deprecated: Expose and Paths hold it", "ConsulExposeConfig.Path ConsulProxy.ExposeConfig"},
	{"deprecated: Disabled holds it", "LogConfig.Enabled"},
	{"deprecated: networks are the group's", "Resources.Networks"},
	{"only set on what a node or an allocation has, not on what is asked", "NetworkResource.CIDR NetworkResource.Device NetworkResource.IP"},
	{"not in the first issue's scope: dispatch", "Job.Dispatched Job.Payload"},
	{"not in the first issue's scope: version tags", "Job.VersionTag"},
	{"only /v1/scaling/policy has them, not the job", `ScalingPolicy.CreateIndex ScalingPolicy.ID
		ScalingPolicy.ModifyIndex ScalingPolicy.Namespace ScalingPolicy.Target`},
	{"only set by Nomad itself, on services of connect", "Service.Kind"},
	{"only set by Nomad itself: the task's default identity", "Task.Identity"},
}

// answerTypes are what the official client decodes answers into, of the routes that
// there are. Job has a test of its own. Deployment and ServiceRegistration are
// wholly exempt: there are neither deployments nor services yet.
var answerTypes = strings.Fields(`JobListStub JobSummary JobPlanResponse JobRegisterResponse JobScaleStatusResponse
	Allocation AllocationListStub Evaluation Node NodeListStub NodeDrainUpdateResponse AllocResourceUsage HostStats
	AllocFileInfo AgentSelf ServerMembers AgentHealthResponse SchedulerConfigurationResponse RaftConfiguration
	SearchResponse MetricsSummary Events`)

var answerExemptions = []exemption{
	{"deprecated: AllocatedResources holds it", "Allocation.Resources Allocation.TaskResources Allocation.Services"},
	{"deprecated: networks are the group's, in AllocatedResources.Shared", "AllocatedTaskResources.Networks"},
	{"deprecated: NodeResources and ReservedResources hold it", "Node.Resources Node.Reserved"},
	{"deprecated: ScoreMetaData holds it", "AllocationMetric.Scores"},
	{"deprecated: Details and DisplayMessage hold it", `TaskEvent.DiskLimit TaskEvent.DiskSize TaskEvent.DownloadError
		TaskEvent.DriverMessage TaskEvent.GenericSource TaskEvent.SetupError TaskEvent.TaskSignalReason
		TaskEvent.ValidationError TaskEvent.VaultError`},
	{"deprecated: WaitUntil holds it", "Evaluation.Wait"},

	{"not in the first issue's scope: deployments and canaries", `Allocation.DeploymentID AllocDeploymentStatus.Canary
		Evaluation.DeploymentID EvaluationStub.DeploymentID DesiredUpdates.Canary`},
	{"not in the first issue's scope: preemption", `Allocation.PreemptedAllocations Allocation.PreemptedByAllocation
		AllocationListStub.PreemptedAllocations AllocationListStub.PreemptedByAllocation DesiredUpdates.Preemptions
		PlanAnnotations.PreemptedAllocs`},
	{"not in the first issue's scope: the modes bridge and cni, DNS and host networks", `AllocNetworkStatus.AddressIPv6 AllocNetworkStatus.DNS AllocNetworkStatus.InterfaceName
		NetworkResource.CNI NetworkResource.DNS NetworkResource.Hostname Node.HostNetworks`},
	{"not in the first issue's scope: quotas", "AllocationMetric.QuotaExhausted Evaluation.QuotaLimitReached"},
	{"not in the first issue's scope: disconnected clients", "TaskGroupSummary.Unknown DesiredUpdates.Disconnect DesiredUpdates.Reconnect"},
	{"not in the first issue's scope: dispatch and periodic launches", `JobListStub.ParentID JobSummary.Children
		JobPlanResponse.NextPeriodicLaunch`},
	{"not in the first issue's scope: CSI and dynamic host volumes", `Node.CSIControllerPlugins Node.CSINodePlugins
		HostVolumeInfo.ID Node.GCVolumesOnNodeGC Evaluation.MissingNonNodeResources`},
	{"not in the first issue's scope: ACL", "DrainMetadata.AccessorID"},
	{"not in the first issue's scope: TLS", "Node.TLSEnabled"},
	{"not in the first issue's scope: cgroups of the client's own", "Node.CgroupParent CpuStats.ThrottledPeriods CpuStats.ThrottledTime"},
	{"not in the first issue's scope: a limit of allocations on a node", "Node.NodeMaxAllocs"},
	{"not in the first issue's scope: use of devices", "ResourceUsage.DeviceStats HostStats.DeviceStats"},
	{"not in the first issue's scope: fingerprints of clouds", "Node.Links"},

	{"only set where the system counts it, which Measured tells", `MemoryStats.Cache MemoryStats.KernelMaxUsage
		MemoryStats.KernelUsage MemoryStats.MaxUsage MemoryStats.Swap`},
	{"only set when nothing could be placed", "Allocation/AllocationMetric.CoalescedFailures"},
	{"only set when nothing could be placed: otherwise only nodes with room are looked at", `Allocation/AllocationMetric.NodesExhausted
		Allocation/AllocationMetric.DimensionExhausted Allocation/AllocationMetric.ClassExhausted`},
	{"only set when something was placed", "Evaluation/AllocationMetric.ScoreMetaData JobPlanResponse/AllocationMetric.ScoreMetaData"},
	{"never set: deciding reads no clock; the time is the metric nomad.worker.invoke_scheduler", "AllocationMetric.AllocationTime"},
	{"never set: DimensionExhausted says what is lacking", "AllocationMetric.ResourcesExhausted"},
	{"only set when sysbatch work is drained", "DesiredTransition.MigrateDisablePlacement"},
	{"only set when a task cannot be killed", "TaskEvent.KillError"},
	{"only set when an evaluation has failed and is followed up", "Evaluation.NextEval EvaluationStub.NextEval"},
	{"only set on a node's evaluations, which are related to none", "EvaluationStub.NodeID"},
	{"only set within a plan", "Evaluation.AnnotatePlan Evaluation.PlanAnnotations"},
	{"only set when a node is lost: TestLostNode", "TaskGroupSummary.Lost"},
	{"only set when a device or a node is not well", "NodeDevice.HealthDescription Node.StatusDescription NodeListStub.StatusDescription"},
	{"only set when an event has more to say than its message", "NodeEvent.Details"},
	{"only set when there is more to say than the status", "JobListStub.StatusDescription"},
	{"only set by the client itself: the stream's end", "Events.Err"},
	{"only set by the client itself, from headers, which the calls give apart", `QueryMeta.LastIndex QueryMeta.RequestTime
		QueryMeta.NextToken QueryMeta.LastContact JobRegisterResponse/QueryMeta.KnownLeader`},
	{"only one of the values is set: memory is whole MiB", "Attribute.BoolVal Attribute.FloatVal Attribute.StringVal"},
	{"only set in what a job asks", "Node/NetworkResource.DynamicPorts Node/NetworkResource.ReservedPorts " +
		"NodeListStub/NetworkResource.DynamicPorts NodeListStub/NetworkResource.ReservedPorts"},
	{"only set on a node's networks", "Allocation/NetworkResource.CIDR AllocationListStub/NetworkResource.CIDR"},
	{"only set by plans of what drains and fails meanwhile", "DesiredUpdates.Migrate DesiredUpdates.RescheduleLater DesiredUpdates.RescheduleNow"},
	{"only set when it is committed, which a plan's is not", `JobPlanResponse/Evaluation.CreateIndex JobPlanResponse/Evaluation.ModifyIndex
		JobPlanResponse/Evaluation.JobModifyIndex JobPlanResponse/Evaluation.SnapshotIndex JobPlanResponse/Evaluation.RelatedEvals
		JobPlanResponse/Evaluation.BlockedEval JobPlanResponse/Evaluation.NodeID JobPlanResponse/Evaluation.NodeModifyIndex`},
	{"never set: the Raft library does not tell it (hashicorp/raft 1.7.3, GetConfiguration)", "RaftConfiguration.Index"},
	{"never set: go-metrics makes points only of key-values, which nothing publishes", "MetricsSummary.Points"},
}
