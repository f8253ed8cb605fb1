package structs

import (
	"fmt"
	"slices"
	"strings"
)

// ValidWorkflowName reports whether a workflow, a stage of one or a job in it may have this name: it is a part of the IDs of jobs.
func ValidWorkflowName(name string) bool { return isWord(name, true) }

const workflowNameText = "a name has 1 to 128 letters, digits, dashes or underscores"

// workflowError makes the errors about one part of a workflow.
type workflowError func(format string, args ...any) *Error

// in returns what makes the errors about a part of the part.
func (bad workflowError) in(what, name string) workflowError {
	return func(format string, args ...any) *Error {
		return bad(what+" %q: "+format, append([]any{clip(name)}, args...)...)
	}
}

// Validate returns an error of CodeBadRequest if there can be no such workflow, whatever else there is. It must be canonical.
func (w *Workflow) Validate() error {
	if w == nil || w.ID == "" {
		return Errorf(CodeBadRequest, "missing name of the workflow")
	}
	if err := w.ValidateHead(); err != nil {
		return err
	}
	bad := workflowError(func(format string, args ...any) *Error { return Errorf(CodeBadRequest, format, args...) }).in("workflow", w.ID)
	if err := w.validateLend(bad); err != nil {
		return err
	}
	if err := w.validateStages(bad); err != nil {
		return err
	}
	levels, err := w.Levels()
	if err != nil {
		return err
	}
	if len(levels) > MaxWorkflowStages {
		return bad("it has %d stages, at most %d are allowed", len(levels), MaxWorkflowStages).WithHint("jobs that depend on each other are in different stages")
	}
	seen := map[string]bool{}
	for _, l := range levels {
		if seen[l.Name] {
			return bad("stage %q: two stages have this name", clip(l.Name)).WithHint("a stage whose jobs depend on each other is several, named NAME-1, NAME-2 and so on")
		}
		seen[l.Name] = true
	}
	return w.validateReserve(bad, levels)
}

// CheckSubmitted returns an error of CodeBadRequest if the workflow states what has no meaning, or more than servers take. It is for workflows that are submitted: what is in the log
// or in a snapshot was accepted, maybe by an earlier version. The workflow must be valid.
func (w *Workflow) CheckSubmitted() error {
	bad := workflowError(func(format string, args ...any) *Error { return Errorf(CodeBadRequest, format, args...) }).in("workflow", w.ID)
	if err := checkStated(bad, "lend_max", w.LendMax); err != nil {
		return err
	}
	if err := checkStated(bad, "reserve", w.Reserve.Amounts); err != nil {
		return err
	}
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			if j.Job.Class == ClassOpportunistic {
				return bad.in("stage", s.Name).in("job", j.Name)("class: a job of a workflow uses what the workflow has reserved, and is not opportunistic").
					WithHint("leave it out, or run the job beside the workflow")
			}
		}
	}
	return w.checkBounds(bad)
}

// checkStated returns an error if amounts state nothing: an amount of 0 is as if it was left out.
func checkStated(bad workflowError, field string, r *WorkflowResources) error {
	if r == nil {
		return nil
	}
	stated := false
	for _, l := range r.lines() {
		if stated = stated || l.amount > 0; l.amount == 0 && strings.HasPrefix(l.name, "licenses: ") {
			return badAmount(bad, field, l)
		}
	}
	if !stated {
		return bad("%s: it states no amount, and 0 is none", field).WithHint("state at least one, such as { cores = 4 }, or leave %s out", field)
	}
	return nil
}

// ValidateHead returns an error of CodeBadRequest if what the workflow states of itself cannot be: its jobs inherit some of that, in which it would be found again.
func (w *Workflow) ValidateHead() error {
	bad := workflowError(func(format string, args ...any) *Error { return Errorf(CodeBadRequest, format, args...) }).in("workflow", w.ID)
	switch {
	case !ValidWorkflowName(w.ID):
		return bad("invalid name: " + workflowNameText)
	case !isWord(w.Namespace, false):
		return bad("namespace: must be 1 to 128 letters, digits or dashes, not %q", clip(w.Namespace))
	case !isWord(w.NodePool, true):
		return bad("node_pool: must be 1 to 128 letters, digits, dashes or underscores, not %q", clip(w.NodePool))
	case w.Priority < JobMinPriority || w.Priority > JobMaxPriority:
		return bad("priority: must be between %d and %d, not %d", JobMinPriority, JobMaxPriority, w.Priority)
	case !slices.Contains(WorkflowOnFailure(), w.OnFailure):
		return bad("on_failure: must be %s, not %q%s", orList(WorkflowOnFailure()), clip(w.OnFailure), didYouMean(w.OnFailure, WorkflowOnFailure()))
	}
	return nil
}

