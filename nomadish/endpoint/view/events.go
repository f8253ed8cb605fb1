package view

import (
	"context"

	"github.com/nomadish/nomadish/internal/codec"
	"github.com/nomadish/nomadish/nomadish/events"
	"github.com/nomadish/nomadish/structs"
)

// eventStream sends what changes, as it is committed, until the caller goes away. Its first answer has no events: it states that
// the stream is open. A stream that requests no index, or for one which is no longer kept, starts with the first commit that is kept.
func (e *Endpoint) eventStream(ctx context.Context, args *structs.EventStreamRequest, send func(any) error) error {
	wanted, err := events.NewFilter(args.Topics, args.Namespace)
	if err != nil {
		return err
	}
	after := args.Index
	if after > 0 {
		after--
	}
	feed := e.Router.Store.FeedKept(after)
	if err := send(codec.Given{V: &structs.Events{}}); err != nil {
		return err
	}
	for {
		changes, err := feed.Next(ctx)
		if ctx.Err() != nil {
			return ctx.Err() // the caller went away, or we end: nobody reads the answer
		}
		if err != nil {
			return structs.Errorf(structs.CodeStaleRequest, "event stream: %w", err).
				WithHint("it was read too slowly; open it again from the last index that you saw")
		}
		if out := wanted.Events(changes); len(out.Events) > 0 {
			if err := send(codec.Given{V: &out}); err != nil { // what it points to the state never changes, nor does the stream's reader
				return err
			}
		}
	}
}
