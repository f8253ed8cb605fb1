package stages

import (
	"slices"

	"github.com/nomadish/nomadish/structs"
)

// Advance returns a run as an entry moves it on at a time in Unix nanoseconds, and the jobs that the entry registers, in its order. The run
// itself stays as it is.
func Advance(was *structs.WorkflowRun, e *structs.WorkflowAdvanceEntry, at int64) (now *structs.WorkflowRun, register []*structs.Job, err error) {
	if err := checkMoves(was, e); err != nil {
		return nil, nil, err
	}
	now = was.Copy()
	now.State, now.Stage, now.Closed = e.State, e.Stage, false
	edited := map[int]*structs.WorkflowRunStage{}
	edit := func(i int) *structs.WorkflowRunStage {
		if edited[i] == nil {
			edited[i] = now.EditStage(i)
		}
		return edited[i]
	}
	for _, m := range e.Stages {
		moveStage(edit(m.Stage), m, at)
	}
	jobs := now.Workflow.Jobs()
	for _, m := range e.Jobs {
		stage := edit(m.Stage)
		j := &stage.Jobs[m.Job]
		if moveJob(j, m, at); m.Register {
			register = append(register, now.JobOf(stage, jobs[j.Name], j.Attempt))
		}
	}
	if now.State != structs.WorkflowPending && now.StartTime == 0 {
		now.StartTime = at
	}
	if !now.Alive() {
		now.EndTime = at
		now.Parts, now.Licenses, now.Posted, now.Missing, now.Keeps = nil, nil, false, "", nil
	}
	return now, register, nil
}

// checkMoves returns an error if an entry names what the run does not have.
func checkMoves(r *structs.WorkflowRun, e *structs.WorkflowAdvanceEntry) error {
	bad := structs.Errorf(structs.CodeInternal, "workflow %q: an entry moves what its run %d does not have", e.ID, e.Run)
	if !slices.Contains(structs.WorkflowStates(), e.State) || e.Stage < 0 || e.Stage > len(r.Stages) || !r.Alive() {
		return bad
	}
	for _, m := range e.Stages {
		if m.Stage < 0 || m.Stage >= len(r.Stages) {
			return bad
		}
	}
	for _, m := range e.Jobs {
		if m.Stage < 0 || m.Stage >= len(r.Stages) || m.Job < 0 || m.Job >= len(r.Stages[m.Stage].Jobs) {
			return bad
		}
	}
	return nil
}

func moveStage(s *structs.WorkflowRunStage, m structs.WorkflowStageMove, at int64) {
	s.State = m.State
	if m.Start {
		s.Attempt++
		s.Reclaimed += m.Reclaimed
		s.Start, s.End = at, 0
		for i := range s.Jobs {
			s.Jobs[i].Retried = 0
		}
	}
	if Over(m.State) {
		s.End = at
	}
}

func moveJob(j *structs.WorkflowRunJob, m structs.WorkflowJobMove, at int64) {
	j.State = m.State
	switch {
	case m.Register:
		j.Attempt++
		j.Start, j.End = at, 0
		if m.Retry {
			j.Retried++
		}
	case Over(m.State):
		j.End = at
	}
}

// Over reports whether a state of a stage or a job is an end.
func Over(state string) bool {
	return state == structs.StageComplete || state == structs.StageFailed
}

// Registers returns the stage of which an entry registers jobs, and which; -1: of none, or of several.
func Registers(entry *structs.WorkflowAdvanceEntry) (stage int, jobs []int) {
	stage = -1
	for _, m := range entry.Jobs {
		switch {
		case !m.Register:
			continue
		case stage >= 0 && m.Stage != stage:
			return -1, nil
		}
		stage, jobs = m.Stage, append(jobs, m.Job)
	}
	return stage, jobs
}

// SetReclaimed states how many borrowers leave for a stage that an entry starts.
func SetReclaimed(entry *structs.WorkflowAdvanceEntry, stage, count int) {
	for i := range entry.Stages {
		if m := &entry.Stages[i]; m.Stage == stage && m.Start {
			m.Reclaimed = count
		}
	}
}
