package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/internal/printable"
	"github.com/nomadish/nomadish/structs"
)

// jobOfWorkflow returns the error of a command that has not found a job: where the name is that of a job of a workflow, WORKFLOW/RUN/JOB, which is
// not registered yet or no more, it states what becomes of it instead of err; where it is the short name of one, which the error names.
func (r workflowReader) jobOfWorkflow(ctx context.Context, id string, err error) error {
	e := r.e
	parts := strings.Split(id, "/")
	if len(parts) == 1 {
		return r.byShortName(ctx, id, err)
	}
	if len(parts) != 3 {
		return err
	}
	run, bad := strconv.Atoi(parts[1])
	if bad != nil {
		return err
	}
	q := e.query()
	q.Prefix = parts[0]
	list, _, failed := e.client.Workflows().List(ctx, q)
	i := slices.IndexFunc(list, func(w *structs.WorkflowStub) bool { return w.ID == parts[0] })
	if failed != nil || i < 0 {
		return err
	}
	w, _, failed := e.client.Workflows().Info(ctx, list[i].ID, &api.Query{Namespace: list[i].Namespace})
	if failed != nil {
		return err
	}
	return fmt.Errorf("%s; `nomadish workflow status %s%s` shows the workflow", unregisteredText(w, run, parts[2]), inNamespace(w.Namespace), shellWord(w.ID))
}

// byShortName adds the IDs of jobs of workflows to the error of a command that has not found a job by the name that they have in their workflows.
func (r workflowReader) byShortName(ctx context.Context, name string, err error) error {
	list, _, failed := r.e.client.Jobs().List(ctx, r.e.query())
	if failed != nil {
		return err
	}
	var ids []string
	for _, j := range list {
		if strings.Count(j.ID, "/") == 2 && strings.HasSuffix(j.ID, "/"+name) {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) == 0 {
		return err
	}
	return fmt.Errorf("%w; jobs of workflows are named WORKFLOW/RUN/JOB, as %s", err, printable.EscapeLine(listedUpTo(ids, 6)))
}

// unregisteredText states why a job of a run of a workflow is not registered.
func unregisteredText(w *structs.WorkflowStatus, run int, job string) string {
	of := fmt.Sprintf("job %q of workflow %q, run %d", job, w.ID, run)
	if run != w.Run {
		return fmt.Sprintf("no %s is registered: the last run is %d, and jobs of earlier ones are deleted some time after their end", of, w.Run)
	}
	for i, s := range w.Stages {
		k := slices.IndexFunc(s.Jobs, func(j structs.WorkflowJobStatus) bool { return j.Name == job })
		switch {
		case k < 0:
			continue
		case w.EndTime != 0 && s.Jobs[k].Attempt == 0:
			return fmt.Sprintf("%s was never registered: the run %s, and stage %q has not started", of, becameText(w.State), s.Name)
		case s.Jobs[k].Attempt > 0:
			return fmt.Sprintf("%s, of stage %q, %s, and is not registered any more", of, s.Name, becameText(s.Jobs[k].State))
		case w.State == structs.WorkflowPaused:
			return fmt.Sprintf("%s is not registered yet: the run is paused, in stage %d of %d, and `nomadish workflow resume %s%s` lets it go on",
				of, w.Stage, len(w.Stages), inNamespace(w.Namespace), shellWord(w.ID))
		case i+1 == w.Stage && w.StartTime != 0:
			return fmt.Sprintf("%s is not registered yet: its stage %q starts", of, s.Name)
		case w.StartTime != 0:
			return fmt.Sprintf("%s is not registered yet: it is registered when its stage %q starts; the run %s, in stage %d of %d", of, s.Name, becameText(w.State), w.Stage, len(w.Stages))
		}
		return fmt.Sprintf("%s is not registered yet: the run %s%s", of, becameText(w.State), reasonText(w.Missing))
	}
	return fmt.Sprintf("workflow %q has no job %q", w.ID, job)
}
