package sim

// Shape is a number of simulated nodes that are alike.
type Shape struct {
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
}

// GPUs is a number of GPUs of one kind in each node of a shape.
type GPUs struct {
	Name              string `hcl:"name,label"`          // vendor/type/model
	Count             int    `hcl:"count"`               // per node; default 1
	Sockets           int    `hcl:"sockets"`             // default 1
	SwitchesPerSocket int    `hcl:"switches_per_socket"` // default 1
	Memory            int64  `hcl:"memory"`              // MiB each
}
