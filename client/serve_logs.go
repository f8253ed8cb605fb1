package client

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/logs"
	"github.com/nomadish/nomadish/structs"
)

// errLimit ends a log that was requested up to a limit.
var errLimit = errors.New("limit reached")

// readLog streams a task's log. A followed one ends when the task has ended for
// good and everything was sent.
func readLog(ctx context.Context, r *alloc.Runner, req *structs.FSRequest, send func(any) error) error {
	if r.Dir().Path() == "" {
		return structs.Errorf(structs.CodeUnsupported, "logs of task %q: a simulated task has none", req.Task)
	}
	if names := r.Tasks(); !slices.Contains(names, req.Task) {
		return structs.Errorf(structs.CodeNotFound, "task %q: not in this allocation; it has %q", req.Task, names)
	}
	src := logs.Source{Dir: r.Dir().Logs(), Task: req.Task, Stream: req.LogType}
	if src.Stream == "" {
		src.Stream = logs.Stdout
	}
	if err := src.Validate(); err != nil {
		return structs.Errorf(structs.CodeBadRequest, "%w", err)
	}
	opts := logs.Options{Origin: req.Origin, Offset: req.Offset, Done: r.TaskDead(req.Task)}
	left := req.Limit
	frame := func(c logs.Chunk) error {
		data := c.Data
		if req.Limit > 0 && int64(len(data)) > left {
			data = data[:left]
		}
		left -= int64(len(data))
		if err := send(&structs.StreamFrame{Offset: c.Offset, Data: data, File: "alloc/logs/" + c.File}); err != nil {
			return err
		}
		if req.Limit > 0 && left == 0 {
			return errLimit
		}
		return nil
	}
	var err error
	if req.Follow {
		err = logs.Follow(ctx, src, opts, frame)
	} else {
		err = logs.Read(ctx, src, opts, frame)
	}
	switch {
	case errors.Is(err, errLimit):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return structs.Errorf(structs.CodeNotFound, "%w", err)
	}
	return err
}
