package structs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// What the calendar of a project may be at most.
const (
	// MaxCalendarRows bounds the rows of a week.
	MaxCalendarRows = 100
	// MaxCalendarCount bounds the slots of a row.
	MaxCalendarCount = 1_000_000
	// MaxCalendarJob is the length of a glob, in bytes.
	MaxCalendarJob = 256
	// MaxWeeksAhead is how far ahead a week may be edited.
	MaxWeeksAhead = 104
	// MaxWeeksKept is for how many weeks those that are over are kept.
	MaxWeeksKept = 53
	// MaxCalendarEdits is how many edits of a project's calendar are kept: the last ones.
	MaxCalendarEdits = 200
)

// Types of slots that are always known. A site has its own beside them (docs/design/semantics.md, part 4).
const (
	SlotBatch            = "batch"
	SlotInteractiveLight = "interactive-light"
	SlotInteractiveHeavy = "interactive-heavy"
	SlotOverflow         = "overflow" // belongs to nobody, and is in no calendar
)

// BuiltInSlotTypes returns the types that may be given out whether or not a node states some, sorted.
func BuiltInSlotTypes() []string {
	return []string{SlotBatch, SlotInteractiveHeavy, SlotInteractiveLight}
}

// What a node may state about its slots.
const (
	// MaxSlotTypes bounds the types of slots of a node.
	MaxSlotTypes = 64
	// MaxNodeSlots bounds its slots of a type.
	MaxNodeSlots = 1 << 16
)

// CalendarRow gives a project slots of one type for a week.
type CalendarRow struct {
	Type string `hcl:"type"` // the type of the slots
	// Step is one of the project's; empty: any.
	Step string `hcl:"step" json:",omitempty" codec:",omitempty"`
	// User and Group restrict it to a user, or to the members of a group; both empty: anybody of the project.
	User  string `hcl:"user" json:",omitempty" codec:",omitempty"`
	Group string `hcl:"group" json:",omitempty" codec:",omitempty"`
	// Job is a glob on the names of jobs; empty: any.
	Job   string `hcl:"job" json:",omitempty" codec:",omitempty"`
	Count int    `hcl:"count"` // how many slots
}

// Same reports whether two rows give slots of the same type for the same.
func (r CalendarRow) Same(o CalendarRow) bool {
	r.Count, o.Count = 0, 0
	return r == o
}

// Uses describes for what a row gives slots: its step and who, and the jobs if it names some.
func (r CalendarRow) Uses() string {
	who := "any"
	switch {
	case r.User != "":
		who = "user:" + r.User
	case r.Group != "":
		who = "group:" + r.Group
	}
	text := cmp.Or(r.Step, "any") + ", " + who
	if r.Job != "" {
		text += ", " + r.Job
	}
	return text
}

// String describes a row in short: 40 batch (synthesis, any).
func (r CalendarRow) String() string { return fmt.Sprintf("%d %s (%s)", r.Count, r.Type, r.Uses()) }

// maxRowsText is how many rows are described before the others are only counted.
const maxRowsText = 20

// RowsText describes the rows of a week in short.
func RowsText(rows []CalendarRow) string {
	var out []string
	for _, r := range rows[:min(len(rows), maxRowsText)] {
		out = append(out, r.String())
	}
	if more := len(rows) - maxRowsText; more > 0 {
		out = append(out, fmt.Sprintf("%d rows more", more))
	}
	return cmp.Or(strings.Join(out, "; "), "no slots")
}

// RowsTotal adds up the slots of rows by type.
func RowsTotal(rows []CalendarRow) map[string]int {
	out := map[string]int{}
	for _, r := range rows {
		out[r.Type] += r.Count
	}
	return out
}

// ProjectWeek is a week of a project's calendar. One whose rows were all removed stays, so that it has an index.
type ProjectWeek struct {
	Project string
	Week    string // 2026-W48
	Rows    []CalendarRow
	// Cells are the quota cells that its slots with GPUs amount to. The state derives them; a caller's are ignored.
	Cells []SlotCells `json:",omitempty" codec:",omitempty"`
	// From and To are when the week begins and ends, in Unix nanoseconds. Servers that apply log entries do not compute them: their time
	// zone databases may differ.
	From        int64
	To          int64
	CreateIndex uint64
	ModifyIndex uint64
}

// Copy returns a copy that shares nothing with w.
func (w *ProjectWeek) Copy() *ProjectWeek {
	if w == nil {
		return nil
	}
	out := *w
	out.Rows, out.Cells = slices.Clone(w.Rows), slices.Clone(w.Cells)
	return &out
}

