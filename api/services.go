package api

// The methods of a Client are grouped by resource, as those of Nomad's client are: each group is a value that shares
// the client's connection, region and consistency.
type (
	// Jobs reads and changes jobs.
	Jobs struct{ client *Client }
	// Allocations reads, stops and restarts allocations.
	Allocations struct{ client *Client }
	// AllocFS reads files and logs of allocations.
	AllocFS struct{ client *Client }
	// Evaluations reads and deletes evaluations.
	Evaluations struct{ client *Client }
	// Nodes reads nodes, drains them and changes their metadata.
	Nodes struct{ client *Client }
	// Namespaces reads and changes namespaces.
	Namespaces struct{ client *Client }
	// NodePools reads and changes node pools.
	NodePools struct{ client *Client }
	// VirtualClusters reads and changes what namespaces own.
	VirtualClusters struct{ client *Client }
	// Exchanges reads and changes what virtual clusters offer each other, and bid.
	Exchanges struct{ client *Client }
	// Projects reads and changes projects and their calendars.
	Projects struct{ client *Client }
	// Flows reads and changes the steps that projects share.
	Flows struct{ client *Client }
	// Workflows runs workflows and reads them.
	Workflows struct{ client *Client }
	// Agent reads and changes the agent that is connected to, and the members that it knows.
	Agent struct{ client *Client }
	// Status reads who leads, and which regions there are.
	Status struct{ client *Client }
	// Operator reads and changes the servers' configuration, Raft and snapshots.
	Operator struct{ client *Client }
	// System starts the servers' maintenance.
	System struct{ client *Client }
	// Search finds resources by the beginning or a part of their names.
	Search struct{ client *Client }
	// Scaling reads scaling policies.
	Scaling struct{ client *Client }
)

// Jobs returns the methods that concern jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// Allocations returns the methods that concern allocations.
func (c *Client) Allocations() Allocations { return Allocations{c} }

// AllocFS returns the methods that concern files and logs of allocations.
func (c *Client) AllocFS() AllocFS { return AllocFS{c} }

// Evaluations returns the methods that concern evaluations.
func (c *Client) Evaluations() Evaluations { return Evaluations{c} }

// Nodes returns the methods that concern nodes.
func (c *Client) Nodes() Nodes { return Nodes{c} }

// Namespaces returns the methods that concern namespaces.
func (c *Client) Namespaces() Namespaces { return Namespaces{c} }

// NodePools returns the methods that concern node pools.
func (c *Client) NodePools() NodePools { return NodePools{c} }

// VirtualClusters returns the methods that concern what namespaces own.
func (c *Client) VirtualClusters() VirtualClusters { return VirtualClusters{c} }

// Exchanges returns the methods that concern what virtual clusters offer each other, and bid.
func (c *Client) Exchanges() Exchanges { return Exchanges{c} }

// Projects returns the methods that concern projects and their calendars.
func (c *Client) Projects() Projects { return Projects{c} }

// Flows returns the methods that concern the steps that projects share.
func (c *Client) Flows() Flows { return Flows{c} }

// Workflows returns the methods that concern workflows.
func (c *Client) Workflows() Workflows { return Workflows{c} }

// Agent returns the methods that concern the agent that is connected to.
func (c *Client) Agent() Agent { return Agent{c} }

// Status returns the methods that concern the state of the cluster's servers.
func (c *Client) Status() Status { return Status{c} }

// Operator returns the methods that concern the servers' configuration, Raft and snapshots.
func (c *Client) Operator() Operator { return Operator{c} }

// System returns the methods that concern the servers' maintenance.
func (c *Client) System() System { return System{c} }

// Search returns the methods that find resources by their names.
func (c *Client) Search() Search { return Search{c} }

// Scaling returns the methods that concern scaling policies.
func (c *Client) Scaling() Scaling { return Scaling{c} }
