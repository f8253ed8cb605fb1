// Package workflowtable is what the state keeps of workflows: a row each, with its last run (docs/design/semantics.md, part 5). It knows no other
// table: what registers and stops jobs is given to it.
package workflowtable

import (
	"iter"
	"strings"

	"github.com/nomadish/nomadish/nomadish/state/internal/memtable"
	"github.com/nomadish/nomadish/structs"
)

// Workflows is the table.
const Workflows = "workflows"

// Indexes of the table.
const (
	byID     = memtable.ByID
	byPrefix = memtable.ByPrefix
	byAlive  = "alive" // workflows of which a run has not ended
)

// Indexes returns the table with its indexes.
func Indexes() map[string][]*memtable.Index {
	return map[string][]*memtable.Index{
		Workflows: {
			memtable.UniqueBy(func(r *structs.WorkflowRun) []byte { return memtable.Key(r.Namespace, r.ID) }),
			memtable.Also(byAlive, func(r *structs.WorkflowRun) []byte {
				if !r.Alive() {
					return nil
				}
				return memtable.Key(byAlive)
			}),
		},
	}
}

// CheckRow returns an error if a row of a snapshot is one that no state could hold.
func CheckRow(r *structs.WorkflowRun) error {
	if err := memtable.CheckKey("namespace", r.Namespace); err != nil {
		return err
	}
	if err := memtable.CheckKey("workflow", r.ID); err != nil {
		return err
	}
	if r.Workflow == nil || len(r.Stages) == 0 {
		return structs.Errorf(structs.CodeBadRequest, "import workflow %q: its stages are missing", r.ID)
	}
	jobs := map[string]bool{}
	for _, s := range r.Workflow.Stages {
		if s == nil {
			return structs.Errorf(structs.CodeBadRequest, "import workflow %q: a stage is missing", r.ID)
		}
		for _, j := range s.Jobs {
			if j == nil || j.Job == nil {
				return structs.Errorf(structs.CodeBadRequest, "import workflow %q: a job is missing", r.ID)
			}
			jobs[j.Name] = true
		}
	}
	for _, s := range r.Stages {
		if s == nil {
			return structs.Errorf(structs.CodeBadRequest, "import workflow %q: a stage of its run is missing", r.ID)
		}
		for _, j := range s.Jobs {
			if !jobs[j.Name] {
				return structs.Errorf(structs.CodeBadRequest, "import workflow %q: its run has a job %q that it does not have", r.ID, j.Name)
			}
		}
	}
	return nil
}

// Reads reads the workflows of a snapshot.
type Reads struct {
	memtable.Watched
}

// Get returns a workflow; nil if there is none of the name.
func (r Reads) Get(namespace, id string) *structs.WorkflowRun {
	return memtable.One[structs.WorkflowRun](r.Watched, Workflows, byID, namespace, id)
}

// List walks the workflows of a namespace whose ID begins with prefix, by ID, or backwards; those of all namespaces where it is "*".
func (r Reads) List(namespace, prefix string, reverse bool) iter.Seq[*structs.WorkflowRun] {
	if namespace != structs.AllNamespaces {
		return memtable.Many[structs.WorkflowRun](r.Watched, reverse, Workflows, byPrefix, namespace, prefix)
	}
	all := memtable.Many[structs.WorkflowRun](r.Watched, reverse, Workflows, byPrefix, "")
	return func(yield func(*structs.WorkflowRun) bool) {
		for row := range all {
			if strings.HasPrefix(row.ID, prefix) && !yield(row) {
				return
			}
		}
	}
}

// Alive walks the workflows of which a run has not ended.
func (r Reads) Alive() iter.Seq[*structs.WorkflowRun] {
	return memtable.Many[structs.WorkflowRun](r.Watched, false, Workflows, byAlive, byAlive)
}
