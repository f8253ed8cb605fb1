package client

import (
	"context"
	"strings"

	"github.com/nomadish/nomadish/structs"
)

// simulatedFault is why a simulated device is bad.
const simulatedFault = "made bad by `sim health`"

// simHealth makes a simulated node or device bad, or good again.
func (c *Client) simHealth(_ context.Context, req *structs.SimHealthRequest) (*structs.WriteReply, error) {
	n, err := c.node(req.NodeID)
	if err != nil {
		return nil, err
	}
	if n.Node().Attributes["nomadish.simulated"] == "" {
		return nil, structs.Errorf(structs.CodeBadRequest, "node %s is a real one; only what is simulated can be made bad", n.Node().Name)
	}
	if req.Device != "" {
		return &structs.WriteReply{}, n.simDevice(req.Device, req.Bad)
	}
	n.logger.Info("a simulated node changes its health", "bad", req.Bad)
	n.down.Store(req.Bad)
	n.reregister() // wakes the heartbeat, which reports it to the servers
	return &structs.WriteReply{}, nil
}

// simDevice changes a simulated device. What is registered is never changed: a copy is.
func (n *node) simDevice(id string, bad bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.current.Load()
	now := was.Copy()
	found := false
	devices := now.NodeResources.Devices
	now.NodeResources.Devices = nil
	for _, d := range devices {
		group := *d
		group.Instances = nil
		for _, one := range d.Instances {
			with := *one
			if one.ID == id || strings.HasPrefix(one.ID, id+"-mig-") {
				found = true
				with.Healthy, with.HealthDescription = !bad, ""
				if bad {
					with.HealthDescription = simulatedFault
				}
			}
			group.Instances = append(group.Instances, &with)
		}
		now.NodeResources.Devices = append(now.NodeResources.Devices, &group)
	}
	if !found {
		return structs.Errorf(structs.CodeNotFound, "node %s has no device %q", was.Name, id)
	}
	n.logger.Info("a simulated device changes its health", "device", id, "bad", bad)
	n.current.Store(now)
	n.reregister()
	return nil
}
