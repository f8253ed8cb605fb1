package structs

// Instances returns how many instances all jobs have together for which something is reserved: not those of sysbatch jobs.
func (w *Workflow) Instances() (n int) {
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			if !j.Job.PerNode() {
				n += j.Job.Instances()
			}
		}
	}
	return n
}

// checkBounds returns an error if the jobs of a valid workflow are more together than servers take: what all of its stages need is packed at once, and its
// jobs are checked wherever the entry of its run is applied.
func (w *Workflow) checkBounds(bad workflowError) error {
	if n := w.Instances(); n > MaxWorkflowInstances {
		return bad("its jobs have %d instances together, at most %d are allowed", n, MaxWorkflowInstances).
			WithHint("lower their counts, or run several workflows, one after the other; instances of sysbatch jobs do not count")
	}
	names, left := 0, MaxWorkflowBytes
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			if names += len(j.DependsOn); names > MaxWorkflowDepends {
				return bad.in("stage", s.Name).in("job", j.Name)("depends_on: the jobs of the workflow name more than %d jobs together", MaxWorkflowDepends).
					WithHint("put the jobs that wait for all of a stage into the next stage")
			}
			for _, name := range j.DependsOn {
				left -= len(name)
			}
			if left -= j.Job.Size(max(left, 0) + 1); left < 0 {
				return bad.in("stage", s.Name)("the jobs of the workflow have more than %d bytes together with the names in depends_on", MaxWorkflowBytes).
					WithHint("keep large data out of it, such as in artifacts")
			}
		}
	}
	return nil
}
