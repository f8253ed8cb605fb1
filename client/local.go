package client

import (
	"context"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Serves reports whether a call is about an allocation or a node of this client, so that Call or Stream can answer
// it without a server.
func (c *Client) Serves(args any) bool {
	switch a := args.(type) {
	case *structs.ClientAllocRequest:
		return c.inRegion(a.Region) && c.has(a.AllocID)
	case *structs.FSRequest:
		return c.inRegion(a.Region) && c.has(a.AllocID)
	case *structs.ClientHostStatsRequest:
		return c.inRegion(a.Region) && c.hasNode(a.NodeID)
	case *structs.NodeMetaRequest:
		return c.inRegion(a.Region) && c.hasNode(a.NodeID)
	case *structs.SimHealthRequest:
		return c.inRegion(a.Region) && c.hasNode(a.NodeID)
	case interface {
		Target() (nodeID, serverID, region string)
	}: // about the agent, by one of its nodes
		node, server, region := a.Target()
		return server == "" && c.inRegion(region) && c.hasNode(node)
	}
	return false
}

// Call answers a unary method that servers may call, for this process.
func (c *Client) Call(ctx context.Context, method string, args, reply any) error {
	return c.mux.Local(ctx, method, args, reply)
}

// Stream is Call for a method that answers with a stream.
func (c *Client) Stream(ctx context.Context, method string, args any) (wire.Receiver, error) {
	return c.mux.LocalStream(ctx, method, args)
}

func (c *Client) inRegion(region string) bool { return region == "" || region == c.config.Region }

func (c *Client) has(allocID string) bool {
	_, _, err := c.find(allocID)
	return err == nil
}

func (c *Client) hasNode(id string) bool {
	_, err := c.node(id)
	return id != "" && err == nil
}
