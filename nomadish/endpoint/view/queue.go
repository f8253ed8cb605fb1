package view

import (
	"context"
	"slices"

	"github.com/nomadish/nomadish/nomadish/queueview"
	"github.com/nomadish/nomadish/nomadish/rpc"
	"github.com/nomadish/nomadish/nomadish/state"
	"github.com/nomadish/nomadish/structs"
)

// maxQueueEntries bounds one page of the queue: about 600 bytes each.
const maxQueueEntries = 1000

func (e *Endpoint) queueList(ctx context.Context, args *structs.QueueRequest) (*structs.QueueReply, error) {
	if args.PerPage == 0 || args.PerPage > maxQueueEntries {
		args.PerPage = maxQueueEntries
	}
	reply := &structs.QueueReply{}
	return reply, e.Router.Query(ctx, &args.QueryOptions, &reply.QueryMeta, func(ws *state.WatchSet, snap *state.Snapshot) (uint64, error) {
		queueview.Watch(ws, snap)
		lines, err := e.queue.Lines(ctx, snap)
		if err != nil {
			return 0, err
		}
		if args.Reverse {
			lines = slices.Clone(lines)
			slices.Reverse(lines)
		} else {
			lines = queueview.From(lines, args.NextToken)
		}
		viewer := queueview.NewViewer(ws, snap, e.Now())
		f, _ := e.Forecasts.Last()
		var at *queueview.Line
		reply.Entries, err = rpc.Page(&args.QueryOptions, &reply.QueryMeta, func(yield func(*structs.QueueEntry) bool) {
			for _, at = range lines {
				if !queueview.Shows(at, args) {
					continue
				}
				entry := viewer.Entry(at)
				entry.Forecast = inQueue(f, at)
				if !yield(entry) {
					return
				}
			}
		}, func(*structs.QueueEntry) string { return at.Token() })
		return queueview.Index(snap), err
	})
}
