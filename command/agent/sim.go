package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/client"
	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/client/driver/mock"
	"github.com/nomadish/nomadish/client/sim"
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// simLook is how often the progress of registration is looked at.
const simLook = 200 * time.Millisecond

// By how much the heap of simulated nodes may grow between two collections, at least and at most: a few nodes need not
// collect all the time, nor a million tasks take three times the memory that they hold.
const simHeadroom, simMostHeadroom = 64 << 20, 1 << 30

// SimOptions select which simulated nodes to attach to which servers.
type SimOptions struct {
	// Count is how many nodes in all; 0: as the shapes state. With several shapes
	// it is dealt out in the proportion of their counts.
	Count      int
	LayoutFile string   // empty: one plain shape, "sim"
	Servers    []string // RPC addresses; at least one
	// Region and Datacenter are the nodes'; empty: the client's defaults.
	Region     string
	Datacenter string
	Version    string
	// CAFile, CertFile and KeyFile, if they are set, make the nodes speak TLS with the
	// servers. VerifyServers: which must have certificates of servers of the region.
	CAFile, CertFile, KeyFile string
	VerifyServers             bool
}

// secure makes what guards the nodes' RPC; nil: nothing.
func (o *SimOptions) secure() (*wire.TLS, error) {
	if o.CAFile == "" {
		return nil, nil // nil is plain
	}
	region := o.Region
	if region == "" {
		region = structs.DefaultRegion
	}
	return wire.LoadTLS(wire.TLSOptions{
		CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile, Region: region, Role: structs.CertClient, VerifyRoles: o.VerifyServers,
	}, hclog.NewNullLogger())
}

// Simulate runs simulated nodes until ctx ends, which is no error. report is called with the progress
// of the nodes' registration while that changes, from one goroutine.
func Simulate(ctx context.Context, o SimOptions, report func(registered, all int)) error {
	layouts := []sim.Layout{{Name: "sim", Count: 1, Cores: 4, MHz: 2000, Memory: 8192, Disk: 100_000}}
	var err error
	if o.LayoutFile != "" {
		if layouts, err = sim.ParseFile(o.LayoutFile); err != nil {
			return err
		}
	}
	if layouts, err = deal(layouts, o.Count); err != nil {
		return err
	}
	secure, err := o.secure()
	if err != nil {
		return err
	}
	giveHeadroom(simHeadroom, simMostHeadroom)
	c, err := client.New(client.Config{
		RPC:    wire.Config{TLS: secure},
		Region: o.Region, Node: client.NodeConfig{Datacenter: o.Datacenter}, Version: o.Version, Servers: o.Servers,
		Drivers: []driver.Driver{mock.New(nil)}, Simulate: layouts,
	})
	if err != nil {
		return err
	}
	watchRegistration(ctx, c, report)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return c.Shutdown(stop)
}

// watchRegistration reports until ctx ends.
func watchRegistration(ctx context.Context, c *client.Client, report func(registered, all int)) {
	tick := time.NewTicker(simLook)
	defer tick.Stop()
	all, last := len(c.NodeIDs()), -1
	for {
		if n := c.Registered(); n != last {
			last = n
			report(n, all)
		}
		if last == all { // for good
			<-ctx.Done()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// deal makes the shapes' counts add up to count.
func deal(layouts []sim.Layout, count int) ([]sim.Layout, error) {
	all := 0
	for _, s := range layouts {
		all += s.Count
	}
	if count == 0 || count == all {
		return layouts, nil
	}
	if count < 0 || count > sim.MaxNodes {
		return nil, fmt.Errorf("%d simulated nodes: one process takes 1 to %d", count, sim.MaxNodes)
	}
	if all == 0 {
		return nil, errors.New("simulated nodes: the shapes have none")
	}
	var out []sim.Layout
	past, dealt := 0, 0
	for _, s := range layouts {
		past += s.Count
		upTo := past * count / all // so that rounding never adds up
		s.Count = upTo - dealt
		dealt = upTo
		if s.Count > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}
