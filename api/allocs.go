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

// AllocList lists allocations.
func (c *Client) AllocList(ctx context.Context, q *Query) (allocs []*structs.AllocListStub, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/allocations", q, &allocs)
	return allocs, meta, err
}

// Alloc reads an allocation with its job.
func (c *Client) Alloc(ctx context.Context, id string, q *Query) (alloc *structs.Allocation, meta Meta, err error) {
	meta, err = c.Get(ctx, "/v1/allocation/"+seg(id), q, &alloc)
	return alloc, meta, err
}

// AllocStop stops an allocation; its job places another.
func (c *Client) AllocStop(ctx context.Context, id string, noShutdownDelay bool) (reply *structs.AllocStopReply, err error) {
	q := (&Query{}).with("no_shutdown_delay", strconv.FormatBool(noShutdownDelay))
	_, err = c.Put(ctx, "/v1/allocation/"+seg(id)+"/stop", q, nil, &reply)
	return reply, err
}

// AllocRestart restarts an allocation's tasks, or the one named.
func (c *Client) AllocRestart(ctx context.Context, id, task string, all bool) error {
	_, err := c.Put(ctx, "/v1/client/allocation/"+seg(id)+"/restart", nil, map[string]any{"TaskName": task, "AllTasks": all}, nil)
	return err
}

// AllocSignal signals an allocation's tasks, or the one named.
func (c *Client) AllocSignal(ctx context.Context, id, task, signal string) error {
	_, err := c.Put(ctx, "/v1/client/allocation/"+seg(id)+"/signal", nil, map[string]any{"Task": task, "Signal": signal}, nil)
	return err
}

// AllocStats reads an allocation's use of resources.
func (c *Client) AllocStats(ctx context.Context, id string) (stats *structs.AllocResourceUsage, err error) {
	_, err = c.Get(ctx, "/v1/client/allocation/"+seg(id)+"/stats", nil, &stats)
	return stats, err
}

// FSList lists a directory of an allocation.
func (c *Client) FSList(ctx context.Context, id, path string) (files []*structs.AllocFileInfo, err error) {
	_, err = c.Get(ctx, "/v1/client/fs/ls/"+seg(id), (&Query{}).with("path", path), &files)
	return files, err
}

// FSStat reads a file's facts.
func (c *Client) FSStat(ctx context.Context, id, path string) (info *structs.AllocFileInfo, err error) {
	_, err = c.Get(ctx, "/v1/client/fs/stat/"+seg(id), (&Query{}).with("path", path), &info)
	return info, err
}

// FSCat reads a file; the caller closes it.
func (c *Client) FSCat(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.Raw(ctx, "/v1/client/fs/cat/"+seg(id), (&Query{}).with("path", path))
}

// LogOptions says what of a task's log is wanted.
type LogOptions struct {
	Task   string
	Type   string // stdout or stderr
	Follow bool
	Origin string // start or end
	Offset int64  // bytes from the origin
}

// Logs copies a task's log to w, until its end, or for ever when following.
func (c *Client) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	q := &Query{Params: map[string]string{
		"task": o.Task, "type": o.Type, "follow": strconv.FormatBool(o.Follow), "origin": o.Origin, "offset": fmt.Sprint(o.Offset),
	}}
	return c.frames(ctx, "/v1/client/fs/logs/"+seg(id), q, w)
}

// FSStream copies a file to w from offset bytes after its start, or before its
// end (origin "end"), and, following, goes on as it grows.
func (c *Client) FSStream(ctx context.Context, id, path, origin string, offset int64, follow bool, w io.Writer) error {
	q := &Query{Params: map[string]string{
		"path": path, "origin": origin, "offset": fmt.Sprint(offset), "follow": strconv.FormatBool(follow),
	}}
	return c.frames(ctx, "/v1/client/fs/stream/"+seg(id), q, w)
}

func (c *Client) frames(ctx context.Context, path string, q *Query, w io.Writer) error {
	body, err := c.Raw(ctx, path, q)
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
