package structs

// ReportTrigger returns why a client's report about an allocation triggers an evaluation of its job, one of the EvalTrigger constants; empty: it
// does not. was is the allocation with its job as the state has it before the report; job is the job as it is now.
func ReportTrigger(job *Job, was *Allocation, now *AllocClientUpdate) string {
	batch := was.Job != nil && (was.Job.Type == JobTypeBatch || was.Job.Type == JobTypeSysBatch)
	switch {
	case was.ClientTerminal():
		return ""
	case now.ClientStatus == AllocClientFailed && !was.ServerTerminal():
		return EvalTriggerAllocFailure
	case now.ClientStatus == AllocClientComplete && !was.ServerTerminal() && was.Job != nil && !batch:
		return EvalTriggerAllocFailure // a service that ends is started again
	case now.ClientStatus == AllocClientComplete && was.ServerTerminal() && batch && EndedByThemselves(now.TaskStates):
		return EvalTriggerAllocStop // it was done before it could be stopped: nobody need stand for it
	case now.ClientStatus == AllocClientRunning && was.ClientStatus == AllocClientSuspended && rolls(job, was.TaskGroup):
		return EvalTriggerAllocResume // the update of its group has waited for it
	case now.DeploymentStatus != nil && now.DeploymentStatus.Healthy != nil && // last: one report may contain its end, too
		(was.DeploymentStatus == nil || was.DeploymentStatus.Healthy == nil):
		return EvalTriggerAllocHealth
	}
	return ""
}

// rolls reports whether a group is updated a few instances at a time.
func rolls(job *Job, group string) bool {
	if job == nil {
		return false
	}
	g := job.LookupTaskGroup(group)
	return g != nil && g.Update != nil && g.Update.MaxParallel != nil && *g.Update.MaxParallel > 0
}
