package nomadish

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/structs"
)

// fullDiskCheckInterval is how often a leader with a full disk looks for another that could lead.
const fullDiskCheckInterval = time.Second

// stepDownWhileFull reports to the others when the disk is full, and when there is room again, and transfers
// leadership meanwhile, to one that has room.
func (s *Server) stepDownWhileFull(ctx context.Context) {
	room := s.raft.Disk()
	tick := time.NewTicker(fullDiskCheckInterval)
	defer tick.Stop()
	reported, tried := "", false
	for {
		now := room.State()
		if now.Full == "" {
			tried = false
		} else if s.raft.State() == raft.Leader {
			tried = s.transferToServerWithRoom(ctx, tried)
		}
		if full := now.Full != ""; full != (reported != "") {
			tag := ""
			if full {
				tag = "full: " + now.Room.String()
			}
			if err := s.gossip.SetTag(gossip.TagDisk, tag); err != nil {
				s.logger.Warn("report this server's full disk to the other servers; trying again", "error", err)
			} else {
				reported = tag
			}
		}
		select {
		case <-room.Changed():
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// transferToServerWithRoom transfers leadership to a voter that is there and has room, whichever takes it first. It reports whether
// it has reported that there is none.
func (s *Server) transferToServerWithRoom(ctx context.Context, logged bool) bool {
	f := s.raft.GetConfiguration()
	if f.Error() != nil {
		return logged
	}
	able := map[string]bool{}
	for _, one := range s.gossip.Servers() {
		able[one.ID] = one.Alive() && !one.DiskFull
	}
	for _, one := range f.Configuration().Servers {
		if one.Suffrage != raft.Voter || string(one.ID) == s.raft.ID() || !able[string(one.ID)] {
			continue
		}
		err := s.raft.Transfer(ctx, one.ID, one.Address)
		if err == nil || ctx.Err() != nil || s.raft.State() != raft.Leader {
			return false
		}
		s.logTransfer(one.ID, err)
	}
	if !logged {
		s.logger.Error("no other server can lead in place of this one, whose disk is full: reads are answered, writes are refused")
	}
	return true
}

// logTransfer logs that leadership could not be transferred. It is tried each second; a server to which that failed within the last minute
// is refused, and was logged then.
func (s *Server) logTransfer(to raft.ServerID, err error) {
	if structs.CodeOf(err) != structs.CodeConflict {
		s.logger.Warn("transfer leadership, as this server's disk is full; trying another server, and this one again in a minute", "to", to, "error", err)
	}
}
