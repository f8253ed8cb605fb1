package structs

import (
	"fmt"
	"slices"
	"strings"
)

// WorkflowLevel is a stage as it runs: jobs of which none depends on another one.
type WorkflowLevel struct {
	Name string
	Jobs []*WorkflowJob
	// Needs is what all its jobs need together.
	Needs WorkflowResources
}

// Levels returns the stages as they run. A stage whose jobs depend on each other is several, named after it with a number: in the first
// are its jobs that depend on none of it, in each further one those that depend on one before. It returns an error of CodeBadRequest if
// jobs wait for each other.
func (w *Workflow) Levels() ([]WorkflowLevel, error) {
	stageOf := map[string]int{}
	for i, s := range w.Stages {
		for _, j := range s.Jobs {
			stageOf[j.Name] = i
		}
	}
	jobs := w.Jobs()
	var out []WorkflowLevel
	for i, s := range w.Stages {
		l := leveller{jobs: jobs, stageOf: stageOf, stage: i, level: map[string]int{}, onPath: map[string]bool{}}
		most := 0
		for _, j := range s.Jobs {
			level, err := l.of(j)
			if err != nil {
				return nil, Errorf(CodeBadRequest, "workflow %q: stage %q: %w", clip(w.ID), clip(s.Name), err)
			}
			most = max(most, level)
		}
		levels := make([]WorkflowLevel, most+1)
		for k := range levels {
			levels[k].Name = s.Name
			if most > 0 {
				levels[k].Name = fmt.Sprintf("%s-%d", s.Name, k+1)
			}
		}
		for _, j := range s.Jobs {
			at := &levels[l.level[j.Name]]
			at.Jobs = append(at.Jobs, j)
			at.Needs.Add(j.Needs())
		}
		out = append(out, levels...)
	}
	return out, nil
}

// leveller finds the levels of the jobs of one stage.
type leveller struct {
	jobs    map[string]*WorkflowJob
	stageOf map[string]int
	stage   int
	level   map[string]int // of jobs that are done
	path    []string       // the jobs that lead to the one that is being looked at, each depending on the next
	onPath  map[string]bool
}

// of returns the level of a job of the stage.
func (l *leveller) of(j *WorkflowJob) (int, error) {
	if level, done := l.level[j.Name]; done {
		return level, nil
	}
	if l.onPath[j.Name] {
		return 0, drawCycle(append(slices.Clone(l.path[slices.Index(l.path, j.Name):]), j.Name))
	}
	l.path, l.onPath[j.Name] = append(l.path, j.Name), true
	level := 0
	for _, name := range j.DependsOn {
		switch {
		case l.stageOf[name] > l.stage:
			return 0, drawCycle(append(slices.Clone(l.path[len(l.path)-1:]), name, j.Name))
		case l.stageOf[name] == l.stage:
			before, err := l.of(l.jobs[name])
			if err != nil {
				return 0, err
			}
			level = max(level, before+1)
		}
	}
	l.path, l.onPath[j.Name] = l.path[:len(l.path)-1], false
	l.level[j.Name] = level
	return level, nil
}

// maxDrawnCycle bounds the jobs of a cycle that an error names.
const maxDrawnCycle = 12

// drawCycle returns the error of jobs that wait for each other.
func drawCycle(names []string) error {
	shown := names
	if len(names) > maxDrawnCycle {
		shown = append(slices.Clone(names[:maxDrawnCycle-1]), "…", names[len(names)-1])
	}
	return Errorf(CodeBadRequest, "depends_on: jobs wait for each other: %s", strings.Join(shown, " → ")).
		WithHint("→ is read as \"depends on\"; a job of a stage also depends on all jobs of the stages before it. Remove one of these dependencies")
}
