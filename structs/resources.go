package structs

import "math"

// Defaults of a task's resources.
const (
	DefaultCPU      = 100 // MHz
	DefaultMemoryMB = 300
)

// Resources is what a task requests.
type Resources struct {
	_struct sparse `entry:",omitempty"`

	CPU         int                `hcl:"cpu" check:"min=1,max=1000000000"`         // MHz; default: 100, or nothing if cores are requested
	Cores       int                `hcl:"cores" check:"min=0,max=1000000"`          // whole cores, for this task alone
	MemoryMB    int                `hcl:"memory" check:"min=10,max=1000000000"`     // MiB
	MemoryMaxMB int                `hcl:"memory_max" check:"min=-1,max=1000000000"` // MiB; 0: no more than MemoryMB; -1: no limit
	DiskMB      int                `hcl:"disk" check:"min=0,max=1000000000"`        // MiB; the group's ephemeral disk is meant instead
	SecretsMB   int                `hcl:"secrets" check:"min=0,max=1000000"`        // MiB of the secrets directory; 0 is the default
	IOPS        int                `hcl:"iops" check:"min=0"`                       // accepted, without meaning, as in Nomad
	Licenses    map[string]int     `hcl:"licenses,block"`                           // how many of which licenses, by name
	Networks    []*NetworkResource `hcl:"network,block"`
	Devices     []*RequestedDevice `hcl:"device,block"`
	NUMA        *NUMAResource      `hcl:"numa,block"`
}

// How strongly a task wants its cores on one NUMA node.
const (
	NUMAAffinityNone    = "none"
	NUMAAffinityPrefer  = "prefer"
	NUMAAffinityRequire = "require"
)

// NUMAResource is what a task requests of its cores' memory.
type NUMAResource struct {
	Affinity string   `hcl:"affinity" check:"oneof=none|prefer|require"` // how strongly the task needs its cores on one NUMA node
	Devices  []string `hcl:"devices"`                                    // devices that must share the NUMA node
}

// DeviceShareWhole is a whole device, in thousandths.
const DeviceShareWhole = 1000

// RequestedDevice is a request for devices of a kind.
type RequestedDevice struct {
	_struct sparse `entry:",omitempty"`

	// Name is "type", "vendor/type" or "vendor/type/model".
	Name        string              `hcl:"name,label"`
	Count       int                 `hcl:"count" check:"min=1,max=1000000"`                                                   // how many
	Share       int                 `hcl:"share" json:",omitzero" check:"min=1,max=1000,zero=leave it out for whole devices"` // thousandths of one device; below 1000 only with count 1
	Topology    *TopologyConstraint `hcl:"topology,block"`
	Constraints []*Constraint       `hcl:"constraint,block"`
	Affinities  []*Affinity         `hcl:"affinity,block"`
}

// shareOfNothing stands in RequestedDevice.Share for a 0 that was stated, which
// Validate refuses. A job made in Go with a share of 0 has not stated one.
const shareOfNothing = math.MinInt32

// SetDefaults fills what a device has when it states nothing.
func (d *RequestedDevice) SetDefaults() { d.Share = DeviceShareWhole }

// AfterDecode distinguishes a stated share of 0 from one that is not stated.
func (d *RequestedDevice) AfterDecode() {
	if d.Share == 0 {
		d.Share = shareOfNothing
	}
}
