package structs

import "slices"

// What a flow may be at most.
const (
	// MaxFlows bounds the flows of a region.
	MaxFlows = 1_000
	// MaxFlowSteps bounds the steps of a flow, and those of a project.
	MaxFlowSteps = 64
)

// Flow is a named sequence of steps that several projects may share (docs/design/semantics.md, part 4).
type Flow struct {
	Name string `hcl:"name,label"` // the name of the flow
	// Steps are in the order in which a project does them.
	Steps       []string `hcl:"steps"`
	CreateIndex uint64
	ModifyIndex uint64
}

// Copy returns a copy that shares nothing with f.
func (f *Flow) Copy() *Flow {
	if f == nil {
		return nil
	}
	out := *f
	out.Steps = slices.Clone(f.Steps)
	return &out
}

// Validate returns an error of CodeBadRequest if there can be no such flow.
func (f *Flow) Validate() error {
	switch {
	case f == nil || f.Name == "":
		return Errorf(CodeBadRequest, "missing name of the flow")
	case !isWord(f.Name, false):
		return Errorf(CodeBadRequest, "flow %q: invalid name. A name has 1 to 128 letters, digits or dashes", clip(f.Name))
	case len(f.Steps) == 0:
		return Errorf(CodeBadRequest, "flow %q: steps: it has none", f.Name).WithHint(`write the steps in their order, as in steps = ["synthesis", "place"]`)
	}
	return checkSteps(f.Steps, func(format string, args ...any) *Error {
		return Errorf(CodeBadRequest, "flow %q: "+format, append([]any{f.Name}, args...)...)
	})
}

// checkSteps checks the steps of a flow or a project.
func checkSteps(steps []string, bad func(format string, args ...any) *Error) error {
	if len(steps) > MaxFlowSteps {
		return bad("steps: %d are stated, at most %d are allowed", len(steps), MaxFlowSteps)
	}
	for i, step := range steps {
		if !isWord(step, true) {
			return bad("steps: %q: a step is named by 1 to 128 letters, digits, dashes or underscores", clip(step))
		}
		if slices.Contains(steps[:i], step) {
			return bad("steps: %q is stated twice", step)
		}
	}
	return nil
}

// What is called of flows, and answered.
type (
	// FlowUpsertEntry makes a flow or replaces it.
	FlowUpsertEntry struct {
		Flow *Flow
		// CAS requires that the flow was last changed at CheckIndex; 0: there is none.
		CAS        bool   `json:",omitempty" codec:",omitempty"`
		CheckIndex uint64 `json:",omitempty" codec:",omitempty"`
		Time       int64
	}
	// FlowDeleteEntry removes a flow that no project follows.
	FlowDeleteEntry struct {
		Name string
		Time int64
	}
	// FlowUpsertRequest makes a flow or replaces it.
	FlowUpsertRequest struct {
		Flow       *Flow
		CAS        bool
		CheckIndex uint64
		WriteRequest
	}
	// FlowDeleteRequest removes a flow.
	FlowDeleteRequest struct {
		Name string
		WriteRequest
	}
	// FlowReply is a flow; nil: there is none of the name.
	FlowReply struct {
		Flow *Flow
		QueryMeta
	}
	// FlowListReply lists flows.
	FlowListReply struct {
		Flows []*Flow
		QueryMeta
	}
)
