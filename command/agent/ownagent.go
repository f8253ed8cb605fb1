package agent

import (
	"context"
	"io"

	"github.com/hashicorp/go-hclog"

	httpapi "github.com/nomadish/nomadish/command/agent/http"
	"github.com/nomadish/nomadish/command/agent/inspect"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// newInspector returns what answers operators about this agent.
func (a *Agent) newInspector() *inspect.Inspector {
	return inspect.New(inspect.Options{
		ID: a.id, Logger: a.logger, Debug: a.cfg.EnableDebug, MaxMonitors: a.cfg.Limits.LogMonitors,
		Lines: func(to io.Writer, json bool) io.Writer { return &logLines{to: to, json: json} },
	})
}

// id is the ID of the agent's node, or else the name of its server.
func (a *Agent) id() string {
	if self := a.self.Load(); self != nil && self.NodeID != "" {
		return self.NodeID
	}
	return a.cfg.Name + "." + a.cfg.Region
}

// inspected is a backend of which this agent itself answers the requests about it: what names its own node, or nobody.
// The rest is passed on.
type inspected struct {
	httpapi.Backend
	own    *wire.Mux
	nodeID string // of the agent; empty: it has none
	region string
}

func newInspected(below httpapi.Backend, i *inspect.Inspector, nodeID, region string, logger hclog.Logger) httpapi.Backend {
	own := wire.NewMux(logger, 0)
	own.Handle(wire.MethodAgentMonitor, wire.Streaming(i.Monitor))
	own.Handle(wire.MethodAgentHost, wire.Unary(i.Host))
	own.Handle(wire.MethodAgentProfile, wire.Unary(i.Profile))
	return inspected{Backend: below, own: own, nodeID: nodeID, region: region}
}

// isOwn reports whether a call is about this agent.
func (b inspected) isOwn(args any) bool {
	to, ok := args.(interface {
		Target() (nodeID, serverID, region string)
	})
	if !ok {
		return false
	}
	node, server, region := to.Target()
	return server == "" && (node == "" || node == b.nodeID) && (region == "" || region == b.region)
}

// Call implements httpapi.Backend.
func (b inspected) Call(ctx context.Context, method string, args, reply any) error {
	if b.isOwn(args) {
		return b.own.Local(ctx, method, args, reply)
	}
	return b.Backend.Call(ctx, method, args, reply)
}

// Stream implements httpapi.Backend.
func (b inspected) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	if b.isOwn(args) {
		return b.own.LocalStream(ctx, method, args)
	}
	return b.Backend.Stream(ctx, method, args)
}

// setSchedulers changes the workers of the agent's server, and what the agent reports of them.
func (a *Agent) setSchedulers(n int, enabled []string) error {
	if a.server == nil || a.server.setSchedulers == nil {
		return structs.Errorf(structs.CodeUnsupported, "this agent runs no server whose schedulers could be changed")
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	if err := a.server.setSchedulers(n, enabled); err != nil {
		return err
	}
	self := *a.self.Load()
	self.NumSchedulers, self.EnabledSchedulers = n, enabled
	a.self.Store(&self)
	return nil
}
