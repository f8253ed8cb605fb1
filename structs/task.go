package structs

import "time"

// Defaults of a task.
const (
	DefaultKillTimeout      = 5 * time.Second
	DefaultLogMaxFiles      = 10
	DefaultLogMaxFileSizeMB = 10
)

// DefaultIdentityName is the workload identity that every task has.
const DefaultIdentityName = "default"

// Task is one process (or container, …) of a group.
type Task struct {
	_struct sparse `entry:",omitempty"`

	Name string `hcl:"name,label"` // the name of the task
	// Driver runs the task: "raw_exec", "exec", "mock_driver", …
	Driver string         `hcl:"driver"`
	User   string         `hcl:"user"`         // the user to run as; default: the driver's
	Config map[string]any `hcl:"config,block"` // what the driver takes: for raw_exec command, args, and limits
	// Env are environment variables; their values may hold ${…} references.
	Env         map[string]string `hcl:"env,block"`
	Meta        map[string]string `hcl:"meta,block"`                 // metadata, which the task gets as environment variables
	KillTimeout time.Duration     `hcl:"kill_timeout" check:"min=0"` // the time between the kill signal and the kill
	KillSignal  string            `hcl:"kill_signal"`                // what is sent first; default: SIGINT
	// Leader: when this task ends, so do the others of its group.
	Leader bool `hcl:"leader"`
	// ShutdownDelay is waited between deregistering services and the kill signal.
	ShutdownDelay time.Duration `hcl:"shutdown_delay" check:"min=0"`
	// Kind marks tasks made for a service mesh.
	Kind string `hcl:"kind"`

	Lifecycle       *TaskLifecycle         `hcl:"lifecycle,block"`
	Constraints     []*Constraint          `hcl:"constraint,block"`
	Affinities      []*Affinity            `hcl:"affinity,block"`
	Resources       *Resources             `hcl:"resources,block"`
	RestartPolicy   *RestartPolicy         `hcl:"restart,block"`
	LogConfig       *LogConfig             `hcl:"logs,block"`
	Services        []*Service             `hcl:"service,block"`
	Artifacts       []*TaskArtifact        `hcl:"artifact,block"`
	Templates       []*Template            `hcl:"template,block"`
	Vault           *Vault                 `hcl:"vault,block"`
	Consul          *Consul                `hcl:"consul,block"`
	DispatchPayload *DispatchPayloadConfig `hcl:"dispatch_payload,block"`
	VolumeMounts    []*VolumeMount         `hcl:"volume_mount,block"`
	CSIPluginConfig *TaskCSIPluginConfig   `hcl:"csi_plugin,block" json:",omitempty"`
	ScalingPolicies []*ScalingPolicy       `hcl:"scaling,block"`
	Secrets         []*Secret              `hcl:"secret,block"`
	// Identity is the default identity; Canonicalize takes it out of Identities.
	Identity   *WorkloadIdentity
	Identities []*WorkloadIdentity `hcl:"identity,block"`
	Actions    []*Action           `hcl:"action,block"`
	Schedule   *TaskSchedule       `hcl:"schedule,block"`
}

// When a task that is not a main task runs.
const (
	TaskLifecycleHookPrestart  = "prestart"
	TaskLifecycleHookPoststart = "poststart"
	TaskLifecycleHookPoststop  = "poststop"
)

// TaskLifecycle makes a task run before or after the main ones.
type TaskLifecycle struct {
	Hook    string `hcl:"hook" check:"oneof=prestart|poststart|poststop"` // when the task runs: before the main tasks, once they run, or after them
	Sidecar bool   `hcl:"sidecar"`                                        // keeps running beside the main tasks
}

// LogConfig describes how much of a task's output is kept.
type LogConfig struct {
	_struct sparse `entry:",omitempty"`

	MaxFiles      int `hcl:"max_files" check:"min=1"`     // how many files of output are kept, of stdout and of stderr each
	MaxFileSizeMB int `hcl:"max_file_size" check:"min=1"` // MiB of each
	// Disabled keeps nothing.
	Disabled bool  `hcl:"disabled"`
	Enabled  *bool `hcl:"enabled" json:",omitempty"` // Nomad's older opposite of disabled
}

// TaskArtifact is a file or directory fetched before a task starts.
type TaskArtifact struct {
	_struct sparse `entry:",omitempty"`

	GetterSource   string            `hcl:"source"`
	GetterOptions  map[string]string `hcl:"options,block"`
	GetterHeaders  map[string]string `hcl:"headers,block"`
	GetterMode     string            `hcl:"mode" check:"oneof=any|file|dir"` // "any" (default), "file" or "dir"
	GetterInsecure bool              `hcl:"insecure"`
	RelativeDest   string            `hcl:"destination"` // "local/" if not stated
	Chown          bool              `hcl:"chown"`
}

// What happens to a task when something it was given changes.
const (
	ChangeModeNoop    = "noop"
	ChangeModeSignal  = "signal"
	ChangeModeRestart = "restart"
	ChangeModeScript  = "script"
)

