package forecast

import (
	"time"

	"github.com/nomadish/nomadish/structs"
)

// latestOf returns the latest starts of what a forecast is of, as the run by time limits has them, but none before that which is expected. Where others end early,
// some start later than if all took their time: the gap in which they were to pass a job that ranks higher is gone, as that starts first. So neither run alone
// bounds the starts, and a start at the latest that is expected to be exceeded would be none.
func latestOf(at, then *starts) starts {
	out := starts{make([]structs.StartForecast, len(at.groups)), make([]structs.WorkflowStartForecast, len(at.runs)), at.until}
	for i := range at.groups {
		out.groups[i] = laterStart(at.groups[i], &then.groups[i], then.until)
	}
	for i := range at.runs {
		out.runs[i] = laterRun(at.runs[i], &then.runs[i], then.until)
	}
	return out
}

// laterStart returns when a group starts at the latest, that is expected to start then by a run that went on until a time.
func laterStart(s structs.StartForecast, then *structs.StartForecast, until time.Time) structs.StartForecast {
	s.First = laterTime(s.First, then.First, until)
	if all := laterTime(s.All, then.All, until); all != s.All {
		s.All, s.Unknown, s.WaitsFor = all, then.Unknown, then.WaitsFor
	}
	return s
}

// laterRun is laterStart for a run of a workflow.
func laterRun(s structs.WorkflowStartForecast, then *structs.WorkflowStartForecast, until time.Time) structs.WorkflowStartForecast {
	changed := false
	later := func(at, then int64) int64 {
		t := laterTime(at, then, until)
		changed = changed || t != at && t == 0
		return t
	}
	if start := later(s.Start, then.Start); start != s.Start {
		s.Start, s.WaitsFor = start, then.WaitsFor
	}
	stages := make([]structs.StageForecast, 0, len(s.Stages))
	for i, stage := range s.Stages {
		if i < len(then.Stages) {
			stage.Start, stage.End = later(stage.Start, then.Stages[i].Start), later(stage.End, then.Stages[i].End)
		}
		stages = append(stages, stage)
	}
	if len(stages) > 0 {
		s.Stages = stages
	}
	if changed && s.Unknown == "" {
		s.Unknown = then.Unknown
	}
	return s
}

// laterTime returns the later one of two times, of which each may be unknown (0). What a run has not seen until after the other time is later than that, and
// nobody knows by how much.
func laterTime(at, then int64, until time.Time) int64 {
	switch {
	case at == 0:
		return 0
	case then == 0 && until.UnixNano() > at:
		return 0
	}
	return max(at, then)
}
