package client

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/client/alloc"
	"github.com/nomadish/nomadish/client/logs"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// serveMethods registers what servers may call on a client.
func (c *Client) serveMethods(m *wire.Mux) {
	m.Handle(wire.MethodClientAllocStats, wire.Unary(c.allocStats))
	m.Handle(wire.MethodClientAllocRestart, wire.Unary(c.allocRestart))
	m.Handle(wire.MethodClientAllocSignal, wire.Unary(c.allocSignal))
	m.Handle(wire.MethodClientAllocGC, wire.Unary(c.allocGC))
	m.Handle(wire.MethodClientPing, wire.Unary(c.ping))
	m.Handle(wire.MethodClientProbe, wire.Unary(c.probe))
	m.Handle(wire.MethodClientGC, wire.Unary(c.collectNode))
	m.Handle(wire.MethodClientHostStats, wire.Unary(c.hostStats))
	m.Handle(wire.MethodClientMetaRead, wire.Unary(c.metaRead))
	m.Handle(wire.MethodClientMetaApply, wire.Unary(c.metaApply))
	m.Handle(wire.MethodClientSimHealth, wire.Unary(c.simHealth))
	m.Handle(wire.MethodClientFSList, wire.Unary(c.fsList))
	m.Handle(wire.MethodClientFSStat, wire.Unary(c.fsStat))
	m.Handle(wire.MethodClientFSRead, wire.Streaming(c.fsRead))
	if c.config.Agent != nil {
		m.Handle(wire.MethodAgentMonitor, wire.Streaming(c.config.Agent.Monitor))
		m.Handle(wire.MethodAgentHost, wire.Unary(c.config.Agent.Host))
		m.Handle(wire.MethodAgentProfile, wire.Unary(c.config.Agent.Profile))
	}
}

// find returns the allocation and its node.
func (c *Client) find(id string) (*node, *alloc.Runner, error) {
	for _, n := range c.nodes {
		if r := n.runner(id); r != nil {
			return n, r, nil
		}
	}
	kept := ""
	if c.config.simulatedOnly() {
		kept = ": simulated nodes keep no logs or files of what has ended"
	}
	return nil, nil, structs.Errorf(structs.CodeNotFound, "allocation %s: not on this node (any more)%s", structs.ShortID(id), kept)
}

// node returns the node of that ID; the first if it is empty.
func (c *Client) node(id string) (*node, error) {
	for _, n := range c.nodes {
		if id == "" || n.id == id {
			return n, nil
		}
	}
	return nil, structs.Errorf(structs.CodeNotFound, "node %s: not one of this client's", structs.ShortID(id))
}

func (c *Client) allocStats(ctx context.Context, req *structs.ClientAllocRequest) (*structs.ClientStatsReply, error) {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	handles := r.Handles()
	if req.Task != "" {
		h := handles[req.Task]
		if h == nil {
			return nil, structs.Errorf(structs.CodeNotFound, "task %q: is not running", req.Task)
		}
		clear(handles)
		handles[req.Task] = h
	}
	usage, err := c.sampler.Alloc(ctx, handles)
	if err != nil {
		return nil, err
	}
	return &structs.ClientStatsReply{Stats: usage}, nil
}

func (c *Client) allocRestart(_ context.Context, req *structs.ClientAllocRequest) (*structs.WriteReply, error) {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	return &structs.WriteReply{}, r.Restart(req.Task, req.AllTasks)
}

func (c *Client) allocSignal(ctx context.Context, req *structs.ClientAllocRequest) (*structs.WriteReply, error) {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	if req.Signal == "" {
		return nil, structs.Errorf(structs.CodeBadRequest, "signal allocation %s: no signal given; name one, such as SIGHUP", structs.ShortID(req.AllocID))
	}
	return &structs.WriteReply{}, r.Signal(ctx, req.Task, req.Signal)
}

func (c *Client) allocGC(_ context.Context, req *structs.ClientAllocRequest) (*structs.WriteReply, error) {
	n, _, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	return &structs.WriteReply{}, n.collectOne(req.AllocID)
}

func (c *Client) collectNode(_ context.Context, req *structs.ClientHostStatsRequest) (*structs.WriteReply, error) {
	n, err := c.node(req.NodeID)
	if err != nil {
		return nil, err
	}
	ended, _ := n.collectable()
	ids := make([]string, 0, len(ended))
	for _, e := range ended {
		ids = append(ids, e.ID)
	}
	n.collectAll(ids)
	return &structs.WriteReply{}, nil
}

func (c *Client) hostStats(ctx context.Context, req *structs.ClientHostStatsRequest) (*structs.ClientHostStatsReply, error) {
	n, err := c.node(req.NodeID)
	if err != nil {
		return nil, err
	}
	if n.dir == "" {
		return &structs.ClientHostStatsReply{Stats: simulatedStats(n.Node(), time.Now())}, nil
	}
	s, err := c.host.Stats(ctx, time.Now())
	if err != nil {
		return nil, structs.Errorf(structs.CodeInternal, "%w", err)
	}
	return &structs.ClientHostStatsReply{Stats: s}, nil
}

// simulatedStats are those of a machine that does nothing.
func simulatedStats(n *structs.Node, now time.Time) *structs.HostStats {
	total := uint64(n.NodeResources.Memory.MemoryMB) << 20 // not negative
	return &structs.HostStats{
		Memory: &structs.HostMemoryStats{Total: total, Available: total, Free: total}, Timestamp: now.UnixNano(),
	}
}

func (c *Client) fsList(_ context.Context, req *structs.FSRequest) (*structs.FSListReply, error) {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	files, err := r.Dir().List(req.Path)
	if err != nil {
		return nil, err
	}
	return &structs.FSListReply{Files: files}, nil
}

func (c *Client) fsStat(_ context.Context, req *structs.FSRequest) (*structs.FSStatReply, error) {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return nil, err
	}
	info, err := r.Dir().Stat(req.Path)
	if err != nil {
		return nil, err
	}
	return &structs.FSStatReply{Info: info}, nil
}

// fsRead streams a file, or a task's log if a task is named.
func (c *Client) fsRead(ctx context.Context, req *structs.FSRequest, send func(any) error) error {
	_, r, err := c.find(req.AllocID)
	if err != nil {
		return err
	}
	if req.Origin != "" && req.Origin != logs.OriginStart && req.Origin != logs.OriginEnd {
		return structs.Errorf(structs.CodeBadRequest, "origin %q: must be %q or %q", req.Origin, logs.OriginStart, logs.OriginEnd)
	}
	if req.Task != "" {
		return readLog(ctx, r, req, send)
	}
	return r.Dir().Read(ctx, alloc.ReadRequest{
		Path: req.Path, Offset: req.Offset, Limit: req.Limit, FromEnd: req.Origin == logs.OriginEnd, Follow: req.Follow,
	}, func(f *structs.StreamFrame) error { return send(f) })
}
