package alloc

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// GroupPool assigns group IDs that stand for one allocation each. The allocation's directory belongs to its group,
// and only the allocation's tasks have that group, so a task reaches no other allocation's files even where both run as
// one user. Nothing is written down: the directories below base record which IDs are in use.
type GroupPool struct {
	base     string
	min, max int

	mu    sync.Mutex
	next  int          // 0 before the first one was taken
	inUse map[int]bool // as of the last scan of base, and those assigned since
}

// NewGroupPool returns a pool of the IDs from min to max for the allocations below base; nil if min is 0.
func NewGroupPool(base string, min, max int) *GroupPool {
	if min <= 0 || max < min {
		return nil
	}
	return &GroupPool{base: base, min: min, max: max}
}

// has reports whether an ID is one of the pool's.
func (p *GroupPool) has(gid int) bool { return p != nil && p.min <= gid && gid <= p.max }

// assign assigns a directory to a group of its own and returns that; -1 if there is none, as all are in use or the
// machine does not allow it.
func (p *GroupPool) assign(dir string) (int, error) {
	if p == nil {
		return -1, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == 0 {
		// A group that an earlier life of the agent assigned may still be a process's that has escaped from its task.
		p.next = p.min + rand.IntN(p.max-p.min+1) // not a secret
		if err := p.scan(); err != nil {
			return -1, err
		}
	}
	for looked := false; ; {
		for range p.max - p.min + 1 {
			gid := p.next
			if p.next++; p.next > p.max {
				p.next = p.min
			}
			if p.inUse[gid] {
				continue
			}
			err := os.Lchown(dir, 0, gid)
			if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission) {
				return -1, nil // as in a user namespace without such groups
			}
			if err != nil {
				return -1, fmt.Errorf("allocation directory: %w", err)
			}
			p.inUse[gid] = true
			return gid, nil
		}
		if looked {
			return -1, nil
		}
		looked = true
		if err := p.scan(); err != nil { // allocations have been removed since
			return -1, err
		}
	}
}

// scan finds out which IDs are in use.
func (p *GroupPool) scan() error {
	entries, err := os.ReadDir(p.base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("groups of allocations: %w", err)
	}
	p.inUse = map[int]bool{}
	for _, e := range entries {
		if gid := groupOfDir(filepath.Join(p.base, e.Name())); p.has(gid) {
			p.inUse[gid] = true
		}
	}
	return nil
}

// groupOfDir returns the group that a directory belongs to, -1 if that is not known.
func groupOfDir(path string) int {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}
