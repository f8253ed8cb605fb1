package command

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nomadish/nomadish/command/ui"
)

// Progress is shown of what takes longer than progressAfter: of bytes every progressStep, of an answer that is waited for every
// waitingStep.
const (
	progressStep = time.Second
	waitingStep  = 10 * time.Second
)

var progressAfter = 2 * time.Second // constant but for tests

// progress prints on the error output how far something is.
type progress struct {
	to    io.Writer
	verb  string
	total int64 // bytes; 0: not known
	begun time.Time
	step  time.Duration
	bytes atomic.Int64
	doing atomic.Pointer[string]

	once sync.Once
	quit chan struct{}
	over sync.WaitGroup
}

// progress begins to report; stop ends it, and may be called twice.
func (e *env) progress(verb string, total int64) *progress {
	return e.begin(&progress{verb: verb, total: total, step: progressStep})
}

// waiting begins to report what is waited for, of which there is nothing to count.
func (e *env) waiting(what string) *progress {
	return e.begin(&progress{verb: what, step: waitingStep})
}

func (e *env) begin(p *progress) *progress {
	p.to, p.begun, p.quit = e.err, time.Now(), make(chan struct{})
	p.over.Go(p.run)
	return p
}

func (p *progress) run() {
	timer := time.NewTimer(progressAfter)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			p.line(time.Since(p.begun))
			timer.Reset(p.step)
		case <-p.quit:
			return
		}
	}
}

func (p *progress) line(since time.Duration) {
	what, bytes := p.verb, p.bytes.Load()
	if doing := p.doing.Load(); doing != nil && *doing != "" {
		what = *doing
	} else if p.total > 0 {
		what = fmt.Sprintf("%s %s of %s", p.verb, bytesText(bytes), bytesText(p.total))
		if bytes >= p.total {
			what += "; the servers are at work"
		}
	}
	_, _ = fmt.Fprintf(p.to, "%s (%s)\n", what, since.Round(time.Second))
}

// now sets the step that is shown, instead of how many bytes are through; empty: these again.
func (p *progress) now(doing string) { p.doing.Store(&doing) }

func (p *progress) stop() {
	p.once.Do(func() { close(p.quit) })
	p.over.Wait()
}

// reader counts what is read.
func (p *progress) reader(r io.Reader) io.Reader { return &counting{r, &p.bytes} }

type counting struct {
	io.Reader
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func bytesText(n int64) string { return ui.Bytes(uint64(max(0, n))) }
