package mock

import (
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/logs"
)

// logDest is where a task's words go; an empty Dir: nowhere.
type logDest struct {
	Dir, Task string `json:",omitempty"`
	MaxFiles  int    `json:",omitempty"`
	MaxBytes  int64  `json:",omitempty"`
}

func logDestOf(task *driver.TaskConfig) logDest {
	if task.Logs.Disabled || task.LogDir == "" {
		return logDest{}
	}
	p := logDest{Dir: task.LogDir, Task: task.Name, MaxFiles: task.Logs.MaxFiles, MaxBytes: int64(task.Logs.MaxFileSizeMB) << 20}
	if p.MaxFiles <= 0 {
		p.MaxFiles = driver.DefaultMaxFiles
	}
	if p.MaxBytes <= 0 {
		p.MaxBytes = driver.DefaultMaxFileSizeMB << 20
	}
	return p
}

// write appends words to a stream. The files are open only meanwhile: many tasks
// speak seldom.
func (p logDest) write(stream, words string) error {
	w, err := logs.OpenWriter(logs.Source{Dir: p.Dir, Task: p.Task, Stream: stream}, p.MaxFiles, p.MaxBytes)
	if err != nil {
		return fmt.Errorf("%s: %w", stream, err)
	}
	_, err = w.Write([]byte(words))
	return errors.Join(err, w.Close())
}

// speak writes the first output of a new task. A task without output and a node that keeps no logs cost
// nothing.
func (h *handle) speak(fresh bool) error {
	p := h.s.Logs
	if p.Dir == "" {
		return nil
	}
	h.stopTalk = make([]func() bool, 2)
	for i := range h.stopTalk {
		stream, s := h.speech(i)
		if fresh {
			if err := p.write(stream, s.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// speech is what is printed to one of the two streams.
func (h *handle) speech(i int) (stream string, s speech) {
	if i == 0 {
		return logs.Stdout, h.s.Plan.Stdout
	}
	return logs.Stderr, h.s.Plan.Stderr
}

// talkOn sets the timer for what is printed next to one stream. h.mu is held.
func (h *handle) talkOn(i int) {
	if stream, s := h.speech(i); s.Text != "" && s.Repeat > 0 && s.Every > 0 {
		h.writeNext(i, stream, s)
	}
}

// writeNext sets the timer for the next repetition that is not past. h.mu is held.
func (h *handle) writeNext(i int, stream string, s speech) {
	now := h.clock.Now()
	n := int(now.Sub(h.s.StartedAt)/s.Every) + 1
	if n > s.Repeat || h.over {
		return
	}
	at := h.s.StartedAt.Add(time.Duration(n) * s.Every)
	suspensions := h.suspensions
	h.stopTalk[i] = h.clock.AfterFunc(at.Sub(now), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.over || h.suspensions != suspensions {
			return
		}
		// It cannot be reported, and the task goes on as one that writes to a full
		// disk does.
		_ = h.s.Logs.write(stream, s.Text)
		h.writeNext(i, stream, s)
	})
}
