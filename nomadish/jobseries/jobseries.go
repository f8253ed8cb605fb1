// Package jobseries derives the metrics of jobs from the state: what their allocations do, how many jobs are in which state,
// and what those need that wait for room. It is done when somebody requests metrics, and of what has not changed since, what
// was derived then is given again: ten thousand jobs of which a few have changed take some milliseconds.
package jobseries

import (
	"slices"
	"strings"

	"github.com/nomadish/nomadish/internal/telemetry"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// summaryFamilies are of the fields of structs.TaskGroupSummary, in the order of counts.
var summaryFamilies = [...]*telemetry.Family{
	telemetry.Named("nomad.job_summary.queued"), telemetry.Named("nomad.job_summary.complete"), telemetry.Named("nomad.job_summary.failed"),
	telemetry.Named("nomad.job_summary.running"), telemetry.Named("nomad.job_summary.starting"), telemetry.Named("nomad.job_summary.lost"),
	telemetry.Named("nomad.job_summary.unknown"),
}

func counts(s structs.TaskGroupSummary) [len(summaryFamilies)]int {
	return [...]int{s.Queued, s.Complete, s.Failed, s.Running, s.Starting, s.Lost, s.Unknown}
}

var (
	pendingJobs      = telemetry.Named("nomad.job_status.pending")
	runningJobs      = telemetry.Named("nomad.job_status.running")
	deadJobs         = telemetry.Named("nomad.job_status.dead")
	blockedCPU       = telemetry.Named("nomad.blocked_evals.cpu")
	blockedMemory    = telemetry.Named("nomad.blocked_evals.memory")
	blockedJobCPU    = telemetry.Named("nomad.blocked_evals.job.cpu")
	blockedJobMemory = telemetry.Named("nomad.blocked_evals.job.memory")
)

// Series are the metrics of jobs. The zero value is ready for use, by one goroutine at a time.
type Series struct {
	at       [3]uint64 // of the tables of summaries, jobs and requests, as of when the following was derived
	jobs     []job
	values   [len(summaryFamilies)][]telemetry.Value
	statuses map[string]int
	blocked  []need // by job
	byCenter []need
}

// job is what is kept of a job's summary.
type job struct {
	row    *structs.JobSummary
	groups []group
}

type group struct {
	name   string
	labels *telemetry.LabelSet
}

// need is what allocations that wait for room need.
type need struct {
	labels      *telemetry.LabelSet
	cpu, memory int
}

// Add adds the series to a batch, as a snapshot of the state has them.
func (s *Series) Add(b *telemetry.Batch, snap *state.Snapshot) {
	if s.moved(snap, 0, state.TableSummaries) {
		s.deriveSummaries(snap)
	}
	jobsMoved := s.moved(snap, 1, state.TableJobs)
	if jobsMoved {
		s.deriveStatuses(snap)
	}
	if s.moved(snap, 2, state.TableRequests) || jobsMoved {
		s.deriveBlocked(snap)
	}
	fit := b.Fit(telemetry.OfJobs, len(s.values[0]), len(summaryFamilies))
	for i, f := range summaryFamilies {
		b.Share(f, s.values[i][:fit])
	}
	b.Add(pendingJobs, float64(s.statuses[structs.JobStatusPending]), nil)
	b.Add(runningJobs, float64(s.statuses[structs.JobStatusRunning]), nil)
	b.Add(deadJobs, float64(s.statuses[structs.JobStatusDead]), nil)
	for _, n := range s.byCenter[:b.Fit(telemetry.OfJobs, len(s.byCenter), 2)] {
		b.Add(blockedCPU, float64(n.cpu), n.labels)
		b.Add(blockedMemory, float64(n.memory), n.labels)
	}
	for _, n := range s.blocked[:b.Fit(telemetry.OfJobs, len(s.blocked), 2)] {
		b.Add(blockedJobCPU, float64(n.cpu), n.labels)
		b.Add(blockedJobMemory, float64(n.memory), n.labels)
	}
}

// moved reports whether a table has changed since it was called last.
func (s *Series) moved(snap *state.Snapshot, i int, table string) bool {
	index := snap.TableIndex(table)
	was := s.at[i]
	s.at[i] = index
	return index != was
}

// deriveSummaries walks the summaries beside those that it walked last, which are in the same order: what is known of a job
// is kept while its summary has the same groups.
func (s *Series) deriveSummaries(snap *state.Snapshot) {
	known, at := s.jobs, 0
	now := make([]job, 0, len(known)+1)
	var values [len(summaryFamilies)][]telemetry.Value
	for i := range values {
		values[i] = make([]telemetry.Value, 0, len(s.values[i])+1)
	}
	for row := range snap.JobSummaries() {
		for at < len(known) && before(known[at].row, row) {
			at++
		}
		var j job
		if at < len(known) && known[at].row.JobID == row.JobID && known[at].row.Namespace == row.Namespace {
			j = known[at]
		}
		if j.row != row {
			j = job{row, groupsOf(row, j.groups)}
		}
		now = append(now, j)
		for _, g := range j.groups {
			for i, n := range counts(row.Summary[g.name]) {
				values[i] = append(values[i], telemetry.Value{Labels: g.labels, Value: float64(n)})
			}
		}
	}
	s.jobs, s.values = now, values
}

func before(a, b *structs.JobSummary) bool {
	return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.JobID < b.JobID
}

// groupsOf returns the groups of a job, by name, with what is known of them.
func groupsOf(row *structs.JobSummary, known []group) []group {
	out := make([]group, 0, len(row.Summary))
	for name := range row.Summary { // sorted below
		i := slices.IndexFunc(known, func(g group) bool { return g.name == name })
		if i >= 0 {
			out = append(out, known[i])
			continue
		}
		out = append(out, group{name, labelsOf(row, name)})
	}
	slices.SortFunc(out, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return out
}

// labelsOf returns the labels of a group's series. The runs of a periodic or parameterized job have its name, and their own
// part of the ID as another label.
func labelsOf(row *structs.JobSummary, group string) *telemetry.LabelSet {
	for _, of := range [][2]string{{"/dispatch-", "dispatch_id"}, {"/periodic-", "periodic_id"}} {
		if parent, run, ok := strings.Cut(row.JobID, of[0]); ok {
			return telemetry.Labels("job", parent, "task_group", group, "namespace", row.Namespace, "parent_id", parent, of[1], run)
		}
	}
	return telemetry.Labels("job", row.JobID, "task_group", group, "namespace", row.Namespace)
}

func (s *Series) deriveStatuses(snap *state.Snapshot) {
	s.statuses = map[string]int{}
	for j := range snap.Jobs(nil, structs.AllNamespaces, "", false) {
		s.statuses[j.Status]++
	}
}

// deriveBlocked sums up what those need that wait for room.
func (s *Series) deriveBlocked(snap *state.Snapshot) {
	s.blocked, s.byCenter = nil, nil
	var of *structs.Job // neighbours are of one job
	centers := map[string]int{}
	for request := range snap.Requests().Waiting(nil, structs.AllNamespaces) {
		if of == nil || of.ID != request.JobID || of.Namespace != request.Namespace {
			if of = snap.Job(nil, request.Namespace, request.JobID); of == nil {
				continue
			}
			s.blocked = append(s.blocked, need{labels: telemetry.Labels("job", of.ID, "namespace", of.Namespace)})
			where := strings.Join(of.Datacenters, ",")
			if _, ok := centers[where]; !ok {
				centers[where] = len(s.byCenter)
				s.byCenter = append(s.byCenter, need{labels: telemetry.Labels("datacenter", where, "node_class", "none")})
			}
		}
		cpu, memory := needOf(of, request.Group)
		for _, n := range []*need{&s.blocked[len(s.blocked)-1], &s.byCenter[centers[strings.Join(of.Datacenters, ",")]]} {
			n.cpu += cpu * request.Missing
			n.memory += memory * request.Missing
		}
	}
}

// needOf returns the CPU (MHz) and memory (MiB) that an allocation of a group needs.
func needOf(j *structs.Job, group string) (cpu, memory int) {
	g := j.LookupTaskGroup(group)
	if g == nil {
		return 0, 0
	}
	for _, t := range g.Tasks {
		if t.Resources != nil {
			cpu += t.Resources.CPU
			memory += t.Resources.MemoryMB
		}
	}
	return cpu, memory
}
