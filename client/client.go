package client

import (
	"context"
	"fmt"
)

// Client is the running agent.
type Client struct {
	config Config
	nodeID string
}

// New starts a client. It returns once what it does on this machine is ready; it
// reaches the servers in the background, for as long as that takes.
func New(config Config) (*Client, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("start client: %w", err)
	}
	return &Client{config: config}, nil
}

// NodeID is the ID of the client's own node; with simulated nodes only, that of
// the first.
func (c *Client) NodeID() string { return c.nodeID }

// Stats are numbers about the client for people, by section.
func (c *Client) Stats() map[string]map[string]string {
	return map[string]map[string]string{"client": {"node_id": c.nodeID}}
}

// Shutdown ends the client and leaves the tasks running.
func (c *Client) Shutdown(context.Context) error { return nil }
