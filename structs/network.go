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

	Mode          string     `hcl:"mode"` // host: the tasks use the network of the machine
	Device        string     `hcl:"device"`
	CIDR          string     `hcl:"cidr"`
	IP            string     `hcl:"ip"` // the address that ports are on; servers state it
	Hostname      string     `hcl:"hostname"`
	MBits         int        `hcl:"mbits" check:"min=0"` // accepted, without meaning, as in Nomad
	DNS           *DNSConfig `hcl:"dns,block"`
	ReservedPorts []Port     `hcl:"reserved_ports,block"` // of Nomad's older form: a port block with static
	DynamicPorts  []Port     `hcl:"port,block"`           // a port that tasks need
	CNI           *CNIConfig `hcl:"cni,block"`
}

// Port is a port requested, or assigned.
type Port struct {
	_struct sparse `entry:",omitempty"`

	Label           string `hcl:"label,label"`                    // the name of the port
	Value           int    `hcl:"static" check:"min=0,max=65535"` // the host's port; 0 requested: any
	To              int    `hcl:"to" check:"min=-1,max=65535"`    // the port inside; 0: the same, -1: as the host's
	HostNetwork     string `hcl:"host_network"`                   // the network of the node that the port is on
	IgnoreCollision bool   `hcl:"ignore_collision"`               // several tasks may use the same static port
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
