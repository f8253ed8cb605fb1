package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/nomadish/nomadish/structs"
)

// List lists allocations.
func (a Allocations) List(ctx context.Context, q *Query) (allocs []*structs.AllocListStub, meta Meta, err error) {
	meta, err = a.client.Get(ctx, "/v1/allocations", q, &allocs)
	return allocs, meta, err
}

// Info reads an allocation with its job.
func (a Allocations) Info(ctx context.Context, id string, q *Query) (alloc *structs.Allocation, meta Meta, err error) {
	meta, err = a.client.Get(ctx, "/v1/allocation/"+seg(id), q, &alloc)
	return alloc, meta, err
}

// Stop stops an allocation; its job places another.
func (a Allocations) Stop(ctx context.Context, id string, noShutdownDelay bool) (reply *structs.AllocStopReply, err error) {
	q := (&Query{}).with("no_shutdown_delay", strconv.FormatBool(noShutdownDelay))
	_, err = a.client.Put(ctx, "/v1/allocation/"+seg(id)+"/stop", q, nil, &reply)
	return reply, err
}

// Restart restarts an allocation's tasks, or the one named.
func (a Allocations) Restart(ctx context.Context, id, task string, all bool) error {
	_, err := a.client.Put(ctx, "/v1/client/allocation/"+seg(id)+"/restart", nil, map[string]any{"TaskName": task, "AllTasks": all}, nil)
	return err
}

// Signal signals an allocation's tasks, or the one named.
func (a Allocations) Signal(ctx context.Context, id, task, signal string) error {
	_, err := a.client.Put(ctx, "/v1/client/allocation/"+seg(id)+"/signal", nil, map[string]any{"Task": task, "Signal": signal}, nil)
	return err
}

// Stats reads an allocation's use of resources.
func (a Allocations) Stats(ctx context.Context, id string) (stats *structs.AllocResourceUsage, err error) {
	_, err = a.client.Get(ctx, "/v1/client/allocation/"+seg(id)+"/stats", nil, &stats)
	return stats, err
}

// List lists a directory of an allocation.
func (a AllocFS) List(ctx context.Context, id, path string) (files []*structs.AllocFileInfo, err error) {
	_, err = a.client.Get(ctx, "/v1/client/fs/ls/"+seg(id), (&Query{}).with("path", path), &files)
	return files, err
}

// Stat reads a file's facts.
func (a AllocFS) Stat(ctx context.Context, id, path string) (info *structs.AllocFileInfo, err error) {
	_, err = a.client.Get(ctx, "/v1/client/fs/stat/"+seg(id), (&Query{}).with("path", path), &info)
	return info, err
}

// Cat reads a file; the caller closes it.
func (a AllocFS) Cat(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return a.client.Raw(ctx, "/v1/client/fs/cat/"+seg(id), (&Query{}).with("path", path))
}

// LogOptions specifies what of a task's log is wanted.
type LogOptions struct {
	Task   string
	Type   string // stdout or stderr
	Follow bool
	Origin string // start or end
	Offset int64  // bytes from the origin
}

// Logs copies a task's log to w, until its end, or for ever when following.
func (a AllocFS) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	q := &Query{Params: map[string]string{
		"task": o.Task, "type": o.Type, "follow": strconv.FormatBool(o.Follow), "origin": o.Origin, "offset": fmt.Sprint(o.Offset),
	}}
	return a.client.AllocFS().frames(ctx, "/v1/client/fs/logs/"+seg(id), q, w)
}

// Stream copies a file to w from offset bytes after its start, or before its
// end (origin "end"), and, following, goes on as it grows.
func (a AllocFS) Stream(ctx context.Context, id, path, origin string, offset int64, follow bool, w io.Writer) error {
	q := &Query{Params: map[string]string{
		"path": path, "origin": origin, "offset": fmt.Sprint(offset), "follow": strconv.FormatBool(follow),
	}}
	return a.client.AllocFS().frames(ctx, "/v1/client/fs/stream/"+seg(id), q, w)
}

func (a AllocFS) frames(ctx context.Context, path string, q *Query, w io.Writer) error {
	body, err := a.client.Raw(ctx, path, q)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // read only
	dec := json.NewDecoder(body)
	for {
		var f structs.StreamFrame
		if err := streamed(dec, body, &f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		if _, err := w.Write(f.Data); err != nil {
			return err
		}
	}
}
