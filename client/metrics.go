package client

import (
	"context"
	"time"

	"github.com/hashicorp/go-metrics"

	"github.com/nomadish/nomadish/structs"
)

// gaugeInterval is how often the gauges are set.
const gaugeInterval = 5 * time.Second

// publish sets the client's gauges, over all nodes that it stands for, until ctx
// ends. Names are Nomad's.
func (c *Client) publish(ctx context.Context) {
	begun := time.Now()
	t := time.NewTicker(gaugeInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		counts := map[string]int{"pending": 0, "running": 0, "terminal": 0}
		for _, n := range c.nodes {
			for _, r := range n.anyOrder() {
				counts[gaugeOf(r.ClientStatus())]++
			}
		}
		for name, v := range counts {
			metrics.SetGauge([]string{"client", "allocations", name}, float32(v))
		}
		metrics.SetGauge([]string{"client", "uptime"}, float32(time.Since(begun).Seconds()))
	}
}

// gaugeOf is the gauge that counts allocations of a client status.
func gaugeOf(status string) string {
	switch status {
	case structs.AllocClientPending:
		return "pending"
	case structs.AllocClientRunning:
		return "running"
	}
	return "terminal"
}
