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

	Interval        *time.Duration `hcl:"interval" check:"min=0"`        // within which attempts are counted
	Attempts        *int           `hcl:"attempts" check:"min=0"`        // how many restarts there are within interval
	Delay           *time.Duration `hcl:"delay" check:"min=0"`           // before a restart
	Mode            *string        `hcl:"mode" check:"oneof=delay|fail"` // after the last attempt: fail the task, or delay it until the interval is over
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

	Attempts      *int           `hcl:"attempts" check:"min=0"`                                      // how often within interval; only where unlimited is false
	Interval      *time.Duration `hcl:"interval" check:"min=0"`                                      // within which attempts are counted
	Delay         *time.Duration `hcl:"delay" check:"min=0"`                                         // before the first time
	DelayFunction *string        `hcl:"delay_function" check:"oneof=constant|exponential|fibonacci"` // how the delay grows from one time to the next
	MaxDelay      *time.Duration `hcl:"max_delay" check:"min=0"`                                     // what the delay grows to
	Unlimited     *bool          `hcl:"unlimited"`                                                   // as often as needed
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

	Stagger          *time.Duration `hcl:"stagger" check:"min=0"`                                // max_parallel and the health of instances set the pace instead
	MaxParallel      *int           `hcl:"max_parallel" check:"min=0"`                           // how many instances are replaced at once; 0: all
	HealthCheck      *string        `hcl:"health_check" check:"oneof=checks|task_states|manual"` // what makes an instance healthy: its tasks run (checks is the same: there are no service checks yet), or an operator states it
	MinHealthyTime   *time.Duration `hcl:"min_healthy_time" check:"min=0"`                       // how long an instance must run to count as healthy
	HealthyDeadline  *time.Duration `hcl:"healthy_deadline" check:"min=0"`                       // within what time it must be healthy
	ProgressDeadline *time.Duration `hcl:"progress_deadline" check:"min=0"`                      // there are no deployments that it could end
	Canary           *int           `hcl:"canary" check:"min=0"`
	AutoRevert       *bool          `hcl:"auto_revert"`
	AutoPromote      *bool          `hcl:"auto_promote"`
}

// MigrateStrategy describes how allocations leave a node that is drained. After [Job.Canonicalize]
// no field of a group's is nil.
type MigrateStrategy struct {
	_struct sparse `entry:",omitempty"`

	MaxParallel     *int           `hcl:"max_parallel" check:"min=1"`                    // how many instances leave at once
	HealthCheck     *string        `hcl:"health_check" check:"oneof=checks|task_states"` // what makes a replacement healthy, as in update
	MinHealthyTime  *time.Duration `hcl:"min_healthy_time" check:"min=0"`                // how long a replacement must run before the next instance leaves
	HealthyDeadline *time.Duration `hcl:"healthy_deadline" check:"min=0"`                // within what time it must be healthy
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

	LostAfter         time.Duration `hcl:"lost_after" check:"min=0"`                                                          // how long the allocations of a lost node are kept; 0: not at all, or for ever if replace is false
	StopOnClientAfter time.Duration `hcl:"stop_on_client_after" check:"min=0"`                                                // 0: never
	Replace           bool          `hcl:"replace"`                                                                           // whether something is placed in their stead meanwhile; default: true
	Reconcile         string        `hcl:"reconcile" check:"oneof=keep_original|keep_replacement|best_score|longest_running"` // which of both stays when the node comes back
}

// ReplacedMeanwhile reports whether another instance is to stand for one of the group that is
// waited for. Of no group: no.
func (g *TaskGroup) ReplacedMeanwhile() bool {
	return g != nil && g.Disconnect != nil && g.Disconnect.LostAfter > 0 && g.Disconnect.Replace
}

// SetDefaults fills what a disconnect block has when it states nothing.
func (d *DisconnectStrategy) SetDefaults() { d.Replace = true }
