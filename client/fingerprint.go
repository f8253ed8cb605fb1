package client

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/nomadish/nomadish/client/fingerprint"
	"github.com/nomadish/nomadish/client/gpu"
	"github.com/nomadish/nomadish/client/state"
	"github.com/nomadish/nomadish/structs"
)

// fingerprint finds out what the client's own node is.
func (c *Client) fingerprint(ctx context.Context, who state.Node) (*structs.Node, error) {
	found, err := fingerprint.Run(ctx, fingerprint.Options{
		AllocDir: c.config.AllocDir, Interface: c.config.Machine.NetworkInterface,
		CPUTotalCompute: c.config.Machine.CPUTotalCompute, MemoryTotalMB: c.config.Machine.MemoryTotalMB,
		DiskTotalMB: c.config.Machine.DiskTotalMB, DiskFreeMB: c.config.Machine.DiskFreeMB, ReservableCores: c.config.Machine.ReservableCores,
		MinDynamicPort: c.config.Machine.MinDynamicPort, MaxDynamicPort: c.config.Machine.MaxDynamicPort,
		Version: c.config.Version, HTTPAddr: c.config.HTTPAddr, GPUs: c.gpuReport(),
	})
	if err != nil {
		return nil, err
	}
	for _, w := range found.Warnings {
		c.logger.Warn("fingerprint", "error", w)
	}
	reserved := c.config.Machine.Reserved
	n := &structs.Node{
		ID: who.ID, SecretID: who.Secret, Name: c.config.Node.Name, Datacenter: c.config.Node.Datacenter,
		NodeClass: c.config.Node.Class, NodePool: c.config.Node.Pool, HTTPAddr: c.config.HTTPAddr, TLSEnabled: c.config.TLSEnabled,
		Attributes: found.Attributes, Meta: c.meta.now(), Links: map[string]string{},
		NodeResources: found.Resources, ReservedResources: &reserved, HostVolumes: c.config.Machine.HostVolumes,
		Status: structs.NodeStatusReady, SchedulingEligibility: c.eligibility(),
	}
	n.NodeResources.Slots = c.config.Node.Slots
	if n.Name == "" {
		n.Name = found.Hostname
	}
	if n.Name == "" {
		return nil, fmt.Errorf("node name: the machine has none; set name in the agent's configuration")
	}
	infos, attrs := fingerprint.Drivers(ctx, c.drivers, time.Now().UTC())
	n.Drivers = infos
	maps.Copy(n.Attributes, attrs)
	n.DiskFull = c.disk.Full()
	n.StatusDescription = n.DiskFull
	n.ComputeClass()
	return n, nil
}

// firstGPUs is how long a client waits for the first look at its GPUs. A driver that
// takes longer to start is waited for in the background.
const firstGPUs = 10 * time.Second

// watchGPUs begins to watch the machine's GPUs.
func (c *Client) watchGPUs() {
	if c.config.NoGPUs {
		return
	}
	o := c.config.GPUs
	if o.Logger == nil {
		o.Logger = c.logger.Named("gpu")
	}
	c.gpus = gpu.New(o)
	c.group.Go(c.gpus.Run)
	t := time.NewTimer(firstGPUs)
	defer t.Stop()
	select {
	case <-c.gpus.First():
	case <-c.group.ctx.Done():
	case <-t.C:
		c.logger.Warn("the NVIDIA driver takes long to start; the node registers without its GPUs until it has")
	}
}

// gpuReport is what is known of the machine's GPUs; nil: nothing is looked for.
func (c *Client) gpuReport() *gpu.Report {
	if c.gpus == nil {
		return nil
	}
	return c.gpus.Report()
}

// gpuChanges notifies of changes of the machine's GPUs; never, if nothing is looked for.
func (c *Client) gpuChanges() <-chan struct{} {
	if c.gpus == nil {
		return nil
	}
	return c.gpus.Changed()
}

// watchChanges looks at the machine now and then, and at once when something happens to
// its GPUs or disks. It has the node registered again if it has changed, until ctx ends.
func (n *node) watchChanges(ctx context.Context) {
	t := time.NewTicker(n.c.config.LookInterval)
	defer t.Stop()
	var next time.Time // before which nothing more is sent
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-n.c.gpuChanges():
		case <-n.c.disk.Changed():
		}
		if wait := time.Until(next); wait > 0 && !sleep(ctx, wait) {
			return
		}
		now, err := n.c.fingerprint(ctx, state.Node{ID: n.id, Secret: n.secret})
		if err != nil || ctx.Err() != nil {
			continue
		}
		if was, changed := n.become(now); changed {
			n.logger.Info("the node has changed; registering it again")
			n.reregister()
			n.emitChanges(was, now)
			next = time.Now().Add(n.c.config.ChangeInterval)
		}
	}
}

// become makes now what is registered, if that is different from what was, and has the metadata of this moment: they may have been
// changed while the machine was looked at.
func (n *node) become(now *structs.Node) (was *structs.Node, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	was = n.Node()
	now.Meta = n.meta.now()
	now.ComputeClass()
	if changed = keepVolatile(was, now); changed {
		n.current.Store(now)
	}
	return was, changed
}

// keepVolatile takes over from was what changes all the time and means nothing, and reports
// whether the rest is different.
func keepVolatile(was, now *structs.Node) (changed bool) {
	for _, name := range []string{"unique.storage.bytesfree", "cpu.frequency"} {
		if v, ok := was.Attributes[name]; ok {
			now.Attributes[name] = v
		}
	}
	now.NodeResources.Disk = was.NodeResources.Disk
	now.NodeResources.Cpu.CpuShares = was.NodeResources.Cpu.CpuShares
	for _, name := range []string{"cpu.totalcompute", "cpu.usablecompute"} {
		if len(was.NodeResources.Cpu.ReservableCpuCores) == len(now.NodeResources.Cpu.ReservableCpuCores) {
			now.Attributes[name] = was.Attributes[name]
		}
	}
	for name, d := range now.Drivers {
		if o := was.Drivers[name]; o != nil && o.Detected == d.Detected && o.Healthy == d.Healthy && o.HealthDescription == d.HealthDescription {
			d.UpdateTime = o.UpdateTime
		}
	}
	return !reflect.DeepEqual(was, now)
}
