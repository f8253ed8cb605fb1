package structs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// What a workflow may be at most.
const (
	// MaxWorkflows bounds the workflows of a region.
	MaxWorkflows = 10_000
	// MaxWorkflowStages bounds the stages of a workflow.
	MaxWorkflowStages = 256
	// MaxWorkflowJobs bounds the jobs of all stages together.
	MaxWorkflowJobs = 10_000
	// MaxWorkflowBytes bounds the size of all jobs together, see [Job.Size].
	MaxWorkflowBytes = 16 << 20
	// MaxWorkflowInstances bounds the instances of all jobs of a workflow together, without those of sysbatch jobs.
	MaxWorkflowInstances = 100_000
	// MaxWorkflowDepends bounds the names in depends_on of all jobs of a workflow together. They count in MaxWorkflowBytes, too.
	MaxWorkflowDepends = 100_000
	// MaxWorkflowRetries bounds how often a job is run again after it failed.
	MaxWorkflowRetries = 100
	// MaxWorkflowLends bounds to how many a workflow lends.
	MaxWorkflowLends = 64
	// MaxLendShare bounds the share of a borrower.
	MaxLendShare = 1_000_000
	// MaxWorkflowAmount bounds each resource that a reservation or a loan states.
	MaxWorkflowAmount = 1_000_000_000
	// MaxPreviousRuns is how many earlier runs of a workflow are remembered.
	MaxPreviousRuns = 10
	// MaxStageAttempts is how often a stage is tried with OnFailureRetryStage.
	MaxStageAttempts = 3
)

// What a workflow reserves (docs/design/semantics.md, part 5).
const (
	ReserveMax = "max" // of each resource what the largest stage needs
	ReserveSum = "sum" // of each resource what all stages need together
)

// What becomes of a workflow when a stage fails.
const (
	OnFailureStop       = "stop"        // no further stage starts
	OnFailureContinue   = "continue"    // the next stage starts with what completed
	OnFailureRetryStage = "retry-stage" // the stage is run again, MaxStageAttempts times in all, then stop
)

// WorkflowOnFailure lists what on_failure may be.
func WorkflowOnFailure() []string {
	return []string{OnFailureStop, OnFailureContinue, OnFailureRetryStage}
}

// Workflow is stages of jobs, one after the other, and what is reserved for all of them.
type Workflow struct {
	ID        string `hcl:"name,label"` // the name of the workflow
	Namespace string `hcl:"namespace"`  // the namespace of it and of its jobs
	// NodePool is the pool of all its jobs, and of its reservation.
	NodePool string `hcl:"node_pool"`
	Priority int    `hcl:"priority" check:"min=1,max=100"` // its priority among workflows, and that of jobs which state none
	// Reserve is what is reserved before the first stage starts. Files write it as a word or an object.
	Reserve   WorkflowReserve
	OnFailure string `hcl:"on_failure"` // what becomes of it when a stage fails: stop, continue (the next stage starts with what completed), or retry-stage; default: stop
	// Lend is to whom what the running stage does not need is lent, LendMax how much of it at most; nil: all of it.
	Lend    []*WorkflowLend    `hcl:"lend,block"`
	LendMax *WorkflowResources `json:",omitempty" codec:",omitempty"`
	// Stages are the stages as written. Where jobs of one depend on each other it is several, see [Workflow.Levels].
	Stages []*WorkflowStage
}

// WorkflowReserve is how much a workflow reserves: by a rule, or a number of each resource that is stated.
type WorkflowReserve struct {
	// Rule is one of the Reserve constants; empty where amounts are stated.
	Rule string
	// Amounts are at least what the largest stage needs. A resource that is not stated (0) is reserved by ReserveMax.
	Amounts *WorkflowResources `json:",omitempty" codec:",omitempty"`
}

// WorkflowResources are amounts of the resources that workflows reserve and lend.
type WorkflowResources struct {
	CPU      int64 `json:",omitempty" codec:",omitempty"` // MHz beside those of whole cores, of tasks that request no cores
	Cores    int64
	MemoryMB int64
	DiskMB   int64 `json:",omitempty" codec:",omitempty"` // it follows from the stages, and is not stated
	GPUs     int64
	Licenses map[string]int64 `json:",omitempty" codec:",omitempty"`
}

