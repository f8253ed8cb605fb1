package structs

// Log entries about workflows. Times are Unix nanoseconds, minted by the server that made the entry.
type (
	// WorkflowRunEntry starts a run of a workflow: of one that is stated, or of the one that is stored, from a stage on. It is refused with
	// CodeConflict while the last run is alive.
	WorkflowRunEntry struct {
		Workflow *Workflow
		// Namespace and ID name the workflow to be retried from stage From, where none is stated.
		Namespace string     `json:",omitempty" codec:",omitempty"`
		ID        string     `json:",omitempty" codec:",omitempty"`
		From      string     `json:",omitempty" codec:",omitempty"`
		Submitter *Submitter `json:",omitempty" codec:",omitempty"`
		// CAS requires that the workflow was last changed at CheckIndex; 0: there is none.
		CAS        bool   `json:",omitempty" codec:",omitempty"`
		CheckIndex uint64 `json:",omitempty" codec:",omitempty"`
		Time       int64
	}
	// WorkflowAdvanceEntry moves a run on: states of stages and jobs, and with them the registration of the jobs that start, so that there is
	// never one without the other. It changes nothing, with CodeConflict, unless the run is the stated one and was last changed at CheckIndex.
	WorkflowAdvanceEntry struct {
		_struct sparse `entry:",omitempty"`

		Namespace  string
		ID         string
		Run        int
		CheckIndex uint64
		// State and Stage are those of the run from now on.
		State  string
		Stage  int
		Stages []WorkflowStageMove
		Jobs   []WorkflowJobMove
		// EvalSeed derives the IDs of the evaluations of the jobs that are registered.
		EvalSeed string
		Time     int64
	}
	// WorkflowStageMove is the new state of a stage.
	WorkflowStageMove struct {
		Stage int
		State string
		// Start reports that an attempt of the stage begins.
		Start bool `json:",omitempty" codec:",omitempty"`
		// Reclaimed is how many borrowers left for it.
		Reclaimed int `json:",omitempty" codec:",omitempty"`
	}
	// WorkflowJobMove is the new state of a job of a stage.
	WorkflowJobMove struct {
		Stage int
		Job   int
		State string
		// Register registers the job, as the next attempt. Retry counts that as a retry of a job that failed.
		Register bool `json:",omitempty" codec:",omitempty"`
		Retry    bool `json:",omitempty" codec:",omitempty"`
	}
	// WorkflowStateEntry pauses, resumes or cancels a run: Action is one of the WorkflowAction constants. To cancel stops all jobs of the run.
	WorkflowStateEntry struct {
		Namespace string
		ID        string
		Action    string
		EvalSeed  string
		Time      int64
	}
	// WorkflowDeleteEntry removes a workflow that is not alive. The jobs of its runs stay.
	WorkflowDeleteEntry struct {
		Namespace string
		ID        string
		Time      int64
		// EndedBefore removes it only if its run ended before, in Unix nanoseconds; 0: whenever it ended.
		EndedBefore int64 `json:",omitempty" codec:",omitempty"`
	}
)

// What a WorkflowStateEntry does.
const (
	WorkflowActionPause  = "pause"
	WorkflowActionResume = "resume"
	WorkflowActionCancel = "cancel"
)

// Calls about workflows and their answers.
type (
	// WorkflowRunRequest runs a workflow, or plans it.
	WorkflowRunRequest struct {
		Workflow   *Workflow
		CAS        bool
		CheckIndex uint64
		Forecast   bool // requests of a plan when the workflow would start if it were run now, as far as that is known within 2 s
		WriteRequest
	}
	// WorkflowRunReply names the run that was started.
	WorkflowRunReply struct {
		Run      int
		Warnings string
		WriteMeta
	}
	// WorkflowActionRequest pauses, resumes, cancels or deletes a workflow.
	WorkflowActionRequest struct {
		ID string
		WriteRequest
	}
	// WorkflowRetryRequest runs a workflow again from a stage on; empty: the first one that is not complete.
	WorkflowRetryRequest struct {
		ID    string
		Stage string
		WriteRequest
	}
	// WorkflowGetReply is a workflow; nil: there is none of the name.
	WorkflowGetReply struct {
		Workflow *WorkflowStatus
		QueryMeta
	}
	// WorkflowListReply lists workflows.
	WorkflowListReply struct {
		Workflows []*WorkflowStub
		QueryMeta
	}
	// WorkflowPlanReply is what a workflow would do.
	WorkflowPlanReply struct {
		Plan *WorkflowPlan
		WriteMeta
	}
)

