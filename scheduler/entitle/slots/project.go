package slots

import (
	"cmp"
	"math"
	"path"
	"slices"
	"time"
)

// Row gives a project slots of one type, to whom and to what it names. An empty Step, User, Group or Job matches any.
type Row struct {
	Type  string
	Step  string
	User  string
	Group string
	Job   string // a glob on the names of jobs
	Count int
}

// Submission is what the submission check and the rows look at of a job.
type Submission struct {
	Project string
	Step    string
	Type    string // of slots
	User    string
	Groups  []string
	Job     string // its name
}

// Project is who may submit to a project, in which steps, and what rows it has this week.
type Project struct {
	Name   string
	Users  []string
	Groups []string
	Steps  []string
	Rows   []Row
	// Jobs are how many jobs it is to complete in the time Per, MeanRun the mean run time of its instances, 0 if that is not known. Jobs is 0 if it
	// is to run as many at once as its slots allow.
	Jobs    int
	Per     time.Duration
	MeanRun time.Duration
}

// Equal reports whether two projects are the same; nil is equal to nil alone.
func (p *Project) Equal(o *Project) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.Name == o.Name && p.Jobs == o.Jobs && p.Per == o.Per && p.MeanRun == o.MeanRun && slices.Equal(p.Users, o.Users) && slices.Equal(p.Groups, o.Groups) && slices.Equal(p.Steps, o.Steps) && slices.Equal(p.Rows, o.Rows)
}

// Enough returns how many instances of a project run at once to complete as many jobs as it is to, by the mean run time of its instances, or that of a
// job while there is none; false: as many as its slots allow.
func (p *Project) Enough(run time.Duration) (n int, limited bool) {
	if p == nil || p.Jobs == 0 || p.Per <= 0 {
		return 0, false
	}
	if p.MeanRun > 0 {
		run = p.MeanRun
	}
	if run <= 0 {
		return 0, false
	}
	return int(math.Ceil(float64(p.Jobs) * float64(run) / float64(p.Per))), true
}

// NamesJobs reports whether any of its rows is for jobs of some names alone. p may be nil.
func (p *Project) NamesJobs() bool {
	return p != nil && slices.ContainsFunc(p.Rows, func(r Row) bool { return r.Job != "" })
}

// Outcome is what the submission check finds.
type Outcome string

// What the submission check finds, in the order in which it looks.
const (
	UnknownProject Outcome = "unknown-project"
	NotAMember     Outcome = "not-a-member"
	NoSuchStep     Outcome = "no-such-step"
	NoSlots        Outcome = "no-slots"
	Recognised     Outcome = "recognised"
)

// Check returns what the submission check finds of a job that names this project; p is nil if there is none.
func (p *Project) Check(s *Submission) Outcome {
	switch {
	case p == nil:
		return UnknownProject
	case !p.hasMember(s):
		return NotAMember
	case !p.hasStep(s):
		return NoSuchStep
	case !slices.ContainsFunc(p.Rows, func(r Row) bool { return r.Count > 0 && r.matches(s) }):
		return NoSlots
	}
	return Recognised
}

func (p *Project) hasMember(s *Submission) bool {
	return slices.Contains(p.Users, s.User) || slices.ContainsFunc(s.Groups, func(g string) bool { return slices.Contains(p.Groups, g) })
}

func (p *Project) hasStep(s *Submission) bool {
	return s.Step == "" || slices.Contains(p.Steps, s.Step)
}

// admits reports whether what is submitted may use slots of the project if a row matches it.
func (p *Project) admits(s *Submission) bool { return p.hasMember(s) && p.hasStep(s) }

// matches reports whether a row gives slots to what is submitted.
func (r *Row) matches(s *Submission) bool {
	if r.Type != s.Type || r.Step != "" && r.Step != s.Step || r.User != "" && r.User != s.User || r.Group != "" && !slices.Contains(s.Groups, r.Group) {
		return false
	}
	if r.Job == "" {
		return true
	}
	ok, err := path.Match(r.Job, s.Job)
	return ok && err == nil
}

// Matcher finds rows for what is submitted, whatever room they have.
type Matcher struct {
	rows  []Row
	order []int
}

// NewMatcher returns a new matcher of rows, which must not be changed afterwards.
func NewMatcher(rows []Row) *Matcher { return &Matcher{rows, inOrder(rows)} }

// Row returns the number of the most specific row that matches; NoRow: none does.
func (m *Matcher) Row(s *Submission) int {
	for _, i := range m.order {
		if m.rows[i].matches(s) {
			return i
		}
	}
	return NoRow
}

// inOrder returns the numbers of rows, the most specific first: those that name the most fields; of these those that name a user, a group, a
// job, a step, in this order of importance; then as they stand.
func inOrder(rows []Row) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := rows[a].names(), rows[b].names()
		named := func(of [4]bool) (n int) {
			for _, is := range of {
				if is {
					n++
				}
			}
			return n
		}
		if c := cmp.Compare(named(y), named(x)); c != 0 {
			return c
		}
		for i := range x {
			if x[i] != y[i] {
				if x[i] {
					return -1
				}
				return 1
			}
		}
		return 0
	})
	return order
}

// names returns whether a row names a user, a group, a job and a step.
func (r *Row) names() [4]bool { return [4]bool{r.User != "", r.Group != "", r.Job != "", r.Step != ""} }
