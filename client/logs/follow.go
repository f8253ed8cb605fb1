package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// pollInterval is how often a follower looks by itself where the kernel has no
// file watch left to give (fs.inotify.max_user_instances).
const pollInterval = 250 * time.Millisecond

// Options select which part of a stream is read.
type Options struct {
	// Origin is OriginStart (also when empty) or OriginEnd.
	Origin string
	// Offset is in bytes from Origin, see OpenReader.
	Offset int64
	// Done ends a Follow: once it is closed, what there still is is read and
	// Follow returns nil. nil follows until the context ends.
	Done <-chan struct{}
}

// Read calls fn with each piece from the options' place to the stream's end at
// the moment. It returns an error that wraps os.ErrNotExist if the stream has no
// file, fn's error if fn fails, or ctx's.
func Read(ctx context.Context, src Source, opts Options, fn func(Chunk) error) error {
	r, err := OpenReader(src, opts.Origin, opts.Offset)
	if err != nil {
		return err
	}
	files, err := src.Files()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s of task %q: %w: it has not started here, or its logs are switched off or collected",
			src.Stream, src.Task, os.ErrNotExist)
	}
	return errors.Join(drain(ctx, r, fn), r.Close())
}

// Follow calls fn with each piece from the options' place on, and goes on as the
// stream grows and its files rotate, until ctx ends (its error is returned), fn
// fails (fn's error is returned) or the options' Done is closed. The directory
// must exist; the stream's files may come later.
func Follow(ctx context.Context, src Source, opts Options, fn func(Chunk) error) error {
	// Watch first, then read: what is written in between wakes the loop.
	wake, stop, err := watch(src)
	if err != nil {
		return err
	}
	defer stop()
	r, err := OpenReader(src, opts.Origin, opts.Offset)
	if err != nil {
		return err
	}
	for done := false; ; {
		if err := drain(ctx, r, fn); err != nil {
			return errors.Join(err, r.Close())
		}
		if done {
			return r.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), r.Close())
		case <-opts.Done:
			done = true
		case <-wake:
		}
	}
}

// drain sends everything up to the stream's end.
func drain(ctx context.Context, r *Reader, fn func(Chunk) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(c); err != nil {
			return err
		}
	}
}

// watch returns a channel that has a token whenever a file of the stream may
// have changed since the last one was taken.
func watch(src Source) (wake <-chan struct{}, stop func(), err error) {
	if err := src.Validate(); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(src.Dir); err != nil {
		return nil, nil, fmt.Errorf("log directory: %w", err)
	}
	tokens := make(chan struct{}, 1)
	quit := make(chan struct{})
	finished := make(chan struct{})
	if w := newWatcher(src.Dir); w != nil {
		go watchLoop(w, src, tokens, finished)
		return tokens, func() { _ = w.Close(); <-finished }, nil
	}
	go pollLoop(tokens, quit, finished)
	return tokens, func() { close(quit); <-finished }, nil
}

// newWatcher watches a directory; nil if the kernel has no watch to give.
func newWatcher(dir string) *fsnotify.Watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	if w.Add(dir) != nil {
		_ = w.Close()
		return nil
	}
	return w
}

// watchLoop turns file events into tokens until the watcher is closed.
func watchLoop(w *fsnotify.Watcher, src Source, tokens chan<- struct{}, finished chan<- struct{}) {
	defer close(finished)
	for {
		select {
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			if _, mine := src.index(filepath.Base(ev.Name)); !mine {
				continue
			}
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
			// An overflow of the kernel's queue: events were lost, so look.
		}
		select {
		case tokens <- struct{}{}:
		default:
		}
	}
}

// pollLoop sends a token now and then until quit is closed.
func pollLoop(tokens chan<- struct{}, quit <-chan struct{}, finished chan<- struct{}) {
	defer close(finished)
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		select {
		case <-quit:
			return
		case <-t.C:
			select {
			case tokens <- struct{}{}:
			default:
			}
		}
	}
}
