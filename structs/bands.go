package structs

// PriorityBand is a range of declared priorities, both ends included. A request may take from lower
// bands only, never from its own (semantics part 3).
type PriorityBand struct{ Low, High int }

// DefaultBands are those of a cluster whose configuration states none.
func DefaultBands() []PriorityBand { return []PriorityBand{{1, 40}, {41, 70}, {71, 100}} }

// PriorityBands are the bands in force, lowest first.
func (c *SchedulerConfiguration) PriorityBands() []PriorityBand {
	if len(c.Bands) == 0 {
		return DefaultBands()
	}
	return c.Bands
}

// Band is the number of a priority's band, lowest 0. What lies between two bands, or
// above all, belongs to the one below it; what lies below all, to the lowest.
func (c *SchedulerConfiguration) Band(priority int) int {
	bands := c.PriorityBands()
	for i := len(bands) - 1; i > 0; i-- {
		if priority >= bands[i].Low {
			return i
		}
	}
	return 0
}

// Preempts reports whether jobs of a type may take from lower bands.
func (c *SchedulerConfiguration) Preempts(jobType string) bool {
	switch jobType {
	case JobTypeService:
		return c.PreemptionConfig.ServiceSchedulerEnabled
	case JobTypeBatch:
		return c.PreemptionConfig.BatchSchedulerEnabled
	case JobTypeSystem:
		return c.PreemptionConfig.SystemSchedulerEnabled
	case JobTypeSysBatch:
		return c.PreemptionConfig.SysBatchSchedulerEnabled
	}
	return false
}

func (c *SchedulerConfiguration) validateBands() error {
	for i, b := range c.Bands {
		switch {
		case b.Low < JobMinPriority || b.High > JobMaxPriority || b.Low > b.High:
			return Errorf(CodeBadRequest, "Bands: [%d, %d]: a band goes from a lower to a higher priority, of %d to %d", b.Low, b.High, JobMinPriority, JobMaxPriority)
		case i > 0 && b.Low <= c.Bands[i-1].High:
			return Errorf(CodeBadRequest, "Bands: [%d, %d] overlaps or goes before [%d, %d]; state them lowest first, each above the last",
				b.Low, b.High, c.Bands[i-1].Low, c.Bands[i-1].High)
		}
	}
	return nil
}

// AllocTerms are by what right an allocation holds what it holds: what decides who is
// taken first when others may take from it. They are its job's when it was placed, or
// updated in place.
type AllocTerms struct {
	Priority  int    // declared
	Submitted uint64 // the job's CreateIndex: within a priority the latest is taken first
	// Reclaim is how it returns what it holds, one of the Reclaim constants; "": requeue.
	Reclaim string `json:",omitempty" codec:",omitempty"`
	// Drivers are those of the tasks that are suspended if it is suspended, sorted, with commas
	// between them. Empty where it is not to be suspended, and where the version that placed it did
	// not state any.
	Drivers string `json:",omitempty" codec:",omitempty"`
	// Gang names the gang that it is a member of by its first group, GangMin is how many
	// members must run: taken back are those above it one by one, the others all together.
	Gang    string `json:",omitempty" codec:",omitempty"`
	GangMin int    `json:",omitempty" codec:",omitempty"`
	// Claim is the kind of claim that it uses, one of the Claim constants; empty: it is opportunistic, and may be reclaimed for
	// any claim.
	Claim string `json:",omitempty" codec:",omitempty"`
	// CellLevel and CellSize name the kind of cells of its namespace that it uses: those of this level that its devices lie
	// in; CellSize is how many nodes a cell above nodes has.
	CellLevel string `json:",omitempty" codec:",omitempty"`
	CellSize  int    `json:",omitempty" codec:",omitempty"`
	// PerNode: it is of a system or sysbatch job. No claim may take from it, and what it uses is nobody's to own. It is set only where
	// somebody owns cells: all servers know it then.
	PerNode bool `json:",omitempty" codec:",omitempty"`
	// Slots is what it has to do with its project's slots; nil: it is of no project. It is set only where there are projects: all servers know
	// it then. It is never changed.
	Slots *SlotTerms `json:",omitempty" codec:",omitempty"`
	// Workflow is what it has to do with a workflow's reservation; nil: nothing. It is set only where there are workflows: all servers know it then.
	// It is never changed.
	Workflow *WorkflowTerms `json:",omitempty" codec:",omitempty"`
	// Licenses is what it uses of licenses while it runs; nil: none. Instances are placed with licenses only where there are some: all servers
	// know it then.
	Licenses *LicenseTerms `json:",omitempty" codec:",omitempty"`
	// User is who submitted the version of the job that it was placed by: what it uses counts in the user's share of the pool (semantics
	// part 7). "": nobody in particular. No server lets a job have a submitter before all servers know of submitters.
	User string `json:",omitempty" codec:",omitempty"`
}

