package httpapi

import (
	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

// queueList returns the queue in its order, a page of it: of one node pool with
// ?node_pool=…, else those of all pools one after the other.
func queueList(r *request) (any, error) {
	args := structs.QueueRequest{NodePool: r.query.Get("node_pool"), QueryOptions: r.opts}
	return readList(r, wire.MethodQueue, &args, func(a *structs.QueueReply) []*structs.QueueEntry { return a.Entries })
}