// Template is a file rendered for a task.
type Template struct {
	_struct sparse `entry:",omitempty"`

	SourcePath    string        `hcl:"source"`
	DestPath      string        `hcl:"destination"`
	EmbeddedTmpl  string        `hcl:"data"`
	ChangeMode    string        `hcl:"change_mode" check:"oneof=noop|signal|restart|script"` // one of the ChangeMode constants; "restart" if not stated
	ChangeSignal  string        `hcl:"change_signal"`
	ChangeScript  *ChangeScript `hcl:"change_script,block"`
	Once          bool          `hcl:"once"`
	Splay         time.Duration `hcl:"splay" check:"min=0"`       // default 5 s
	Perms         string        `hcl:"perms"`                     // octal; "0644" if not stated
	Uid           int           `hcl:"uid"`                       // negative (default): not changed
	Gid           int           `hcl:"gid"`                       // negative (default): not changed
	LeftDelim     string        `hcl:"left_delimiter"`            // "{{" if not stated
	RightDelim    string        `hcl:"right_delimiter"`           // "}}" if not stated
	Envvars       bool          `hcl:"env"`                       // read the result as environment variables
	VaultGrace    time.Duration `hcl:"vault_grace" check:"min=0"` // accepted, without meaning, as in Nomad
	Wait          *WaitConfig   `hcl:"wait,block"`
	ErrMissingKey bool          `hcl:"error_on_missing_key"`
}

// ChangeScript is run when a template changes.
type ChangeScript struct {
	Command          string        `hcl:"command"`
	Args             []string      `hcl:"args"`
	Timeout          time.Duration `hcl:"timeout" check:"min=0"` // 0 is the default of 5 s
	FailOnError      bool          `hcl:"fail_on_error"`
	RunOnFirstRender bool          `hcl:"run_on_first_render"`
}

// WaitConfig calms how often a template is rendered again.
type WaitConfig struct {
	Min time.Duration `hcl:"min" check:"min=0"`
	Max time.Duration `hcl:"max" check:"min=0"`
}

// DispatchPayloadConfig is where a dispatched job finds its payload.
type DispatchPayloadConfig struct {
	File string `hcl:"file"`
}

// Vault is what a task wants of Vault.
type Vault struct {
	Policies             []string `hcl:"policies"`
	Role                 string   `hcl:"role"`
	Namespace            string   `hcl:"namespace"`
	Cluster              string   `hcl:"cluster"` // "default" if not stated
	Env                  bool     `hcl:"env"`     // default true
	DisableFile          bool     `hcl:"disable_file"`
	ChangeMode           string   `hcl:"change_mode" check:"oneof=noop|signal|restart"` // "restart" if not stated
	ChangeSignal         string   `hcl:"change_signal"`
	AllowTokenExpiration bool     `hcl:"allow_token_expiration"`
}

// Consul is what a group or task wants of Consul.
type Consul struct {
	Namespace string `hcl:"namespace"`
	Cluster   string `hcl:"cluster"` // "default" if not stated
	Partition string `hcl:"partition"`
}

// Secret is a value fetched from a provider when the task starts.
type Secret struct {
	Name     string            `hcl:"name,label"`
	Provider string            `hcl:"provider"`
	Path     string            `hcl:"path"`
	Config   map[string]any    `hcl:"config,block"`
	Env      map[string]string `hcl:"env,block"`
}

// WorkloadIdentity is a signed statement of what a task is.
type WorkloadIdentity struct {
	Name         string        `hcl:"name"`
	Audience     []string      `hcl:"aud"`
	ChangeMode   string        `hcl:"change_mode" check:"oneof=noop|signal|restart"`
	ChangeSignal string        `hcl:"change_signal"`
	Env          bool          `hcl:"env"`
	File         bool          `hcl:"file"`
	Filepath     string        `hcl:"filepath"`
	ServiceName  string        `hcl:"service_name"`
	TTL          time.Duration `hcl:"ttl" check:"min=0"`
	ExtraClaims  []string      `hcl:"extra_claims"`
}

// Action is a command that may be run in a task from outside.
type Action struct {
	Name    string   `hcl:"name,label"`
	Command string   `hcl:"command"`
	Args    []string `hcl:"args"`
}

// TaskSchedule is when a task may run.
type TaskSchedule struct {
	Cron *TaskScheduleCron `hcl:"cron,block"`
}

// TaskScheduleCron returns the times of a TaskSchedule.
type TaskScheduleCron struct {
	Start    string `hcl:"start"`
	End      string `hcl:"end"`
	Timezone string `hcl:"timezone"`
}

// SetDefaults fills what a task has when it states nothing.
func (t *Task) SetDefaults() { t.KillTimeout = DefaultKillTimeout }

// SetDefaults fills what a template has when it states nothing.
func (t *Template) SetDefaults() { t.Splay, t.Uid, t.Gid = 5*time.Second, -1, -1 }

// SetDefaults fills what a vault block has when it states nothing.
func (v *Vault) SetDefaults() { v.Env = true }
