package structs

import "time"

// What happens when a task has used up its restarts.
const (
	RestartPolicyModeDelay = "delay" // wait for the next interval
	RestartPolicyModeFail  = "fail"
)

// RestartPolicy describes how a failed task is started again on its node. After [Job.Canonicalize]
// no field is nil.
type RestartPolicy struct {
	_struct sparse `entry:",omitempty"`

	Interval        *time.Duration `hcl:"interval" check:"min=0"`
	Attempts        *int           `hcl:"attempts" check:"min=0"`
	Delay           *time.Duration `hcl:"delay" check:"min=0"`
	Mode            *string        `hcl:"mode" check:"oneof=delay|fail"` // one of the RestartPolicyMode constants
	RenderTemplates *bool          `hcl:"render_templates"`
}

// How the delay between two reschedules grows.
const (
	DelayFunctionConstant    = "constant"
	DelayFunctionExponential = "exponential"
	DelayFunctionFibonacci   = "fibonacci"
)

// ReschedulePolicy describes how a failed allocation is replaced, elsewhere if possible. After
// [Job.Canonicalize] no field is nil. System jobs have none.
type ReschedulePolicy struct {
	_struct sparse `entry:",omitempty"`

	Attempts      *int           `hcl:"attempts" check:"min=0"`
	Interval      *time.Duration `hcl:"interval" check:"min=0"`
	Delay         *time.Duration `hcl:"delay" check:"min=0"`
	DelayFunction *string        `hcl:"delay_function" check:"oneof=constant|exponential|fibonacci"` // one of the DelayFunction constants
	MaxDelay      *time.Duration `hcl:"max_delay" check:"min=0"`
	Unlimited     *bool          `hcl:"unlimited"`
}

// What makes an allocation healthy.
const (
	HealthCheckChecks     = "checks"      // tasks run and service checks pass
	HealthCheckTaskStates = "task_states" // tasks run
	HealthCheckManual     = "manual"      // an operator allows it
)

// UpdateStrategy describes how a change replaces allocations. After [Job.Canonicalize] no field of
// a group's is nil.
type UpdateStrategy struct {
	_struct sparse `entry:",omitempty"`

	Stagger          *time.Duration `hcl:"stagger" check:"min=0"`
	MaxParallel      *int           `hcl:"max_parallel" check:"min=0"`                           // 0: all at once, no deployment
	HealthCheck      *string        `hcl:"health_check" check:"oneof=checks|task_states|manual"` // one of the HealthCheck constants
	MinHealthyTime   *time.Duration `hcl:"min_healthy_time" check:"min=0"`
	HealthyDeadline  *time.Duration `hcl:"healthy_deadline" check:"min=0"`
	ProgressDeadline *time.Duration `hcl:"progress_deadline" check:"min=0"`
	Canary           *int           `hcl:"canary" check:"min=0"`
	AutoRevert       *bool          `hcl:"auto_revert"`
	AutoPromote      *bool          `hcl:"auto_promote"`
}

// MigrateStrategy describes how allocations leave a node that is drained. After [Job.Canonicalize]
// no field of a group's is nil.
type MigrateStrategy struct {
	_struct sparse `entry:",omitempty"`

	MaxParallel     *int           `hcl:"max_parallel" check:"min=1"`
	HealthCheck     *string        `hcl:"health_check" check:"oneof=checks|task_states"`
	MinHealthyTime  *time.Duration `hcl:"min_healthy_time" check:"min=0"`
	HealthyDeadline *time.Duration `hcl:"healthy_deadline" check:"min=0"`
}

// Which allocation stays when a disconnected node comes back.
const (
	ReconcileKeepOriginal    = "keep_original"
	ReconcileKeepReplacement = "keep_replacement"
	ReconcileBestScore       = "best_score"
	ReconcileLongestRunning  = "longest_running"
)

// DisconnectStrategy describes what happens to allocations of a node that is gone.
type DisconnectStrategy struct {
	_struct sparse `entry:",omitempty"`

	LostAfter         time.Duration `hcl:"lost_after" check:"min=0"`                                                          // 0: lost at once, or never if Replace is false
	StopOnClientAfter time.Duration `hcl:"stop_on_client_after" check:"min=0"`                                                // 0: never
	Replace           bool          `hcl:"replace"`                                                                           // default true; false: nothing stands for it while it is waited for
	Reconcile         string        `hcl:"reconcile" check:"oneof=keep_original|keep_replacement|best_score|longest_running"` // one of the Reconcile constants; "best_score" if not stated
}

// ReplacedMeanwhile reports whether another instance is to stand for one of the group that is
// waited for. Of no group: no.
func (g *TaskGroup) ReplacedMeanwhile() bool {
	return g != nil && g.Disconnect != nil && g.Disconnect.LostAfter > 0 && g.Disconnect.Replace
}

// SetDefaults fills what a disconnect block has when it states nothing.
func (d *DisconnectStrategy) SetDefaults() { d.Replace = true }
