package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nomadish/nomadish/scheduler/internal/decide"
	"github.com/nomadish/nomadish/scheduler/internal/feasible"
	"github.com/nomadish/nomadish/scheduler/internal/world"
	"github.com/nomadish/nomadish/structs"
)

// The smallest change that would place what is missing, found by running the real
// scheduler on altered worlds. The candidates come from what the nodes lack, so that they
// are few and likely; only the scheduler decides whether one helps.

// Bounds of the search: how often the scheduler is run, how many instances it
// places each time, and how many remedies are reported.
const (
	maxTries      = 160
	minTries      = 24
	maxPlaced     = 40_000
	remediesShown = 12
)

// remedySearch runs the scheduler on alterations of one group's job, its nodes and settings.
type remedySearch struct {
	x      *explainer
	g      *structs.TaskGroup
	at     int // of the group in the job
	before int // instances that would wait
	tries  int
	most   int
	valid  bool // the job as it is: what is altered must be so, too
	starts int  // the largest part of a gang that is known to start; 0: not known
	found  []structs.Remedy
}

func newRemedySearch(x *explainer, g *structs.TaskGroup, left int) *remedySearch {
	p := &remedySearch{x: x, g: g, before: left}
	if n := x.plan.Evals[0].QueuedAllocations[g.Name]; n > 0 {
		p.before = n
	}
	p.at = slices.IndexFunc(x.in.Job.TaskGroups, func(o *structs.TaskGroup) bool { return o.Name == g.Name })
	p.valid = x.in.Job.Validate() == nil
	p.most = min(maxTries, max(minTries, maxPlaced/max(1, p.before)))
	return p
}

// remedies returns the remedies, the smallest first, those that place only a part after them, and last those that end what others are guaranteed.
func (p *remedySearch) remedies(sv *survey) []structs.Remedy {
	p.relaxClaims()
	p.moreLicenses()
	p.relaxTopology(sv)
	p.relaxPorts(sv)
	p.relaxFilters(sv)
	p.relaxResources(sv)
	p.relaxCount()
	p.relaxGangMin()
	p.allowPreemption()
	p.endAllocations(sv)
	p.endOwn(sv)
	p.addNodes(sv)
	slices.SortStableFunc(p.found, func(a, b structs.Remedy) int {
		return cmp.Or(
			compareBool(a.Entitled > 0, b.Entitled > 0), compareBool(b.All, a.All), cmp.Compare(a.Size, b.Size), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Text, b.Text))
	})
	return p.found[:min(len(p.found), remediesShown)]
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// alteration is something that is otherwise than it is.
type alteration struct {
	job    func(*structs.Job) // nil: as it is
	world  func(*world.Edit)
	config func(*structs.SchedulerConfiguration)
}

// try returns how many instances would wait; false: the tries are used up.
func (p *remedySearch) try(alt alteration) (queued int, ok bool) {
	if p.tries >= p.most {
		return p.before, false
	}
	p.tries++
	in := p.x.in.Input
	w := p.x.w
	if alt.job != nil {
		in.Job = in.Job.Copy()
		in.Job.Version++
		in.Job.JobModifyIndex++
		alt.job(in.Job)
		if p.valid && in.Job.Validate() != nil {
			return p.before, true
		}
	}
	if alt.config != nil {
		alt.config(&in.Config)
	}
	if alt.world != nil {
		e := w.Edit()
		alt.world(e)
		w = e.World()
	}
	return queuedOn(w, in, p.g.Name), true
}

// check tries an alteration and notes it as a remedy if it helps. It reports whether it places all.
func (p *remedySearch) check(alt alteration, r structs.Remedy) bool {
	queued, ok := p.try(alt)
	if ok {
		p.note(queued, r)
	}
	return ok && queued == 0
}

// fewest finds the least number of things to change, of 1 to most, that leaves no more
// waiting than most of them do. Mostly each of them counts: that is tried first.
func (p *remedySearch) fewest(most, queued int, alt func(n int) alteration) int {
	does := func(n int) bool {
		q, ok := p.try(alt(n))
		return ok && q <= queued
	}
	if most < 2 || !does(most-1) {
		return most
	}
	return 1 + sort.Search(most-2, func(i int) bool { return does(i + 1) })
}

