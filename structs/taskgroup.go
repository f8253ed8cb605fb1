package structs

import (
	"math"
	"time"
)

// countUnset stands in TaskGroup.Count while a group is being decoded, because
// the default depends on another block.
const countUnset = math.MinInt32

// TaskGroup is tasks that are placed together on one node, count times.
type TaskGroup struct {
	_struct sparse `entry:",omitempty"`

	Name  string `hcl:"name,label"`                       // the name of the group
	Count int    `hcl:"count" check:"min=0,max=10000000"` // how many instances are wanted; default: 1, or min of scaling
	// Candidates are the only nodes (names or ids) that may be taken; empty: all.
	Candidates []string `hcl:"candidates"`
	// ShutdownDelay is waited between deregistering services and stopping tasks.
	ShutdownDelay time.Duration `hcl:"shutdown_delay" check:"min=0"`
	// MaxRunDuration is the time limit of an allocation; 0 is none.
	MaxRunDuration time.Duration `hcl:"max_run_duration" check:"min=0"`
	// StopAfterClientDisconnect, MaxClientDisconnect and PreventRescheduleOnLost
	// are Nomad's older forms of what the disconnect block states.
	StopAfterClientDisconnect time.Duration `hcl:"stop_after_client_disconnect" check:"min=0"`
	MaxClientDisconnect       time.Duration `hcl:"max_client_disconnect" check:"min=0"`
	PreventRescheduleOnLost   bool          `hcl:"prevent_reschedule_on_lost"`

	Gang             *Gang                     `hcl:"gang,block"`
	Topology         *TopologyConstraint       `hcl:"topology,block"`
	Constraints      []*Constraint             `hcl:"constraint,block"`
	Affinities       []*Affinity               `hcl:"affinity,block"`
	Spreads          []*Spread                 `hcl:"spread,block"`
	Tasks            []*Task                   `hcl:"task,block"`
	Volumes          map[string]*VolumeRequest `hcl:"volume,block"`
	RestartPolicy    *RestartPolicy            `hcl:"restart,block"`
	ReschedulePolicy *ReschedulePolicy         `hcl:"reschedule,block"`
	Disconnect       *DisconnectStrategy       `hcl:"disconnect,block"`
	EphemeralDisk    *EphemeralDisk            `hcl:"ephemeral_disk,block"`
	Update           *UpdateStrategy           `hcl:"update,block"`
	Migrate          *MigrateStrategy          `hcl:"migrate,block"`
	Networks         []*NetworkResource        `hcl:"network,block"`
	Meta             map[string]string         `hcl:"meta,block"` // metadata, which tasks get as environment variables
	Services         []*Service                `hcl:"service,block"`
	Scaling          *ScalingPolicy            `hcl:"scaling,block"`
	Consul           *Consul                   `hcl:"consul,block"`
}

// What happens to a gang when a member is lost or fails for good.
const (
	GangOnLossGang   = "gang"   // the whole gang restarts
	GangOnLossMember = "member" // that member alone
)

// Gang makes a group's instances be placed whole or not at all.
type Gang struct {
	Min int `hcl:"min" check:"min=0"` // how many instances are placed together; 0: all
	// Groups are other groups of the job in the same gang.
	Groups []string `hcl:"groups"`
	OnLoss string   `hcl:"on_loss" check:"oneof=gang|member"` // what restarts when a member is lost or fails for good: the whole gang, or that member alone
}

// TopologyConstraint is the cell under which GPUs are wanted: on a device, one
// instance's; on a group, those of its whole gang.
type TopologyConstraint struct {
	// Level is a level of the topology tree: "gpu", "pcie", "socket", "node", …
	Level string `hcl:"level"`
	// Required refuses placement that is not under one cell of the level.
	Required bool `hcl:"required"`
	// Pin is a pinned cell of the tenant, by name; devices only.
	Pin string `hcl:"pin"`
}

// DefaultEphemeralDiskMB is the size of the shared disk of a group that states none.
const DefaultEphemeralDiskMB = 300

// EphemeralDisk is the disk that the tasks of an allocation share.
type EphemeralDisk struct {
	_struct sparse `entry:",omitempty"`

	Sticky  bool `hcl:"sticky"`                             // replacements prefer the same node and keep the data
	Migrate bool `hcl:"migrate"`                            // with sticky: the data moves to another node too
	SizeMB  int  `hcl:"size" check:"min=10,max=1000000000"` // MiB
}

// SetDefaults fills what a group has when it states nothing. Whoever decodes
// calls AfterDecode too.
func (g *TaskGroup) SetDefaults() { g.Count = countUnset }

// AfterDecode settles what depends on several fields having been read.
func (g *TaskGroup) AfterDecode() {
	if g.Count != countUnset {
		return
	}
	g.Count = 1
	if g.Scaling != nil && g.Scaling.Min >= 0 {
		g.Count = int(g.Scaling.Min)
	}
}
