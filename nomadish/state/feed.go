package state

import (
	"iter"

	"github.com/nomadish/nomadish/nomadish/state/internal/ring"
)

// Kind is what a Change is about.
type Kind uint8

// The kinds, with what Change.Old and Change.New hold.
const (
	KindJob            Kind = iota + 1 // *structs.Job
	KindEval                           // *structs.Evaluation
	KindAlloc                          // *AllocRow
	KindNode                           // *structs.Node
	KindConfig                         // *structs.SchedulerConfiguration
	KindReservation                    // *structs.Reservation; Key is the node ID
	KindRequest                        // *structs.PendingRequest; Key is namespace/job/group, Type one of RequestWaiting …
	KindNodePool                       // *structs.NodePool
	KindVirtualCluster                 // *structs.VirtualCluster; Key is the namespace
	KindExchange                       // *structs.Exchange; Key is its ID
	KindProject                        // *structs.Project, *structs.CalendarEdit or *structs.Flow; Key is its name, or the project's
	KindWorkflow                       // *structs.WorkflowRun; Key is namespace/id
	KindLicense                        // *structs.License; Key is its name
)

// Change is one thing that a commit changed. Old and New are shared values, never
// to be changed: a created thing has Old nil, a deleted one New nil.
type Change struct {
	Kind     Kind
	Key      string // ID; for a job namespace/id
	Old, New any
	Type     string // the event type, as Nomad's stream names it
}

// Changes is all that the entry at Index changed, in the order of its making.
type Changes = ring.Batch[Change]

// Feed reads the changes of commits in order; Next waits for the next commit that changed something that a Change reports. It is for one
// goroutine and needs no closing.
type Feed = ring.Feed[Change]

// ErrFellBehind reports that the changes that a consumer of a feed has not seen are gone: read all of a snapshot and take a new feed
// from its index.
var ErrFellBehind = ring.ErrFellBehind

// Feed returns a feed of the commits after an index: a snapshot's, usually.
func (s *Store) Feed(after uint64) *Feed { return s.ring.Feed(after) }

// FeedKept is Feed, but where commits after the index are not kept any more it begins
// with the first that is. It is for those who do without what they missed.
func (s *Store) FeedKept(after uint64) *Feed { return s.ring.FeedKept(after) }

// changedAllocs walks the IDs of the allocations that commits have changed.
func changedAllocs(feed []Changes) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range feed {
			for i := range c.Items {
				if c.Items[i].Kind == KindAlloc && !yield(c.Items[i].Key) {
					return
				}
			}
		}
	}
}
