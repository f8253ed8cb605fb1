package structs

// Event-stream topics, as Nomad names them.
const (
	TopicAll            = "*"              // all of them
	TopicJob            = "Job"            // jobs
	TopicEvaluation     = "Evaluation"     // evaluations
	TopicAllocation     = "Allocation"     // allocations
	TopicNode           = "Node"           // nodes
	TopicNodePool       = "NodePool"       // node pools
	TopicVirtualCluster = "VirtualCluster" // ours: what a namespace owns
	TopicExchange       = "Exchange"       // ours: offers and bids of cells
	TopicProject        = "Project"        // ours: projects, their calendars and flows
	TopicWorkflow       = "Workflow"       // ours: workflows and their runs
	TopicLicense        = "License"        // ours: how many there are of each license
	TopicForecast       = "Forecast"       // ours: latest starts that moved
	TopicOperator       = "Operator"       // the scheduler's configuration
	TopicQueue          = "Queue"          // ours: requests that wait, are placed or taken back
)

// The types of events: what happened, by the log entry that the change is of.
const (
	EventJobRegistered                 = "JobRegistered"                 // a job was registered, changed, scaled or reverted
	EventJobDeregistered               = "JobDeregistered"               // a job was stopped or purged
	EventEvaluationUpdated             = "EvaluationUpdated"             // evaluations were made, or have another status
	EventPlanResult                    = "PlanResult"                    // a plan was committed: allocations were placed, moved or stopped
	EventAllocationUpdated             = "AllocationUpdated"             // a client reported how an allocation goes
	EventAllocationUpdateDesiredStatus = "AllocationUpdateDesiredStatus" // somebody requested that an allocation be stopped, moved, suspended or resumed
	EventNodeRegistration              = "NodeRegistration"              // a node registered, or registered anew
	EventNodeDeregistration            = "NodeDeregistration"            // a node was purged, or forgotten as it was down for long
	EventNodeEligibility               = "NodeEligibility"               // the eligibility of a node changed
	EventNodeDrain                     = "NodeDrain"                     // the drain of a node began, changed or ended
	EventNodeStreamEvent               = "NodeStreamEvent"               // the status of a node changed, or something happened on it
	EventNodePoolUpserted              = "NodePoolUpserted"              // a node pool was made or changed
	EventNodePoolDeleted               = "NodePoolDeleted"               // a node pool was deleted
	EventNamespaceUpserted             = "NamespaceUpserted"             // a namespace was made or changed
	EventNamespaceDeleted              = "NamespaceDeleted"              // a namespace was deleted
	EventVirtualClusterUpserted        = "VirtualClusterUpserted"        // a virtual cluster was made or changed, with its points and what was shifted
	EventVirtualClusterDeleted         = "VirtualClusterDeleted"         // a virtual cluster was deleted
	EventVirtualClusterTurned          = "VirtualClusterTurned"          // what a virtual cluster owns changed at a time: a window, an exchange or a week began or ended
	EventExchangePut                   = "ExchangePut"                   // an offer or a bid of cells was made
	EventExchangeWithdrawn             = "ExchangeWithdrawn"             // an offer or a bid was withdrawn
	EventProjectUpserted               = "ProjectUpserted"               // a project was made or changed
	EventProjectDeleted                = "ProjectDeleted"                // a project was deleted
	EventProjectCalendarEdited         = "ProjectCalendarEdited"         // the calendar of a project was edited
	EventProjectWeekTurned             = "ProjectWeekTurned"             // another week of the calendar counts for a project
	EventFlowUpserted                  = "FlowUpserted"                  // a flow was made or changed
	EventFlowDeleted                   = "FlowDeleted"                   // a flow was deleted
	EventWorkflowRunRegistered         = "WorkflowRunRegistered"         // a run of a workflow was registered
	EventWorkflowAdvanced              = "WorkflowAdvanced"              // a run went on: it reserved, or a stage started or ended
	EventWorkflowStateChanged          = "WorkflowStateChanged"          // a run was paused, resumed, cancelled or retried
	EventWorkflowDeleted               = "WorkflowDeleted"               // a workflow was deleted
	EventLicenseUpserted               = "LicenseUpserted"               // a license was made or changed
	EventLicenseDeleted                = "LicenseDeleted"                // a license was deleted
	EventSchedulerConfigUpdated        = "SchedulerConfigUpdated"        // the configuration of the scheduler was changed
	EventCollected                     = "Collected"                     // something old was forgotten
	EventReconciled                    = "Reconciled"                    // the summaries of jobs were counted anew
	EventRequestWaiting                = "RequestWaiting"                // a request waits: for the first time, again, or for another number
	EventRequestPlaced                 = "RequestPlaced"                 // all of a request is placed
	EventRequestReclaimed              = "RequestReclaimed"              // instances of a request were taken back for another one
	EventRequestWithdrawn              = "RequestWithdrawn"              // a request is not wanted any more: its job or group is gone or stopped
	EventForecastMoved                 = "ForecastMoved"                 // the latest start of a request moved by more than a tenth of the wait for it, and by more than a minute
)

// Event is one thing that changed. JSON names are Nomad's.
type Event struct {
	Topic      string
	Type       string
	Key        string
	Namespace  string
	FilterKeys []string
	Index      uint64
	Payload    map[string]any // {"Job": …}, {"Allocation": …}, …
}

// Events is all that changed at one index: one line of the stream.
type Events struct {
	Index  uint64
	Events []Event
}

// EventPayload returns a pointer to an empty value of what events carry under a name; nil: nothing
// is known by it.
func EventPayload(name string) any {
	switch name {
	case "Job":
		return &Job{}
	case "Evaluation":
		return &Evaluation{}
	case "Allocation":
		return &Allocation{}
	case "Node":
		return &Node{}
	case "NodePool":
		return &NodePool{}
	case "VirtualCluster":
		return &VirtualCluster{}
	case "Exchange":
		return &Exchange{}
	case "Project":
		return &Project{}
	case "Flow":
		return &Flow{}
	case "Workflow":
		return &WorkflowRun{}
	case "License":
		return &License{}
	case "CalendarEdit":
		return &CalendarEdit{}
	case "SchedulerConfiguration":
		return &SchedulerConfiguration{}
	case "ForecastMove":
		return &ForecastMove{}
	case "Request":
		return &PendingRequest{}
	}
	return nil
}
