package structs

// SimHealthRequest makes a simulated node, or one of its devices, bad or good again.
type SimHealthRequest struct {
	NodeID string
	// Device is a GPU or a MIG slice of the node; a GPU that is cut into slices stands
	// for all of them. Empty: the node itself, which calls itself down while it is bad.
	Device string
	Bad    bool
	QueryOptions
}
