package structs

// Event-stream topics, as Nomad names them.
const (
	TopicAll            = "*"
	TopicJob            = "Job"
	TopicEvaluation     = "Evaluation"
	TopicAllocation     = "Allocation"
	TopicNode           = "Node"
	TopicNodePool       = "NodePool"
	TopicVirtualCluster = "VirtualCluster" // ours: what a namespace owns
	TopicExchange       = "Exchange"       // ours: offers and bids of cells
	TopicProject        = "Project"        // ours: projects, their calendars and flows
	TopicWorkflow       = "Workflow"       // ours: workflows and their runs
	TopicLicense        = "License"        // ours: how many there are of each license
	TopicForecast       = "Forecast"       // ours: latest starts that moved
	TopicOperator       = "Operator"
	TopicQueue          = "Queue" // ours: requests that wait, are placed or taken back
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
