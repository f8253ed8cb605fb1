package structs

// Network modes. Others are "bridge" and "cni/NAME".
const (
	NetworkModeHost   = "host"
	NetworkModeBridge = "bridge"
	NetworkModeNone   = "none"
)

// NetworkResource is a network and the ports requested of it; on an allocation,
// the ports given.
type NetworkResource struct {
	_struct sparse `entry:",omitempty"`

	Mode          string     `hcl:"mode"`
	Device        string     `hcl:"device"`
	CIDR          string     `hcl:"cidr"`
	IP            string     `hcl:"ip"`
	Hostname      string     `hcl:"hostname"`
	MBits         int        `hcl:"mbits" check:"min=0"` // accepted, without meaning, as in Nomad
	DNS           *DNSConfig `hcl:"dns,block"`
	ReservedPorts []Port     `hcl:"reserved_ports,block"`
	DynamicPorts  []Port     `hcl:"port,block"` // with static set: moved to ReservedPorts by Canonicalize
	CNI           *CNIConfig `hcl:"cni,block"`
}

// Port is a port requested, or assigned.
type Port struct {
	_struct sparse `entry:",omitempty"`

	Label           string `hcl:"label,label"`
	Value           int    `hcl:"static" check:"min=0,max=65535"` // the host's port; 0 requested: any
	To              int    `hcl:"to" check:"min=-1,max=65535"`    // the port inside; 0: the same, -1: as the host's
	HostNetwork     string `hcl:"host_network"`
	IgnoreCollision bool   `hcl:"ignore_collision"`
}

// DNSConfig is the resolver of tasks with a network of their own.
type DNSConfig struct {
	Servers  []string `hcl:"servers"`
	Searches []string `hcl:"searches"`
	Options  []string `hcl:"options"`
}

// CNIConfig is given to CNI plugins.
type CNIConfig struct {
	Args map[string]string `hcl:"args,block"`
}