func (w *Workflow) validateLend(bad workflowError) error {
	if len(w.Lend) > MaxWorkflowLends {
		return bad("lend: %d are stated, at most %d are allowed", len(w.Lend), MaxWorkflowLends)
	}
	seen := map[string]bool{}
	for i, l := range w.Lend {
		if l == nil {
			return bad("lend %d is missing", i+1)
		}
		kind, name, _ := strings.Cut(l.To, ":")
		bad := bad.in("lend", l.To)
		switch {
		case !slices.Contains(LendKinds(), kind) || name == "":
			return bad("to: must be a kind and a name, as in \"group:interns\"; the kinds are %s", orList(LendKinds()))
		case (kind == "user" || kind == "group") && !ValidUser(name):
			return bad("to: %q cannot be the name of a %s", clip(name), kind)
		case kind == "project" && !ValidProject(name), kind == "namespace" && !isWord(name, false), kind == "node_pool" && !isWord(name, true):
			return bad("to: %q cannot be the name of a %s", clip(name), kind)
		case kind == "node_pool" && name != w.NodePool:
			return bad("to: must be the workflow's own node pool, %q: its reservation is there", w.NodePool)
		case seen[l.To]:
			return bad(LendStatedTwice)
		case (l.Share == 0 || l.Share == shareOfNothing) && slices.ContainsFunc(w.Lend, func(o *WorkflowLend) bool { return o != nil && o.Share > 0 }):
			return bad("share: it is 0 or not stated, and others have one").WithHint("state at least 1 for each of them, or none for all to lend in the order of the blocks")
		case l.Share == shareOfNothing:
			return bad("share: must be 1 to %d, not 0", MaxLendShare).WithHint("leave it out to lend in the order of the blocks")
		case l.Share < 0 || l.Share > MaxLendShare:
			return bad("share: must be 1 to %d, not %d", MaxLendShare, l.Share).WithHint("leave it out to lend in the order of the blocks")
		}
		seen[l.To] = true
	}
	return checkAmounts(bad, "lend_max", w.LendMax)
}

// LendStatedTwice is what is wrong with a lend block for somebody whom an earlier one names.
const LendStatedTwice = "it is stated twice"

// Warnings returns what a valid workflow states without effect.
func (w *Workflow) Warnings() (lines []string) {
	if w.LendMax != nil && len(w.Lend) == 0 {
		lines = append(lines, "lend_max: it has no effect without a lend block: nothing is lent")
	}
	for _, l := range w.Lend {
		if l.History && l.LendLonger {
			lines = append(lines, fmt.Sprintf("lend %q: history: it has no effect beside lend_longer, which lends for any time", clip(l.To)))
		}
	}
	return lines
}

// checkAmounts returns an error if an amount cannot be stated.
func checkAmounts(bad workflowError, field string, r *WorkflowResources) error {
	if r == nil {
		return nil
	}
	if r.DiskMB != 0 {
		return bad("%s: disk cannot be stated: as much is reserved and lent as the jobs have in ephemeral_disk", field)
	}
	for _, l := range r.lines() {
		if l.amount < 0 || l.amount > MaxWorkflowAmount {
			return badAmount(bad, field, l)
		}
	}
	return nil
}

// badAmount is the error of an amount that cannot be stated.
func badAmount(bad workflowError, field string, l amountLine) error {
	return bad("%s: %s: must be a whole number from 1 to %d, not %d", field, clip(l.name), MaxWorkflowAmount, l.amount).WithHint("leave it out where none is to be stated")
}

func (w *Workflow) validateStages(bad workflowError) error {
	if len(w.Stages) == 0 {
		return bad("it has no stage").WithHint(`write stage "NAME" { job "NAME" { … } }`)
	}
	if len(w.Stages) > MaxWorkflowStages {
		return bad("it has %d stages, at most %d are allowed", len(w.Stages), MaxWorkflowStages)
	}
	names, stages, left := map[string]bool{}, map[string]bool{}, MaxWorkflowBytes
	for i, s := range w.Stages {
		if s == nil {
			return bad("stage %d is missing", i+1)
		}
		bad := bad.in("stage", s.Name)
		switch {
		case !ValidWorkflowName(s.Name):
			return bad("invalid name: " + workflowNameText)
		case stages[s.Name]:
			return bad("two stages have this name")
		case len(s.Jobs) == 0:
			return bad("it has no job").WithHint(`write job "NAME" { … } or job_file = "NAME.nomad.hcl" in it, or remove the stage`)
		case len(names)+len(s.Jobs) > MaxWorkflowJobs:
			return bad("the workflow has more than %d jobs", MaxWorkflowJobs)
		}
		stages[s.Name] = true
		for k, j := range s.Jobs {
			if j == nil || j.Job == nil {
				return bad("job %d is missing", k+1)
			}
			if names[j.Name] {
				return bad.in("job", j.Name)("two jobs of the workflow have this name")
			}
			names[j.Name] = true
			if err := j.validate(bad.in("job", j.Name), w); err != nil {
				return err
			}
			if err := j.Job.Validate().Err(); err != nil {
				return bad("%w", err) // which names the job
			}
			if left -= j.Job.Size(left + 1); left < 0 {
				return bad("the jobs of the workflow have more than %d bytes together", MaxWorkflowBytes).WithHint("keep large data out of it, such as in artifacts")
			}
		}
	}
	return w.validateDepends(bad, names)
}