// ValidWeek reports whether a text is an ISO week with its year, such as 2026-W48.
func ValidWeek(text string) bool {
	var year, number int
	if n, err := fmt.Sscanf(text, "%4d-W%2d", &year, &number); n != 2 || err != nil || year < 1 || text != fmt.Sprintf("%04d-W%02d", year, number) {
		return false
	}
	_, last := time.Date(year, time.December, 28, 0, 0, 0, 0, time.UTC).ISOWeek() // which is always in the last one
	return number >= 1 && number <= last
}

// Validate returns an error of CodeBadRequest if no project can have such a week.
func (w *ProjectWeek) Validate() error {
	switch {
	case w == nil || w.Project == "":
		return Errorf(CodeBadRequest, "calendar: missing name of the project")
	case !ValidProject(w.Project):
		return Errorf(CodeBadRequest, "project %q: invalid name. A name has 1 to 128 letters, digits or dashes", clip(w.Project))
	case !ValidWeek(w.Week):
		return Errorf(CodeBadRequest, "project %q: calendar: there is no week %q", w.Project, clip(w.Week)).
			WithHint("write an ISO week with its year, as in 2026-W48; a year has 52 or 53")
	case w.From >= w.To:
		return Errorf(CodeBadRequest, "project %q: calendar %q: the week ends before it begins", w.Project, w.Week)
	}
	bad := func(format string, args ...any) *Error {
		return Errorf(CodeBadRequest, "project %q: calendar %q: "+format, append([]any{w.Project, w.Week}, args...)...)
	}
	return ValidateRows(w.Rows, bad)
}

// ValidateRows returns what is wrong with rows of a week, whatever project they are of.
func ValidateRows(rows []CalendarRow, bad func(format string, args ...any) *Error) error {
	if len(rows) > MaxCalendarRows {
		return bad("%d rows of slots: at most %d are allowed", len(rows), MaxCalendarRows)
	}
	for i, r := range rows {
		fault := func(format string, args ...any) *Error {
			return bad("slots %d: "+format, append([]any{i + 1}, args...)...)
		}
		switch {
		case r.Type == "":
			return fault("type is missing").WithHint(`write the type of the slots, as in type = "batch"`)
		case !isWord(r.Type, true):
			return fault("type: %q: a type of slots is named by 1 to 128 letters, digits, dashes or underscores", clip(r.Type))
		case r.Type == SlotOverflow:
			return fault("type: %q: slots of this type belong to nobody, and are in no calendar", r.Type)
		case r.Step != "" && !isWord(r.Step, true):
			return fault("step: %q: a step is named by 1 to 128 letters, digits, dashes or underscores", clip(r.Step))
		case r.User != "" && r.Group != "":
			return fault("user and group are both stated").WithHint("leave one of the two out, or give slots to each of them by itself")
		case r.User != "" && !validMember(r.User):
			return fault("user: %q: a name has 1 to %d characters, without spaces, colons and slashes", clip(r.User), MaxMemberName)
		case r.Group != "" && !validMember(r.Group):
			return fault("group: %q: a name has 1 to %d characters, without spaces, colons and slashes", clip(r.Group), MaxMemberName)
		case !validGlob(r.Job):
			return fault("job: %q: must be a glob of at most %d bytes, as in \"sim-*\"", clip(r.Job), MaxCalendarJob)
		case r.Count < 0 || r.Count > MaxCalendarCount:
			return fault("count: must be 0 to %d, not %d", MaxCalendarCount, r.Count)
		}
		if first := slices.IndexFunc(rows[:i], r.Same); first >= 0 {
			return fault("the type, step, user, group and job are those of slots %d", first+1).WithHint("add the counts up in one block")
		}
	}
	return nil
}

// validGlob reports whether a text may be a glob on the names of jobs.
func validGlob(text string) bool {
	_, err := path.Match(text, "")
	return err == nil && len(text) <= MaxCalendarJob && !strings.ContainsRune(text, 0)
}

// CalendarEdit is one edit of a week: who, when, before and after. It is kept for as long as the project is, and at most
// MaxCalendarEdits of a project are.
type CalendarEdit struct {
	Project string
	Week    string
	Index   uint64
	Time    int64  // Unix nanoseconds
	By      string // the user; empty: an operator
	Before  []CalendarRow
	After   []CalendarRow
}

// CalendarConfiguration is when weeks of calendars begin.
type CalendarConfiguration struct {
	// TimeZone is of the IANA database; empty: UTC.
	TimeZone string
	// WeekStarts is a day and a time, as in "mon 00:00", which is what it is if it is empty.
	WeekStarts string
}

// DefaultCalendar is the calendar of a cluster that states none.
func DefaultCalendar() CalendarConfiguration {
	return CalendarConfiguration{TimeZone: "UTC", WeekStarts: "mon 00:00"}
}

