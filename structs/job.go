package structs

import "time"

// Names that a job gets when it states none.
const (
	DefaultNamespace  = "default"
	DefaultRegion     = "global"
	DefaultNodePool   = "default"
	DefaultDatacenter = "*" // every datacenter
)

// AllNodePool is the built-in node pool that every node is in.
const AllNodePool = "all"

// Job types: which scheduler a job is for.
const (
	JobTypeService  = "service"  // long-lived, kept running
	JobTypeBatch    = "batch"    // runs to completion
	JobTypeSystem   = "system"   // long-lived, one on every fitting node
	JobTypeSysBatch = "sysbatch" // runs to completion once on every fitting node
	JobTypeCore     = "_core"    // internal: garbage collection; refused from outside
)

// Job states, set by the servers.
const (
	JobStatusPending = "pending" // nothing of it runs yet
	JobStatusRunning = "running" // some allocation is not terminal, or it launches children
	JobStatusDead    = "dead"    // stopped or done
)

// Priorities.
const (
	JobMinPriority     = 1
	JobDefaultPriority = 50
	JobMaxPriority     = 100
	CoreJobPriority    = 200 // of internal work, above everything
)

// How a job returns resources when they are reclaimed.
const (
	ReclaimRequeue = "requeue" // stop it, its request goes back to the queue
	ReclaimSuspend = "suspend" // suspend it in place, resume it later
)

// What a job that fits only partly after preemption does.
const (
	PartialPreempt = "preempt" // take all it can
	PartialFree    = "free"    // take only what is free
	PartialNone    = "none"    // take nothing and wait
)

// Classes of service a job may request.
const (
	ClassAuto          = "auto"
	ClassGuaranteed    = "guaranteed"
	ClassOpportunistic = "opportunistic"
)

// Job is the specification of work, as written, and what the servers add to it.
type Job struct {
	_struct sparse `entry:",omitempty"`

	Region    string `hcl:"region"`                                           // the region that the job runs in
	Namespace string `hcl:"namespace"`                                        // the namespace of the job
	ID        string `hcl:"id"`                                               // names the job within its namespace; default: the label of the job block
	Name      string `hcl:"name"`                                             // for people; default: the id
	Type      string `hcl:"type" check:"oneof=service|batch|system|sysbatch"` // service: kept running; batch: runs to its end; system, sysbatch: the same, once on every node that fits
	Priority  int    `hcl:"priority" check:"min=1,max=100"`                   // higher first; default: job_default_priority of the servers. Bands use it as declared
	AllAtOnce bool   `hcl:"all_at_once"`                                      // Nomad's older wish for whole placement; gang of a group places it whole
	// Datacenters are names or globs ("*", "eu-*"); a node must match one.
	Datacenters []string `hcl:"datacenters"`
	NodePool    string   `hcl:"node_pool"` // the pool whose nodes may be used

	Project string   `hcl:"project"`                                                                           // the project whose slots the job uses
	Step    string   `hcl:"step"`                                                                              // a step of the flow that the project follows
	Slot    string   `hcl:"slot"`                                                                              // the type of slots; default: what the job needs decides
	Reclaim string   `hcl:"reclaim" check:"oneof=requeue|suspend"`                                             // what becomes of it when its resources are taken back: requeue ends it, and its request goes back to the queue; suspend suspends it in place
	Partial string   `hcl:"partial" check:"oneof=preempt|free|none"`                                           // what the job does that fits only partly after preemption: preempt takes all that it can, free only what is free, none waits; default: preempt, and none for gangs
	Class   string   `hcl:"class" check:"oneof=auto|guaranteed|opportunistic"`                                 // guaranteed: instances wait rather than run without a claim on what the namespace owns; opportunistic: they never use it; auto: they use it first, and run opportunistically beyond it
	Policy  string   `hcl:"policy" check:"oneof=binpack|spread|first-fit|next-fit|random|least-fragmentation"` // the order in which nodes are tried; default: the cluster's
	Prefer  []string `hcl:"prefer"`                                                                            // its order of dimensions (gpus, cpu, memory); default: the cluster's

	Constraints      []*Constraint           `hcl:"constraint,block"`
	Affinities       []*Affinity             `hcl:"affinity,block"`
	Spreads          []*Spread               `hcl:"spread,block"`
	TaskGroups       []*TaskGroup            `hcl:"group,block"`
	Update           *UpdateStrategy         `hcl:"update,block"`
	Multiregion      *Multiregion            `hcl:"multiregion,block"`
	Periodic         *PeriodicConfig         `hcl:"periodic,block"`
	ParameterizedJob *ParameterizedJobConfig `hcl:"parameterized,block"`
	Reschedule       *ReschedulePolicy       `hcl:"reschedule,block"`
	Migrate          *MigrateStrategy        `hcl:"migrate,block"`
	Meta             map[string]string       `hcl:"meta,block"` // metadata, which tasks get as environment variables
	UI               *JobUIConfig            `hcl:"ui,block"`

	// What follows is not written by people.

	// OverLimit is OverLimitOpportunistic if the job was registered with opportunistic=true: what it requests beyond what its
	// namespace owns may run opportunistically, whatever its virtual cluster says. Empty: its virtual cluster decides.
	OverLimit string `check:"oneof=opportunistic" json:",omitempty" codec:",omitempty"`

	// Submitter is who registered this version. Another one makes another version: what a job is entitled to depends on it.
	Submitter *Submitter `json:",omitempty" codec:",omitempty"`
	// Submission is what the submission check finds of it now, one of the Submission constants; empty if it names no project. Servers state it in
	// answers; it is never stored, and what a request states of it counts for nothing.
	Submission string `json:",omitempty" codec:",omitempty"`

	// Workflow is the run of a workflow that registered the job; nil: none did. The servers alone state it.
	Workflow *JobWorkflow `json:",omitempty" codec:",omitempty"`

	// ConsulNamespace and VaultNamespace are given with a request, as in Nomad.
	ConsulNamespace string
	VaultNamespace  string
	// NomadTokenID is the accessor of the token that registered the job.
	NomadTokenID string
	// ParentID is the periodic or parameterized job that launched this one.
	ParentID string
	// Dispatched reports that this is a dispatched instance of a parameterized job.
	Dispatched bool
	// DispatchIdempotencyToken makes repeated dispatches one.
	DispatchIdempotencyToken string
	// Payload is what a dispatched job was given.
	Payload []byte

	// Stop reports that the job is to be stopped, and is kept only to be read.
	Stop bool
	// Stable reports that this version ran well and may be reverted to.
	Stable bool
	// Version counts the changes of the specification, from 0.
	Version uint64
	// VersionTag keeps a version by name.
	VersionTag *JobVersionTag
	// Status is one of the JobStatus constants.
	Status            string
	StatusDescription string
	// SubmitTime is when it was registered, in Unix nanoseconds.
	SubmitTime int64

	// CreateIndex and ModifyIndex are the log indexes of its creation and last
	// change of any kind; JobModifyIndex is that of its specification.
	CreateIndex    uint64
	ModifyIndex    uint64
	JobModifyIndex uint64
}

