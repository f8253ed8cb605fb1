package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/nomadish/gossip"
	"github.com/nomadish/nomadish/nomadish/raftnode"
	"github.com/nomadish/nomadish/structs"
)

// Readable returns an error that names the servers of Raft's configuration which do not know a type of log entries, or of which
// that is not known: they would stop at such an entry.
func (c *RaftServers) Readable(t structs.LogType) error {
	f := c.GetConfiguration()
	if err := f.Error(); err != nil {
		return raftnode.WrapError(err)
	}
	byID := map[string]gossip.Server{}
	for _, s := range c.pool.Servers() {
		if was, ok := byID[s.ID]; !ok || !was.Alive() { // one that left under another name shows what it once was
			byID[s.ID] = s
		}
	}
	var older, unseen []string
	for _, one := range f.Configuration().Servers {
		switch s, ok := byID[string(one.ID)]; {
		case !ok:
			unseen = append(unseen, fmt.Sprintf("%s at %s", one.ID, one.Address))
		case s.Entries < t:
			older = append(older, fmt.Sprintf("%s (version %s)", s.Name, s.Version))
		}
	}
	slices.Sort(older)
	switch {
	case len(older) > 0:
		return structs.Errorf(structs.CodeUnsupported, "nothing was done: it takes a log entry of type %d, which not all servers of this region know yet", t).
			WithHint("upgrade %s", strings.Join(older, ", "))
	case len(unseen) > 0:
		return structs.Errorf(structs.CodeUnsupported, "nothing was done: it takes a log entry of type %d, and whether all servers of this region know it is not known, as gossip does not see %s",
			t, strings.Join(unseen, ", ")).
			WithHint("start them, or remove those that are lost: operator raft remove-peer")
	}
	return nil
}
