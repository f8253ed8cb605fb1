package stats

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"
	"golang.org/x/sys/unix"

	"github.com/nomadish/nomadish/structs"
)

// Host measures the machine. It is safe for use by many goroutines.
type Host struct {
	// AllocDir is on the disk that allocations get; empty: none.
	AllocDir string
	// TotalMHz is the compute of all cores.
	TotalMHz float64

	mu   sync.Mutex
	last []processor
}

// Stats measures now. The processors' use is that since the call before; since the
// machine's start at the first.
func (h *Host) Stats(ctx context.Context, now time.Time) (*structs.HostStats, error) {
	out := &structs.HostStats{Timestamp: now.UnixNano()}
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure memory: %w", err)
	}
	out.Memory = &structs.HostMemoryStats{Total: m.Total, Available: m.Available, Used: m.Used, Free: m.Free}
	times, err := processors()
	if err != nil {
		return nil, fmt.Errorf("measure processors: %w", err)
	}
	out.CPU = h.rates(times)
	for _, c := range out.CPU {
		out.CPUTicksConsumed += c.TotalPercent / 100 * h.TotalMHz / float64(len(out.CPU))
	}
	if h.AllocDir != "" {
		u, err := disk.UsageWithContext(ctx, h.AllocDir)
		if err != nil {
			return nil, fmt.Errorf("measure disk: %w", err)
		}
		out.AllocDirStats = &structs.HostDiskStats{
			Device: deviceOf(ctx, h.AllocDir), Mountpoint: u.Path, Size: u.Total, Used: u.Used, Available: u.Free,
			UsedPercent: u.UsedPercent, InodesUsedPercent: u.InodesUsedPercent,
		}
		out.DiskStats = []*structs.HostDiskStats{out.AllocDirStats}
	}
	out.Uptime = uptime()
	return out, nil
}

// Busy returns for how many seconds each core was at work since the machine's start, as of the last call of Stats, whose order
// it has.
func (h *Host) Busy() []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]float64, 0, len(h.last))
	for _, t := range h.last {
		out = append(out, (t.user+t.system)/ticksPerSecond)
	}
	return out
}

// Booted returns when the machine was started; now if the system does not report it.
func Booted() time.Time {
	return time.Now().Add(-time.Duration(uptime()) * time.Second) // seconds of a machine
}

// uptime returns for how many seconds the machine has run; 0 if the system does not report it.
func uptime() uint64 {
	var system unix.Sysinfo_t
	if unix.Sysinfo(&system) != nil {
		return 0
	}
	return uint64(system.Uptime) // seconds since the machine's start
}

// deviceOf is what is mounted where path lies; empty if the system does not report it.
func deviceOf(ctx context.Context, path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	mounts, err := disk.PartitionsWithContext(ctx, true)
	if err != nil {
		return ""
	}
	device, longest := "", -1
	for _, m := range mounts {
		under := strings.HasPrefix(path, strings.TrimSuffix(m.Mountpoint, "/")+"/") || path == m.Mountpoint
		if under && len(m.Mountpoint) >= longest { // of two mounts in one place the later one shows
			device, longest = m.Device, len(m.Mountpoint)
		}
	}
	return device
}

func (h *Host) rates(times []processor) []*structs.HostCPUStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*structs.HostCPUStats, 0, len(times))
	for i, t := range times {
		var before processor
		if i < len(h.last) && h.last[i].name == t.name {
			before = h.last[i]
		}
		// The kernel's counts of idling may step back a little.
		user := max(0, t.user-before.user)
		system := max(0, t.system-before.system)
		idle := max(0, t.idle-before.idle)
		c := &structs.HostCPUStats{CPU: t.name}
		if total := user + system + idle; total > 0 {
			c.User, c.System, c.Idle = user/total*100, system/total*100, idle/total*100
			c.TotalPercent = c.User + c.System
			c.Total = c.TotalPercent
		}
		out = append(out, c)
	}
	h.last = times
	return out
}
