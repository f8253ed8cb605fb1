// Package inspect answers operators' requests about a running agent itself: its log as it is written, the machine it runs on, and
// runtime profiles of its process. An [Inspector] is shared by the agent's HTTP API, its server and its client, so that its
// bounds hold for all of them together.
package inspect

import (
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/structs"
)

// Options configure what an Inspector shows.
type Options struct {
	// ID returns the ID of the agent's node, or else the name of its server.
	ID func() string
	// Logger is the agent's logger. Only a hclog.InterceptLogger can be monitored.
	Logger hclog.Logger
	// Lines returns a writer that makes each record written to it one printable line in to; json states of which form they are.
	Lines func(to io.Writer, json bool) io.Writer
	// Debug allows the host's data and profiles: the agent's enable_debug.
	Debug bool
	// MaxMonitors bounds the monitors at once.
	MaxMonitors int
}

// Inspector answers for one agent. It is safe for use by many goroutines.
type Inspector struct {
	opts      Options
	monitors  chan struct{} // held by those that run
	profiling chan struct{} // held by who takes a profile
}

// maxProfiles bounds the profiles that are taken at once.
const maxProfiles = 4

// New returns an Inspector; nothing runs before the first request.
func New(opts Options) *Inspector {
	return &Inspector{opts: opts, monitors: make(chan struct{}, max(1, opts.MaxMonitors)), profiling: make(chan struct{}, maxProfiles)}
}

// debugOnly returns an error unless the agent's configuration allows debugging: there are no access tokens that could.
func (i *Inspector) debugOnly(what string) error {
	if i.opts.Debug {
		return nil
	}
	return structs.Errorf(structs.CodeForbidden, "Permission denied: %s of this agent is not shown", what).
		WithHint("set enable_debug = true in the agent's configuration and start it again")
}
