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
	place  uint64  // of the latest, from 1 on; 0: nothing has moved yet
}

// batch is what has moved with one forecast. Several may be of one state, so that its index is no place among them.
type batch struct {
	place uint64
	moves []*structs.ForecastMove
}

func newMoves() *moves { return &moves{stated: map[structs.RequestName]*structs.RequestForecast{}} }

// add takes in a forecast after the one that was before; nil: it is the first.
func (m *moves) add(was, is *structs.Forecast) {
	b, stated := batch{place: m.place + 1}, make(map[structs.RequestName]*structs.RequestForecast, len(is.Requests))
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
	m.kept, m.place = append(m.kept, b), b.place
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

// Moved waits until a forecast has moved latest starts of groups by more than a tenth of their wait and a minute after those that the caller has seen, and
// returns those moves, which must not be changed, with where to go on from, which is not 0. From 0 on it begins with the next such forecast. The error is ctx's.
func (s *Service) Moved(ctx context.Context, from uint64) ([]*structs.ForecastMove, uint64, error) {
	if !s.opts.On {
		<-ctx.Done()
		return nil, from, ctx.Err()
	}
	defer s.want()()
	for {
		s.mu.Lock()
		changed := s.changed
		if from == 0 {
			from = s.moves.place + 1
		}
		out, next := s.moves.from(from)
		s.mu.Unlock()
		if len(out) > 0 {
			return out, next, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, from, ctx.Err()
		}
	}
}

// from returns the moves from a place on, and that after them.
func (m *moves) from(place uint64) (out []*structs.ForecastMove, next uint64) {
	for _, b := range m.kept {
		if b.place >= place {
			out = append(out, b.moves...)
		}
	}
	return out, m.place + 1
}
