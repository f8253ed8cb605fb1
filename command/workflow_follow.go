package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nomadish/nomadish/api"
	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

const (
	// followTries is how often a command that follows a workflow repeats its request where no agent answers, as while one is started anew.
	followTries = 30
	// followPause is how long it waits before each.
	followPause = time.Second
)

// workflowFollower reads a workflow again and again, each time as it has changed.
type workflowFollower struct {
	e     *env
	id    string
	q     *api.Query
	pause time.Duration // before it is asked again where nobody answers

	answered bool // somebody has

	live *ui.Live         // what is drawn while the next answer is awaited; nil: nothing
	tick <-chan time.Time // when it is drawn again; nil: each second
	text func() []string
}

// draw draws on a terminal, and again each second until the next answer has come: what it states of time goes on.
func (f *workflowFollower) draw(live *ui.Live, text func() []string) {
	live.Draw(text())
	if f.live, f.text = live, text; !live.On() {
		f.live = nil
	}
}

// info reads the workflow, and draws meanwhile.
func (f *workflowFollower) info(ctx context.Context) (*structs.WorkflowStatus, api.Meta, error) {
	if f.live == nil {
		return f.e.client.Workflows().Info(ctx, f.id, f.q)
	}
	type answer struct {
		w    *structs.WorkflowStatus
		meta api.Meta
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		w, meta, err := f.e.client.Workflows().Info(ctx, f.id, f.q)
		answers <- answer{w, meta, err}
	}()
	tick := f.tick
	if tick == nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case a := <-answers:
			return a.w, a.meta, a.err
		case <-tick:
			f.live.Draw(f.text())
		}
	}
}

func followWorkflow(e *env, id string) *workflowFollower {
	return &workflowFollower{e: e, id: id, q: e.query(), pause: followPause}
}

// next returns the workflow: at once the first time, then when it has changed, or after a while. Where nobody answers it tries again for a while; lost
// is called before that. The error is then that of the last try.
func (f *workflowFollower) next(ctx context.Context, lost func(err error)) (*structs.WorkflowStatus, error) {
	for tries := 0; ; tries++ {
		w, meta, err := f.info(ctx)
		if err == nil {
			f.answered, f.q.Index, f.q.Wait = true, meta.Index, 5*time.Second
			return w, nil
		}
		if !f.answered || tries >= followTries || !isLost(err) { // the first answer states what is wrong with the request
			return nil, err
		}
		if f.live = nil; tries == 0 { // what it is lost to stays readable
			lost(err)
		}
		f.q.Index, f.q.Wait = 0, 0 // whoever answers next may count anew
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(f.pause):
		}
	}
}

// isLost reports whether an error is that nobody answers now, or that there is no leader: that may be over soon.
func isLost(err error) bool {
	var nobody *api.Unreachable
	return errors.As(err, &nobody) || api.IsNoLeader(err)
}

// lostText states that nobody answers any more, without how to start an agent: there was one.
func lostText(err error) string {
	var nobody *api.Unreachable
	if errors.As(err, &nobody) {
		return fmt.Sprintf("no agent answers at %s any more: %v", nobody.Address, nobody.Err)
	}
	return err.Error()
}