func (w *Workflow) validateDepends(bad workflowError, names map[string]bool) error {
	for _, s := range w.Stages {
		for _, j := range s.Jobs {
			bad, named := bad.in("stage", s.Name).in("job", j.Name), make(map[string]bool, len(j.DependsOn))
			for _, name := range j.DependsOn {
				switch {
				case !names[name]:
					return bad("depends_on: the workflow has no job %q%s", clip(name), didYouMean(name, sortedKeys(names)))
				case named[name]:
					return bad("depends_on: %q is named twice", clip(name))
				}
				named[name] = true
			}
		}
	}
	return nil
}

// validate returns an error if the job, by itself, cannot be one of the workflow.
func (j *WorkflowJob) validate(bad workflowError, w *Workflow) error {
	job := j.Job
	switch {
	case !ValidWorkflowName(j.Name):
		return bad("invalid name: " + workflowNameText)
	case j.Retries < 0 || j.Retries > MaxWorkflowRetries:
		return bad("retries: must be 0 to %d, not %d", MaxWorkflowRetries, j.Retries)
	case job.ID != j.Name:
		return bad("id: must be the job's name in the workflow or be left out, not %q", clip(job.ID)).
			WithHint("the job is registered as WORKFLOW/RUN/JOB")
	case job.Type != JobTypeBatch && job.Type != JobTypeSysBatch:
		return bad("type: must be %q or %q, not %q", JobTypeBatch, JobTypeSysBatch, clip(job.Type)).
			WithHint("a stage ends when its jobs are complete, and other jobs never are")
	case job.Periodic != nil:
		return bad("periodic: a job of a workflow cannot be periodic").WithHint("it runs when its stage starts; remove the block")
	case job.ParameterizedJob != nil:
		return bad("parameterized: a job of a workflow cannot be parameterized").WithHint("it runs when its stage starts; remove the block, and use variables")
	case job.Multiregion != nil:
		return bad("multiregion: a workflow runs in one region").WithHint("remove the block, and run the workflow in each region")
	case job.Namespace != w.Namespace:
		return bad("namespace: must be that of the workflow, %q, or be left out, not %q", w.Namespace, clip(job.Namespace))
	case job.NodePool != w.NodePool:
		return bad("node_pool: must be that of the workflow, %q, or be left out, not %q", w.NodePool, clip(job.NodePool)).
			WithHint("a workflow's reservation is in one node pool")
	}
	return nil
}

func (w *Workflow) validateReserve(bad workflowError, levels []WorkflowLevel) error {
	r := w.Reserve
	if r.Amounts == nil {
		if r.Rule != ReserveMax && r.Rule != ReserveSum {
			return bad("reserve: must be %q, %q or amounts such as { cores = 64, gpus = 8 }, not %q", ReserveMax, ReserveSum, clip(r.Rule))
		}
		return nil
	}
	if r.Rule != "" {
		return bad("reserve: a rule and amounts are both stated").WithHint("leave one of the two out")
	}
	if err := checkAmounts(bad, "reserve", r.Amounts); err != nil {
		return err
	}
	stated := map[string]int64{}
	for _, have := range r.Amounts.lines() {
		stated[have.name] = have.amount
	}
	for _, l := range levels {
		for _, need := range l.Needs.lines() {
			if have := stated[need.name]; have > 0 && have < need.amount {
				return bad("reserve: %s: %d%s are less than the %d%s that stage %q needs", clip(need.name), have, need.unit, need.amount, need.unit, l.Name).
					WithHint("raise it, or write reserve = \"max\"")
			}
		}
	}
	return nil
}

// Reservation returns what the workflow reserves, and the largest stage and the sum of all that it follows from.
func (w *Workflow) Reservation(levels []WorkflowLevel) (reserved, most, sum WorkflowResources) {
	for _, l := range levels {
		most.Max(l.Needs)
		sum.Add(l.Needs)
	}
	if w.Reserve.Rule == ReserveSum {
		return sum, most, sum
	}
	return most.Stated(w.Reserve.Amounts), most, sum
}
