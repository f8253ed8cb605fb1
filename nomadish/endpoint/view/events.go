package view

import (
	"context"
	"sync"

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
	sent := sender{send: send}
	if wanted.Forecasts() {
		var moving sync.WaitGroup
		defer moving.Wait()
		followed, cancel := context.WithCancel(ctx)
		defer cancel()
		moving.Go(func() { e.sendMoves(followed, wanted, &sent) })
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
			if err := sent.events(&out); err != nil { // what it points to the state never changes, nor does the stream's reader
				return err
			}
		}
	}
}

// sender sends the events of several sources, those of one call together. It is safe for use by many goroutines.
type sender struct {
	mu   sync.Mutex
	send func(any) error
	last uint64 // the index of what was sent last
}

// events sends events. Their index is not before that of what was sent already: of a forecast, which is of an earlier state than the newest, it may be.
func (s *sender) events(out *structs.Events) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, out.Index)
	out.Index = s.last
	return s.send(codec.Given{V: out})
}

// sendMoves sends events of latest starts that move, until ctx ends or the caller goes away. None is kept for later: a stream begins with the next.
func (e *Endpoint) sendMoves(ctx context.Context, wanted *events.Filter, to *sender) {
	from := uint64(0)
	for {
		moves, next, err := e.Forecasts.Moved(ctx, from)
		if err != nil {
			return
		}
		from = next
		if out := wanted.Moves(moves); len(out.Events) > 0 && to.events(&out) != nil {
			return // the stream's other source finds out that the caller went away
		}
	}
}