// JobVersionTag is a name that keeps one version of a job.
type JobVersionTag struct {
	Name        string
	Description string
	TaggedTime  int64 // Unix nanoseconds
}

// JobUIConfig is what the web UI shows of a job.
type JobUIConfig struct {
	Description string       `hcl:"description"` // what the web interface shows of the job
	Links       []*JobUILink `hcl:"link,block"`
}

// JobUILink is a link that the web UI shows.
type JobUILink struct {
	Label string `hcl:"label"` // its text
	URL   string `hcl:"url"`   // where it leads
}

// PeriodicSpecCron is the only kind of period.
const PeriodicSpecCron = "cron"

// PeriodicConfig launches a job again and again.
type PeriodicConfig struct {
	Enabled         bool     `hcl:"enabled"` // default true
	Spec            string   `hcl:"cron"`
	Specs           []string `hcl:"crons"`
	SpecType        string   // always "cron"
	ProhibitOverlap bool     `hcl:"prohibit_overlap"`
	TimeZone        string   `hcl:"time_zone"` // IANA name; "UTC" if not stated
}

// Whether a dispatched job takes a payload.
const (
	DispatchPayloadForbidden = "forbidden"
	DispatchPayloadOptional  = "optional"
	DispatchPayloadRequired  = "required"
)

// ParameterizedJobConfig makes a job one that is dispatched with arguments.
type ParameterizedJobConfig struct {
	Payload      string   `hcl:"payload" check:"oneof=forbidden|optional|required"` // one of the DispatchPayload constants
	MetaRequired []string `hcl:"meta_required"`
	MetaOptional []string `hcl:"meta_optional"`
}

// Multiregion runs a job in several regions.
type Multiregion struct {
	Strategy *MultiregionStrategy `hcl:"strategy,block"`
	Regions  []*MultiregionRegion `hcl:"region,block"`
}

// MultiregionStrategy describes how a change goes through the regions.
type MultiregionStrategy struct {
	MaxParallel int    `hcl:"max_parallel" check:"min=0"`
	OnFailure   string `hcl:"on_failure" check:"oneof=fail_all|fail_local"` // fail_local: the regions after one that refuses the job get it all the same; default: they do not, as with fail_all
}

// MultiregionRegion is one region of a multiregion job.
type MultiregionRegion struct {
	Name        string            `hcl:"name,label"`          // the region
	Count       int               `hcl:"count" check:"min=0"` // the count of groups there whose own count is 0; default: 1
	Datacenters []string          `hcl:"datacenters"`         // the data centers there; default: the job's
	NodePool    string            `hcl:"node_pool"`           // the node pool there; default: the job's
	Meta        map[string]string `hcl:"meta,block"`          // added to the job's metadata there
}

// ScalingPolicy is what an autoscaler may do with a group's count or a task's
// resources.
type ScalingPolicy struct {
	Min     int64          `hcl:"min" check:"min=0"` // not below which count; default: the group's count
	Max     int64          `hcl:"max"`               // not above which count; required
	Enabled bool           `hcl:"enabled"`           // default true
	Type    string         `hcl:"type,optlabel"`     // horizontal for groups
	Policy  map[string]any `hcl:"policy,block"`      // what the autoscaler takes

	// What follows is set by the servers.

	ID          string
	Namespace   string
	Target      map[string]string
	CreateIndex uint64
	ModifyIndex uint64
}

// SetDefaults fills what a periodic block has when it states nothing.
func (p *PeriodicConfig) SetDefaults() { p.Enabled, p.SpecType = true, PeriodicSpecCron }

// SetDefaults fills what a region has when it states nothing.
func (r *MultiregionRegion) SetDefaults() { r.Count = 1 }

// SetDefaults fills what a scaling policy has when it states nothing.
func (p *ScalingPolicy) SetDefaults() { p.Enabled, p.Min, p.Max = true, -1, -1 }

// AfterDecode turns the labels of a task's scaling blocks into types.
func (p *ScalingPolicy) AfterDecode() {
	switch p.Type {
	case "cpu", "mem":
		p.Type = "vertical_" + p.Type
	}
}

// Submitted is SubmitTime as a time.
func (j *Job) Submitted() time.Time { return time.Unix(0, j.SubmitTime).UTC() }
