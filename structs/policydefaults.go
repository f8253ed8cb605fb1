package structs

import (
	"reflect"
	"time"
)

// mergedReschedule is merged, but a limit stated without a word on unlimited
// means that limit.
func mergedReschedule(jobType string, stated ...*ReschedulePolicy) *ReschedulePolicy {
	p := merged(stated...)
	if p.Unlimited == nil && p.Attempts != nil && *p.Attempts > 0 {
		p.Unlimited = new(false)
	}
	return merged(p, defaultReschedule(jobType))
}

// merged makes a policy of several, each nil or partly filled: of every field
// the first that states it counts. Nothing is shared with what it was made of.
func merged[T any](policies ...*T) *T {
	out := reflect.New(reflect.TypeFor[T]())
	for _, p := range policies {
		if p == nil {
			continue
		}
		from := reflect.ValueOf(p).Elem()
		for i := range from.NumField() {
			if to := out.Elem().Field(i); to.CanSet() && to.IsNil() {
				to.Set(deepCopy(from.Field(i)))
			}
		}
	}
	return out.Interface().(*T)
}

func defaultRestart(jobType string) *RestartPolicy {
	p := &RestartPolicy{
		Delay:           new(15 * time.Second),
		Mode:            new(RestartPolicyModeFail),
		RenderTemplates: new(false),
	}
	switch jobType {
	case JobTypeService, JobTypeSystem:
		p.Attempts, p.Interval = new(2), new(30*time.Minute)
	default:
		p.Attempts, p.Interval = new(3), new(24*time.Hour)
	}
	return p
}

func defaultReschedule(jobType string) *ReschedulePolicy {
	p := &ReschedulePolicy{
		Attempts:      new(0),
		Interval:      new(time.Duration(0)),
		Delay:         new(time.Duration(0)),
		DelayFunction: new(""),
		MaxDelay:      new(time.Duration(0)),
		Unlimited:     new(false),
	}
	switch jobType {
	case JobTypeService:
		*p.Delay, *p.DelayFunction, *p.MaxDelay = 30*time.Second, DelayFunctionExponential, time.Hour
		*p.Unlimited = true
	case JobTypeBatch:
		*p.Attempts, *p.Interval = 1, 24*time.Hour
		*p.Delay, *p.DelayFunction = 5*time.Second, DelayFunctionConstant
	}
	return p
}

func defaultUpdate() *UpdateStrategy {
	return &UpdateStrategy{
		Stagger:          new(30 * time.Second),
		MaxParallel:      new(1),
		HealthCheck:      new(HealthCheckChecks),
		MinHealthyTime:   new(10 * time.Second),
		HealthyDeadline:  new(5 * time.Minute),
		ProgressDeadline: new(10 * time.Minute),
		Canary:           new(0),
		AutoRevert:       new(false),
		AutoPromote:      new(false),
	}
}

func defaultMigrate() *MigrateStrategy {
	return &MigrateStrategy{
		MaxParallel:     new(1),
		HealthCheck:     new(HealthCheckChecks),
		MinHealthyTime:  new(10 * time.Second),
		HealthyDeadline: new(5 * time.Minute),
	}
}
