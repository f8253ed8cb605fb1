package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
)

// headerWait is how long a stream's answer is held back for its first item, so
// that an error which comes at once gets a status of its own.
const headerWait = 200 * time.Millisecond

// item is what a stream delivered next.
type item[T any] struct {
	value T
	err   error // io.EOF at its end
}

// receive reads a stream on a goroutine of its own and delivers its items one by one,
// ahead of who takes them by so many. stop ends both and waits for the goroutine.
func receive[T any](ctx context.Context, from wire.Receiver, ahead int) (items <-chan item[T], stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, done := make(chan item[T], ahead), make(chan struct{})
	go func() { // ends with the stream, or when stop closes it
		defer close(done)
		for {
			var it item[T]
			it.err = from.Recv(&it.value)
			select {
			case out <- it:
			case <-ctx.Done():
				return
			}
			if it.err != nil {
				return
			}
		}
	}()
	return out, func() {
		cancel()
		from.Close()
		<-done
	}
}

// relay passes a stream's items to write until the stream or the request ends.
// While nothing comes, beat is called every interval, and once after headerWait;
// nil: no heartbeats, and the answer waits for the first item however long it takes. Up to ahead items that come faster than
// the caller reads are sent with the one before them: each sending is a packet, and wakes it.
func relay[T any](r *request, from wire.Receiver, ahead int, interval time.Duration, write func(T) error, beat func() error) error {
	items, stop := receive[T](r.Context(), from, ahead)
	defer stop()
	ctl := http.NewResponseController(r.w)
	timer := time.NewTimer(min(headerWait, interval))
	defer timer.Stop()
	tick := timer.C
	if beat == nil {
		tick = nil
	}
	take := func(it item[T]) error {
		if it.err != nil {
			return it.err
		}
		return write(it.value)
	}
	for {
		var err error
		select {
		case it := <-items:
			err = take(it)
			for n := 0; n < ahead && err == nil && len(items) > 0; n++ {
				err = take(<-items)
			}
		case <-tick:
			err = beat()
		case <-r.Context().Done():
			err = r.Context().Err()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctl.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		timer.Reset(interval)
	}
}

// writeJSON writes one JSON value and what separates it from the next.
func (r *request) writeJSON(v any, end string) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(raw, end...))
	return err
}
