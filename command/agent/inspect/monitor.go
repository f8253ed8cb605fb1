package inspect

import (
	"bytes"
	"cmp"
	"context"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// maxBuffered bounds the lines that wait for the reader of a monitor, in bytes. Lines that come while it is full are dropped,
// and counted: the agent never waits for a reader.
const maxBuffered = 256 << 10

// Monitor sends the log lines that the agent writes from now on, of the requested level and above, whatever the agent's own
// level is. It sends an empty frame when it has begun, then frames of whole lines until ctx ends or send fails. A line states how
// many were dropped before it because the reader was too slow.
func (i *Inspector) Monitor(ctx context.Context, args *structs.AgentMonitorRequest, send func(any) error) error {
	level := hclog.LevelFromString(cmp.Or(args.LogLevel, "info"))
	if level == hclog.NoLevel || level == hclog.Off {
		return structs.Errorf(structs.CodeBadRequest, "Unknown log level: %q", structs.Clip(args.LogLevel, 100)).WithHint("use trace, debug, info, warn or error")
	}
	logger, ok := i.opts.Logger.(hclog.InterceptLogger)
	if !ok {
		return structs.Errorf(structs.CodeUnsupported, "the log of this agent cannot be monitored")
	}
	select {
	case i.monitors <- struct{}{}:
		defer func() { <-i.monitors }()
	default:
		return structs.Errorf(structs.CodeLimited, "%d monitors of this agent's log run already", cap(i.monitors)).
			WithHint("end one of them, or raise limits { log_monitor_max_streams } in the agent's configuration")
	}
	buffer := newLineBuffer()
	sink := hclog.NewSinkAdapter(&hclog.LoggerOptions{
		Level: level, Output: i.opts.Lines(buffer, args.LogJSON), JSONFormat: args.LogJSON, IncludeLocation: args.LogIncludeLocation,
	})
	logger.RegisterSink(sink)
	defer logger.DeregisterSink(sink)
	if err := send(&structs.StreamFrame{}); err != nil {
		return err
	}
	for {
		select {
		case <-buffer.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		lines, dropped := buffer.take()
		if dropped > 0 {
			lines = append(lines, droppedLine(dropped, args.LogJSON)...)
		}
		if err := send(&structs.StreamFrame{Data: lines}); err != nil {
			return err
		}
	}
}

// droppedLine is a log line that states how many were dropped.
func droppedLine(n int, json bool) []byte {
	var line bytes.Buffer
	hclog.New(&hclog.LoggerOptions{Name: "agent.monitor", Output: &line, JSONFormat: json}).
		Warn("log lines were dropped because the reader is too slow", "dropped", n)
	return line.Bytes()
}

// lineBuffer holds lines between a logger and a reader. Its Write never waits, as it is called while the logger is locked.
type lineBuffer struct {
	ready chan struct{} // has an element when there are lines

	mu      sync.Mutex
	lines   []byte
	dropped int // since the last take
}

func newLineBuffer() *lineBuffer { return &lineBuffer{ready: make(chan struct{}, 1)} }

// Write implements io.Writer. It takes one line.
func (b *lineBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped > 0 || len(b.lines)+len(line) > maxBuffered { // after one that was dropped, all are: what is kept is in order
		b.dropped++
	} else {
		b.lines = append(b.lines, line...)
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return len(line), nil
}

// take returns the lines that wait, and how many came after them that were dropped.
func (b *lineBuffer) take() (lines []byte, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, dropped = b.lines, b.dropped
	b.lines, b.dropped = nil, 0
	return lines, dropped
}
