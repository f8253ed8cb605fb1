package structs

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// What a project may be at most.
const (
	// MaxProjects bounds the projects of a region.
	MaxProjects = 5_000
	// MaxProjectMembers bounds each of a project's lists of users, groups and managers.
	MaxProjectMembers = 1_000
	// MaxMemberName is in bytes.
	MaxMemberName = 128
	// MaxThroughputJobs bounds the jobs that a project is to complete.
	MaxThroughputJobs = 1_000_000_000
	// MaxThroughputPer is the longest time in which they are.
	MaxThroughputPer = 366 * 24 * time.Hour
)

// The objectives of a project (docs/design/semantics.md, part 4).
const (
	ObjectiveVelocity   = "velocity"   // as many instances at once as its slots allow
	ObjectiveThroughput = "throughput" // as many as complete a number of jobs in a time
)

// Project is who works together, in which steps, and for what. Its slots stand in its calendar, a [ProjectWeek] each week.
type Project struct {
	Name string `hcl:"name,label"` // the name of the project
	// Users and Groups are its members: users, and groups of the servers' user database.
	Users  []string `hcl:"users"`
	Groups []string `hcl:"groups"`
	// Managers are users who may edit its calendar.
	Managers   []string    `hcl:"managers"`
	Flow       string      `hcl:"flow"`      // the flow that it follows; without one, steps may state its own
	Steps      []string    `hcl:"steps"`     // its own steps, where it follows no flow
	Objective  string      `hcl:"objective"` // velocity: as many instances at once as its slots allow; throughput: as many as complete the jobs of the throughput block in time; default: velocity
	Throughput *Throughput `hcl:"throughput,block" json:",omitempty" codec:",omitempty"`

	CreateIndex uint64
	ModifyIndex uint64
}

// ProjectNow is a project as it counts at present: who may submit, in which steps, and what slots it has this week.
type ProjectNow struct {
	Name   string
	Users  []string
	Groups []string
	Steps  []string
	Rows   []CalendarRow
	// Cells are the quota cells of the rows of types with GPUs, in the order of admission.
	Cells []CellClaim
	// Throughput is the objective of a project that is to complete a number of jobs in a time, nil with any other; MeanRun is the mean run time of
	// its last completed instances then, 0 while too few are known.
	Throughput *Throughput
	MeanRun    time.Duration
}

// Throughput is how many jobs a project is to complete in a time.
type Throughput struct {
	Jobs int           `hcl:"jobs"` // how many jobs are to be complete
	Per  time.Duration `hcl:"per"`  // in which time
}

// ValidProject reports whether a project may have this name.
func ValidProject(name string) bool { return isWord(name, false) }

// Copy returns a copy that shares nothing with p.
func (p *Project) Copy() *Project {
	if p == nil {
		return nil
	}
	out := *p
	out.Users, out.Groups, out.Managers, out.Steps = slices.Clone(p.Users), slices.Clone(p.Groups), slices.Clone(p.Managers), slices.Clone(p.Steps)
	if p.Throughput != nil {
		t := *p.Throughput
		out.Throughput = &t
	}
	return &out
}

// Canonicalize fills in what may be left out.
func (p *Project) Canonicalize() {
	if p != nil {
		p.Objective = cmp.Or(p.Objective, ObjectiveVelocity)
	}
}

// UnmarshalJSON reads a project; a duration may be nanoseconds, or a string such as "24h".
func (p *Project) UnmarshalJSON(b []byte) error { return decodeJSON(b, p) }

// Validate returns an error of CodeBadRequest if there can be no such project, whatever else there is.
func (p *Project) Validate() error {
	if p == nil || p.Name == "" {
		return Errorf(CodeBadRequest, "missing name of the project")
	}
	bad := func(format string, args ...any) *Error {
		return Errorf(CodeBadRequest, "project %q: "+format, append([]any{clip(p.Name)}, args...)...)
	}
	switch {
	case !ValidProject(p.Name):
		return bad("invalid name. A name has 1 to 128 letters, digits or dashes")
	case p.Flow != "" && len(p.Steps) > 0:
		return bad("flow and steps are both stated").WithHint("a project has the steps of its flow: leave one of the two out")
	case p.Flow != "" && !isWord(p.Flow, false):
		return bad("flow: %q: invalid name. A name has 1 to 128 letters, digits or dashes", clip(p.Flow))
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"users", p.Users}, {"groups", p.Groups}, {"managers", p.Managers}} {
		if len(list.names) > MaxProjectMembers {
			return bad("%s: %d are stated, at most %d are allowed", list.field, len(list.names), MaxProjectMembers)
		}
		seen := map[string]bool{}
		for _, name := range list.names {
			if !validMember(name) {
				return bad("%s: %q: a name has 1 to %d characters, without spaces, colons and slashes", list.field, clip(name), MaxMemberName)
			}
			if seen[name] {
				return bad("%s: %q is stated twice", list.field, name)
			}
			seen[name] = true
		}
	}
	if err := checkSteps(p.Steps, bad); err != nil {
		return err
	}
	return p.validateObjective(bad)
}

