package agent

import (
	"bytes"
	"io"
	"sync"
)

// holdback keeps log lines back until the banner is out, at most a mebibyte of
// them; then it passes everything on.
type holdback struct {
	mu   sync.Mutex
	to   io.Writer
	kept bytes.Buffer
	on   bool
}

const maxWithheld = 1 << 20

// Write implements io.Writer.
func (h *holdback) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on {
		return h.to.Write(p)
	}
	if h.kept.Len()+len(p) <= maxWithheld {
		return h.kept.Write(p)
	}
	return len(p), nil
}

// open lets everything through.
func (h *holdback) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = true
	_, _ = h.to.Write(h.kept.Bytes())
	h.kept = bytes.Buffer{}
}
