package nomadish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// shortDisk is a disk of 1 GiB of which as many bytes are free as it is told.
type shortDisk struct{ free atomic.Uint64 }

func newShortDisk() *shortDisk {
	d := &shortDisk{}
	d.free.Store(500 << 20)
	return d
}

func (d *shortDisk) measure(dir string) (structs.DiskRoom, error) {
	return structs.DiskRoom{Path: dir, Total: 1 << 30, Free: d.free.Load()}, nil
}

// lines counts what a log says.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// TestRefusedTransferIsNotLogged: leadership is offered each second, and that it was refused, as it failed a moment ago, is not logged each time.
func TestRefusedTransferIsNotLogged(t *testing.T) {
	log := &lines{}
	s := &Server{logger: hclog.New(&hclog.LoggerOptions{Output: log})}
	s.logTransfer("b", errors.New("it does not answer"))
	s.logTransfer("b", structs.Errorf(structs.CodeConflict, "leadership could not be transferred 1s ago"))
	if n := log.count("transfer leadership"); n != 1 || log.count("it does not answer") != 1 {
		t.Errorf("%d lines are logged, want that of the failure", n)
	}
}

// A leader whose disk fills up hands over before it breaks, says why wherever servers are looked at, does not lead again
// while another can, and takes its part when there is room.
func TestFullDiskStepsDown(t *testing.T) {
	var disks []*shortDisk
	log := &lines{}
	f := newFleet(t, 3, func(_ int, c *Config) {
		d := newShortDisk()
		disks = append(disks, d)
		c.Raft.MeasureDisk = d.measure
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: log})
	})
	first := f.leader()
	full := f.all[first]
	disks[first].free.Store(3 << 20)
	within(t, time.Minute, "another leading", func(context.Context) error {
		if at := f.leader(); at == first {
			return errors.New("it leads on")
		}
		return nil
	})
	other := f.all[f.leader()]
	within(t, time.Minute, "a write while the disk of one of three is full", func(ctx context.Context) error {
		_, err := register(ctx, other, batchJob("meanwhile", 1)) // a busy machine may be between two leaders
		return err
	})
	why := "is full (3.0 MiB of 1024.0 MiB left)"
	known := func(full *Server, want bool) {
		t.Helper()
		within(t, time.Minute, fmt.Sprintf("all knowing that a disk is full: %t", want), func(ctx context.Context) error {
			health := &structs.AutopilotHealthReply{}
			if err := other.Call(ctx, wire.MethodAutopilotHealth, &structs.EmptyRequest{}, health); err != nil {
				return err
			}
			for _, s := range health.Health.Servers {
				reported := strings.Contains(s.Reason, why) && !s.Healthy
				if stepsDown := want && s.ID == full.raft.ID(); reported != stepsDown || s.Healthy == stepsDown || s.LastContact < 0 {
					return fmt.Errorf("%+v", s)
				}
			}
			for _, s := range f.up() {
				for _, m := range s.gossip.Members() {
					if (m.Tags["disk"] == "full: 3.0 MiB of 1024.0 MiB left") != (want && m.Tags["id"] == full.raft.ID()) {
						return fmt.Errorf("%s knows of %s: %v", s.cfg.Name, m.Name, m.Tags)
					}
				}
			}
			if reported := full.Stats()["nomad"]["disk_full"]; strings.Contains(reported, why) != want {
				return fmt.Errorf("it says of itself: %q", reported)
			}
			return nil
		})
	}
	known(full, true)
	if n := log.count("steps down"); n != 1 {
		t.Errorf("said %d times that it steps down", n)
	}
	disks[first].free.Store(500 << 20)
	known(full, false)
	within(t, time.Minute, "what was written meanwhile, on it", func(context.Context) error {
		if full.store.Snapshot().Job(nil, structs.DefaultNamespace, "meanwhile") == nil {
			return errors.New("not there")
		}
		return nil
	})
}

// A server with a full disk and nobody to lead in its place answers reads, refuses writes with the reason, and takes
// them when there is room.
func TestFullDiskAlone(t *testing.T) {
	d := newShortDisk()
	s := startWith(t, t.TempDir(), func(c *Config) { c.Raft.MeasureDisk, c.RPC.Hold = d.measure, 50*time.Millisecond })
	d.free.Store(1 << 20)
	within(t, time.Minute, "a write being refused", func(ctx context.Context) error {
		_, err := register(ctx, s, batchJob("full", 1))
		if err == nil || !strings.Contains(err.Error(), "is full (1.0 MiB of 1024.0 MiB left)") || structs.CodeOf(err) != structs.CodeNoLeader {
			return fmt.Errorf("a write: %w", errors.Join(err, errors.New("is not refused for its reason")))
		}
		return nil
	})
	if err := s.Call(t.Context(), wire.MethodJobList, &structs.ListRequest{}, &structs.JobListReply{}); err != nil {
		t.Errorf("a read: %v", err)
	}
	d.free.Store(500 << 20)
	within(t, time.Minute, "a write being taken", func(ctx context.Context) error {
		_, err := register(ctx, s, batchJob("room", 1))
		return err
	})
}