// note keeps a remedy that helps.
func (p *remedySearch) note(queued int, r structs.Remedy) {
	if p.x.in.Job.Workflow != nil && slices.ContainsFunc(r.Edits, func(e structs.Edit) bool { return e.On == structs.EditJob }) {
		return // `job run` refuses a job of a workflow: it is edited with the next run
	}
	if queued >= p.before || slices.ContainsFunc(p.found, func(o structs.Remedy) bool { return o.Text == r.Text }) {
		return
	}
	if r.Places == 0 {
		r.Places = p.before - queued
	}
	r.All = queued == 0
	p.found = append(p.found, r)
}

// raw is a value as JSON.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil // numbers, texts and our own structs can be written
	}
	return b
}

// jobEdit replaces a field of the job.
func (p *remedySearch) jobEdit(path string, was, value any) structs.Edit {
	return structs.Edit{On: structs.EditJob, ID: p.x.in.Job.ID, Op: structs.EditReplace, Path: path, Was: raw(was), Value: raw(value)}
}

func (p *remedySearch) groupPath() string { return fmt.Sprintf("/TaskGroups/%d", p.at) }

func (p *remedySearch) taskPath(task int) string {
	return fmt.Sprintf("%s/Tasks/%d", p.groupPath(), task)
}

// copied is the group in a copy of the job.
func (p *remedySearch) copied(j *structs.Job) *structs.TaskGroup { return j.TaskGroups[p.at] }

// relaxCount tries fewer instances.
func (p *remedySearch) relaxCount() {
	if p.x.in.Job.PerNode() || p.g.Count < 2 {
		return
	}
	alt := func(n int) alteration {
		return alteration{job: func(j *structs.Job) {
			g := p.copied(j)
			g.Count = n
			if g.Gang != nil {
				g.Gang.Min = min(g.Gang.Min, n)
			}
		}}
	}
	n := p.g.Count - p.before
	if n >= 1 {
		if queued, ok := p.try(alt(n)); !ok || queued > 0 {
			n = 0
		}
	}
	if n < 1 && (p.x.works[p.g.Name].Gang != nil || feasible.AllOrNone(p.x.in.Job)) { // all or nothing: less of it may do
		n = p.largest(p.g.Count-1, alt)
		p.starts = n
	}
	if n < 1 {
		return
	}
	edits := []structs.Edit{p.jobEdit(p.groupPath()+"/Count", p.g.Count, n)}
	if p.g.Gang != nil && p.g.Gang.Min > n {
		edits = append(edits, p.jobEdit(p.groupPath()+"/Gang/Min", p.g.Gang.Min, n))
	}
	p.note(0, structs.Remedy{
		Kind: structs.RemedyCount, Edits: edits, Size: float64(p.g.Count-n) / float64(p.g.Count),
		Text:   fmt.Sprintf("request %s of group %q instead of %d", decide.Instances(n), p.g.Name, p.g.Count),
		Places: max(0, n-(p.g.Count-p.before)),
	})
}

// largest finds the largest number up to most with which nobody waits; 0: none.
func (p *remedySearch) largest(most int, alt func(n int) alteration) int {
	return sort.Search(most, func(i int) bool {
		queued, ok := p.try(alt(i + 1))
		return !ok || queued > 0
	})
}

// relaxGangMin tries a smaller Min of the gang.
func (p *remedySearch) relaxGangMin() {
	if p.g.Gang == nil {
		return
	}
	least := cmp.Or(p.g.Gang.Min, p.g.Count)
	alt := func(n int) alteration {
		return alteration{job: func(j *structs.Job) { p.copied(j).Gang.Min = n }}
	}
	helps := func(n int) bool {
		queued, ok := p.try(alt(n))
		return ok && queued < p.before
	}
	n := min(p.starts, least-1) // as many as start where no more are wanted, mostly
	if n < 1 || !helps(n) || n < least-1 && helps(n+1) {
		n = sort.Search(least-1, func(i int) bool { return !helps(i + 1) })
	}
	if n < 1 {
		return
	}
	queued, ok := p.try(alt(n))
	if !ok {
		return
	}
	p.note(queued, structs.Remedy{
		Kind: structs.RemedyGangMin, Size: float64(least-n) / float64(least),
		Text:  fmt.Sprintf("let the gang of group %q begin with %s instead of %d", p.g.Name, decide.Instances(n), least),
		Edits: []structs.Edit{p.jobEdit(p.groupPath()+"/Gang/Min", p.g.Gang.Min, n)},
	})
}