// SlotTerms is an instance of a project. Project, Step, User and Groups are those of its job, Groups with commas between the names.
type SlotTerms struct {
	_struct sparse `entry:",omitempty"`

	Project string
	Step    string
	User    string
	Groups  string
	// Type is the type of slots that it uses, or would; Cost how many of its project's.
	Type string
	Cost int
	// Guards is how many slots more it keeps free of others on its node; Light: it may run in such a one. Both are set with ClaimSlots
	// alone.
	Guards int
	Light  bool
}

// WorkflowTerms is an instance that uses the reservation of a workflow, with ClaimWorkflow, or of it the licenses alone, with Own; or that borrows from
// it, without a claim.
type WorkflowTerms struct {
	_struct sparse `entry:",omitempty"`

	Key string // see WorkflowKey
	// LentTo is the `to` of the lend block by which it borrows.
	LentTo string
	// Own: it is of the workflow itself, and uses the licenses that it has reserved, but nothing of its nodes.
	Own bool
}

// WithoutLoan returns what stays of it when the instance borrows no more.
func (w *WorkflowTerms) WithoutLoan() *WorkflowTerms {
	if w != nil && w.Own {
		return w
	}
	return nil
}

// WorkflowKey names the workflow of whose reservation on nodes it uses something, or from which it borrows; "": none.
func (t *AllocTerms) WorkflowKey() string {
	if t.Workflow == nil || t.Workflow.Own {
		return ""
	}
	return t.Workflow.Key
}

// LicensesOf names the workflow that it is of, and whose reservation of licenses it uses; "": none.
func (t *AllocTerms) LicensesOf() string {
	if t.Workflow == nil || !t.Workflow.Own && t.Claim != ClaimWorkflow {
		return ""
	}
	return t.Workflow.Key
}

// LentTo returns the `to` of the lend block by which it borrows from a workflow; "": it does not.
func (t *AllocTerms) LentTo() string {
	if t.Workflow == nil {
		return ""
	}
	return t.Workflow.LentTo
}

// BorrowsFrom names the workflow from whose reservation it borrows; "": it does not.
func (t *AllocTerms) BorrowsFrom() string {
	if t.Claim != "" {
		return ""
	}
	return t.WorkflowKey()
}

// Kinds of claims: what an owner is guaranteed (semantics part 0).
const (
	ClaimCells = "cells" // of a virtual cluster
	ClaimSlots = "slots" // of a project
	// ClaimWorkflow is the reservation of the workflow that the job is of.
	ClaimWorkflow = "workflow"
)

// OwnLicenses returns the terms of an instance of a workflow that uses nothing of its reservation but licenses; nil: it requests none.
func OwnLicenses(key string, of *LicenseTerms) *WorkflowTerms {
	if of == nil {
		return nil
	}
	return &WorkflowTerms{Key: key, Own: true}
}

// Reserved returns the terms of an instance of a workflow as one that uses its reservation.
func (t AllocTerms) Reserved(key string) AllocTerms {
	t.Claim, t.Workflow = ClaimWorkflow, &WorkflowTerms{Key: key}
	return t
}

// Opportunistic returns the terms without a claim.
func (t AllocTerms) Opportunistic() AllocTerms {
	if t.Claim == ClaimWorkflow {
		t.Workflow = OwnLicenses(t.WorkflowKey(), t.Licenses)
	}
	t.Claim, t.CellLevel, t.CellSize = "", "", 0
	if t.Slots != nil {
		own := *t.Slots
		own.Guards, own.Light = 0, false
		t.Slots = &own
	}
	return t
}

// Equal reports whether two are the same; nil is equal to nil alone.
func (t *AllocTerms) Equal(o *AllocTerms) bool {
	if t == nil || o == nil {
		return t == o
	}
	a, b := *t, *o
	a.Slots, b.Slots, a.Workflow, b.Workflow, a.Licenses, b.Licenses = nil, nil, nil, nil, nil, nil
	if a != b || !t.Licenses.Equal(o.Licenses) || t.WorkflowKey() != o.WorkflowKey() || t.LentTo() != o.LentTo() || t.LicensesOf() != o.LicensesOf() {
		return false
	}
	if t.Slots == nil || o.Slots == nil {
		return t.Slots == o.Slots
	}
	return *t.Slots == *o.Slots
}