func (p *Project) validateObjective(bad func(format string, args ...any) *Error) error {
	switch t := p.Throughput; {
	case !slices.Contains([]string{"", ObjectiveVelocity, ObjectiveThroughput}, p.Objective):
		return bad("objective: must be %q or %q, not %q", ObjectiveVelocity, ObjectiveThroughput, clip(p.Objective))
	case p.Objective == ObjectiveThroughput && t == nil:
		return bad("throughput is missing").WithHint(`objective "throughput" needs it, as in throughput { jobs = 3000  per = "24h" }`)
	case p.Objective != ObjectiveThroughput && t != nil:
		return bad("throughput is stated, and the objective is not %q", ObjectiveThroughput).WithHint(`state objective = "throughput", or leave throughput out`)
	case t != nil && (t.Jobs < 1 || t.Jobs > MaxThroughputJobs):
		return bad("throughput: jobs: must be 1 to %d, not %d", MaxThroughputJobs, t.Jobs)
	case t != nil && (t.Per < time.Minute || t.Per > MaxThroughputPer):
		return bad("throughput: per: must be 1m to %dh, not %s", int(MaxThroughputPer.Hours()), t.Per)
	}
	return nil
}

// validMember reports whether a user or a group of the servers' user database may have this name.
func validMember(name string) bool {
	return name != "" && len(name) <= MaxMemberName && !strings.ContainsAny(name, ":/") &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar })
}

// What is called of projects, and answered.
type (
	// ProjectUpsertEntry makes a project or replaces it; its calendar stays.
	ProjectUpsertEntry struct {
		Project *Project
		// CAS requires that the project was last changed at CheckIndex; 0: there is none.
		CAS        bool   `json:",omitempty" codec:",omitempty"`
		CheckIndex uint64 `json:",omitempty" codec:",omitempty"`
		Time       int64
	}
	// ProjectDeleteEntry removes a project with its calendar and the edits of that.
	ProjectDeleteEntry struct {
		Name string
		Time int64
	}
	// ProjectUpsertRequest makes a project or replaces it.
	ProjectUpsertRequest struct {
		Project    *Project
		CAS        bool
		CheckIndex uint64
		// Force accepts users and groups that the servers' user database does not have.
		Force bool `codec:",omitempty"`
		WriteRequest
	}
	// ProjectDeleteRequest removes a project.
	ProjectDeleteRequest struct {
		Name string
		WriteRequest
	}
	// ProjectReply is a project; nil: there is none of the name.
	ProjectReply struct {
		Project *ProjectStatus
		QueryMeta
	}
	// ProjectListReply lists projects.
	ProjectListReply struct {
		Projects []*ProjectStatus
		QueryMeta
	}
	// ProjectStatus is a project as it is shown: with its steps, whoever states them, and its slots of this week.
	ProjectStatus struct {
		Name       string
		Users      []string
		Groups     []string
		Managers   []string
		Flow       string
		Steps      []string
		Objective  string
		Throughput *Throughput `json:",omitempty" codec:",omitempty"`
		// Week is the week that it is, until Ends, in TimeZone.
		Week     string
		Ends     time.Time
		TimeZone string
		Slots    []*ProjectSlots
		// Cells are what it owns now as slots with GPUs: quota cells, and how many of them are bound, or doomed as the hardware cannot hold them.
		Cells       []*CellStatus `json:",omitempty" codec:",omitempty"`
		CreateIndex uint64
		ModifyIndex uint64
	}
	// ProjectSlots is a row of the calendar of this week.
	ProjectSlots struct {
		Type  string
		Step  string
		User  string
		Group string
		Job   string
		// Given is how many slots the row has, Used how many of these its instances use, and Lent those that they do not, which others may use.
		Given int
		Used  int
		// Borrowed is what instances cost, in slots, that run without a claim on what idles, Beside what those cost that use another claim, such as
		// cells. Guards are slots that instances keep free of others on their nodes. They count at the most specific row that an instance matches.
		Borrowed int
		Lent     int
		Beside   int
		Guards   int
		// Pending is how many instances wait, OldestPendingSeconds since when the first of them does.
		Pending              int
		OldestPendingSeconds float64
	}
)

// Status returns the project as it is shown, with the steps that it has.
func (p *Project) Status(steps []string) *ProjectStatus {
	return &ProjectStatus{
		Name: p.Name, Users: p.Users, Groups: p.Groups, Managers: p.Managers, Flow: p.Flow, Steps: steps, Objective: cmp.Or(p.Objective, ObjectiveVelocity),
		Throughput: p.Throughput, Slots: []*ProjectSlots{}, CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex,
	}
}
