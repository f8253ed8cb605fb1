package task

import (
	"fmt"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// Policy is a restart policy with every field set.
type Policy struct {
	Attempts int
	Interval time.Duration
	Delay    time.Duration
	Mode     string // structs.RestartPolicyModeDelay or …Fail
	// OnSuccess restarts a task that ended well too: services and sidecars.
	OnSuccess bool
}

// The policy of a task whose job states none, as the jobs documentation has it.
const (
	defaultDelay           = 15 * time.Second
	defaultServiceAttempts = 2
	defaultServiceInterval = 30 * time.Minute
	defaultBatchAttempts   = 3
	defaultBatchInterval   = 24 * time.Hour
)

// PolicyOf returns the policy of a task. p may be nil, and so may its fields.
func PolicyOf(p *structs.RestartPolicy, jobType string, lifecycle *structs.TaskLifecycle) Policy {
	service := jobType == structs.JobTypeService || jobType == structs.JobTypeSystem
	out := Policy{
		Attempts: defaultBatchAttempts, Interval: defaultBatchInterval, Delay: defaultDelay,
		Mode: structs.RestartPolicyModeFail, OnSuccess: service,
	}
	if service {
		out.Attempts, out.Interval = defaultServiceAttempts, defaultServiceInterval
	}
	if lifecycle != nil {
		out.OnSuccess = lifecycle.Sidecar
	}
	if p == nil {
		return out
	}
	if p.Attempts != nil {
		out.Attempts = *p.Attempts
	}
	if p.Interval != nil {
		out.Interval = *p.Interval
	}
	if p.Delay != nil {
		out.Delay = *p.Delay
	}
	if p.Mode != nil {
		out.Mode = *p.Mode
	}
	return out
}

// Restarts counts restarts within the policy's current interval.
type Restarts struct {
	Count int       // in the interval
	Since time.Time // the interval's begin; zero: none yet
}

// Decision specifies what becomes of a task that has ended.
type Decision struct {
	Restart bool
	Delay   time.Duration // before the restart
	Failed  bool          // it is over, and badly
	Reason  string        // for people
}

// jitter is the part of the delay that is added at random at most, so that what
// failed together does not come back together.
const jitter = 4 // a quarter

// Next decides what becomes of a task that ended at now: well or not, and curable
// by another try or not. random is in [0, 1). It returns the count to go on with.
func (r Restarts) Next(p Policy, well, curable bool, now time.Time, random float64) (Restarts, Decision) {
	if well && !p.OnSuccess {
		return r, Decision{Reason: "Task completed successfully"}
	}
	if !curable {
		return r, Decision{Failed: true, Reason: "Error was unrecoverable"}
	}
	if r.Since.IsZero() || now.Sub(r.Since) > p.Interval {
		r = Restarts{Since: now}
	}
	r.Count++
	delay := p.Delay + time.Duration(random*float64(p.Delay)/jitter)
	switch {
	case r.Count <= p.Attempts:
		return r, Decision{Restart: true, Delay: delay, Reason: "Restart within policy"}
	case p.Mode == structs.RestartPolicyModeDelay:
		rest := r.Since.Add(p.Interval).Sub(now)
		return r, Decision{Restart: true, Delay: max(rest, p.Delay), Reason: "Exceeded allowed attempts, applying a delay"}
	case p.Attempts == 0:
		return r, Decision{Failed: !well, Reason: "Policy allows no restarts"}
	}
	return r, Decision{Failed: true, Reason: fmt.Sprintf("Exceeded allowed attempts %d in interval %v and mode is %q", p.Attempts, p.Interval, p.Mode)}
}
