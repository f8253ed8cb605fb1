package client

import (
	"fmt"

	"github.com/nomadish/nomadish/client/alloc"
)

// restore takes up the allocations of an earlier life of the agent: tasks that run
// are found again now, nothing is started before the servers were heard.
func (n *node) restore() error {
	records, err := n.store.Load()
	if err != nil {
		// What is unreadable is lost; the rest must not be.
		n.logger.Error("some allocations' state cannot be read", "error", err)
	}
	n.rooms.Lock() // what an allocation reports about its phase before it is known here can wait
	defer n.rooms.Unlock()
	for _, rec := range records {
		if rec.Alloc.Job == nil {
			n.store.Delete(rec.Alloc.ID, nil)
			continue
		}
		dir, err := n.allocDir(rec.Alloc.ID)
		if err != nil {
			return fmt.Errorf("restore allocation %s: %w", rec.Alloc.ID, err)
		}
		r, err := alloc.Restore(n.allocConfig(), dir, rec.Alloc, rec.Run)
		if err != nil {
			n.logger.Error("an allocation's state cannot be used", "alloc_id", rec.Alloc.ID, "error", err)
			n.store.Delete(rec.Alloc.ID, nil)
			continue
		}
		n.mu.Lock()
		n.runners[r.ID()] = r
		n.mu.Unlock()
		if _, ended := r.EndedAt(); ended {
			continue
		}
		switch {
		case r.Phase() == alloc.PhaseSuspended || r.Phase() == alloc.PhaseResuming:
			n.claims.keep(r.ID(), needOf(r.Alloc()))
		case r.HasRun():
			n.claims.claim(r.ID(), needOf(r.Alloc()), true, nil)
		}
		n.restored = append(n.restored, r)
		n.Room(r.ID()) // it may have been found suspended meanwhile
	}
	return nil
}
