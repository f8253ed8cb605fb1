package tracefile

import (
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// Order is in which order the rows of a trace arrive, by seed: nobody leaves.
type Order map[uint64][]int32

// maxOrder bounds the rows of an order.
const maxOrder = 50_000_000

var orderColumns = []column{{"seed", true}, {"pos", true}, {"row", true}}

// OpenOrder reads the arrival orders of a trace of so many rows: columns seed, pos (from
// 0 for each seed) and row (of the trace, from 0).
func OpenOrder(path string, rows int) (Order, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return readOrder(path, f, rows)
}

func readOrder(path string, r io.Reader, rows int) (Order, error) {
	t, err := newTable(path, r, orderColumns)
	if err != nil {
		return nil, err
	}
	out, n := Order{}, 0
	for {
		more, err := t.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		seed := uint64(t.whole("seed", 0, 0, 1<<53)) // not negative
		pos, row := t.whole("pos", -1, 0, maxOrder), t.whole("row", -1, 0, rows-1)
		switch {
		case t.err != nil:
		case pos != len(out[seed]):
			t.fail("pos", "pos %d: must be %d, the next of seed %d", pos, len(out[seed]), seed)
		case row < 0:
			t.fail("row", "row: must be stated")
		}
		if t.err != nil {
			return nil, t.err
		}
		if n++; n > maxOrder {
			return nil, fmt.Errorf("%s:%d: over %d rows; use fewer seeds", path, t.line(), maxOrder)
		}
		out[seed] = append(out[seed], int32(row)) // below maxOrder
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: has no rows after the names of its columns", path)
	}
	return out, nil
}

// InOrder returns the rows of a trace in an order, a second apart.
func (t *Trace) InOrder(order []int32) iter.Seq2[*trace.Row, error] {
	return func(yield func(*trace.Row, error) bool) {
		for pos, at := range order {
			if !yield(t.leftAlone(int(at), pos), nil) {
				return
			}
		}
	}
}

// leftAlone is a row that arrives at a place in an order and does not leave.
func (t *Trace) leftAlone(at, pos int) *trace.Row {
	row := *t.list[at]
	row.Arrival, row.Duration = time.Duration(pos)*time.Second, trace.Forever
	return &row
}

// Drawn returns the rows of a trace in an order drawn by a seed, all of them again and
// again in new orders, without end.
func (t *Trace) Drawn(seed uint64) iter.Seq2[*trace.Row, error] {
	return func(yield func(*trace.Row, error) bool) {
		state := seed
		order := make([]int, len(t.list))
		for i := range order {
			order[i] = i
		}
		for pos := 0; ; {
			for i := len(order) - 1; i > 0; i-- {
				k := int(splitmix(&state) % uint64(i+1)) // at most i
				order[i], order[k] = order[k], order[i]
			}
			for _, at := range order {
				if !yield(t.leftAlone(at, pos), nil) {
					return
				}
				pos++
			}
		}
	}
}

// splitmix is SplitMix64 (Steele, Lea and Flood 2014).
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