// allowPreemption lets the job take from others: by the configuration, or by its priority.
func (p *remedySearch) allowPreemption() {
	job, config := p.x.in.Job, &p.x.in.Config
	on := func(c *structs.SchedulerConfiguration) {
		for t, field := range switches(&c.PreemptionConfig) { // one is set: the order cannot show
			if t == job.Type {
				*field = true
			}
		}
	}
	name := switchNames[job.Type]
	edit := structs.Edit{
		On: structs.EditConfig, Op: structs.EditReplace, Path: "/PreemptionConfig/" + name, Was: raw(false), Value: raw(true),
	}
	off := !config.Preempts(job.Type)
	if off && name != "" && p.check(alteration{config: on}, structs.Remedy{
		Kind: structs.RemedyPreemption, Size: 0.8, Edits: []structs.Edit{edit},
		Text: fmt.Sprintf("let %s jobs take from lower priority bands (PreemptionConfig.%s)", job.Type, name),
	}) {
		return
	}
	if off {
		return
	}
	p.allowPartialPreemption()
	for i, band := range config.PriorityBands() {
		if i <= config.Band(job.Priority) {
			continue
		}
		raise := alteration{job: func(j *structs.Job) { j.Priority = band.Low }}
		if p.check(raise, structs.Remedy{
			Kind: structs.RemedyPriority, Size: 0.7 + 0.1*float64(i-config.Band(job.Priority)),
			Edits: []structs.Edit{p.jobEdit("/Priority", job.Priority, band.Low)},
			Text:  fmt.Sprintf("raise the job's priority from %d to %d, so that it may take from the bands below", job.Priority, band.Low),
		}) {
			return
		}
	}
}

// allowPartialPreemption tries partial = "preempt" where the job states that it preempts less.
func (p *remedySearch) allowPartialPreemption() {
	was := p.x.in.Job.Partial
	if was != structs.PartialFree && was != structs.PartialNone {
		return
	}
	p.check(alteration{job: func(j *structs.Job) { j.Partial = structs.PartialPreempt }}, structs.Remedy{
		Kind: structs.RemedyPreemption, Size: 0.75,
		Edits: []structs.Edit{p.jobEdit("/Partial", was, structs.PartialPreempt)},
		Text:  fmt.Sprintf("let the job take from lower priority bands what it can (partial = \"preempt\", not %q)", was),
	})
}

// switchNames are the fields of PreemptionConfig by job type.
var switchNames = map[string]string{
	structs.JobTypeService: "ServiceSchedulerEnabled", structs.JobTypeBatch: "BatchSchedulerEnabled",
	structs.JobTypeSystem: "SystemSchedulerEnabled", structs.JobTypeSysBatch: "SysBatchSchedulerEnabled",
}

func switches(c *structs.PreemptionConfig) map[string]*bool {
	return map[string]*bool{
		structs.JobTypeService: &c.ServiceSchedulerEnabled, structs.JobTypeBatch: &c.BatchSchedulerEnabled,
		structs.JobTypeSystem: &c.SystemSchedulerEnabled, structs.JobTypeSysBatch: &c.SysBatchSchedulerEnabled,
	}
}

// unpause is the remedy while the configuration pauses all evaluations.
func unpause(missing int) structs.Remedy {
	return structs.Remedy{
		Kind: structs.RemedyUnpause, Text: "go on with evaluations (PauseEvalBroker)", Places: missing, All: true,
		Edits: []structs.Edit{{
			On: structs.EditConfig, Op: structs.EditReplace, Path: "/PauseEvalBroker", Was: raw(true), Value: raw(false),
		}},
	}
}
