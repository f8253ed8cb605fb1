package forecasts

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/structs"
)

const (
	// A latest start has moved when it is another by more than a tenth of the wait for it, and by more than a minute.
	movedPart  = 10
	leastMoved = time.Minute
	// keptMoves is how many forecasts' moves are kept for those who read them.
	keptMoves = 16
)

// moves are by how much latest starts have moved, for the event stream.
type moves struct {
	// stated is the latest start of each group as it was last stated: of small moves the sum counts.
	stated map[structs.RequestName]*structs.RequestForecast
	kept   []batch // the latest last
}

// batch is what has moved with one forecast.
type batch struct {
	index uint64
	moves []*structs.ForecastMove
}

func newMoves() *moves { return &moves{stated: map[structs.RequestName]*structs.RequestForecast{}} }

// add takes in a forecast after the one that was before; nil: it is the first.
func (m *moves) add(was, is *structs.Forecast) {
	b, stated := batch{index: is.Index}, make(map[structs.RequestName]*structs.RequestForecast, len(is.Requests))
	for _, r := range is.Groups() {
		name := r.Name()
		before := m.stated[name]
		switch {
		case before == nil:
			before = r
		case moved(before.Latest.All, r.Latest.All, is.Time):
			b.moves = append(b.moves, &structs.ForecastMove{Index: is.Index, Time: is.Time, Was: before.Latest.All, Forecast: r})
			before = r
		}
		stated[name] = before
	}
	m.stated = stated
	if len(b.moves) == 0 || was == nil {
		return
	}
	m.kept = append(m.kept, b)
	if len(m.kept) > keptMoves {
		m.kept = append([]batch(nil), m.kept[len(m.kept)-keptMoves:]...)
	}
}

// moved reports whether a start has moved by enough to be stated. 0: it is not known.
func moved(was, is, now int64) bool {
	if was == 0 || is == 0 {
		return was != is
	}
	by := max(was-is, is-was)
	return by > int64(leastMoved) && by > max(0, was-now)/movedPart
}

// Moved waits until a forecast of a state after an index has moved latest starts of groups by more than a tenth of their wait and a minute, and returns
// those moves, which must not be changed, with the index to go on from. With index 0 it begins with the next such forecast. The error is ctx's.
func (s *Service) Moved(ctx context.Context, after uint64) ([]*structs.ForecastMove, uint64, error) {
	if !s.opts.On {
		<-ctx.Done()
		return nil, after, ctx.Err()
	}
	defer s.want()()
	for {
		s.mu.Lock()
		changed := s.changed
		if after == 0 {
			after = s.moves.latest()
		}
		out, index := s.moves.after(after)
		s.mu.Unlock()
		if len(out) > 0 {
			return out, index, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, after, ctx.Err()
		}
	}
}

// latest returns the index of the latest forecast that moved something; 1: none has.
func (m *moves) latest() uint64 {
	if len(m.kept) == 0 {
		return 1
	}
	return m.kept[len(m.kept)-1].index
}

// after returns the moves of forecasts after an index.
func (m *moves) after(index uint64) (out []*structs.ForecastMove, last uint64) {
	last = index
	for _, b := range m.kept {
		if b.index > index {
			out, last = append(out, b.moves...), b.index
		}
	}
	return out, last
}