// WorkflowLend is one to whom a workflow lends.
type WorkflowLend struct {
	To string `hcl:"to"` // a kind (user, group, project, namespace or node_pool) and a name, as in "group:interns"
	// Share is its part of what is lent, in proportion to the others; 0: none is stated, and those named first borrow first.
	Share int `hcl:"share" json:",omitempty" codec:",omitempty"`
	// History lets jobs without a time limit borrow whose user's earlier runs were short enough.
	History bool `hcl:"history"`
	// LendLonger lets jobs borrow whose time limit is longer than the rest of the stage.
	LendLonger bool `hcl:"lend_longer"`
}

// SetDefaults prepares for a share that is not stated; see AfterDecode.
func (l *WorkflowLend) SetDefaults() { l.Share = shareNotStated }

// AfterDecode distinguishes a stated share of 0, which Validate refuses, from one that is not stated.
func (l *WorkflowLend) AfterDecode() {
	switch l.Share {
	case 0:
		l.Share = shareOfNothing
	case shareNotStated:
		l.Share = 0
	}
}

// UnmarshalJSON reads a lend block by the rules of [Job.UnmarshalJSON].
func (l *WorkflowLend) UnmarshalJSON(b []byte) error { return decodeJSON(b, l) }

// shareNotStated stands in WorkflowLend.Share while a block is read.
const shareNotStated = shareOfNothing + 1

// LendKinds lists the kinds of those to whom a workflow lends.
func LendKinds() []string { return []string{"user", "group", "project", "namespace", "node_pool"} }

// WorkflowStage is jobs that run side by side, as written.
type WorkflowStage struct {
	Name string
	Jobs []*WorkflowJob
}

// WorkflowJob is a job of a workflow, as written.
type WorkflowJob struct {
	// Name is unique in the workflow.
	Name string
	// DependsOn names jobs of the workflow that are to complete first.
	DependsOn []string `json:",omitempty" codec:",omitempty"`
	// Retries is how often the job is run again as a whole after it failed.
	Retries int `json:",omitempty" codec:",omitempty"`
	Job     *Job
}

// Copy returns a workflow that shares nothing with w.
func (w *Workflow) Copy() *Workflow { return copyOf(w) }

// UnmarshalJSON reads a workflow by the rules of [Job.UnmarshalJSON].
func (w *Workflow) UnmarshalJSON(b []byte) error { return decodeJSON(b, w) }

// Canonicalize fills in what the workflow and its jobs may leave out. Jobs have the namespace, the node pool and the
// priority of the workflow if they state none, and are batch jobs. It may be called again without effect.
func (w *Workflow) Canonicalize() {
	setDefault(&w.Namespace, DefaultNamespace)
	setDefault(&w.NodePool, DefaultNodePool)
	setDefault(&w.OnFailure, OnFailureStop)
	setZero(&w.Priority, JobDefaultPriority)
	if w.Reserve.Amounts == nil {
		setDefault(&w.Reserve.Rule, ReserveMax)
	}
	for _, s := range w.Stages {
		if s == nil {
			continue
		}
		for _, j := range s.Jobs {
			if j != nil && j.Job != nil {
				j.canonicalize(w)
			}
		}
	}
}

func (j *WorkflowJob) canonicalize(w *Workflow) {
	setDefault(&j.Name, j.Job.ID)
	setDefault(&j.Job.Namespace, w.Namespace)
	setDefault(&j.Job.NodePool, w.NodePool)
	setZero(&j.Job.Priority, w.Priority)
	setDefault(&j.Job.ID, j.Name)
	setDefault(&j.Job.Type, JobTypeBatch)
	j.Job.Canonicalize()
}

// Jobs returns the jobs of all stages by name.
func (w *Workflow) Jobs() map[string]*WorkflowJob {
	out := map[string]*WorkflowJob{}
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			out[j.Name] = j
		}
	}
	return out
}

// WithoutJobs returns the workflow without the specifications of its jobs, for lists and events.
func (w *Workflow) WithoutJobs() *Workflow {
	if w == nil {
		return nil
	}
	out := *w
	out.Stages = make([]*WorkflowStage, len(w.Stages))
	for i, s := range w.Stages {
		short := &WorkflowStage{Name: s.Name, Jobs: make([]*WorkflowJob, len(s.Jobs))}
		for k, j := range s.Jobs {
			short.Jobs[k] = &WorkflowJob{Name: j.Name, DependsOn: j.DependsOn, Retries: j.Retries}
		}
		out.Stages[i] = short
	}
	return &out
}

