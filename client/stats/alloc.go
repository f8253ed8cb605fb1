package stats

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nomadish/nomadish/client/driver"
	"github.com/nomadish/nomadish/structs"
)

// window is the least time between two measurements that a rate is computed from.
const window = 100 * time.Millisecond

// Sampler measures running tasks. It is safe for use by many goroutines.
type Sampler struct {
	// MHzPerCore turns a share of a core into MHz.
	MHzPerCore float64

	mu   sync.Mutex
	last map[driver.Handle]driver.Stats
}

// Alloc measures the tasks of an allocation, given their handles by name. Tasks
// that end meanwhile are left out. It takes a moment the first time.
func (s *Sampler) Alloc(ctx context.Context, handles map[string]driver.Handle) (*structs.AllocResourceUsage, error) {
	out := &structs.AllocResourceUsage{
		ResourceUsage: &structs.ResourceUsage{MemoryStats: &structs.MemoryStats{}, CpuStats: &structs.CpuStats{}},
		Tasks:         map[string]*structs.TaskResourceUsage{},
	}
	for name, h := range handles {
		prev, now, err := s.pair(ctx, h)
		if errors.Is(err, driver.ErrTaskNotRunning) {
			continue
		}
		if err != nil {
			return nil, structs.Errorf(structs.CodeInternal, "measure task %q: %w", name, err)
		}
		t := s.usage(prev, now)
		out.Tasks[name] = t
		add(out.ResourceUsage, t.ResourceUsage)
		out.Timestamp = max(out.Timestamp, t.Timestamp)
	}
	return out, nil
}

// pair returns two measurements of h that lie apart enough.
func (s *Sampler) pair(ctx context.Context, h driver.Handle) (prev, now driver.Stats, err error) {
	s.mu.Lock()
	prev, known := s.last[h]
	s.mu.Unlock()
	if !known {
		if prev, err = h.Stats(ctx); err != nil {
			return prev, now, err
		}
	}
	if wait := window - time.Since(prev.Timestamp); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return prev, now, ctx.Err()
		case <-t.C:
		}
	}
	if now, err = h.Stats(ctx); err != nil {
		s.Forget(h)
		return prev, now, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[driver.Handle]driver.Stats{}
	}
	if len(s.last) > maxRemembered {
		clear(s.last)
	}
	s.last[h] = now
	return prev, now, nil
}

// maxRemembered bounds the last measurements that are kept.
const maxRemembered = 4096

// Forget drops what is kept of a task that has ended.
func (s *Sampler) Forget(h driver.Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, h)
}

func (s *Sampler) usage(prev, now driver.Stats) *structs.TaskResourceUsage {
	elapsed := now.Timestamp.Sub(prev.Timestamp).Seconds()
	percent := func(a, b time.Duration) float64 {
		if elapsed <= 0 || b < a {
			return 0
		}
		return (b - a).Seconds() / elapsed * 100
	}
	user, system := percent(prev.CPUUser, now.CPUUser), percent(prev.CPUSystem, now.CPUSystem)
	u := &structs.TaskResourceUsage{
		ResourceUsage: &structs.ResourceUsage{
			MemoryStats: &structs.MemoryStats{RSS: now.MemoryRSS, Swap: now.MemorySwap, Usage: now.MemoryRSS, Measured: []string{"RSS", "Swap", "Usage"}},
			CpuStats: &structs.CpuStats{
				UserMode: user, SystemMode: system, Percent: user + system,
				TotalTicks: (user + system) / 100 * s.MHzPerCore,
				Measured:   []string{"System Mode", "User Mode", "Percent"},
			},
		},
		Timestamp: now.Timestamp.UnixNano(), Pids: map[string]*structs.ResourceUsage{},
	}
	for _, pid := range now.Pids {
		u.Pids[strconv.Itoa(pid)] = &structs.ResourceUsage{MemoryStats: &structs.MemoryStats{}, CpuStats: &structs.CpuStats{}}
	}
	return u
}

func add(sum, u *structs.ResourceUsage) {
	m, c := sum.MemoryStats, sum.CpuStats
	m.RSS += u.MemoryStats.RSS
	m.Swap += u.MemoryStats.Swap
	m.Usage += u.MemoryStats.Usage
	m.Measured = u.MemoryStats.Measured
	c.UserMode += u.CpuStats.UserMode
	c.SystemMode += u.CpuStats.SystemMode
	c.Percent += u.CpuStats.Percent
	c.TotalTicks += u.CpuStats.TotalTicks
	c.Measured = u.CpuStats.Measured
}