// WorkflowStub is a workflow in a list.
type WorkflowStub struct {
	ID        string
	Namespace string
	NodePool  string
	Run       int
	State     string
	Priority  int
	// Stage is the number of the stage that runs or comes next, from 1, and Stages how many there are.
	Stage      int
	StageName  string
	Stages     int
	Missing    string
	SubmitTime int64
	StartTime  int64
	EndTime    int64
	// Forecast is when it starts, of one that waits for its reservation, as the last forecast of the server that answers has it; nil: it is not part of one.
	Forecast *QueueForecast `json:",omitempty" codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// WorkflowStatus is a workflow as it is shown.
type WorkflowStatus struct {
	ID        string
	Namespace string
	NodePool  string
	Run       int
	State     string
	Priority  int
	Reserve   WorkflowReserve
	OnFailure string
	// Stage is the number of the stage that runs or comes next, from 1.
	Stage   int
	Missing string
	// Stopping are the IDs of instances of jobs of the workflow that were stopped or purged, for whose end what is to start next waits.
	Stopping []string `json:",omitempty" codec:",omitempty"`
	// Posted reports that the reservation is held, in Parts. Used, Lent, Idle and Lost add up to Reserved, of the processor in MHz, those of whole cores
	// included: a core of which the MHz are used alone does not idle. Until then there are none: see Keeps.
	Posted   bool
	Parts    []WorkflowPartStatus
	Reserved WorkflowResources
	Used     WorkflowResources
	Lent     WorkflowResources
	Idle     WorkflowResources
	// Lost is what is not used and lost with its node, or its cells, until it is reserved anew, or idles where nothing may start any more, GPUs that are bad, and
	// licenses that there are not any more.
	Lost   WorkflowResources
	LentTo []WorkflowLoan
	// Keeps is where it keeps what comes free: for its reservation, or, if that is posted, in place of what was lost of it.
	Keeps  []WorkflowKept `json:",omitempty" codec:",omitempty"`
	Stages []WorkflowStageStatus

	// Forecast is when a run starts that waits for its reservation, as the last forecast of the server that answers has it; nil: it does not wait, or
	// NoForecast states why it is not known.
	Forecast   *RunForecast `json:",omitempty" codec:",omitempty"`
	NoForecast string       `json:",omitempty" codec:",omitempty"`

	Submitter  *Submitter `json:",omitempty" codec:",omitempty"`
	SubmitTime int64
	StartTime  int64
	EndTime    int64
	Previous   []WorkflowPastRun
	// Workflow is the workflow as written.
	Workflow *Workflow

	CreateIndex uint64
	ModifyIndex uint64
}

// WorkflowKept is what a workflow keeps as it comes free: of a node, or, without one, of licenses.
type WorkflowKept struct {
	NodeID string
	Node   string // its name
	// Amount is what it is to have, and Idle what is kept free of it now.
	Amount WorkflowResources
	Idle   WorkflowResources
}

// WorkflowLoan is what one borrower has.
type WorkflowLoan struct {
	To    string
	Share int
	// Due is what its share of what can be lent now comes to, Amount what it has, Lent what of that is of the reservation: the rest is beside it.
	Due    WorkflowResources
	Amount WorkflowResources
	Lent   WorkflowResources
	Allocs []string
}

// WorkflowStageStatus is a stage as it is shown.
type WorkflowStageStatus struct {
	Name      string
	State     string
	Attempt   int
	Start     int64
	End       int64
	Reclaimed int
	Jobs      []WorkflowJobStatus
}

// WorkflowJobStatus is a job of a stage as it is shown.
type WorkflowJobStatus struct {
	ID        string
	Name      string
	State     string
	Attempt   int
	DependsOn []string `json:",omitempty" codec:",omitempty"`
	Start     int64
	End       int64
	// Instances is how many instances the job has, of which so many run, and have completed or failed, in the job's last attempt. An instance that was
	// placed anew after it had failed counts as what it does now.
	Instances int
	Running   int
	Complete  int
	Failed    int
	// Queued is how many instances wait in the queue.
	Queued int `json:",omitempty" codec:",omitempty"`
	// Failures is how often tasks and instances of a job that runs have failed in its last attempt and were, or will be, tried again as they state themselves;
	// of those that wait for that the first is tried again at RetryTime, in Unix nanoseconds (0: none, or it is not known).
	Failures  int   `json:",omitempty" codec:",omitempty"`
	RetryTime int64 `json:",omitempty" codec:",omitempty"`
	// Failure is what failed last of a job that has failed or runs, in short, and FailureAlloc is of which allocation: in the job's last attempt, or
	// else in the one before it.
	Failure      string `json:",omitempty" codec:",omitempty"`
	FailureAlloc string `json:",omitempty" codec:",omitempty"`
	// FailedBefore is how many instances failed in the attempt before the last one.
	FailedBefore int `json:",omitempty" codec:",omitempty"`
	// Removed is that the job has failed and is not registered any more: it was purged, or has ended long ago.
	Removed bool `json:",omitempty" codec:",omitempty"`
	// Stopped is that the job has failed as somebody stopped it.
	Stopped bool `json:",omitempty" codec:",omitempty"`
	// TimedOut is how many of the instances that have failed were ended at their time limit, their group's max_run_duration.
	TimedOut int `json:",omitempty" codec:",omitempty"`
}

// WorkflowPlan is what a workflow would do: its stages, and what each needs.
type WorkflowPlan struct {
	ID        string
	Namespace string
	NodePool  string
	Reserve   WorkflowReserve
	Stages    []WorkflowPlanStage
	// Max and Sum are the largest stage, by resource, and all stages together. Reserved is what the workflow would reserve.
	Max      WorkflowResources
	Sum      WorkflowResources
	Reserved WorkflowResources
	// Packing is how what is reserved would be laid on nodes if it was run now, Nodes are their names; nil: there is no room for it.
	Packing []WorkflowPart
	// MHzPerCore is with how many MHz each whole core is reserved. They are in the CPU of Packing, and not in that of amounts.
	MHzPerCore int64 `json:",omitempty" codec:",omitempty"`
	// Leaving counts the instances without a claim that would leave the cells of its namespace for it.
	Leaving int `json:",omitempty"`
	// Preempted counts the instances of lower bands, and of jobs that fail the submission check, that would leave for it.
	Preempted int `json:",omitempty" codec:",omitempty"`
	// Leavers is whose instances would leave for it, of either kind, those of the lowest priority first.
	Leavers []WorkflowLeaver `json:",omitempty" codec:",omitempty"`
	Nodes   []string
	// Posted reports that all of it is free now. Missing is what keeps it from being reserved.
	Posted  bool
	Missing string
	// Never reports that what is missing does not come free: the ready nodes could not hold the workflow if they were empty, there are too few
	// licenses, or what it is to reserve is too little for its stages. Where only the slots that projects are given this week are in the way, it may come free
	// with the next week.
	Never bool `json:",omitempty" codec:",omitempty"`
	// Alive is the number of a run that has not ended; 0: there is none.
	Alive    int
	Warnings string
	// Forecast is when its stages would start and end, if that was requested; nil: it was not, or NoForecast states why it is not known.
	Forecast   *RunForecast `json:",omitempty" codec:",omitempty"`
	NoForecast string       `json:",omitempty" codec:",omitempty"`
}

// WorkflowLeaver is instances of a group of a job that would leave alike for the reservation of a workflow.
type WorkflowLeaver struct {
	Namespace string
	JobID     string
	TaskGroup string
	Instances int
	// Priority is that with which they were placed, Band the priorities of its band, such as "1-40".
	Priority int
	Band     string
	// Suspended: they would be suspended; else they would be stopped, and return to the queue.
	Suspended bool `json:",omitempty" codec:",omitempty"`
}

// WorkflowPlanStage is a stage of a plan.
type WorkflowPlanStage struct {
	Name  string
	Jobs  []WorkflowPlanJob
	Needs WorkflowResources
	// Lends is how much of what is reserved would be lent at most while it runs.
	Lends WorkflowResources
}

// WorkflowPlanJob is a job of a plan.
type WorkflowPlanJob struct {
	Name      string
	DependsOn []string `json:",omitempty" codec:",omitempty"`
	Instances int
	Needs     WorkflowResources
}

// Stub returns the run as lists show it.
func (r *WorkflowRun) Stub() *WorkflowStub {
	at := min(r.Stage, len(r.Stages)-1)
	return &WorkflowStub{
		ID: r.ID, Namespace: r.Namespace, NodePool: r.Workflow.NodePool, Run: r.Run, State: r.State, Priority: r.Workflow.Priority,
		Stage: at + 1, StageName: r.Stages[at].Name, Stages: len(r.Stages), Missing: r.Missing,
		SubmitTime: r.SubmitTime, StartTime: r.StartTime, EndTime: r.EndTime, CreateIndex: r.CreateIndex, ModifyIndex: r.ModifyIndex,
	}
}

// Plan returns what a canonical and valid workflow would do, as far as it follows from the workflow alone.
func (w *Workflow) Plan() (*WorkflowPlan, error) {
	levels, err := w.Levels()
	if err != nil {
		return nil, err
	}
	p := &WorkflowPlan{ID: w.ID, Namespace: w.Namespace, NodePool: w.NodePool, Reserve: w.Reserve}
	p.Reserved, p.Max, p.Sum = w.Reservation(levels)
	for _, l := range levels {
		s := WorkflowPlanStage{Name: l.Name, Needs: l.Needs, Lends: w.lends(p.Reserved, l.Needs, 0)}
		for _, j := range l.Jobs {
			s.Jobs = append(s.Jobs, WorkflowPlanJob{Name: j.Name, DependsOn: j.DependsOn, Instances: j.Job.Instances(), Needs: j.Needs()})
		}
		p.Stages = append(p.Stages, s)
	}
	return p, nil
}

// CountMHz has a plan of the workflow state of the processor what is reserved where a core has so many MHz: so many in all, with those of whole cores. These
// serve stages that request MHz, too, so that it may be less beside the cores than the largest stage needs.
func (w *Workflow) CountMHz(p *WorkflowPlan, reserved, perCore int64) {
	p.MHzPerCore = perCore
	p.Reserved.CPU = max(0, reserved-p.Reserved.Cores*perCore)
	for i := range p.Stages {
		p.Stages[i].Lends = w.lends(p.Reserved, p.Stages[i].Needs, perCore)
	}
}

// lends returns how much of a reservation is lent at most beside what a stage needs, where a core has so many MHz; 0: that is not known.
func (w *Workflow) lends(reserved, needs WorkflowResources, perCore int64) (out WorkflowResources) {
	if len(w.Lend) == 0 {
		return out
	}
	var most WorkflowResources
	if w.LendMax != nil {
		most = *w.LendMax
	}
	idle := func(reserved, needs, most int64) int64 {
		if n := max(0, reserved-needs); most == 0 || n < most {
			return n
		}
		return most
	}
	out = WorkflowResources{
		CPU: idle(reserved.CPU, needs.CPU, most.CPU), Cores: idle(reserved.Cores, needs.Cores, most.Cores),
		MemoryMB: idle(reserved.MemoryMB, needs.MemoryMB, most.MemoryMB), DiskMB: max(0, reserved.DiskMB-needs.DiskMB), GPUs: idle(reserved.GPUs, needs.GPUs, most.GPUs),
	}
	if perCore > 0 { // cores are lent with their MHz, which a stage may need without the cores
		mhz := max(0, reserved.CPU+reserved.Cores*perCore-needs.CPU-needs.Cores*perCore)
		out.Cores = min(out.Cores, mhz/perCore)
		if out.CPU = mhz - out.Cores*perCore; most.CPU+most.Cores > 0 {
			out.CPU = min(out.CPU, most.CPU+(most.Cores-out.Cores)*perCore)
		}
		out.CPU = max(0, out.CPU)
	}
	for name, n := range reserved.Licenses { // order does not matter: each by itself
		if n = idle(n, needs.Licenses[name], most.Licenses[name]); n > 0 {
			out.license(name, n)
		}
	}
	return out
}

// Instances returns how many instances a job has; of a system or sysbatch job, which has as many as nodes fit, how many groups.
func (j *Job) Instances() (n int) {
	for _, g := range j.TaskGroups {
		if j.PerNode() {
			n++
			continue
		}
		n += g.Count
	}
	return n
}