// Add adds amounts.
func (r *WorkflowResources) Add(o WorkflowResources) {
	r.CPU += o.CPU
	r.Cores += o.Cores
	r.MemoryMB += o.MemoryMB
	r.DiskMB += o.DiskMB
	r.GPUs += o.GPUs
	for name, n := range o.Licenses { // order does not matter: each by itself
		r.license(name, r.Licenses[name]+n)
	}
}

// Max raises each amount to the other one.
func (r *WorkflowResources) Max(o WorkflowResources) {
	r.CPU, r.Cores = max(r.CPU, o.CPU), max(r.Cores, o.Cores)
	r.MemoryMB, r.DiskMB = max(r.MemoryMB, o.MemoryMB), max(r.DiskMB, o.DiskMB)
	r.GPUs = max(r.GPUs, o.GPUs)
	for name, n := range o.Licenses { // order does not matter: each by itself
		r.license(name, max(r.Licenses[name], n))
	}
}

func (r *WorkflowResources) license(name string, n int64) {
	if r.Licenses == nil {
		r.Licenses = map[string]int64{}
	}
	r.Licenses[name] = n
}

// Stated returns r, or other amounts where those state one.
func (r WorkflowResources) Stated(o *WorkflowResources) WorkflowResources {
	if o == nil {
		return r
	}
	r.CPU, r.Cores = cmp.Or(o.CPU, r.CPU), cmp.Or(o.Cores, r.Cores)
	r.MemoryMB, r.GPUs = cmp.Or(o.MemoryMB, r.MemoryMB), cmp.Or(o.GPUs, r.GPUs)
	r.Licenses = maps.Clone(r.Licenses)
	for name, n := range o.Licenses { // order does not matter: each by itself
		r.license(name, cmp.Or(n, r.Licenses[name]))
	}
	return r
}

// LicenseList returns the licenses in the order of their names.
func (r *WorkflowResources) LicenseList() (list []RequestedLicense) {
	for _, name := range slices.Sorted(maps.Keys(r.Licenses)) {
		list = append(list, RequestedLicense{name, r.Licenses[name]})
	}
	return list
}

// lines returns the amounts with their names in files, in order.
func (r *WorkflowResources) lines() []amountLine {
	out := []amountLine{{"cpu", r.CPU, " MHz"}, {"cores", r.Cores, ""}, {"memory", r.MemoryMB, " MiB"}, {"gpus", r.GPUs, ""}}
	for _, name := range slices.Sorted(maps.Keys(r.Licenses)) {
		out = append(out, amountLine{"licenses: " + name, r.Licenses[name], ""})
	}
	return out
}

type amountLine struct {
	name   string
	amount int64
	unit   string // as it follows the amount
}

// Needs returns what the instances of a job need at once. System and sysbatch jobs need nothing of a reservation.
func (j *WorkflowJob) Needs() (sum WorkflowResources) {
	if j.Job == nil || j.Job.PerNode() {
		return sum
	}
	for _, g := range j.Job.TaskGroups {
		one, n := g.TotalResources(), int64(g.Count)
		add := WorkflowResources{CPU: int64(one.CPU) * n, Cores: int64(one.Cores) * n, MemoryMB: int64(one.MemoryMB) * n, DiskMB: int64(one.DiskMB) * n}
		for _, d := range one.Devices {
			if isGPU(d.Name) {
				add.GPUs += int64(max(1, d.Count)) * n
			}
		}
		for name, count := range one.Licenses { // order does not matter: each by itself
			add.license(name, int64(count)*n)
		}
		sum.Add(add)
	}
	return sum
}

// Licenses returns what the instances of a job need of licenses at once, in the order of their names; system and sysbatch jobs nothing of a
// reservation.
func (j *WorkflowJob) Licenses() []RequestedLicense {
	needs := j.Needs()
	return needs.LicenseList()
}

// isGPU reports whether a requested device, named by type, vendor/type or vendor/type/model, is a GPU.
func isGPU(name string) bool {
	parts := strings.Split(name, "/")
	return parts[min(1, len(parts)-1)] == "gpu"
}
