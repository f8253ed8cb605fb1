package client

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nomadish/nomadish/structs"
)

// metadata is the metadata of a node: as configured, and what was set while it ran.
type metadata struct {
	static map[string]string

	mu      sync.Mutex // held while what was set is changed and kept
	dynamic map[string]*string
	due     bool      // a change is about to be sent
	next    time.Time // before which none is

	merged atomic.Pointer[map[string]string] // what the node registers with; never changed
}

// metaDefaults are the metadata of every real node that does not state them. Nomad's clients have them, for the proxies of Consul.
var metaDefaults = map[string]string{"connect.log_level": "info", "connect.proxy_concurrency": "1"}

func newMetadata(static map[string]string, dynamic map[string]*string) *metadata {
	m := &metadata{static: static, dynamic: dynamic}
	m.merge()
	return m
}

// ownMetadata is that of the client's own node.
func (c *Client) ownMetadata() (*metadata, error) {
	static := maps.Clone(metaDefaults)
	maps.Copy(static, c.config.Node.Meta)
	var dynamic map[string]*string
	if c.store != nil {
		var err error
		if dynamic, err = c.store.Meta(); err != nil {
			return nil, err
		}
	}
	return newMetadata(static, dynamic), nil
}

// merge brings merged in line; mu is held, or nobody else has m yet.
func (m *metadata) merge() {
	now := structs.MergeNodeMeta(m.static, m.dynamic)
	m.merged.Store(&now)
}

// now is what the node is to register with: a copy.
func (m *metadata) now() map[string]string { return maps.Clone(*m.merged.Load()) }

// reply returns all of it, for the API.
func (m *metadata) reply() *structs.NodeMeta {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &structs.NodeMeta{Meta: m.now(), Static: maps.Clone(m.static), Dynamic: map[string]*string{}}
	maps.Copy(out.Dynamic, m.dynamic)
	if out.Static == nil {
		out.Static = map[string]string{}
	}
	return out
}

// changed is what dynamic would be. That a name is unset is remembered, as of those that are configured it must be, but
// for others only as long as there is room.
func (m *metadata) changed(by map[string]*string) map[string]*string {
	out := make(map[string]*string, len(m.dynamic)+len(by))
	maps.Copy(out, m.dynamic)
	maps.Copy(out, by)
	if len(out) > structs.MaxNodePairs {
		maps.DeleteFunc(out, func(k string, v *string) bool {
			_, configured := m.static[k]
			return v == nil && !configured
		})
	}
	return out
}

func (c *Client) metaRead(_ context.Context, req *structs.NodeMetaRequest) (*structs.NodeMetaReply, error) {
	n, err := c.node(req.NodeID)
	if err != nil {
		return nil, err
	}
	return &structs.NodeMetaReply{Node: n.meta.reply()}, nil
}

func (c *Client) metaApply(_ context.Context, req *structs.NodeMetaRequest) (*structs.NodeMetaReply, error) {
	n, err := c.node(req.NodeID)
	if err != nil {
		return nil, err
	}
	if err := n.setMeta(req.Meta); err != nil {
		return nil, err
	}
	return &structs.NodeMetaReply{Node: n.meta.reply()}, nil
}

// setMeta changes what is set while the node runs. It is kept when setMeta returns; the servers learn of it soon.
func (n *node) setMeta(change map[string]*string) error {
	if err := structs.CheckNodeMetaChange(change); err != nil {
		return err
	}
	m := n.meta
	m.mu.Lock()
	defer m.mu.Unlock()
	dynamic := m.changed(change)
	would := *n.Node()
	would.Meta = structs.MergeNodeMeta(m.static, dynamic)
	if err := would.CheckLimits(); err != nil { // else the servers would refuse the node
		return structs.Errorf(structs.CodeBadRequest, "with this, the node would have too much: %w", err).WithHint("unset what is not needed any more")
	}
	if len(dynamic) > structs.MaxNodePairs {
		return structs.Errorf(structs.CodeBadRequest, "%d names would be set or unset, at most %d are allowed", len(dynamic), structs.MaxNodePairs)
	}
	if n.store != nil {
		if err := n.store.SetMeta(dynamic); err != nil {
			return structs.Errorf(structs.CodeInternal, "nothing was changed: %w", err)
		}
	}
	m.dynamic = dynamic
	m.merge()
	if !m.due {
		m.due = true
		wait := time.Until(m.next)
		n.Go(func(ctx context.Context) { n.sendMeta(ctx, wait) })
	}
	return nil
}

// sendMeta registers the node with the metadata that it then has. Changes that follow each other closely are sent together.
func (n *node) sendMeta(ctx context.Context, wait time.Duration) {
	if wait > 0 && !sleep(ctx, wait) {
		return
	}
	m := n.meta
	m.mu.Lock()
	m.due, m.next = false, time.Now().Add(n.c.config.ChangeInterval)
	m.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.Node()
	now := was.Copy()
	now.Meta = m.now()
	if maps.Equal(was.Meta, now.Meta) {
		return
	}
	now.ComputeClass()
	n.logger.Info("the node's metadata has changed; registering it again", "meta", len(now.Meta))
	n.current.Store(now)
	n.reregister()
}
