package structs

import "time"

// Kinds of volume.
const (
	VolumeTypeHost = "host"
	VolumeTypeCSI  = "csi"
)

// VolumeRequest is a volume that a group needs.
type VolumeRequest struct {
	Name           string           `hcl:"name,label"`                  // the name of the volume in the job
	Type           string           `hcl:"type" check:"oneof=host|csi"` // host: a directory that the node offers
	Source         string           `hcl:"source"`                      // the name of the volume on the node
	ReadOnly       bool             `hcl:"read_only"`                   // only reading is needed
	Sticky         bool             `hcl:"sticky"`                      // for dynamic host volumes, which are not there yet
	AccessMode     string           `hcl:"access_mode"`                 // of CSI, which is not there yet
	AttachmentMode string           `hcl:"attachment_mode"`             // of CSI
	MountOptions   *CSIMountOptions `hcl:"mount_options,block"`
	PerAlloc       bool             `hcl:"per_alloc"` // kept: each instance is to have its own
}

// CSIMountOptions is how a CSI volume is mounted.
type CSIMountOptions struct {
	FSType     string   `hcl:"fs_type"`     // of CSI
	MountFlags []string `hcl:"mount_flags"` // of CSI
}

// How mounts made later show on both sides.
const (
	VolumeMountPropagationPrivate       = "private"
	VolumeMountPropagationHostToTask    = "host-to-task"
	VolumeMountPropagationBidirectional = "bidirectional"
)

// VolumeMount shows a group's volume to a task.
type VolumeMount struct {
	Volume          string `hcl:"volume"`
	Destination     string `hcl:"destination"`
	ReadOnly        bool   `hcl:"read_only"`
	PropagationMode string `hcl:"propagation_mode" check:"oneof=private|host-to-task|bidirectional"` // one of the VolumeMountPropagation constants; "private" if not stated
	SELinuxLabel    string `hcl:"selinux_label"`
}

// TaskCSIPluginConfig makes a task a CSI plugin.
type TaskCSIPluginConfig struct {
	ID                  string        `hcl:"id"`
	Type                string        `hcl:"type" check:"oneof=node|controller|monolith"` // "node", "controller" or "monolith"
	MountDir            string        `hcl:"mount_dir"`
	StagePublishBaseDir string        `hcl:"stage_publish_base_dir"`
	HealthTimeout       time.Duration `hcl:"health_timeout" check:"min=0"`
}