// WeekCalendar returns when weeks begin, with the defaults written out.
func (c *SchedulerConfiguration) WeekCalendar() CalendarConfiguration {
	out := DefaultCalendar()
	if c.Calendar != nil {
		out.TimeZone, out.WeekStarts = cmp.Or(c.Calendar.TimeZone, out.TimeZone), cmp.Or(c.Calendar.WeekStarts, out.WeekStarts)
	}
	return out
}

// validateCalendar bounds the calendar. Whether the time zone exists is for the server to find out that is called: the others may have
// another database.
func (c *SchedulerConfiguration) validateCalendar() error {
	if c.Calendar == nil {
		return nil
	}
	for _, text := range []string{c.Calendar.TimeZone, c.Calendar.WeekStarts} {
		if len(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return Errorf(CodeBadRequest, "Calendar: %q: write a time zone as in \"Europe/Berlin\", and a day and a time as in \"mon 00:00\"", clip(text))
		}
	}
	return nil
}

// What is called of calendars, and answered.
type (
	// ProjectCalendarEntry replaces the rows of a week.
	ProjectCalendarEntry struct {
		Week *ProjectWeek
		// CAS requires that the week was last changed at CheckIndex; 0: it never was.
		CAS        bool   `json:",omitempty" codec:",omitempty"`
		CheckIndex uint64 `json:",omitempty" codec:",omitempty"`
		By         string `json:",omitempty" codec:",omitempty"`
		Time       int64
		// EvalSeed derives the IDs of the evaluations of system jobs, if nobody owned cells before.
		EvalSeed string `json:",omitempty" codec:",omitempty"`
	}
	// ProjectCalendarRequest replaces the rows of a week.
	ProjectCalendarRequest struct {
		Project    string
		Week       string
		Rows       []CalendarRow
		CAS        bool
		CheckIndex uint64
		// Force accepts users and groups that the servers' user database does not have.
		Force bool `codec:",omitempty"`
		WriteRequest
	}
	// ProjectCalendarQuery reads a project's calendar.
	ProjectCalendarQuery struct {
		Project string
		// Week restricts it to one week; empty: this week, the twelve that follow and later ones with slots.
		Week string
		QueryOptions
	}
	// ProjectCalendarReply is a project's calendar; nil: there is no such project.
	ProjectCalendarReply struct {
		Calendar *ProjectCalendar
		QueryMeta
	}
	// ProjectEditsReply lists the edits of a project's calendar, the last one first; nil: there is no such project.
	ProjectEditsReply struct {
		Edits []*CalendarEdit
		QueryMeta
	}
	// ProjectCalendar is the weeks of a project.
	ProjectCalendar struct {
		Project  string
		TimeZone string
		Weeks    []*CalendarWeek
	}
	// CalendarWeek is a week as it is shown.
	CalendarWeek struct {
		Week  string
		From  time.Time
		To    time.Time
		Index uint64 // at which it was edited last; 0: never
		Rows  []CalendarRow
	}
)

// AddSlots adds to counts the slots of each type that a node offers. One that states none offers its cores as batch slots if it has no
// devices (docs/design/semantics.md, part 4).
func (n *Node) AddSlots(counts map[string]int) {
	switch r := n.NodeResources; {
	case r == nil:
	case r.Slots != nil:
		for name, count := range r.Slots { // order does not matter: they are summed
			counts[name] += count
		}
	case len(r.Devices) == 0:
		counts[SlotBatch] += int(r.Cpu.TotalCpuCores)
	}
}

// CheckNodeSlots returns an error if a node may not offer as many slots of a type.
func CheckNodeSlots(name string, n int) error {
	switch {
	case !isWord(name, true):
		return implausible("slots: %q: a type of slots is named by 1 to 128 letters, digits, dashes or underscores", clip(name))
	case n < 0 || n > MaxNodeSlots:
		return implausible("slots: %s: %d: must be 0 to %d", name, n, MaxNodeSlots)
	}
	return nil
}

// NodeSlots returns the slots that a node states: nil if it states nothing. One that offers none of any type states 0 slots of a type, as an
// empty list is as none when it is encoded.
func NodeSlots(stated map[string]int) map[string]int {
	if stated != nil && len(stated) == 0 {
		return map[string]int{SlotBatch: 0}
	}
	return stated
}

// checkSlots checks what a node states about its slots.
func (r *NodeResources) checkSlots() error {
	if len(r.Slots) > MaxSlotTypes {
		return implausible("slots: %d types, at most %d are allowed", len(r.Slots), MaxSlotTypes)
	}
	for _, name := range sortedKeys(r.Slots) {
		if err := CheckNodeSlots(name, r.Slots[name]); err != nil {
			return err
		}
	}
	return nil
}
