package sim

// Layout is a number of simulated nodes that are alike.
type Layout struct {
	Name   string            `hcl:"name,label"`
	Count  int               `hcl:"count"`  // nodes; default 1
	Cores  int               `hcl:"cores"`  // default 4
	MHz    int               `hcl:"mhz"`    // per core; default 2000
	Memory int64             `hcl:"memory"` // MiB; default 8192
	Disk   int64             `hcl:"disk"`   // MiB; default 100000
	Meta   map[string]string `hcl:"meta"`
	// Datacenter, Class and Pool are those of the agent unless set.
	Datacenter string `hcl:"datacenter"`
	Class      string `hcl:"class"`
	Pool       string `hcl:"pool"`
	GPUs       []GPUs `hcl:"gpus,block"`
	// Slots are how many slots of each type a node offers; nil: it states none.
	Slots map[string]int `hcl:"slots"`
}

// GPUs is a number of GPUs of one kind in each node of a shape.
type GPUs struct {
	Name              string `hcl:"name,label"`          // vendor/type/model
	Count             int    `hcl:"count"`               // per node; default 1
	Sockets           int    `hcl:"sockets"`             // default 1
	SwitchesPerSocket int    `hcl:"switches_per_socket"` // default 1
	Memory            int64  `hcl:"memory"`              // MiB each
	// Switches specifies how many GPUs each switch has, all under one socket: an uneven
	// tree. Instead of Sockets and SwitchesPerSocket, which are 1 then.
	Switches []int `hcl:"switches"`
	NVLink   bool  `hcl:"nvlink"` // all GPUs of the block are linked with each other
	// MIG is how many slices each GPU is cut into; 0: none. They are devices of type
	// "mig", named MIGProfile (default "1g.10gb").
	MIG        int    `hcl:"mig"`
	MIGProfile string `hcl:"mig_profile"`
}
