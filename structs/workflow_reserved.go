package structs

// WorkflowPart is what a workflow has reserved on one node.
type WorkflowPart struct {
	NodeID                string
	CPU, MemoryMB, DiskMB int64
	Cores, Devices        int
}
