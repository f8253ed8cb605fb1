package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// Subsystems of a node's events, in Nomad's words.
const (
	ofStorage = "Storage"
	ofDriver  = "Driver: "
	ofDevice  = "Device"
)

// maxNamed is how many devices an event names.
const maxNamed = 8

// events are those of the node that the servers have not heard of yet, the latest only.
type events struct {
	mu      sync.Mutex
	pending []*structs.NodeEvent
	active  bool // a goroutine is sending
}

// emitChanges reports to servers and tasks what has become of the machine's health.
func (n *node) emitChanges(was, now *structs.Node) {
	at := time.Now().UTC()
	n.emit(slices.Concat(diskEvents(was, now, at), driverEvents(was, now, at), deviceEvents(was, now, at)))
	if (was.DiskFull == "") == (now.DiskFull == "") {
		return
	}
	kind, text := structs.TaskDiskFull, "What is written may be lost: "+now.DiskFull
	if now.DiskFull == "" {
		kind, text = structs.TaskDiskHasRoom, "There is room on the node's disk again"
	}
	for _, r := range n.all() {
		if _, ended := r.EndedAt(); !ended {
			r.AddEvent(kind, text)
		}
	}
}

func diskEvents(was, now *structs.Node, at time.Time) []*structs.NodeEvent {
	switch {
	case (was.DiskFull == "") == (now.DiskFull == ""):
		return nil
	case now.DiskFull == "":
		return []*structs.NodeEvent{{Subsystem: ofStorage, Message: "The disk has room again; the node accepts new allocations", Timestamp: at}}
	}
	return []*structs.NodeEvent{{Subsystem: ofStorage, Message: "The disk is full; the node accepts no new allocations: " + now.DiskFull, Timestamp: at}}
}

func driverEvents(was, now *structs.Node, at time.Time) (out []*structs.NodeEvent) {
	for _, name := range slices.Sorted(maps.Keys(now.Drivers)) {
		d, o := now.Drivers[name], was.Drivers[name]
		well := d.Detected && d.Healthy
		if o == nil || (o.Detected && o.Healthy) == well {
			continue
		}
		text := "Healthy"
		switch {
		case !well && d.HealthDescription != "":
			text = "Not healthy: " + d.HealthDescription
		case !well:
			text = "Not healthy"
		}
		out = append(out, &structs.NodeEvent{Subsystem: ofDriver + name, Message: text, Details: map[string]string{"driver": name}, Timestamp: at})
	}
	return out
}

// deviceEvents has one event for all devices of which the same has become.
func deviceEvents(was, now *structs.Node, at time.Time) (out []*structs.NodeEvent) {
	before := map[string]bool{}
	for _, g := range was.NodeResources.Devices {
		for _, d := range g.Instances {
			before[d.ID] = d.Healthy
		}
	}
	of := map[string][]string{}
	for _, g := range now.NodeResources.Devices {
		for _, d := range g.Instances {
			if well, known := before[d.ID]; known && well != d.Healthy {
				text := "Healthy again"
				if !d.Healthy {
					text = "Not healthy; not assigned to tasks: " + d.HealthDescription
				}
				of[text] = append(of[text], d.ID)
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(of)) {
		ids := of[text]
		names := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
		if more := len(ids) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, &structs.NodeEvent{Subsystem: ofDevice, Message: text, Details: map[string]string{"devices": names}, Timestamp: at})
	}
	return out
}

// emit sends events soon.
func (n *node) emit(list []*structs.NodeEvent) {
	if len(list) == 0 {
		return
	}
	e := &n.events
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = append(e.pending, list...)
	if over := len(e.pending) - structs.MaxNodeEvents; over > 0 {
		e.pending = slices.Delete(e.pending, 0, over)
	}
	if !e.active {
		e.active = true
		n.Go(n.sendEvents)
	}
}

// sendEvents sends until there is nothing left to send.
func (n *node) sendEvents(ctx context.Context) {
	select {
	case <-n.known:
	case <-ctx.Done():
		return
	}
	e := &n.events
	backoff := reportBackoff
	for {
		e.mu.Lock()
		list := structs.CutNodeEvents(e.pending)
		e.pending = nil
		e.active = len(list) > 0
		e.mu.Unlock()
		if len(list) == 0 {
			return
		}
		err := n.servers.call(ctx, reportLimit, wire.MethodNodeEvents,
			&structs.NodeEventsRequest{NodeID: n.id, SecretID: n.secret, Events: list}, &structs.WriteReply{})
		switch structs.CodeOf(err) {
		case structs.CodeBadRequest, structs.CodeForbidden, structs.CodeUnsupported:
			n.logger.Warn("the servers refuse the node's events", "error", err)
			continue
		default:
		}
		if err == nil {
			backoff = reportBackoff
			continue
		}
		e.mu.Lock()
		e.pending = append(list, e.pending...)
		if over := len(e.pending) - structs.MaxNodeEvents; over > 0 {
			e.pending = slices.Delete(e.pending, 0, over)
		}
		e.mu.Unlock()
		if !sleep(ctx, backoff) {
			return
		}
		backoff = min(2*backoff, maxBackoff)
	}
}
